"""Run strategies over recordings, and make figures of the result. `api.py` is what notebooks use, `cli/` the commands."""

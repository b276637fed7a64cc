"""Run strategies over recordings and make figures of it. Notebooks use `api.py`; the commands are in `cli/`."""

"""Run strategies over recordings and make figures of it. Notebooks use `api/`; the commands are in `cli/`."""

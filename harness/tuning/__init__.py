"""Searching a strategy's parameters on recordings, for the frontier of cost and quality (`ctxbench tune`).

`asked.py` reads a strategy with `?` for values, `space.py` and `ranges.py` say what values each may take, `split.py`
holds conversations out, `trying.py` runs one setting and measures it, `figures.py` has what it comes to, `search.py`
chooses the next ones (Optuna), `trials.py` keeps them, `folder.py` says where, `tune.py` puts it together and
measures the frontier on what was held out. Decision 31.
"""

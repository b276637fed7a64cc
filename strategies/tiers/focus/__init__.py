"""The Focus tier: what a model is sent, within a hard limit (design document 004 §2.1, §5.4).

    tier = Focus(limit=8192, truncation="importance").open()
    found = tier.send(messages)          # after each new message, all of them
    found.messages, found.overflow, found.refused

It needs nothing of the harness, and is the strategy `focus` in it. `strategy.py` has the parameters, `opened.py` one
conversation under it, `space.py` how the limit is shared out, `alone.py` the desk that it uses without a harness; of
the truncations `newest.py`, `importance.py`, `summarised.py` and `merged.py`. Decision 19 has the figures.
"""

from __future__ import annotations

from .session import BudgetUse, Focused, FocusSession
from .strategy import Focus

__all__ = ["Focus", "Focused", "FocusSession", "BudgetUse"]

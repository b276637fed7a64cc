"""The Focus tier: the messages a model is sent, within a hard token limit (design document 004 §2.1, §5.4).

    tier = Focus(limit=8192, truncation="importance").open()
    request = tier.send(messages)        # after each new message, the whole conversation
    request.messages, request.overflow, request.over_budget

It works without the harness; inside it is the strategy `focus`. `strategy.py` has the strategy, one conversation under
it and its token budget, `truncation.py` the four ways to cut a conversation. Decision 19 has the figures.
"""

from __future__ import annotations

from .strategy import BudgetUse, Focus, Focused, FocusSession

__all__ = ["BudgetUse", "Focus", "FocusSession", "Focused"]

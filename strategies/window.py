"""S1, `window`: the newest messages within a budget (design documents 003 §3.2 and §6, 000 §1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ctxbench.metrics.models import window_of
from ctxbench.scenarios.spec import PositiveInt, ShareBelowOne

from .base import Context, StrategyContext, View
from .events import OverBudget
from .parts.units import require_one_limit, room_beside_systems, select_newest


@dataclass(frozen=True, slots=True)
class Window:
    """The newest messages that fit; older ones are dropped without a trace.

    `max_tokens` (or `model`, for that model's context window) limits tokens: the messages sent take at most
    `max_tokens * (1 - reserve)`, counted exactly. `messages` limits their number, system messages aside. At least one
    limit must be given. Where it can, the window begins with a user's message, as providers reject other requests: with
    that which opened the turn (beyond `messages`), if it fits beside the newest message, or with the first of a later
    turn, whichever sends more. `user_first=False` sends the newest messages alone, which is the design's letter.

    Every system message stays, in its place, and counts. A tool call and its results stay or go together. If the
    newest message does not fit, only system messages are sent, and `OverBudget` is recorded: the context shows as
    empty. System messages that alone are over the budget are an error (`SystemOverBudget`).

    Example: window 8000, history 9500 → at most 7200 tokens are sent.
    """

    max_tokens: PositiveInt | None = None
    messages: PositiveInt | None = None
    model: str | None = None
    reserve: ShareBelowOne = 0.1
    user_first: bool = True

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "the answer is older than the window; each dropped message also moves the cached prefix"
    family: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        if self.max_tokens is None and self.messages is None and self.model is None:
            raise ValueError("give max_tokens, messages or model, as in window(max_tokens=8000)")
        require_one_limit(self.max_tokens, self.model)
        if self.model is not None:
            window_of(self.model)

    @property
    def budget(self) -> int | None:
        """Tokens that the messages sent never exceed, if tokens are limited."""
        size = window_of(self.model) if self.model is not None else self.max_tokens
        return None if size is None else int(size * (1 - self.reserve))

    def start(self, services: StrategyContext) -> View:
        budget, most = self.budget, self.messages

        def view(context: Context) -> Context:
            history = context.messages
            start = 0 if most is None else max(0, len(history) - most)
            while (
                most is not None and start > 0 and len(history) - start - len(services.systems(history[start:])) < most
            ):
                start -= 1
            if start == 0 and (budget is None or services.total(history) <= budget):
                return context
            room = None if budget is None else room_beside_systems(services, history, budget)
            head, tail = select_newest(services, history, start, room, self.user_first)
            if room is not None and budget is not None and not tail:
                newest = next((each for each in reversed(history) if each.role != "system"), history[-1])
                tokens = budget - room + services.tokens(newest)
                services.record(OverBudget("the newest message does not fit", tokens, budget))
            return context.sending(head + tail)

        return view

"""S1, `window`: the newest messages within a budget (design documents 003 §3.2 and §6, 000 §1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..metrics.models import window_of
from ..scenarios.view import Messages
from .base import Context, StrategyContext, View
from .events import OverBudget
from .parts.units import at_least, newest, one_limit


@dataclass(frozen=True, slots=True)
class Window:
    """The newest messages that fit; what is older is dropped without a trace.

    `max_tokens` (or `model`, for that model's context window) limits tokens: the messages sent take at most
    `max_tokens * (1 - reserve)`, counted exactly. `messages` limits their number, system messages aside. Both may be
    given; one must be. Where the window begins within a turn, the user message that opened the turn stays as well, if
    it fits beside the newest message (beyond `messages`): providers refuse requests without one. `user_first=False` is
    the document's letter, which drops it.

    Every system message stays, in its place, and counts. A tool call and its results stay or go together. If the
    system messages alone are over the budget, or the newest message does not fit, system messages are all that is
    sent, and `OverBudget` is recorded: it shows as an empty context, and over budget if they are.

    The document's example holds: window 8000, history 9500 → at most 7200 are kept.
    """

    max_tokens: int | None = None
    messages: int | None = None
    model: str | None = None
    reserve: float = 0.1
    user_first: bool = True

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "003 §3.2 and §6, 000 §1.1"
    fails: ClassVar[str] = "what matters was said before the window; each dropped message also moves the cached prefix"

    def __post_init__(self) -> None:
        if self.max_tokens is None and self.messages is None and self.model is None:
            raise ValueError("give max_tokens, messages or model")
        one_limit(self.max_tokens, self.model)
        at_least(1, below=2**53, max_tokens=self.max_tokens, messages=self.messages)
        at_least(0, below=1, reserve=self.reserve)
        if self.model is not None:
            window_of(self.model)

    @property
    def budget(self) -> int | None:
        """Tokens that the messages sent may take."""
        size = window_of(self.model) if self.model is not None else self.max_tokens
        return None if size is None else int(size * (1 - self.reserve))

    def start(self, desk: StrategyContext) -> View:
        budget, most = self.budget, self.messages

        def view(context: Context) -> Context:
            history = context.messages
            room = None if budget is None else budget - desk.total(desk.systems(history))
            start = 0 if most is None else _last(desk, history, most)
            if start == 0 and (budget is None or desk.total(history) <= budget):
                return context
            head, tail = newest(desk, history, start, room, self.user_first)
            if room is not None and budget is not None and not (tail and tail[-1] is history[-1]):
                self._refuse(desk, history, budget, room)
            return context.sending(head + tail)

        return view

    def _refuse(self, desk: StrategyContext, history: Messages, budget: int, room: int) -> None:
        if room < 0:
            desk.record(OverBudget("the system messages alone are over the budget", budget - room, budget))
        else:
            tokens = budget - room + desk.tokens(history[-1])
            desk.record(OverBudget("the newest message does not fit", tokens, budget))


def _last(desk: StrategyContext, history: Messages, most: int) -> int:
    """Where the last `most` messages that are not the system's start."""
    start = max(0, len(history) - most)
    while start > 0 and len(history) - start - len(desk.systems(history[start:])) < most:
        start -= 1
    return start

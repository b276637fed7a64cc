"""S1, `window`: the newest messages within a budget (design documents 003 §3.2 and §6, 000 §1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ctxbench.metrics.models import window_of
from ctxbench.scenarios.spec import PositiveInt, ShareBelowOne

from .base import Context, StrategyContext, View
from .events import OverBudget
from .parts.units import require_one_limit, select_newest


@dataclass(frozen=True, slots=True)
class Window:
    """The newest messages that fit; older ones are dropped without a trace.

    `max_tokens` (or `model`, for that model's context window) limits tokens: the messages sent take at most
    `max_tokens * (1 - reserve)`, counted exactly. `messages` limits their number, system messages aside. At least one
    limit must be given. Where the window begins within a turn, the user message that opened the turn stays as well
    (beyond `messages`), if it fits beside the newest message: providers reject requests without one.
    `user_first=False` drops it, which is the design's letter.

    Every system message stays, in its place, and counts. A tool call and its results stay or go together. If the
    system messages alone are over the budget, or the newest message does not fit, only system messages are sent, and
    `OverBudget` is recorded: the context shows as empty, and as over budget if the system messages are.

    Example: window 8000, history 9500 → at most 7200 tokens are sent.
    """

    max_tokens: PositiveInt | None = None
    messages: PositiveInt | None = None
    model: str | None = None
    reserve: ShareBelowOne = 0.1
    user_first: bool = True

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "the answer is older than the window; each dropped message also moves the cached prefix"

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
            room = None if budget is None else budget - services.total(services.systems(history))
            start = 0 if most is None else max(0, len(history) - most)
            while (
                most is not None and start > 0 and len(history) - start - len(services.systems(history[start:])) < most
            ):
                start -= 1
            if start == 0 and (budget is None or services.total(history) <= budget):
                return context
            head, tail = select_newest(services, history, start, room, self.user_first)
            if room is not None and budget is not None and not (tail and tail[-1] is history[-1]):
                if room < 0:
                    services.record(OverBudget("the system messages alone are over the budget", budget - room, budget))
                else:
                    tokens = budget - room + services.tokens(history[-1])
                    services.record(OverBudget("the newest message does not fit", tokens, budget))
            return context.sending(head + tail)

        return view

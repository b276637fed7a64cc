"""The start of a history summarised, the rest as it is: what `summary` and `session_summary` have in common."""

from __future__ import annotations

from bisect import bisect_left

from ...scenarios.view import Messages
from ..base import Context, StrategyContext
from ..events import OverBudget
from .summarize import RunningSummary
from .units import Late, Spoken, newest


class Rolling:
    """A growing history of which the first `done` spoken messages are summarised, and what is sent of it."""

    __slots__ = ("_covered", "_desk", "_history", "_late", "_spoken", "_user_first", "done", "kept", "running")

    def __init__(self, desk: StrategyContext, running: RunningSummary, user_first: bool = True) -> None:
        self.running, self._user_first, self.done = running, user_first, 0
        self.kept = self._history = Messages()
        """The spoken messages that are not summarised."""
        self._desk, self._spoken, self._late = desk, Spoken(desk), Late(desk)
        self._covered: set[str] = set()

    def read(self, history: Messages) -> None:
        """Take the history as it is now.

        A stage before this one may have dropped summarised messages from its start: the summary goes on standing for
        them. One that is said again behind others is a message like any other.
        """
        same = self._spoken.read(history)
        said = self._spoken.messages
        if same < self.done:
            self.done = next((at for at, each in enumerate(said) if each.id not in self._covered), len(said))
        self.kept, self._history = said[self.done :], history
        self._late.read(said[max(same, self.done) :])

    @property
    def system_tokens(self) -> int:
        """Tokens of the history's system messages."""
        return self._desk.total(self._desk.systems(self._history))

    @property
    def tokens(self) -> int:
        """Tokens of what would be sent."""
        return self.system_tokens + self._desk.total(self.running.messages) + self._desk.total(self.kept)

    def upto(self, count: int) -> int:
        """How many of the first `count` kept messages can go so that calls and results stay together."""
        return max(0, self._spoken.units.before(self.done + count) - self.done)

    def beyond(self, count: int) -> int:
        """The same, but at least `count`; the newest unit stays."""
        starts = self._spoken.units.starts
        if not starts:
            return 0
        at = bisect_left(starts, self.done + count)
        return max(0, starts[min(at, len(starts) - 1)] - self.done)

    def summarise(self, count: int) -> bool:
        """Summarise the first `count` of the kept messages. False if there are none, or the model failed."""
        newly = self.kept[:count]
        if not newly or not self.running.take(newly):
            return False
        self._covered.update(message.id for message in newly)
        self._late.gone(newly)
        self.done += count
        self.kept = self.kept[count:]
        return True

    def sending(self, context: Context, budget: int | None) -> Context:
        """The context to send: system messages, summary, the rest, within the budget.

        If the rest goes on with a turn, the user message that opened it stays too, if that is wanted and it fits.
        """
        desk, history, summary = self._desk, context.messages, self.running.messages
        if not self.done and not summary and (budget is None or self.tokens <= budget):
            return context
        at = self._spoken.place(self.done)
        if budget is None or self.tokens <= budget:
            opening = desk.opening(history, at)
            fits = opening is None or budget is None or self.tokens + desk.tokens(history[opening]) <= budget
            head, tail = newest(desk, history, at, user_first=self._user_first and fits)
            return context.sending(head + summary + tail)
        desk.record(OverBudget("what is not summarised is over it, with the summary", self.tokens, budget))
        room = budget - self.system_tokens
        head, tail = newest(desk, history, at, room - desk.total(summary), self._user_first)
        if not self._says(tail):
            alone = newest(desk, history, at, room, self._user_first)
            if self._says(alone.tail):
                (head, tail), summary = alone, Messages()
            elif desk.total(summary) > room:
                summary = Messages()
        return context.sending(head + summary + tail)

    def _says(self, messages: Messages) -> bool:
        return len(messages) > len(self._desk.systems(messages))

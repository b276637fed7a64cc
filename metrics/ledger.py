"""Running token sums of one conversation: a stretch of the recording costs one subtraction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ..scenarios.model import Message
from ..scenarios.view import Messages, Span
from .tokens import TokenCounter


class Ledger:
    """Tokens of any messages, where those of the recording are counted once, in order, as they are said.

    Equal to `sum(counter.message(m) for m in messages)`, always; the tests compare the two.
    """

    __slots__ = ("_counter", "_made", "_recording", "_said", "_spoken")

    def __init__(self, counter: TokenCounter, recording: Sequence[Message]) -> None:
        self._counter, self._recording = counter, recording
        self._said = [0]
        self._spoken = [0]
        self._made: dict[int, tuple[Message, int]] = {}

    def advance(self, to: int) -> None:
        """Count the recording's messages before `to`, so that asking for them costs nothing later."""
        said, spoken = self._said, self._spoken
        for message in self._recording[len(said) - 1 : to] if to >= len(said) else ():
            tokens = self._counter.message(message)
            said.append(said[-1] + tokens)
            spoken.append(spoken[-1] + (tokens if message.role != "system" else 0))

    def upto(self, at: int) -> int:
        """Tokens of the recording's messages before `at`."""
        self.advance(at)
        return self._said[at]

    def running(self, to: int) -> list[int]:
        """Tokens of the recording's messages before each place from 0 to `to`."""
        self.advance(to)
        return self._said[: to + 1]

    def tokens(self, message: Message) -> int:
        """Tokens of one message."""
        found = self._made.get(id(message))
        if found is None:
            found = self._made[id(message)] = (message, self._counter.message(message))
        return found[1]

    def total(self, messages: Messages) -> int:
        """Tokens of messages together."""
        total = 0
        for span in messages.spans:
            total += self._span(span)
        return total

    def fit(self, messages: Messages, budget: int) -> int:
        """The smallest start such that messages[start:], system messages aside, take at most `budget` tokens."""
        start = len(messages)
        for store, first, last in reversed(messages.spans):
            if store is self._recording:
                self.advance(last)
                floor = self._spoken[last] - budget
                cut = bisect_left(self._spoken, floor, first, last) if floor > self._spoken[first] else first
                budget -= self._spoken[last] - self._spoken[cut]
                start -= last - cut
                if cut > first:
                    return start
                continue
            for at in range(last - 1, first - 1, -1):
                cost = self.tokens(store[at]) if store[at].role != "system" else 0
                if cost > budget:
                    return start
                budget -= cost
                start -= 1
        return start

    def _span(self, span: Span) -> int:
        store, start, stop = span
        if store is self._recording:
            if stop >= len(self._said):
                self.advance(stop)
            return self._said[stop] - self._said[start]
        return sum(self.tokens(message) for message in store[start:stop])

"""A history without its system messages: what strategies count, cut and summarise. The system's always stay."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ...scenarios.model import Message
from ...scenarios.view import Messages, Span
from ..base import Desk
from ..events import Dropped
from .units import Units


class Spoken:
    """The messages of a growing history that are not the system's, as units that stay or go together.

    A stage before this one may put other system messages into each call (facts, memories): what was read before is
    still the start of what is read now.
    """

    __slots__ = ("_before", "_desk", "messages", "units")

    def __init__(self, desk: Desk) -> None:
        self.messages = Messages()
        self.units = Units()
        self._desk = desk
        self._before: list[int] = []

    def read(self, history: Messages) -> int:
        """Take the history as it is now. Returns how many leading spoken messages are as they were at the last call."""
        systems = [(store, at) for store, start, stop in self._desk.systems(history).spans for at in range(start, stop)]
        systems.reverse()
        before: list[int] = []
        spans: list[Span] = []
        passed = 0
        for store, start, stop in history.spans:
            first = start
            while systems and systems[-1][0] is store and start <= systems[-1][1] < stop:
                at = systems.pop()[1]
                before.append(passed + at - first - len(before))
                if at > start:
                    spans.append(Span(store, start, at))
                start = at + 1
            if start < stop:
                spans.append(Span(store, start, stop))
            passed += stop - first
        self._before = before
        self.messages = Messages(spans)
        return self.units.read(self.messages)

    def place(self, at: int) -> int:
        """Where spoken message `at` stands in the history; the end of the history if `at` is their number."""
        return at + bisect_right(self._before, at)


class Late:
    """Results that come when their call is summarised: no provider takes them without it, so they are not sent.

    Each is recorded once (Dropped). A later round may take it into the summary.
    """

    __slots__ = ("_calls", "_desk", "_told")

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._calls: set[str] = set()
        self._told: set[str] = set()

    def gone(self, messages: Iterable[Message]) -> None:
        """These are summarised."""
        self._calls.update(call.id for message in messages for call in message.calls)

    def read(self, messages: Iterable[Message]) -> None:
        """These were said since, and are not summarised."""
        found = [each.id for each in messages if each.role == "tool" and each.answers in self._calls]
        late = [name for name in found if name not in self._told]
        if late:
            self._told.update(late)
            self._desk.record(Dropped(tuple(late)))

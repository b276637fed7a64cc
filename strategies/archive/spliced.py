"""A growing history with stand-ins in some places, at the cost of what changed."""

from __future__ import annotations

from bisect import bisect_left, insort

from ...scenarios.model import Message
from ...scenarios.view import Messages, Span


class Spliced:
    """The stand-ins for messages of a history, one message put before one of them, and the history with all these.

    What comes before the last stand-in is kept as stretches from call to call; what comes after it is the history's.
    """

    __slots__ = ("_before", "_covered", "_head", "_inserted", "_places", "_standing")

    def __init__(self) -> None:
        self._standing: dict[int, Message] = {}
        self._places: list[int] = []
        self._inserted: Span | None = None
        self._before = 0
        """The message that the inserted one comes before."""
        self._covered = 0
        """How much of the history the head stands for."""
        self._head: list[Span] = []

    def insert(self, history: Messages, before: int, message: Message) -> None:
        """Let a message, the only one of its kind, come before message `before` from here on."""
        if self._inserted is None or before != self._before:
            self._inserted, self._before = Span((message,), 0, 1), before
            self._rebuild(history)

    def put(self, history: Messages, at: int, message: Message) -> None:
        """Let a message stand for message `at` from here on. Cheapest in the order of the history."""
        new = at not in self._standing
        self._standing[at] = message
        if at >= self._covered:
            self._places.append(at)
            self._extend(history, at)
            return
        if new:
            insort(self._places, at)
        self._rebuild(history)

    def keep(self, history: Messages, size: int) -> None:
        """Forget what stands at or after message `size`, where the history is now another, and what was inserted."""
        self._places = self._places[: bisect_left(self._places, size)]
        self._standing = {at: self._standing[at] for at in self._places}
        self._inserted = None
        self._rebuild(history)

    def place(self, at: int) -> int:
        """Where message `at` of the history is in `messages`."""
        return at + (self._inserted is not None and at >= self._before)

    def messages(self, history: Messages) -> Messages:
        """The history with the stand-ins and what was inserted."""
        if self._inserted is None and not self._places:
            return history
        return Messages((*self._head, *self._stretch(history, self._covered, len(history))))

    def _rebuild(self, history: Messages) -> None:
        self._head, self._covered = [], 0
        for at in self._places:
            self._extend(history, at)

    def _extend(self, history: Messages, at: int) -> None:
        self._head += self._stretch(history, self._covered, at)
        if self._inserted is not None and self._before == at:
            self._head.append(self._inserted)
        self._head.append(Span((self._standing[at],), 0, 1))
        self._covered = at + 1

    def _stretch(self, history: Messages, start: int, stop: int) -> tuple[Span, ...]:
        """history[start:stop], with what is inserted before one of these (or at the end of all)."""
        if self._inserted is None or not (start <= self._before < stop or self._before == stop == len(history)):
            return history[start:stop].spans
        return (*history[start : self._before].spans, self._inserted, *history[self._before : stop].spans)

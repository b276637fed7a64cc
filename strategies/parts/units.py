"""What of a history can only stay or go together: a tool call and its results."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ...scenarios.model import Message
from ...scenarios.view import Messages, shared

NOTHING = Messages()


class Units:
    """A growing history as units: a message, or everything from a tool call to the last of its results.

    Each message is looked at once, as long as the history only grows. If its start changes (a stage before this one
    rewrote it), reading begins again where it differs.
    """

    __slots__ = ("_calls", "_read", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        """Where each unit starts, in order."""
        self._calls: dict[str, int] = {}
        self._read = NOTHING

    def read(self, history: Messages) -> int:
        """Bring the units up to date. Returns how many leading messages are as they were at the last reading."""
        same = shared(self._read, history)
        if same < len(self._read):
            self._forget()
            for at in range(same):
                self._enter(at, history[at])
        for at, message in enumerate(history[same:], same):
            self._enter(at, message)
        self._read = history
        return same

    def before(self, at: int) -> int:
        """The start of the unit that message `at` is in: the nearest place at or before it where a cut breaks nothing.

        `at` = the length of the history, where nothing is in a unit yet, is such a place itself.
        """
        if at >= len(self._read):
            return at
        return self.starts[bisect_right(self.starts, at) - 1]

    def bounds(self) -> list[tuple[int, int]]:
        """(start, stop) of each unit."""
        return list(zip(self.starts, [*self.starts[1:], len(self._read)], strict=True))

    def _enter(self, at: int, message: Message) -> None:
        call = self._calls.get(message.answers) if message.answers is not None else None
        if call is None:
            self.starts.append(at)
        else:
            while self.starts[-1] > call:
                self.starts.pop()
        for each in message.calls:
            self._calls[each.id] = at

    def _forget(self) -> None:
        self.starts, self._calls = [], {}


def turns(messages: Sequence[Message]) -> list[int]:
    """Where each turn starts: at every user message."""
    return [at for at, message in enumerate(messages) if message.role == "user"]

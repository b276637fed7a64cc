"""The context log: every context as the messages kept from the one before it, and the stretches added after them.

It grows with what changed, not with the square of the length; it is the shared prefix that cache models need; and
any context can be rebuilt from it (`rebuild`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..scenarios.model import Message
from ..scenarios.view import Messages, Span


class Log:
    """Writes the log of one cell: one conversation under one strategy."""

    __slots__ = ("_numbers", "_places", "_read", "_recording", "written")

    def __init__(self, recording: Sequence[Message]) -> None:
        self.written: list[Message] = []
        """The messages that the strategy wrote, in the order they were first sent."""
        self._recording = recording
        self._numbers: dict[Message, int] = {}
        self._places: dict[int, int] = {}
        self._read = 0

    def settled(self, messages: Messages, said: int) -> Messages:
        """The same messages as stretches of the recording wherever they are its own, however they were passed on.

        Only the first `said` messages of the recording count: a strategy cannot send the future.
        """
        recording = self._recording
        for span in messages.spans:
            if span.store is not recording:
                break
        else:
            return messages
        for at in range(self._read, said):
            self._places[id(recording[at])] = at
        self._read = max(self._read, said)
        made = Messages()
        for span in messages.spans:
            if span.store is recording:
                made = made + Messages((span,))
                continue
            spans: list[Span] = []
            for at in range(span.start, span.stop):
                place = self._places.get(id(span.store[at]))
                here = Span(span.store, at, at + 1) if place is None else Span(recording, place, place + 1)
                if spans and spans[-1].store is here.store and spans[-1].stop == here.start:
                    here = Span(here.store, spans.pop().start, here.stop)
                spans.append(here)
            made = made + Messages(spans)
        return made

    def stretches(self, messages: Messages) -> tuple[list[int], list[int]]:
        """Messages as the log has them: [from, to) of the recording; `from = -1 - n` is written message n."""
        starts: list[int] = []
        stops: list[int] = []
        for store, start, stop in messages.spans:
            if store is self._recording:
                starts.append(start)
                stops.append(stop)
                continue
            for message in store[start:stop]:
                number = self._numbers.setdefault(message, len(self.written))
                if number == len(self.written):
                    self.written.append(message)
                starts.append(-1 - number)
                stops.append(-number)
        return starts, stops


def rebuild(
    entries: Iterable[tuple[int, Sequence[int], Sequence[int]]],
    recording: Sequence[Message],
    written: Sequence[Message],
) -> Iterator[Messages]:
    """Every context of a cell from its log entries (kept, added_from, added_to), in order of the steps."""
    context = Messages()
    for kept, starts, stops in entries:
        context = context[:kept]
        for start, stop in zip(starts, stops, strict=True):
            span = Span(recording, start, stop) if start >= 0 else Span(written, -1 - start, -start)
            context = context + Messages((span,))
        yield context

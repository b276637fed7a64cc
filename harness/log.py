"""The context log: every context as the messages kept from the one before it, and the stretches added after them.

It grows with what changed, not with the square of the length; it is the shared prefix that cache models need; and
any context can be rebuilt from it (`rebuild`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..metrics.measure import Runs
from ..scenarios.model import Message, Tool
from ..scenarios.view import Messages, Span, shared
from ..strategies.base import Misfit
from ..strategies.events import Event
from .replay import Step, well_formed

NOTHING = Messages()


class Log:
    """The log of one cell, as it is written: one conversation under one strategy."""

    __slots__ = (
        "_numbers",
        "_places",
        "_recording",
        "decide_ns",
        "events",
        "marks",
        "runs",
        "sent",
        "tools",
        "wait_ns",
        "written",
    )

    def __init__(self, recording: Sequence[Message]) -> None:
        self.runs = Runs()
        self.marks: list[tuple[int, ...]] = []
        self.tools: list[tuple[Tool, ...]] = []
        self.decide_ns: list[int] = []
        self.wait_ns: list[int] = []
        self.events: list[tuple[int, Event]] = []
        """What the strategy did, with the number of the step."""
        self.written: list[Message] = []
        """The messages that the strategy wrote, in the order they were first sent."""
        self._recording = recording
        self._numbers: dict[Message, int] = {}
        self._places: dict[int, int] | None = None
        self.sent = NOTHING
        """What was sent at the newest step."""

    def add(self, step: Step) -> None:
        """Enter the next step. Raises Misfit for a message that cannot be written, and marks where no message is."""
        recording, runs, sent = self._recording, self.runs, step.context.messages
        marks = step.context.marks
        if marks and not 0 <= min(marks) <= max(marks) < len(sent):
            raise Misfit(f"the marks of the Context are {marks}, and it has {len(sent)} messages, from 0")
        for span in sent.spans:
            if span.store is not recording:
                sent = self.settled(sent, step.at)
                break
        entries = 0
        for store, start, stop in sent.spans:
            if store is recording:
                runs.start.append(start)
                runs.stop.append(stop)
                entries += 1
                continue
            for message in store[start:stop]:
                number = self._numbers.setdefault(message, len(self.written))
                if number == len(self.written):
                    well_formed(message, Message)
                    self.written.append(message)
                runs.start.append(len(recording) + number)
                runs.stop.append(len(recording) + number + 1)
                entries += 1
        runs.at.append(step.at)
        runs.size.append(entries)
        same_tools = bool(self.tools) and step.context.tools == self.tools[-1]
        runs.same_tools.append(same_tools)
        runs.kept.append(shared(self.sent, sent) if same_tools else 0)
        self.marks.append(marks)
        self.tools.append(step.context.tools)
        self.events += [(len(self.decide_ns), event) for event in step.events]
        self.decide_ns.append(step.decide_ns)
        self.wait_ns.append(step.wait_ns)
        self.sent = sent

    def number(self, message: Message) -> int | None:
        """The number of a message among those that the strategy wrote; None if it has not sent it at a step."""
        return self._numbers.get(message)

    def settled(self, messages: Messages, said: int) -> Messages:
        """The same messages as stretches of the recording wherever they are its own, however they were passed on.

        Only the first `said` messages of the recording count: a strategy cannot send the future.
        """
        recording = self._recording
        if self._places is None:
            self._places = {id(message): at for at, message in enumerate(recording)}
        made: list[Span] = []
        for span in messages.spans:
            if span.store is recording:
                _join(made, span)
                continue
            for at in range(span.start, span.stop):
                place = self._places.get(id(span.store[at]), said)
                _join(made, Span(recording, place, place + 1) if place < said else Span(span.store, at, at + 1))
        return Messages(made)


def _join(spans: list[Span], more: Span) -> None:
    """Add a span, as part of the last one where it goes on from there."""
    if spans and spans[-1].store is more.store and spans[-1].stop == more.start:
        more = Span(more.store, spans.pop().start, more.stop)
    spans.append(more)


def rebuild(
    entries: Iterable[tuple[int, Sequence[int], Sequence[int]]],
    recording: Sequence[Message],
    written: Sequence[Message],
) -> Iterator[Messages]:
    """Every context of a cell from its log entries (kept, added_from, added_to), in order of the steps.

    Numbers below the recording's length are its messages, those from there on the written ones.
    """
    context, size = NOTHING, len(recording)
    for kept, starts, stops in entries:
        context = context[:kept]
        for start, stop in zip(starts, stops, strict=True):
            span = Span(recording, start, stop) if start < size else Span(written, start - size, stop - size)
            context = context + Messages((span,))
        yield context

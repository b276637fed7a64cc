"""Messages of a session that was written live, taken in one by one, with what damage and clocks did to them mended."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from ..errors import Place, RecordingError
from ..model import Message
from ..source import Problems
from .clock import forward


@dataclass(slots=True)
class History:
    """What has been said so far.

    A result whose call stands on no line before it (the line was damaged) is left out, and is a problem. Times that
    run backwards are left out alone, as few as may be, and are none: results of parallel tools, and of tools that ran
    while the answer still streamed, are recorded in the order of their calls.
    """

    problems: Problems
    messages: list[Message] = field(default_factory=list)
    _calls: set[str] = field(default_factory=set)

    def say(self, message: Message, place: Place) -> None:
        """Take in the next message, which stands at `place`."""
        if message.role == "tool" and message.answers not in self._calls:
            what = f"tool result for {message.answers!r}, which no message before it called"
            self.problems.add(RecordingError(place, what, "left out; restore the line with the call"))
            return
        self._calls.update(call.id for call in message.calls)
        self.messages.append(message)

    def told(self) -> tuple[Message, ...]:
        """All messages, once all are taken in."""
        times, _ = forward(message.time for message in self.messages)
        mended = zip(self.messages, times, strict=True)
        return tuple(m if m.time == time else msgspec.structs.replace(m, time=time) for m, time in mended)

    @property
    def last(self) -> str:
        """The id of the last message; empty before the first."""
        return self.messages[-1].id if self.messages else ""

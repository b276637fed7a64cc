"""Telemetry of OpenClaw: JSON Lines of events, as its plug-in writes them for the agents of one machine.

    {type: "agent.start" | "agent.end", sessionKey, agentId, prompt, messages: [pi's messages, with usage]}
    {type: "tool.start" | "tool.end" | "message.in" | "message.sending" | "message.out", …}

Source: github.com/knostic/openclaw-telemetry and github.com/schwartzadev/openclaw-telemetry-hal, whose version has the
messages. They are no spans: at the start and the end of each run of an agent its whole history is written, in the form
of pi (`pi.py`), on which OpenClaw is built. The longest history of a session is the conversation; one that does not
begin with the history before it (a reset, a compaction) is the next (`<session>.2` …). What was said after the last of
them is not in the file, and neither are system prompts and tools. The other events repeat parts of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation, Message
from ..source import Problems, decode, objects
from . import Recordings
from .messages import History
from .pi import AgentMessage, agent_message
from .requests import numbered

_REPEATING = ("tool.start", "tool.end", "message.in", "message.sending", "message.out")
_SUMMARY = "compactionSummary"


class _Event(msgspec.Struct, rename="camel"):
    type: str
    session_key: str = ""
    messages: list[msgspec.Raw] | None = None


class _Stamped(msgspec.Struct):
    role: str
    timestamp: float | None = None
    summary: str = ""


@dataclass(slots=True)
class _Session:
    """Histories of one session: those that are over, and the current one."""

    histories: list[tuple[Place, list[bytes]]] = field(default_factory=list)

    def add(self, history: list[bytes], place: Place) -> None:
        """Add the next history, which mostly goes on with the one before it."""
        if self.histories:
            latest = self.histories[-1][1]
            if latest[: len(history)] == history:
                return
            if history[: len(latest)] == latest:
                self.histories.pop()
        self.histories.append((place, history))


@dataclass(frozen=True, slots=True)
class OpenClawTelemetry:
    """Telemetry of OpenClaw's agents."""

    about: ClassVar[str] = "OpenClaw telemetry events with messages (JSON Lines)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".type", ".sessionKey", ".agentId", ".prompt"}),
        frozenset({".type", ".sessionKey", ".agentId", ".messages", ".messages[].role"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            sessions: dict[str, _Session] = {}
            for place, raw in objects(path, problems):
                try:
                    event = decode(raw, _Event, place)
                except RecordingError as error:
                    problems.add(error)
                    continue
                if event.messages:
                    sessions.setdefault(event.session_key, _Session()).add(list(map(bytes, event.messages)), place)
                elif event.type.startswith("agent."):
                    sessions.setdefault(event.session_key, _Session())
                elif event.type not in _REPEATING:
                    problems.unknown(f"openclaw_telemetry: event of type {event.type!r}", place)
            for name, session in sessions.items():
                if not session.histories:
                    problems.unknown("openclaw_telemetry: agent without a history", Place(str(path)))
                yield from _conversations(name or path.stem, session, problems)


def _conversations(name: str, session: _Session, problems: Problems) -> Recordings:
    for number, (place, recorded) in enumerate(session.histories, 1):
        history = History(problems)
        for at, raw in enumerate(recorded):
            where = place.at(f"messages[{at}]")
            with problems.collect():
                for message in _message(raw, f"m{at}", where, problems):
                    history.add(message, where)
        if history.messages:
            yield place, Conversation(numbered(name, number), history.in_order())


def _message(raw: bytes, name: str, place: Place, problems: Problems) -> Iterator[Message]:
    """Yield a message; its time is when it began, so that an answer has none."""
    stamped = decode(raw, _Stamped, place)
    time = None if stamped.timestamp is None or stamped.role == "assistant" else stamped.timestamp / 1000
    if stamped.role == _SUMMARY:
        yield Message(name, "user", stamped.summary, name=_SUMMARY, time=time)
        return
    kind: Any = AgentMessage
    message = agent_message(decode(raw, kind, place), name, time, "", place, problems)
    if message is not None:
        yield message

"""goose sessions: JSON Lines (`~/.local/share/goose/sessions/<id>.jsonl`, up to version 1.9), or an export as JSON.

    {working_dir, description, accumulated_input_tokens …}   the first line, then a message a line
    {id, name, working_dir, conversation: [messages]}        `goose session export --format json`

    message: {role, created, content: [{type: "text" | "image" | "thinking"} ·
      {type: "toolRequest", id, toolCall: {status, value: {name, arguments}}} ·
      {type: "toolResponse", id, toolResult: {status, value: [blocks] | {content: [blocks]}, error}}],
      metadata: {userVisible, agentVisible}}

Source: github.com/block/goose, `crates/goose/src/conversation/message.rs`, by its code; tested on written examples
alone. There are no models, no tool schemas, no system prompt and no usage of single calls: totals are in `meta`. Times
are whole seconds.

- Messages that the agent alone sees, behind some that it sees no more, are the summary of a compaction; the messages
  before them stay in the history.
- A tool's error is its result. Requests for confirmation and notices are not sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..media import sized
from ..model import Call, Compaction, Conversation, Media, Message, Scalar, ToolCall
from ..source import Problems, convert, decode, records
from . import Reader, Recordings
from .messages import History, texts

_UNSENT = (
    *("toolConfirmationRequest", "actionRequired", "systemNotification", "conversationCompacted", "redactedThinking"),
    *("summarizationRequested", "contextLengthExceeded"),
)
_TOTALS = ("accumulated_input_tokens", "accumulated_output_tokens", "accumulated_total_tokens")


class _Outcome(msgspec.Struct):
    status: str = ""
    value: Any = None
    error: str | None = None


class _Called(msgspec.Struct):
    name: str
    arguments: Any = None


class _Part(msgspec.Struct, rename="camel"):
    type: str
    text: str = ""
    thinking: str = ""
    data: str = ""
    id: str = ""
    tool_call: _Outcome | None = None
    tool_result: _Outcome | None = None


class _Visibility(msgspec.Struct, rename="camel"):
    user_visible: bool = True
    agent_visible: bool = True


class _Message(msgspec.Struct):
    role: str
    content: list[_Part]
    created: float | None = None
    metadata: _Visibility = msgspec.field(default_factory=_Visibility)


class Goose(Reader):
    """Sessions of goose."""

    about = "goose sessions (JSON Lines, exported JSON)"
    shapes = (frozenset({".working_dir", ".conversation", ".conversation[].role", ".conversation[].content[].type"}),)

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is JSON Lines with goose's first line, which no message resembles."""
        first, _, rest = head.partition(b"\n")
        about = first.startswith(b"{") and b'"working_dir"' in first and b'"role"' not in first
        return path.suffix == ".jsonl" and about and b'"created"' in rest and b'"role"' in rest

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            session = _Session(problems)
            for place, raw in records(path, problems):
                with problems.collect():
                    record = decode(raw, dict, place)
                    if "role" in record:
                        session.add(record, place)
                        continue
                    session.describe(record)
                    conversation = record.get("conversation")
                    if isinstance(conversation, list):
                        for at, message in enumerate(conversation):
                            session.try_add(message, place.at(f"conversation[{at}]"))
            if session.history.messages:
                yield Place(str(path)), session.conversation(path.stem)


@dataclass(slots=True)
class _Session:
    """A session, to which its messages are added one by one."""

    problems: Problems
    history: History = field(init=False)
    name: str = ""
    meta: dict[str, Scalar] = field(default_factory=dict)
    compactions: list[Compaction] = field(default_factory=list)
    _names: count[int] = field(default_factory=count)
    _hidden: bool = False
    _ended: bool = True
    """Whether the next message for the agent alone begins another compaction."""

    def __post_init__(self) -> None:
        self.history = History(self.problems)

    def describe(self, record: dict[str, Any]) -> None:
        """Take what a record says of the session as a whole."""
        name = record.get("id")
        self.name = name if isinstance(name, str) else self.name
        for total in _TOTALS:
            if isinstance(record.get(total), int) and record[total]:
                self.meta[total] = record[total]

    def try_add(self, recorded: Any, place: Place) -> None:
        """Add the next message, or report why it cannot be read."""
        with self.problems.collect():
            self.add(recorded, place)

    def add(self, recorded: Any, place: Place) -> None:
        """Add the next message. Raises RecordingError if it cannot be read."""
        message = convert(recorded, _Message, place)
        seen, messages = message.metadata, list(self._messages(message, place))
        if seen.agent_visible and not seen.user_visible and self._hidden:
            summary = "\n".join(one.text for one in messages if one.text)
            if self._ended and self.history.messages:
                self.compactions.append(Compaction(self.history.last, summary, time=message.created))
            elif self.compactions and summary:
                before = self.compactions[-1]
                joined = "\n".join(text for text in (before.summary, summary) if text)
                self.compactions[-1] = msgspec.structs.replace(before, summary=joined)
            self._ended = False
            return
        self._hidden, self._ended = self._hidden or not seen.agent_visible, True
        for one in messages:
            self.history.add(one, place)

    def conversation(self, stem: str) -> Conversation:
        """Return the session; a session without an id has the file's name."""
        return Conversation(
            self.name or stem, self.history.in_order(), compactions=tuple(self.compactions), meta=self.meta
        )

    def _messages(self, message: _Message, place: Place) -> Iterator[Message]:
        """Yield a message in our form, its tool results apart."""
        if message.role not in ("user", "assistant"):
            raise RecordingError(place.below("role"), f"unknown role {message.role!r}", "use user, assistant")
        said, thinking, calls, media = [], [], list[ToolCall](), list[Media]()
        for at, part in enumerate(message.content):
            where = place.below(f"content[{at}]")
            match part.type:
                case "text":
                    said.append(part.text)
                case "thinking":
                    thinking.append(part.thinking)
                case "image":
                    media.append(sized("image", {"data": part.data}))
                case "toolRequest" | "frontendToolRequest":
                    if part.tool_call is not None and part.tool_call.status == "success":
                        called = convert(part.tool_call.value, _Called, where.below("toolCall.value"))
                        text = msgspec.json.encode(called.arguments or {}).decode()
                        calls.append(ToolCall(part.id, called.name, text))
                case "toolResponse":
                    yield self._result(part, message.created, where)
                case _ if part.type not in _UNSENT:
                    self.problems.unknown(f"goose: content of type {part.type!r}", where)
        if not (said or thinking or calls or media):
            return
        name, text = f"m{next(self._names)}", "\n".join(said)
        if message.role == "user":
            yield Message(name, "user", text, time=message.created, media=tuple(media))
        else:
            made, thought = tuple(calls), "\n".join(thinking)
            yield Message(
                name, "assistant", text, made, time=message.created, thinking=thought, media=tuple(media), call=Call()
            )

    def _result(self, part: _Part, time: float | None, place: Place) -> Message:
        outcome = part.tool_result or _Outcome()
        blocks = outcome.value.get("content") if isinstance(outcome.value, dict) else outcome.value
        where = place.below("toolResult.value")
        text, media, _ = texts(convert(blocks or [], list[dict[str, Any] | str], where), where, self.problems)
        name = f"m{next(self._names)}"
        return Message(name, "tool", outcome.error or text, answers=part.id, time=time, media=media)

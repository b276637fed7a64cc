"""Sessions of goose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import Place, RecordingError
from ..media import sized
from ..model import Call, Compaction, Conversation, Media, Message, Scalar, ToolCall
from ..source import Problems, as_text, convert, decode, records
from . import LIST, OBJECT, Fields, Reader, Recordings
from .messages import History, joined, texts

_UNSENT = (
    *("toolConfirmationRequest", "actionRequired", "systemNotification", "conversationCompacted", "redactedThinking"),
    *("summarizationRequested", "contextLengthExceeded"),
)


class _Called(msgspec.Struct):
    name: str
    arguments: Any = None


class Goose(Reader):
    """goose sessions: JSON Lines (`~/.local/share/goose/sessions/<id>.jsonl`, up to version 1.9), or an export as JSON.

        {working_dir, description, accumulated_input_tokens …}   the first line, then a message a line
        {id, name, working_dir, conversation: [messages]}        `goose session export --format json`

        message: {role, created, content: [{type: "text" | "image" | "thinking"} ·
          {type: "toolRequest", id, toolCall: {status, value: {name, arguments}}} ·
          {type: "toolResponse", id, toolResult: {status, value: [blocks] | {content: [blocks]}, error}}],
          metadata: {userVisible, agentVisible}}

    Source: github.com/block/goose, `crates/goose/src/conversation/message.rs`, by its code; tested on written examples
    alone. There are no models, no tool schemas, no system prompt and no usage of single calls: totals are in `meta`.
    Times are whole seconds.

    - Messages that the agent alone sees, behind some that it sees no more, are the summary of a compaction; the
      messages before them stay in the history.
    - A tool's error is its result. Requests for confirmation and notices are not sent.
    """

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
                    record = Fields(decode(raw, OBJECT, place), place)
                    if record.at("role") is not None:
                        session.add(record)
                        continue
                    session.describe(record)
                    listed = record.at("conversation")
                    for at, message in enumerate(listed if isinstance(listed, list) else ()):
                        with problems.collect():
                            session.add(Fields(message, place.at(f"conversation[{at}]")))
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

    def describe(self, record: Fields) -> None:
        """Take what a record says of the session as a whole."""
        self.name = record.text("id") or self.name
        for total in ("accumulated_input_tokens", "accumulated_output_tokens", "accumulated_total_tokens"):
            if isinstance(record.at(total), int) and record.at(total):
                self.meta[total] = record.at(total)

    def add(self, recorded: Fields) -> None:
        """Add the next message. Raises RecordingError if it cannot be read."""
        messages, time = list(self._messages(recorded)), recorded.typed("created", float)
        agent_sees, user_sees = (recorded.at(f"metadata.{who}Visible") is not False for who in ("agent", "user"))
        if agent_sees and not user_sees and self._hidden:
            summary = joined(one.text for one in messages)
            if self._ended and self.history.messages:
                self.compactions.append(Compaction(self.history.last, summary, time=time))
            elif self.compactions and summary:
                before = self.compactions[-1]
                self.compactions[-1] = replace(before, summary=joined((before.summary, summary)))
            self._ended = False
            return
        self._hidden, self._ended = self._hidden or not agent_sees, True
        for one in messages:
            self.history.add(one, recorded.place)

    def conversation(self, stem: str) -> Conversation:
        """Return the session; a session without an id has the file's name."""
        return Conversation(
            self.name or stem, self.history.in_order(), compactions=tuple(self.compactions), meta=self.meta
        )

    def _messages(self, message: Fields) -> Iterator[Message]:
        """Yield a message in our form, its tool results apart."""
        role, time = message.needed("role", str), message.typed("created", float)
        if role not in ("user", "assistant"):
            raise RecordingError(message.place.below("role"), f"unknown role {role!r}", "use user, assistant")
        said, thinking, calls, media = [], [], list[ToolCall](), list[Media]()
        for at, recorded in enumerate(message.needed("content", LIST)):
            part = Fields(recorded, message.place.below(f"content[{at}]"))
            match part.needed("type", str):
                case "text":
                    said.append(part.typed("text", str) or "")
                case "thinking":
                    thinking.append(part.typed("thinking", str) or "")
                case "image":
                    media.append(sized("image", {"data": part.typed("data", str) or ""}))
                case "toolRequest" | "frontendToolRequest":
                    if part.at("toolCall.status") == "success":
                        called = part.needed("toolCall.value", _Called)
                        calls.append(ToolCall(part.text("id"), called.name, as_text(called.arguments or {})))
                case "toolResponse":
                    yield self._result(part, time)
                case kind if kind not in _UNSENT:
                    self.problems.unknown(f"goose: content of type {kind!r}", part.place)
        if said or thinking or calls or media:
            name, text, shown = f"m{next(self._names)}", "\n".join(said), tuple(media)
            if role == "user":
                yield Message(name, "user", text, time=time, media=shown)
            else:
                made, thought = tuple(calls), "\n".join(thinking)
                yield Message(name, "assistant", text, made, time=time, thinking=thought, media=shown, call=Call())

    def _result(self, part: Fields, time: float | None) -> Message:
        blocks = part.at(part.first("toolResult.value.content|toolResult.value"))
        where = part.place.below("toolResult.value")
        text, media, _ = texts(convert(blocks or [], _Blocks, where), where, self.problems)
        text = part.typed("toolResult.error", str) or text
        return Message(f"m{next(self._names)}", "tool", text, answers=part.text("id"), time=time, media=media)


_Blocks = list[dict[str, Any] | str]

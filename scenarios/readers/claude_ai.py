"""Claude.ai's data export, `conversations.json`: `[{uuid, name, chat_messages: [{uuid, sender, text, content}]}]`.

    chat_messages: {uuid, parent_message_uuid, sender: "human" | "assistant", created_at, text, attachments:
      [{file_name, extracted_content}], files: [{file_name}], content: [{type: "text", text} · {type: "thinking",
      thinking} · {type: "tool_use", id, name, input} · {type: "tool_result", tool_use_id, name, content}]}

Source: unofficial descriptions of the export; tested on written examples alone. No usage, no models, no system prompt,
no tool schemas.

- An answer with tools is one message there. Here it is split at the results of its tools: what comes behind them is
  another call. Exports leave ids of tool calls out: a result without one answers the oldest open call.
- Text extracted from attachments is part of the user's message. Other files have their kind alone.
- If messages name their parents, the branch of the last one is read; the others are counted in the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from mimetypes import guess_type
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..media import media_of
from ..model import Call, Conversation, Media, Message, ToolCall
from ..source import Problems, decode
from . import Recordings, anywhere
from .messages import History, iso_seconds, texts
from .responses_api import joined
from .spans import span_records

_UNSENT = ("flag", "token_budget", "redacted_thinking")


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: str | list[dict[str, Any] | str] | dict[str, Any] | None = None
    stop_timestamp: str | None = None


class _Attachment(msgspec.Struct):
    file_name: str | None = None
    extracted_content: str | None = None


class _Said(msgspec.Struct):
    sender: str
    uuid: str = ""
    text: str | None = None
    content: list[_Part] | None = None
    created_at: str | None = None
    attachments: list[_Attachment] | None = None
    files: list[Any] | None = None
    parent_message_uuid: str | None = None


class _Chat(msgspec.Struct):
    uuid: str
    chat_messages: list[_Said]
    current_leaf_message_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class ClaudeAi:
    """Conversations of Claude.ai."""

    about: ClassVar[str] = "Claude.ai's data export (conversations.json)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere((".uuid", ".chat_messages", ".chat_messages[].sender"))
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in span_records(path, problems):
                with problems.collect():
                    chat = decode(raw, _Chat, place)
                    answers = _Messages(History(problems), problems)
                    for at in _branch(chat, place, problems):
                        answers.add(chat.chat_messages[at], place.below(f"chat_messages[{at}]"))
                    if chat.chat_messages:
                        yield place, Conversation(chat.uuid, answers.history.in_order())
                    else:
                        problems.unknown("claude_ai: conversation without messages", place)


def _branch(chat: _Chat, place: Place, problems: Problems) -> list[int]:
    """Return the indices of the messages that lead to the last one, in their order."""
    by_name = {message.uuid: at for at, message in enumerate(chat.chat_messages)}
    linked = any(message.parent_message_uuid in by_name for message in chat.chat_messages)
    if not linked:
        return list(range(len(chat.chat_messages)))
    branch, at = dict[int, None](), by_name.get(chat.current_leaf_message_uuid or "", len(chat.chat_messages) - 1)
    while at not in branch:
        branch[at] = None
        # A message without a known parent gives itself, which ends the walk, as a circle of parents does.
        at = by_name.get(chat.chat_messages[at].parent_message_uuid or "", at)
    for other in sorted({*range(len(chat.chat_messages))} - {*branch}):
        problems.unknown("claude_ai: message on another branch", place.below(f"chat_messages[{other}]"))
    return [*reversed(branch)]


@dataclass(slots=True)
class _Messages:
    """Messages of a chat, to which those of the export are added one by one."""

    history: History
    problems: Problems
    _made: int = 0

    def add(self, said: _Said, place: Place) -> None:
        """Add a message, split at its tools' results."""
        if said.sender not in ("human", "assistant"):
            raise RecordingError(place.below("sender"), f"unknown sender {said.sender!r}", "use human, assistant")
        time = None if said.created_at is None else iso_seconds(said.created_at, place.below("created_at"))
        parts = said.content or [_Part("text", said.text)]
        if said.sender == "human":
            attached = [one.extracted_content or "" for one in said.attachments or ()]
            text = joined(chain((part.text or "" for part in parts), attached))
            media = tuple(filter(None, map(_file, said.files or ())))
            self._add(Message(self._name(), "user", text, time=time, media=media), place)
            return
        answer, open_calls = list[tuple[int, _Part]](), list[str]()
        for at, part in enumerate(parts):
            if part.type != "tool_result":
                answer.append((at, part))
                continue
            if answer:
                open_calls += self._answer(answer, None, place)
                answer = []
            named = part.tool_use_id or (open_calls[0] if open_calls else None)
            open_calls = [name for name in open_calls if name != named]
            output, where = part.content, place.below(f"content[{at}]")
            listed: str | list[dict[str, Any] | str] | None = [output] if isinstance(output, dict) else output
            text, media, _ = texts(listed, where.below("content"), self.problems)
            result = Message(self._name(), "tool", text, (), named, part.name or "", media=media)
            self._add(result, where)
        if answer:
            self._answer(answer, time, place)

    def _answer(self, parts: list[tuple[int, _Part]], time: float | None, place: Place) -> list[str]:
        """Add an answer of the model; return the ids of its tool calls."""
        name, calls, said, thinking = self._name(), list[ToolCall](), list[str](), list[str]()
        for at, part in parts:
            if part.type == "tool_use":
                arguments = msgspec.json.encode(part.input or {}).decode()
                calls.append(ToolCall(part.id or f"{name}c{len(calls)}", part.name or "", arguments))
            elif part.type == "thinking":
                thinking.append(part.thinking or "")
            elif part.text is not None:
                said.append(part.text)
            elif part.type not in ("text", *_UNSENT):
                self.problems.unknown(f"claude_ai: part of type {part.type!r}", place.below(f"content[{at}]"))
        thought, call = joined(thinking), Call(provider="anthropic")
        self._add(Message(name, "assistant", joined(said), tuple(calls), time=time, thinking=thought, call=call), place)
        return [call.id for call in calls]

    def _add(self, message: Message, place: Place) -> None:
        self.history.add(message, place)
        self._made += 1

    def _name(self) -> str:
        return f"m{self._made}"


def _file(shared: Any) -> Media | None:
    """Return a shared file, whose kind its name tells."""
    name = str(shared.get("file_name")) if isinstance(shared, dict) else ""
    return media_of({"type": "file", "mime": guess_type(name)[0] or ""})

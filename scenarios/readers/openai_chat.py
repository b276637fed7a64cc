"""OpenAI chat messages: `{"messages": […], "tools": […]}`, as one JSON object, a JSON array of them, or JSON Lines.

Also read: a bare list of messages (a file, or a line of one), and one message per line, which makes one conversation
per file. Source: platform.openai.com/docs/api-reference/chat. An `id`, `conversation_id` or `thread_id` becomes the
conversation's id, else the file's name. The form has no usage, no times and no cache marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from ..errors import Place, RecordingError
from ..model import Conversation
from ..source import Problems, decode, records
from . import Recordings
from .messages import ChatMessage, ChatTool, History, chat_message, chat_messages, chat_tools
from .requests import numbered


class _Chat(msgspec.Struct):
    messages: list[ChatMessage]
    tools: list[ChatTool] | None = None
    id: str | int | None = None
    conversation_id: str | int | None = None
    thread_id: str | int | None = None


class _Kind(msgspec.Struct):
    role: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    messages: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """Plain chats."""

    about: ClassVar[str] = "OpenAI chat messages (JSON or JSON Lines)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".messages", ".messages[].role"}),
        frozenset({"[].messages", "[].messages[].role"}),
        frozenset({"[].role", "[].content"}),
        frozenset({"[][].role", "[][].content"}),
        frozenset({".role", ".content"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            yield from _chats(path, problems)


def _chats(path: Path, problems: Problems) -> Recordings:
    """Yield the file's chats, then one chat of the messages that stand alone on their lines."""
    single = _SingleMessages(path, problems)
    unnamed = 0
    for place, raw in records(path, problems):
        try:
            if not raw.startswith(b"[") and _is_message(raw, place):
                single.add(decode(raw, ChatMessage, place), place)
                continue
            name, conversation = _chat(raw, place, problems)
        except RecordingError as error:
            problems.add(error)
            continue
        unnamed += name is None
        conversation = replace(conversation, id=numbered(path.stem, unnamed) if name is None else name)
        del raw  # it may take as much memory as the conversation, which is used for long
        yield place, conversation
    if single.history.messages:
        yield single.place, Conversation(numbered(path.stem, unnamed + 1), single.history.in_order())


def _chat(raw: bytes, place: Place, problems: Problems) -> tuple[str | None, Conversation]:
    """Return the name of a record's chat, None if it has none, and the chat."""
    if raw.startswith(b"["):
        chat = _Chat(decode(raw, list[ChatMessage], place))
        messages = chat_messages(chat.messages, place, problems)
    else:
        chat = decode(raw, _Chat, place)
        messages = chat_messages(chat.messages, place.at("messages"), problems)
    name = next((name for name in (chat.id, chat.conversation_id, chat.thread_id) if name is not None), None)
    return None if name is None else str(name), Conversation("", messages, tools=chat_tools(chat.tools))


def _is_message(raw: bytes, place: Place) -> bool:
    kind = decode(raw, _Kind, place)
    return kind.role is not msgspec.UNSET and kind.messages is msgspec.UNSET


class _SingleMessages:
    """The messages of a file with one message per record, as one history."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self.place, self.history = Place(str(path), 1), History(problems)
        self._last_call = ""

    def add(self, message: ChatMessage, place: Place) -> None:
        """Add the message that stands at `place`."""
        converted = chat_message(
            message, f"m{len(self.history.messages)}", place, self.history.problems, self._last_call
        )
        self.history.add(converted, place)
        self._last_call = converted.calls[-1].id if converted.calls else self._last_call

"""OpenAI chat messages: `{"messages": […], "tools": […]}`, as one JSON object, a JSON array of them, or JSON Lines.

Also read: a bare list of messages (one file, or one a line), and one message a line, which makes one conversation a
file. Source: platform.openai.com/docs/api-reference/chat. An `id`, `conversation_id` or `thread_id` becomes the
conversation's id, else the file's name. The form has no usage, no times and no cache marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation
from ..source import Problems, decode, records
from . import Found
from .chat import ChatMessage, ChatTool, chat_message, chat_messages, chat_tools
from .history import History
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

    def read(self, files: Sequence[Path], problems: Problems) -> Found:
        for path in files:
            yield from _chats(path, problems)


def _chats(path: Path, problems: Problems) -> Found:
    """The file's chats, and what stands in it as single messages as a last one."""
    single = _Single(path, problems)
    unnamed = 0
    for place, raw in records(path, problems):
        try:
            if raw.startswith(b"["):
                chat = _Chat(decode(raw, list[ChatMessage], place))
                messages = chat_messages(chat.messages, place)
            elif _is_message(raw, place):
                single.add(decode(raw, ChatMessage, place), place)
                continue
            else:
                chat = decode(raw, _Chat, place)
                messages = chat_messages(chat.messages, place.at("messages"))
            given = next((name for name in (chat.id, chat.conversation_id, chat.thread_id) if name is not None), None)
            if given is None:
                unnamed += 1
            name = numbered(path.stem, unnamed) if given is None else str(given)
            yield place, Conversation(name, messages, tools=chat_tools(chat.tools))
        except RecordingError as error:
            problems.add(error)
    if single.history.messages:
        yield single.place, Conversation(numbered(path.stem, unnamed + 1), single.history.told())


def _is_message(raw: bytes, place: Place) -> bool:
    kind = decode(raw, _Kind, place)
    return kind.role is not msgspec.UNSET and kind.messages is msgspec.UNSET


class _Single:
    """The messages of a file that has one a record."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self.place, self.history = Place(str(path), 1), History(problems)
        self._last_call = ""

    def add(self, message: ChatMessage, place: Place) -> None:
        made = chat_message(message, f"m{len(self.history.messages)}", place, self._last_call)
        self.history.say(made, place)
        self._last_call = made.calls[-1].id if made.calls else self._last_call

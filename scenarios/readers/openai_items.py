"""Items of OpenAI's Responses API that were stored: lists of them, and sessions of the Agents SDK.

    [item, …] · {object: "list", data: [item, …]}                     input items, items of a conversation
    agent_messages(id, session_id, message_data: item)                SQLite, `SQLiteSession` of the Agents SDK

Source: platform.openai.com/docs/api-reference/conversations and github.com/openai/openai-agents-python,
`src/agents/memory`; tested on what openai-agents 0.24 writes. No usage, no models, no times and no tool schemas.

- The items between two inputs are one answer. What OpenAI ran itself (a web search) has no result: it is counted in the
  notes, and so are compactions.
- The API lists items from the newest to the oldest by default: such a list is turned around.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from ..errors import Place
from ..model import Conversation, Message
from ..source import Problems, decode, record_head
from . import Recordings
from .prompts import LoggedCall, stored_messages, text_of
from .responses_api import COMPACTIONS, HOSTED, OUTPUTS
from .sqlite_tables import has_tables, rows
from .stored_chats import around, chats, listed

_LISTS = ("data", "items")
_CALL = (".type", ".call_id", ".name", ".arguments")
_MESSAGE = (".type", ".role", ".content", ".content[].type", ".status")
_QUERY = "SELECT session_id, message_data FROM agent_messages ORDER BY session_id, id"


@dataclass(frozen=True, slots=True)
class OpenAIItems:
    """Lists of items and sessions of the Agents SDK."""

    about: ClassVar[str] = "OpenAI Responses items (lists; Agents SDK sessions, SQLite or JSON)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        *(shape for name in _LISTS for keys in (_CALL, _MESSAGE) for shape in around(*keys, list_name=name)),
        frozenset(_CALL),
    )
    folder: ClassVar[bool] = False

    @staticmethod
    def recognises(_path: Path, head: bytes) -> bool:
        """Return whether a file is a database of sessions."""
        return has_tables(head, "agent_sessions", "agent_messages")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            if self.recognises(path, record_head(path)):
                yield from _sessions(path, problems)
            else:
                yield from chats([path], problems, partial(_read, problems=problems), _LISTS)


def _read(record: Any, place: Place, problems: Problems) -> LoggedCall:
    name, items = listed(record, next((name for name in _LISTS if name in record), ""))
    return LoggedCall(_messages([*_oldest_first(items)], name, place, problems))


def _sessions(path: Path, problems: Problems) -> Recordings:
    for session, stored in groupby(rows(path, _QUERY, problems), key=lambda row: row[1][0]):
        items, start = list[Any](), Place(str(path))
        for place, (_, item) in stored:
            start = start if items else place
            with problems.collect():
                items.append(decode(str(item).encode(), dict[str, Any], place.at("message_data")))
        with problems.collect():
            yield start, Conversation(str(session), _messages(items, "", start, problems))


def _messages(items: Sequence[Any], name: str, place: Place, problems: Problems) -> tuple[Message, ...]:
    def read() -> Iterator[tuple[str, Any, None]]:
        for at, item in enumerate(items):
            where = f"{name}[{at}]"
            if (kind := _kind(item)) in (*HOSTED, *COMPACTIONS):
                problems.unknown(f"openai_items: item of type {kind!r}", place.below(where))
            else:
                yield where, item, None

    return stored_messages(read(), place, problems, "openai_items")


def _oldest_first(items: Sequence[Any]) -> Sequence[Any]:
    """Return the items turned around if an output stands before its call, or an answer before the first input."""
    outputs = set[str]()
    for item in items:
        name = text_of(item.get("call_id")) if isinstance(item, dict) else ""
        if name and _kind(item) in OUTPUTS:
            outputs.add(name)
        elif name and name in outputs:
            return items[::-1]
    is_answered = len(items) > 1 and _role(items[0]) == "assistant" and _role(items[-1]) == "user"
    return items[::-1] if is_answered and not outputs else items


def _kind(item: Any) -> str:
    return text_of(item.get("type")) if isinstance(item, dict) else ""


def _role(item: Any) -> str:
    return text_of(item.get("role")) if isinstance(item, dict) else ""

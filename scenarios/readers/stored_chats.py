"""Files of stored conversations, whatever their dialect: a list of messages, or objects that hold one.

    [message, …] · a list on each line · {messages: [message, …], id} on lines, in an array, or alone

An `id`, `thread_id`, `session_id` or `conversation_id` beside the list is the conversation's, else the file's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ..errors import Place
from ..model import Conversation
from ..source import Problems, decode
from . import Recordings
from .prompts import LoggedCall
from .requests import LoggedRequest, numbered, series
from .spans import span_records

_NAMES = ("thread_id", "session_id", "conversation_id", "id")


def around(*keys: str, list_name: str = "messages") -> Iterator[frozenset[str]]:
    """Yield the shapes of files whose messages have these key paths."""
    for outer in ("[]", "[][]", f".{list_name}[]", f"[].{list_name}[]"):
        yield frozenset(f"{outer}{key}" for key in keys)


def chats(
    files: Sequence[Path],
    problems: Problems,
    read: Callable[[Any, Place], LoggedCall],
    list_names: Sequence[str] = ("messages",),
) -> Recordings:
    """Yield the conversations of the files. `read` gets a list of messages, or the object that holds it."""
    for path in files:
        unnamed = 0
        for place, name, logged in _stored(path, problems, read, list_names):
            unnamed += not name
            yield place, _conversation(name or numbered(path.stem, unnamed), logged)


def growing_chats(
    files: Sequence[Path], problems: Problems, read: Callable[[Any, Place], LoggedCall], list_names: Sequence[str]
) -> Recordings:
    """Yield the conversations of files of requests: those without a name that extend each other are one."""
    for path in files:
        stored = _stored(path, problems, read, list_names)
        for is_named, run in groupby(stored, key=lambda chat: bool(chat[1])):
            if is_named:
                yield from ((place, _conversation(name, logged)) for place, name, logged in run)
            else:
                requests = (LoggedRequest(place, logged.messages, None, logged.tools) for place, _, logged in run)
                yield from (group.conversation(path.stem) for group in series(requests))


def _stored(
    path: Path, problems: Problems, read: Callable[[Any, Place], LoggedCall], list_names: Sequence[str]
) -> Iterator[tuple[Place, str, LoggedCall]]:
    """Yield the conversations of a file with their places and their names, which may be empty."""
    elements: list[Any] = []  # of a list that is the file
    for place, raw in span_records(path, problems):
        with problems.collect():
            is_list = raw.startswith(b"[")
            record: Any = decode(raw, list[Any], place) if is_list else decode(raw, dict[str, Any], place)
            if isinstance(record, dict) and not any(name in record for name in list_names):
                elements.append(record)
                continue
            held = record if isinstance(record, dict) else {}
            name = next((str(held[key]) for key in _NAMES if isinstance(held.get(key), (str, int))), "")
            yield place, name, read(record, place)
    if elements:
        start = Place(str(path))
        with problems.collect():
            yield start, "", read(elements, start)


def listed(record: Any, name: str = "messages") -> tuple[str, list[Any]]:
    """Return the list of messages that a record is or holds, and its field."""
    if isinstance(record, list):
        return "", record
    messages = record[name]
    return name, messages if isinstance(messages, list) else [messages]


def _conversation(name: str, logged: LoggedCall) -> Conversation:
    return Conversation(name, logged.messages, tools=logged.tools)

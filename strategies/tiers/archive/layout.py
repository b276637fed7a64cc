"""Messages in columns: a section for each field, a line for each message, in JSON. What is alike stands side by side.

    ["role"]        ["text"]              ["call", "model"]
    "user"          "Hi"
    "assistant"     "Hello"               "gpt-4o"

A message's line in a section is its place among the messages, and an empty line means that it has no such field. So
one message is read without the others, and without a list of where they begin. In the second layout, `by_key`, JSON
texts are in columns as well (`shapes.py`): their line of `text` is the number of a shape, and the text's section names
the shapes.

The id of a message is left out where the item's id ends with it, after a slash or whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ....scenarios.model import Message
from .item import Item
from .shapes import shaped, split, unshaped

_TEXT = ("text",)
_ID = ("id",)
_SCALARS = "="
"""What the name of a section of scalars begins with; the key follows. No field of a message is called so."""

Columns = dict[tuple[str, ...], list[bytes]]


def by_field(items: Sequence[Item]) -> bytes:
    """The messages in columns, a text whole in one line."""
    return _written(_columns(items), ())


def by_key(items: Sequence[Item]) -> bytes | None:
    """The messages in columns, JSON texts by their keys; None if no text is JSON."""
    columns = _columns(items)
    shapes: dict[str, int] = {}
    for at, item in enumerate(items):
        found = shaped(item.message.text)
        if found is None:
            continue
        columns[_TEXT][at] = str(shapes.setdefault(found.shape, len(shapes))).encode()
        for key, scalars in found.scalars.items():
            path = (_SCALARS, key)
            if path not in columns:
                columns[path] = [b""] * len(items)
            columns[path][at] = ",".join(scalars).encode()
    return _written(columns, tuple(shapes)) if shapes else None


class Laid:
    """The messages of one content, each made when it is asked for."""

    def __init__(self, content: bytes, ids: Sequence[str]) -> None:
        self._lines = content.split(b"\n")
        self._ids = ids
        self._sections: list[tuple[tuple[str, ...], int]] = []
        self._shapes: Sequence[str] = ()
        for head in range(0, len(self._lines), len(ids) + 1):
            path, shapes = msgspec.json.decode(self._lines[head], type=tuple[tuple[str, ...], tuple[str, ...]])
            self._sections.append((path, head + 1))
            self._shapes = shapes or self._shapes

    def __getitem__(self, at: int) -> Message:
        record: dict[str, Any] = {"id": self._ids[at].rpartition("/")[2]}
        scalars: dict[str, list[str]] = {}
        for path, start in self._sections:
            line = self._lines[start + at]
            if not line:
                continue
            if path[0] == _SCALARS:
                scalars[path[1]] = split(line.decode())
            else:
                _set(record, path, msgspec.json.decode(line))
        if isinstance(record.get("text"), int):
            record["text"] = unshaped(self._shapes[record["text"]], scalars)
        return msgspec.convert(record, Message)


def _columns(items: Sequence[Item]) -> Columns:
    columns: Columns = {_TEXT: [b""] * len(items)}
    for at, item in enumerate(items):
        record = msgspec.json.decode(msgspec.json.encode(item.message), type=dict[str, Any])
        if record["id"] == item.id.rpartition("/")[2]:
            del record["id"]
        for path, value in _leaves(record):
            if path not in columns:
                columns[path] = [b""] * len(items)
            columns[path][at] = msgspec.json.encode(value)
    return columns


def _leaves(record: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in record.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _set(record: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        record = record.setdefault(key, {})
    record[path[-1]] = value


def _written(columns: Columns, shapes: tuple[str, ...]) -> bytes:
    lines: list[bytes] = []
    for path, column in sorted(columns.items()):
        lines.append(msgspec.json.encode((path, shapes if path == _TEXT else ())))
        lines += column
    return b"\n".join(lines)

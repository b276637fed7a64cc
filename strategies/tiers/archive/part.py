"""A file of messages: a table of their ids and tokens, their content, and a summary if one is kept, a frame each.

The table is needed to open the archive, the content to read a message. Each has a checksum of its own in the index, so
that neither is read for the other, and together they cover every byte of the file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ....metrics.extract import extract
from ....scenarios.model import Message
from .codec import FAST, Coding, Dictionary
from .files import checksum
from .index import IndexSection, PartEntry

_PLAIN = Dictionary()
_TABLE_LEVEL = 19

Count = Callable[[str], int]
"""Tokens of a text."""


class PartTable(NamedTuple):
    """The ids of a part's messages in their order, and the tokens of each."""

    ids: tuple[str, ...]
    tokens: tuple[int, ...]


_LAST_NUMBER = re.compile(r"[0-9]+(?=[^0-9]*\Z)")


def following(id: str) -> str:
    """The id that mostly comes next: the last number in it, one up. Only ids that do not follow are written."""
    return _LAST_NUMBER.sub(lambda found: str(int(found[0]) + 1).zfill(len(found[0])), id)


def _written(table: PartTable) -> bytes:
    before = ("", *table.ids)
    ids = ["" if id == following(last) else id for last, id in zip(before, table.ids, strict=False)]
    return msgspec.json.encode((ids, table.tokens))


class Made(NamedTuple):
    """A part that is not on disk yet."""

    part: PartEntry
    data: bytes


class SummaryFrame(NamedTuple):
    """What an extractive summary of a block says, and of which messages."""

    ids: tuple[str, ...]
    text: str


def contents(items: Sequence[ArchivedMessage]) -> list[bytes]:
    """The layouts that a part's messages may have."""
    return [content for content in (by_field(items), by_key(items)) if content is not None]


def unsealed(number: int, items: Sequence[ArchivedMessage]) -> Made:
    """A part of messages that are not a whole block yet."""
    return _made(number, items, by_field(items), _PLAIN, FAST, False)


def sealed(
    number: int,
    items: Sequence[ArchivedMessage],
    coding: Coding,
    dictionary: Dictionary,
    using: int,
    count: Count | None,
) -> Made:
    """A whole block, in the layout that takes fewest bytes. `using` is the dictionary's number."""
    made = [_made(number, items, each, dictionary, coding.level, coding.long) for each in contents(items)]
    best = min(made, key=lambda each: len(each.data))
    part = msgspec.structs.replace(best.part, sealed=True, dictionary=using)
    if not coding.summary or count is None:
        return Made(part, best.data)
    texts = [item.message.text for item in items if item.message.text]
    text = extract(texts, int(part.tokens * coding.summary), count)
    frame = _PLAIN.compress(text.encode(), coding.level)
    section = IndexSection(len(best.data), len(frame), checksum(frame))
    return Made(msgspec.structs.replace(part, summary=section), best.data + frame)


def _made(
    number: int, items: Sequence[ArchivedMessage], content: bytes, by: Dictionary, level: int, long: bool
) -> Made:
    table = PartTable(tuple(item.id for item in items), tuple(item.tokens for item in items))
    head = _PLAIN.compress(_written(table), _TABLE_LEVEL if level > FAST else FAST)
    frame = by.compress(content, level, long)
    part = PartEntry(
        number,
        len(items),
        sum(table.tokens),
        IndexSection(0, len(head), checksum(head)),
        IndexSection(len(head), len(frame), checksum(frame)),
        len(content),
    )
    return Made(part, head + frame)


def table_of(data: bytes) -> PartTable:
    """The table that was written."""
    written, tokens = msgspec.json.decode(_PLAIN.decompress(data), type=tuple[list[str], tuple[int, ...]])
    for at in range(1, len(written)):
        written[at] = written[at] or following(written[at - 1])
    return PartTable(tuple(written), tokens)


def summary_of(data: bytes) -> str:
    """The summary that was written."""
    return _PLAIN.decompress(data).decode()


_TEXT = ("text",)
_ID = ("id",)
_SCALARS = "="
"""What the name of a section of scalars begins with; the key follows. No field of a message is called so."""

Columns = dict[tuple[str, ...], list[bytes]]


def by_field(items: Sequence[ArchivedMessage]) -> bytes:
    """The messages in columns, a text whole in one line."""
    return _written_layout(_columns(items), ())


def by_key(items: Sequence[ArchivedMessage]) -> bytes | None:
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
    return _written_layout(columns, tuple(shapes)) if shapes else None


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


def _columns(items: Sequence[ArchivedMessage]) -> Columns:
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


def _written_layout(columns: Columns, shapes: tuple[str, ...]) -> bytes:
    lines: list[bytes] = []
    for path, column in sorted(columns.items()):
        lines.append(msgspec.json.encode((path, shapes if path == _TEXT else ())))
        lines += column
    return b"\n".join(lines)


HOLE = "\0"
"""Stands for a scalar in a shape. JSON has none outside strings, and in strings it is an escape."""

_SCALAR = r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null'
_TOKEN = re.compile(rf"(?P<key>\"(?:[^\"\\\x00-\x1f]|\\.)*\")(?=\s*:)|(?P<scalar>{_SCALAR})|[^\"\w-]+", re.ASCII)
_SCALARS_SHAPES = re.compile(_SCALAR, re.ASCII)


class Shaped(NamedTuple):
    """A text in two: its shape, and for each key (as it stands in the text) its scalars in order."""

    shape: str
    scalars: dict[str, list[str]]


def shaped(text: str) -> Shaped | None:
    """The shape and the scalars of a JSON object or array; None if the text is neither."""
    if text[:1] not in ("{", "[") or HOLE in text:
        return None
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    made: list[str] = []
    scalars: dict[str, list[str]] = defaultdict(list)
    key, end = "", 0
    for token in _TOKEN.finditer(text):
        if token.start() != end:
            return None
        end = token.end()
        if token.lastgroup == "scalar":
            scalars[key].append(token[0])
            made.append(HOLE)
        else:
            key = token[0] if token.lastgroup == "key" else key
            made.append(token[0])
    return Shaped("".join(made), dict(scalars)) if end == len(text) else None


def unshaped(shape: str, scalars: Mapping[str, list[str]]) -> str:
    """The text again."""
    left: dict[str, Iterator[str]] = {key: iter(each) for key, each in scalars.items()}
    made: list[str] = []
    key = ""
    for piece in _pieces(shape):
        if piece == HOLE:
            made.append(next(left[key]))
        else:
            key = piece if piece[:1] == '"' else key
            made.append(piece)
    return "".join(made)


def split(line: str) -> list[str]:
    """The scalars of a line of them, with commas between."""
    return _SCALARS_SHAPES.findall(line)


def _pieces(shape: str) -> list[str]:
    return _PIECE.findall(shape)


_PIECE = re.compile(rf'"(?:[^"\\\x00-\x1f]|\\.)*"|{HOLE}|[^"{HOLE}]+')


class ArchivedMessage(NamedTuple):
    """One message of the tier. The id is the caller's: a message's own is unique within its conversation only."""

    id: str
    tokens: int
    message: Message

"""A file of messages: a table of their ids and tokens, their content, and a summary if one is kept, a frame each.

The table is needed to open the archive, the content to read a message. Each has a checksum of its own in the index, so
that neither is read for the other, and together they cover every byte of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from ....metrics.extract import extract
from .coding import FAST, Coding, Dictionary
from .files import checksum
from .index import Part, Section
from .item import Item
from .layout import by_field, by_key

_PLAIN = Dictionary()
_TABLE_LEVEL = 19

Count = Callable[[str], int]
"""Tokens of a text."""


class Table(NamedTuple):
    """The ids of a part's messages in their order, and the tokens of each."""

    ids: tuple[str, ...]
    tokens: tuple[int, ...]


_LAST_NUMBER = re.compile(r"[0-9]+(?=[^0-9]*\Z)")


def following(id: str) -> str:
    """The id that mostly comes next: the last number in it, one up. Only ids that do not follow are written."""
    return _LAST_NUMBER.sub(lambda found: str(int(found[0]) + 1).zfill(len(found[0])), id)


def _written(table: Table) -> bytes:
    before = ("", *table.ids)
    ids = ["" if id == following(last) else id for last, id in zip(before, table.ids, strict=False)]
    return msgspec.json.encode((ids, table.tokens))


class Made(NamedTuple):
    """A part that is not on disk yet."""

    part: Part
    data: bytes


class Summary(NamedTuple):
    """What an extractive summary of a block says, and of which messages."""

    ids: tuple[str, ...]
    text: str


def contents(items: Sequence[Item]) -> list[bytes]:
    """The layouts that a part's messages may have."""
    return [content for content in (by_field(items), by_key(items)) if content is not None]


def unsealed(number: int, items: Sequence[Item]) -> Made:
    """A part of messages that are not a whole block yet."""
    return _made(number, items, by_field(items), _PLAIN, FAST, False)


def sealed(
    number: int, items: Sequence[Item], coding: Coding, dictionary: Dictionary, using: int, count: Count | None
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
    section = Section(len(best.data), len(frame), checksum(frame))
    return Made(msgspec.structs.replace(part, summary=section), best.data + frame)


def _made(number: int, items: Sequence[Item], content: bytes, by: Dictionary, level: int, long: bool) -> Made:
    table = Table(tuple(item.id for item in items), tuple(item.tokens for item in items))
    head = _PLAIN.compress(_written(table), _TABLE_LEVEL if level > FAST else FAST)
    frame = by.compress(content, level, long)
    part = Part(
        number,
        len(items),
        sum(table.tokens),
        Section(0, len(head), checksum(head)),
        Section(len(head), len(frame), checksum(frame)),
        len(content),
    )
    return Made(part, head + frame)


def table_of(data: bytes) -> Table:
    """The table that was written."""
    written, tokens = msgspec.json.decode(_PLAIN.decompress(data), type=tuple[list[str], tuple[int, ...]])
    for at in range(1, len(written)):
        written[at] = written[at] or following(written[at - 1])
    return Table(tuple(written), tokens)


def summary_of(data: bytes) -> str:
    """The summary that was written."""
    return _PLAIN.decompress(data).decode()

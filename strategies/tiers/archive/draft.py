"""The next state of an archive: parts written beside those that are there, until the index names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from .coding import Coding, made_of
from .index import Part
from .item import Item
from .layout import Laid, by_field
from .part import Count, Made, Table, sealed, unsealed
from .store import Store

FIRST = 2
"""Blocks that the first dictionary is made of."""
MESSAGES = 1 << 15
"""Messages of a block at most, however few tokens they have."""


class Draft:
    """An index that is being written. Nothing of it counts before `commit`."""

    def __init__(self, store: Store, coding: Coding, count: Count | None) -> None:
        self._store, self._coding, self._count = store, coding, count
        self._index = store.index

    @contextmanager
    def committing(self) -> Iterator[Draft]:
        """Make it the archive at the end, or remove what was written if anything is raised."""
        try:
            yield self
            self._store.commit(self._index)
        except BaseException:
            self._store.abandon()
            raise

    def drop(self, parts: Sequence[Part]) -> None:
        """Take parts out."""
        gone = {part.number for part in parts}
        self._index = replace(self._index, parts=tuple(each for each in self._index.parts if each.number not in gone))

    def mark(self, parts: Sequence[Part]) -> None:
        """Put parts in the place of those with their numbers; only what the index says of them is new."""
        new = {part.number: part for part in parts}
        self._index = replace(self._index, parts=tuple(new.get(each.number, each) for each in self._index.parts))

    def add(self, items: Sequence[Item], seal: bool) -> None:
        """Write messages as blocks, and what is left over as a part of its own, or as a block if it is to `seal`."""
        for block, whole in blocks(items, self._coding.block_tokens):
            if not (whole or seal):
                self._put(unsealed(self._index.next, block))
                continue
            self._put(self._sealed(block))
            if self._dictionary_is_due():
                self._teach([part.number for part in self._index.parts if part.sealed])

    def clean(self, parts: Sequence[Part]) -> None:
        """Write parts without their deleted messages, and the dictionary without those as well."""
        for part in parts:
            items = self._items(part)
            if items:
                made = self._sealed(items) if part.sealed else unsealed(self._index.next, items)
                self._put(made._replace(part=replace(made.part, taught=part.taught)), part)
            else:
                self.drop([part])
        if any(part.taught for part in parts):
            self._teach([part.number for part in self._index.parts if part.taught])

    def _dictionary_is_due(self) -> bool:
        """Whether one is to be made: there is none, or it is of half the blocks and has room for them."""
        if self._coding.dictionary == "none":
            return False
        taught = sum(part.taught for part in self._index.parts)
        whole = sum(part.sealed for part in self._index.parts)
        if not taught:
            return whole >= FIRST
        dictionary = self._store.dictionary(self._index)
        room = dictionary.kind == "raw" and 2 * len(dictionary.data) <= self._coding.dictionary_bytes
        return room and whole >= 2 * taught

    def _teach(self, numbers: Sequence[int]) -> None:
        """Make a dictionary of these parts, and write every block with it.

        It is made of the layout by fields: whole records are found in it again, which saves more than their columns do.
        """
        there = {part.number: (part, self._items(part)) for part in self._index.parts if part.sealed}
        dictionary = made_of([by_field(there[number][1]) for number in numbers if there[number][1]], self._coding)
        file = None
        if dictionary.data:
            file = self._store.put_dictionary(self._index.next, dictionary, self._coding.level)
        self._index = replace(self._index, dictionary=file, next=self._index.next + 1)
        for part, items in there.values():
            if items:
                made = self._sealed(items)
                self._put(made._replace(part=replace(made.part, taught=bool(file) and part.number in numbers)), part)
            else:
                self.drop([part])

    def _sealed(self, items: Sequence[Item]) -> Made:
        dictionary = self._store.dictionary(self._index)
        using = self._index.dictionary.number if self._index.dictionary else 0
        return sealed(self._index.next, items, self._coding, dictionary, using, self._count)

    def _put(self, made: Made, instead_of: Part | None = None) -> None:
        """One part more, or in the place of another."""
        self._store.put_part(made)
        parts = self._index.parts
        if instead_of is None:
            parts = (*parts, made.part)
        else:
            parts = tuple(made.part if each.number == instead_of.number else each for each in parts)
        self._index = replace(self._index, parts=parts, next=self._index.next + 1)

    def _items(self, part: Part) -> list[Item]:
        table = self._store.table(part)
        return live(part, table, self._store.laid(part, table))


def live(part: Part, table: Table, laid: Laid) -> list[Item]:
    """The messages of a part that are not deleted."""
    gone = {at for at, _ in part.deleted}
    return [Item(table.ids[at], table.tokens[at], laid[at]) for at in range(part.messages) if at not in gone]


def blocks(items: Sequence[Item], most: int) -> Iterator[tuple[Sequence[Item], bool]]:
    """Messages cut into blocks of at most `most` tokens (a larger message alone), and whether each is a whole one."""
    start, tokens = 0, 0
    for at, item in enumerate(items):
        if at > start and (tokens + item.tokens > most or at - start == MESSAGES):
            yield items[start:at], True
            start, tokens = at, 0
        tokens += item.tokens
    if start < len(items):
        yield items[start:], tokens >= most

"""An archive of messages, in a folder or in memory: put, get, contains, delete, clean, verify.

**Writing.** What is put is in its files when `put` returns. It is a part of its own until there are enough tokens for a
block; then they are written together, at the archive's level, in the layout that takes fewest bytes. When there are
many small parts they are written into one.

**The dictionary** is made of the first blocks, when there are two, and again when there are twice as many, until it is
full. Those blocks are written again with it, and then take almost nothing: their text is stored once, in the
dictionary.

**Deleting** marks a message, which is gone for every caller at once. `clean` writes the files without it once the
delay is over, and the dictionary without its text. Time is never read from a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import replace

from ....scenarios.model import Message
from .codec import Coding, Dictionary, made_of
from .errors import ArchiveError, Damaged
from .files import Files, FolderFiles
from .index import NAME as INDEX
from .index import ArchiveIndex, PartEntry
from .part import ArchivedMessage, Count, Laid, Made, PartTable, SummaryFrame, by_field, sealed, unsealed
from .store import ArchiveFiles

PARTS = 16
"""How many parts there may be that are no blocks yet."""
DELAY = 5.0
"""Seconds between deleting a message and cleaning it away (004 §4.3)."""


class ArchiveTier:
    """The archive in a folder, made if it is not there, or in `Memory()`. Raises ArchiveError, one line, for what can
    be wrong with it."""

    def __init__(
        self,
        where: Path | Files,
        coding: Coding | None = None,
        *,
        write: bool = True,
        count: Count | None = None,
        keep: int = 0,
    ) -> None:
        """`keep`: how many blocks that were read stay in memory, decompressed."""
        self.coding = Coding() if coding is None else coding
        """How the next block is written. It may be replaced at any time."""
        if self.coding.summary and count is None:
            raise ValueError("summaries are measured in tokens: give `count`, the tokens of a text")
        self._count = count
        self._catalogue = Catalogue()
        self._store = ArchiveFiles(FolderFiles(where) if isinstance(where, Path) else where, write, keep)
        try:
            self._store.fresh(self._look)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others write. What was put is on disk already."""
        self._store.close()

    # what is there

    def __contains__(self, id: str) -> bool:
        return self._catalogue.known(id)

    def __len__(self) -> int:
        return len(self._catalogue.places)

    @property
    def ids(self) -> list[str]:
        """The ids of all messages, in the order they were put."""
        return self._catalogue.ids

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return sum(part.tokens for part in self._store.index.parts)

    @property
    def parts(self) -> tuple[PartEntry, ...]:
        """What it is made of, as its index says."""
        return self._store.index.parts

    def files(self) -> set[str]:
        """The names of its files, beside the index."""
        return self._store.index.names()

    def raw(self) -> dict[str, bytes]:
        """Its files as they are, the index with them: what `Memory` takes."""
        return {name: self._store.files.read(name) for name in sorted({*self.files(), INDEX} if self.parts else ())}

    @property
    def dictionary(self) -> Dictionary:
        """What its blocks are compressed with; an empty one if there is none."""
        return self._store.dictionary(self._store.index)

    @property
    def size(self) -> int:
        """Bytes on disk: blocks, tables, dictionary, summaries, index."""
        return self._store.size()

    def get(self, id: str) -> ArchivedMessage:
        """One message, from its block alone. Raises KeyError if it is not there, Damaged if it cannot be read."""
        return self._store.fresh(lambda: self._get(id), self._look)

    def items(self) -> Iterator[ArchivedMessage]:
        """All messages that are there now, in the order they were put, a block in memory at a time."""
        items: dict[str, ArchivedMessage] = {}
        for id in self.ids:
            if id not in items:
                items = self._store.fresh(partial(self._beside, id), self._look)
            if id in items:
                yield items[id]

    def summaries(self) -> Iterator[SummaryFrame]:
        """The extractive summaries of the blocks that have one. The blocks are there as well."""
        for part in self.parts:
            if part.summary is not None:
                yield SummaryFrame(self._catalogue.tables[part.number].ids, self._store.summary(part))

    def content(self, part: PartEntry) -> bytes:
        """The decompressed bytes of a part, as they are laid out."""
        return self._store.content(part)

    def frame(self, part: PartEntry) -> tuple[Dictionary, bytes]:
        """The compressed bytes of a part, and the dictionary that decompresses them."""
        return self._store.frame(part)

    def verify(self) -> tuple[Damaged, ...]:
        """Read every byte of every file, and every message. Returns what is wrong: nothing, if all is as written."""
        found: dict[str, Damaged] = {}
        for part in self.parts:
            try:
                table = self._store.table(part)
                laid = Laid(self._store.content(part), table.ids)
                for at in range(part.messages):
                    _ = laid[at]
                self._store.summary(part)
                self._store.check_end(part)
            except Damaged as error:
                found[str(error)] = error
            except FileNotFoundError as error:
                found[str(error.filename)] = Damaged(Path(error.filename), "it is missing")
        return tuple(found.values())

    # changing it

    def put(self, items: Iterable[ArchivedMessage]) -> int:
        """Store messages, all or none of them. Returns how many were not there already, as they are.

        Raises ArchiveError for an id that has another message already, and for a message that would not come back.
        """
        self._may_write()
        new = self._new(items)
        if not new:
            return 0
        small = [part for part in self.parts if not part.sealed]
        tokens = sum(part.tokens for part in small) + sum(item.tokens for item in new)
        if len(small) >= PARTS or tokens >= self.coding.block_tokens:
            self._write(small, new)
        else:
            self._write([], new)
        return len(new)

    def seal(self) -> None:
        """Write what is no whole block yet as a block, however small."""
        self._may_write()
        small = [part for part in self.parts if not part.sealed]
        if small:
            self._write(small, [], seal=True)

    def delete(self, ids: Iterable[str], now: float) -> int:
        """Mark messages as deleted. Returns how many were there. Their bytes stay until `clean`."""
        self._may_write()
        gone: dict[int, list[int]] = {}
        for id in dict.fromkeys(ids):
            if id in self:
                number, at = self._catalogue.places[id]
                gone.setdefault(number, []).append(at)
        marked = []
        for number, places in gone.items():
            part, table = self._catalogue.parts[number], self._catalogue.tables[number]
            left = part.tokens - sum(table.tokens[at] for at in places)
            deleted = tuple(sorted([*part.deleted, *((at, now) for at in places)]))
            marked.append(msgspec.structs.replace(part, tokens=left, deleted=deleted))
        if marked:
            with self._drafting() as draft:
                draft.mark(marked)
        return sum(map(len, gone.values()))

    def clean(self, now: float, delay: float = DELAY, least: float = 0.0) -> int:
        """Write the parts anew in which a message was deleted `delay` seconds ago or earlier, and of whose messages at
        least this share is deleted. Returns the bytes freed."""
        self._may_write()
        due = [part for part in self.parts if any(when + delay <= now for _, when in part.deleted)]
        due = [part for part in due if len(part.deleted) >= least * part.messages]
        if not due:
            return 0
        size = self.size
        with self._drafting() as draft:
            draft.clean(due)
        return size - self.size

    # inside

    def _look(self) -> None:
        """Know what the index says."""
        self._catalogue.read(self._store.index, self._store.table)

    def _may_write(self) -> None:
        self._store.may_write()
        if self._catalogue.faults:
            raise self._catalogue.faults[0]

    @contextmanager
    def _drafting(self) -> Iterator[Draft]:
        """A change that is made whole, or not at all if anything is raised."""
        try:
            with Draft(self._store, self.coding, self._count).committing() as draft:
                yield draft
        finally:
            self._look()

    def _write(self, instead_of: list[PartEntry], items: list[ArchivedMessage], seal: bool = False) -> None:
        before = [item for part in instead_of for item in self._live(part)]
        with self._drafting() as draft:
            draft.drop(instead_of)
            draft.add([*before, *items], seal)

    def _live(self, part: PartEntry) -> list[ArchivedMessage]:
        table = self._catalogue.tables[part.number]
        return live(part, table, self._store.laid(part, table))

    def _get(self, id: str) -> ArchivedMessage:
        if id not in self:
            raise KeyError(id)
        number, at = self._catalogue.places[id]
        table = self._catalogue.tables[number]
        return ArchivedMessage(id, table.tokens[at], self._store.laid(self._catalogue.parts[number], table)[at])

    def _beside(self, id: str) -> dict[str, ArchivedMessage]:
        """The messages of the part that a message is in; none if a writer has deleted it meanwhile."""
        if id not in self:
            return {}
        return {item.id: item for item in self._live(self._catalogue.parts[self._catalogue.places[id][0]])}

    def _new(self, items: Iterable[ArchivedMessage]) -> list[ArchivedMessage]:
        """Those that are not there yet."""
        new: dict[str, ArchivedMessage] = {}
        for item in items:
            self._check(item)
            there = new.get(item.id) or (self.get(item.id) if item.id in self else None)
            if there is None:
                new[item.id] = item
            elif there != item:
                what = f"message {item.id!r} is there already, and is another"
                raise ArchiveError(self._store.files.where, what, "give every message an id of its own")
        return list(new.values())

    def _check(self, item: ArchivedMessage) -> None:
        """Refuse what would not come back as it is."""
        if not item.id or item.tokens < 0:
            what = f"message {item.id!r} has {item.tokens} tokens" if item.id else "a message has an empty id"
            raise ArchiveError(self._store.files.where, what, "give an id, and 0 tokens or more")
        try:
            item.id.encode()
            same = msgspec.json.decode(msgspec.json.encode(item.message), type=Message) == item.message
        except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError):
            same = False
        if not same:
            what = f"message {item.id!r} does not come back from JSON as it is (half a character, a time that is none)"
            raise ArchiveError(self._store.files.where, what, "correct it; nothing of this call was stored")


class Catalogue:
    """The place of every message that is not deleted. A table is read once: no file is written twice."""

    def __init__(self) -> None:
        self.parts: dict[int, PartEntry] = {}
        self.tables: dict[int, PartTable] = {}
        self.places: dict[str, tuple[int, int]] = {}
        """By id: the number of its part, and its place in it."""
        self.faults: tuple[Damaged, ...] = ()
        """Tables that cannot be read. What they name is not known to be there, nor to be absent."""

    def read(self, index: ArchiveIndex, table: Callable[[PartEntry], PartTable]) -> None:
        """Take in an index. Only the tables that are new are read. Raises FileNotFoundError, and then nothing
        changed."""
        tables, faults = dict[int, PartTable](), list[Damaged]()
        for part in index.parts:
            try:
                tables[part.number] = self.tables.get(part.number) or table(part)
            except Damaged as error:
                faults.append(error)
        stale = [part for number, part in self.parts.items() if number in self.tables]
        now = {part.number: part for part in index.parts}
        for part in stale:
            if now.get(part.number) is not part:
                for at, id in enumerate(self.tables[part.number].ids):
                    if self.places.get(id) == (part.number, at):
                        del self.places[id]
        for part in index.parts:
            if part.number in tables and self.parts.get(part.number) is not part:
                gone = {at for at, _ in part.deleted}
                for at, id in enumerate(tables[part.number].ids):
                    if at not in gone:
                        self.places[id] = (part.number, at)
        self.parts, self.tables, self.faults = now, tables, tuple(faults)

    def known(self, id: str) -> bool:
        """Whether a message is there. Raises Damaged if that cannot be known."""
        if id in self.places:
            return True
        if self.faults:
            raise self.faults[0]
        return False

    @property
    def ids(self) -> list[str]:
        """The ids of all messages, in the order of the parts."""
        return [
            id
            for number, table in self.tables.items()
            for at, id in enumerate(table.ids)
            if self.places.get(id) == (number, at)
        ]


FIRST = 2
"""Blocks that the first dictionary is made of."""
MESSAGES = 1 << 15
"""Messages of a block at most, however few tokens they have."""


class Draft:
    """An index that is being written. Nothing of it counts before `commit`."""

    def __init__(self, store: ArchiveFiles, coding: Coding, count: Count | None) -> None:
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

    def drop(self, parts: Sequence[PartEntry]) -> None:
        """Take parts out."""
        gone = {part.number for part in parts}
        self._index = replace(self._index, parts=tuple(each for each in self._index.parts if each.number not in gone))

    def mark(self, parts: Sequence[PartEntry]) -> None:
        """Put parts in the place of those with their numbers; only what the index says of them is new."""
        new = {part.number: part for part in parts}
        self._index = replace(self._index, parts=tuple(new.get(each.number, each) for each in self._index.parts))

    def add(self, items: Sequence[ArchivedMessage], seal: bool) -> None:
        """Write messages as blocks, and what is left over as a part of its own, or as a block if it is to `seal`."""
        for block, whole in blocks(items, self._coding.block_tokens):
            if not (whole or seal):
                self._put(unsealed(self._index.next, block))
                continue
            self._put(self._sealed(block))
            if self._dictionary_is_due():
                self._teach([part.number for part in self._index.parts if part.sealed])

    def clean(self, parts: Sequence[PartEntry]) -> None:
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

    def _sealed(self, items: Sequence[ArchivedMessage]) -> Made:
        dictionary = self._store.dictionary(self._index)
        using = self._index.dictionary.number if self._index.dictionary else 0
        return sealed(self._index.next, items, self._coding, dictionary, using, self._count)

    def _put(self, made: Made, instead_of: PartEntry | None = None) -> None:
        """One part more, or in the place of another."""
        self._store.put_part(made)
        parts = self._index.parts
        if instead_of is None:
            parts = (*parts, made.part)
        else:
            parts = tuple(made.part if each.number == instead_of.number else each for each in parts)
        self._index = replace(self._index, parts=parts, next=self._index.next + 1)

    def _items(self, part: PartEntry) -> list[ArchivedMessage]:
        table = self._store.table(part)
        return live(part, table, self._store.laid(part, table))


def live(part: PartEntry, table: PartTable, laid: Laid) -> list[ArchivedMessage]:
    """The messages of a part that are not deleted."""
    gone = {at for at, _ in part.deleted}
    return [ArchivedMessage(table.ids[at], table.tokens[at], laid[at]) for at in range(part.messages) if at not in gone]


def blocks(items: Sequence[ArchivedMessage], most: int) -> Iterator[tuple[Sequence[ArchivedMessage], bool]]:
    """Messages cut into blocks of at most `most` tokens (a larger message alone), and whether each is a whole one."""
    start, tokens = 0, 0
    for at, item in enumerate(items):
        if at > start and (tokens + item.tokens > most or at - start == MESSAGES):
            yield items[start:at], True
            start, tokens = at, 0
        tokens += item.tokens
    if start < len(items):
        yield items[start:], tokens >= most

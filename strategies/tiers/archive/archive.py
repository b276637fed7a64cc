"""An archive of messages, in a folder or in memory.

**Writing.** Messages are in files when `put` returns. They form a small part of their own until there are enough tokens
for a block. Then the small parts are written together, at the archive's level, in the smallest layout. Many small
parts are merged into one.

**The dictionary** is made of the first two blocks, and again each time their number has doubled, until it is full. The
blocks are then written again with it, and take almost nothing: their text is stored once, in the dictionary.

**Deleting** marks a message, which disappears for every caller at once. `clean` rewrites the files without it once the
delay is over, and the dictionary without its text. Time is given by the caller, never read from a clock.
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

from ctxbench.scenarios.model import Message

from .codec import Coding, Dictionary, build_dictionary
from .files import INDEX, ArchiveError, ArchiveIndex, Damaged, Files, FolderFiles, PartEntry
from .part import (
    ArchivedMessage,
    Count,
    NewPart,
    PartMessages,
    PartTable,
    SummaryFrame,
    block_part,
    by_field,
    small_part,
)
from .store import ArchiveFiles

PARTS = 16
"""Small parts at which they are merged."""
DELAY = 5.0
"""Seconds between deleting a message and removing its bytes (004 §4.3)."""


class ArchiveTier:
    """An archive in a folder, which is created if necessary, or in `MemoryFiles()`. Its errors are ArchiveErrors."""

    def __init__(
        self,
        where: Path | Files,
        coding: Coding | None = None,
        *,
        write: bool = True,
        count: Count | None = None,
        keep: int = 0,
    ) -> None:
        """Open the archive. `keep` is the number of decompressed blocks that stay in memory."""
        self.coding = Coding() if coding is None else coding
        """Coding of the next block. It may be replaced at any time."""
        if self.coding.summary and count is None:
            raise ValueError("summaries are measured in tokens: give `count`, which counts the tokens of a text")
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
        """Release the lock. All messages are on disk already."""
        self._store.close()

    def __contains__(self, id: str) -> bool:
        return self._catalogue.known(id)

    def __len__(self) -> int:
        return len(self._catalogue.places)

    @property
    def ids(self) -> list[str]:
        """Ids of all messages, in order of addition."""
        return self._catalogue.ids

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return sum(part.tokens for part in self._store.index.parts)

    @property
    def parts(self) -> tuple[PartEntry, ...]:
        """Parts of the archive, as listed in its index."""
        return self._store.index.parts

    def files(self) -> set[str]:
        """Return the names of its files, without the index."""
        return self._store.index.names()

    def raw(self) -> dict[str, bytes]:
        """Return the bytes of its files and index, as `MemoryFiles` takes them."""
        return {name: self._store.files.read(name) for name in sorted({*self.files(), INDEX} if self.parts else ())}

    @property
    def dictionary(self) -> Dictionary:
        """Dictionary of its blocks; an empty one if there is none."""
        return self._store.dictionary(self._store.index)

    @property
    def size(self) -> int:
        """Bytes on disk: blocks, tables, dictionary, summaries, index."""
        return self._store.size()

    def get(self, id: str) -> ArchivedMessage:
        """Read one message from its block. Raises KeyError for an unknown id, Damaged if it cannot be read."""
        return self._store.fresh(lambda: self._get(id), self._look)

    def items(self) -> Iterator[ArchivedMessage]:
        """Yield all messages in order of addition, with one block in memory at a time."""
        items: dict[str, ArchivedMessage] = {}
        for id in self.ids:
            if id not in items:
                items = self._store.fresh(partial(self._part_of, id), self._look)
            if id in items:
                yield items[id]

    def summaries(self) -> Iterator[SummaryFrame]:
        """Yield the extractive summaries of the blocks that have one. The blocks remain."""
        for part in self.parts:
            if part.summary is not None:
                yield SummaryFrame(self._catalogue.tables[part.number].ids, self._store.summary(part))

    def content(self, part: PartEntry) -> bytes:
        """Return the decompressed bytes of a part in its layout."""
        return self._store.content(part)

    def frame(self, part: PartEntry) -> tuple[Dictionary, bytes]:
        """Return the dictionary of a part and its compressed bytes."""
        return self._store.frame(part)

    def verify(self) -> tuple[Damaged, ...]:
        """Read every byte of every file and every message. Return the damage found."""
        damage: dict[str, Damaged] = {}
        for part in self.parts:
            try:
                table = self._store.table(part)
                messages = PartMessages(self._store.content(part), table.ids)
                for at in range(part.messages):
                    _ = messages[at]
                self._store.summary(part)
                self._store.check_end(part)
            except Damaged as error:
                damage[str(error)] = error
            except FileNotFoundError as error:
                damage[str(error.filename)] = Damaged(Path(error.filename), "it is missing")
        return tuple(damage.values())

    def put(self, items: Iterable[ArchivedMessage]) -> int:
        """Store messages, all or none of them. Return how many are new.

        Raises ArchiveError for an id that has another message already, and for a message that JSON cannot restore.
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
        """Write all small parts as a block, however small."""
        self._may_write()
        small = [part for part in self.parts if not part.sealed]
        if small:
            self._write(small, [], seal=True)

    def delete(self, ids: Iterable[str], now: float) -> int:
        """Mark messages as deleted. Return how many there were. Their bytes stay until `clean`."""
        self._may_write()
        places_by_part: dict[int, list[int]] = {}
        for id in dict.fromkeys(ids):
            if id in self:
                number, at = self._catalogue.places[id]
                places_by_part.setdefault(number, []).append(at)
        marked = []
        for number, places in places_by_part.items():
            part, table = self._catalogue.parts[number], self._catalogue.tables[number]
            left = part.tokens - sum(table.tokens[at] for at in places)
            deleted = tuple(sorted([*part.deleted, *((at, now) for at in places)]))
            marked.append(msgspec.structs.replace(part, tokens=left, deleted=deleted))
        if marked:
            with self._drafting() as draft:
                draft.mark(marked)
        return sum(map(len, places_by_part.values()))

    def clean(self, now: float, delay: float = DELAY, least: float = 0.0) -> int:
        """Rewrite parts without their deleted messages. Return the bytes freed.

        A part is due if a message of it was deleted at least `delay` seconds ago and at least the share `least` of its
        messages is deleted.
        """
        self._may_write()
        due = [part for part in self.parts if any(when + delay <= now for _, when in part.deleted)]
        due = [part for part in due if len(part.deleted) >= least * part.messages]
        if not due:
            return 0
        size = self.size
        with self._drafting() as draft:
            draft.clean(due)
        return size - self.size

    def _look(self) -> None:
        """Update the catalogue from the index."""
        self._catalogue.read(self._store.index, self._store.table)

    def _may_write(self) -> None:
        self._store.may_write()
        # Writing would decide what is new without knowing the ids of the damaged part.
        if self._catalogue.faults:
            raise self._catalogue.faults[0]

    @contextmanager
    def _drafting(self) -> Iterator[Draft]:
        """Change the archive completely, or not at all if anything is raised."""
        try:
            with Draft(self._store, self.coding, self._count).committing() as draft:
                yield draft
        finally:
            self._look()

    def _write(self, replaced: list[PartEntry], items: list[ArchivedMessage], seal: bool = False) -> None:
        # Small parts come before the new messages, so the order of
        # addition holds; their deleted messages are left behind.
        earlier = [item for part in replaced for item in self._live(part)]
        with self._drafting() as draft:
            draft.drop(replaced)
            draft.add([*earlier, *items], seal)

    def _live(self, part: PartEntry) -> list[ArchivedMessage]:
        table = self._catalogue.tables[part.number]
        return live_messages(part, table, self._store.messages(part, table))

    def _get(self, id: str) -> ArchivedMessage:
        if id not in self:
            raise KeyError(id)
        number, at = self._catalogue.places[id]
        table = self._catalogue.tables[number]
        return ArchivedMessage(id, table.tokens[at], self._store.messages(self._catalogue.parts[number], table)[at])

    def _part_of(self, id: str) -> dict[str, ArchivedMessage]:
        """Return all messages of a message's part; none if a writer has deleted it meanwhile."""
        if id not in self:
            return {}
        return {item.id: item for item in self._live(self._catalogue.parts[self._catalogue.places[id][0]])}

    def _new(self, items: Iterable[ArchivedMessage]) -> list[ArchivedMessage]:
        new: dict[str, ArchivedMessage] = {}
        for item in items:
            self._check(item)
            # `new` is asked as well: one call may name an id twice.
            known = new.get(item.id) or (self.get(item.id) if item.id in self else None)
            if known is None:
                new[item.id] = item
            elif known != item:
                what = f"message {item.id!r} is there already, with other content"
                raise ArchiveError(self._store.files.where, what, "give every message an id of its own")
        return list(new.values())

    def _check(self, item: ArchivedMessage) -> None:
        """Raise ArchiveError for a message that JSON cannot restore."""
        if not item.id or item.tokens < 0:
            what = f"message {item.id!r} has {item.tokens} tokens" if item.id else "a message has an empty id"
            raise ArchiveError(self._store.files.where, what, "give an id, and 0 tokens or more")
        try:
            # A lone surrogate is legal in Python's strings and in no UTF-8;
            # NaN times decode as null. Both are found by going there and back.
            item.id.encode()
            same = msgspec.json.decode(msgspec.json.encode(item.message), type=Message) == item.message
        except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError):
            same = False
        if not same:
            what = f"message {item.id!r} cannot be stored as JSON (half a character, or an invalid time)"
            raise ArchiveError(self._store.files.where, what, "correct it; this call stored nothing")


class Catalogue:
    """The place of every message that is not deleted. A table is read once: no file is written twice."""

    def __init__(self) -> None:
        self.parts: dict[int, PartEntry] = {}
        self.tables: dict[int, PartTable] = {}
        self.places: dict[str, tuple[int, int]] = {}
        """Number of the part and place in it, by id."""
        self.faults: tuple[Damaged, ...] = ()
        """Tables that cannot be read, so that nobody knows which messages they name."""

    def read(self, index: ArchiveIndex, table: Callable[[PartEntry], PartTable]) -> None:
        """Take in an index, reading only new tables. Raises FileNotFoundError and changes nothing."""
        tables, faults = dict[int, PartTable](), list[Damaged]()
        for part in index.parts:
            try:
                tables[part.number] = self.tables.get(part.number) or table(part)
            except Damaged as error:
                faults.append(error)
        stale = [part for number, part in self.parts.items() if number in self.tables]
        now = {part.number: part for part in index.parts}
        for part in stale:
            # Identity, not equality: a writer's index shares the entries that it did
            # not touch, so a `put` looks at its own parts only. A deletion replaces the
            # entry of its part, whose places are then all taken out and put in again.
            if now.get(part.number) is not part:
                for at, id in enumerate(self.tables[part.number].ids):
                    if self.places.get(id) == (part.number, at):
                        del self.places[id]
        for part in index.parts:
            if part.number in tables and self.parts.get(part.number) is not part:
                deleted = {at for at, _ in part.deleted}
                for at, id in enumerate(tables[part.number].ids):
                    if at not in deleted:
                        self.places[id] = (part.number, at)
        self.parts, self.tables, self.faults = now, tables, tuple(faults)

    def known(self, id: str) -> bool:
        """Return whether a message is there. Raises Damaged if a table cannot be read."""
        if id in self.places:
            return True
        # An unreadable table may name this very message: "not there" would let a writer store it a second time.
        if self.faults:
            raise self.faults[0]
        return False

    @property
    def ids(self) -> list[str]:
        """Ids of all messages, in order of the parts."""
        return [
            id
            for number, table in self.tables.items()
            for at, id in enumerate(table.ids)
            if self.places.get(id) == (number, at)
        ]


FIRST = 2
"""Blocks of the first dictionary."""
MESSAGES = 1 << 15
"""Most messages of a block, however few tokens they have."""


class Draft:
    """A change of the archive: new files, and the index that will name them after the commit."""

    def __init__(self, store: ArchiveFiles, coding: Coding, count: Count | None) -> None:
        self._store, self._coding, self._count = store, coding, count
        self._index = store.index

    @contextmanager
    def committing(self) -> Iterator[Draft]:
        """Commit at the end, or remove the new files if anything is raised."""
        try:
            yield self
            self._store.commit(self._index)
        except BaseException:
            self._store.abandon()
            raise

    def drop(self, parts: Sequence[PartEntry]) -> None:
        """Remove parts."""
        dropped = {part.number for part in parts}
        self._index = replace(
            self._index, parts=tuple(part for part in self._index.parts if part.number not in dropped)
        )

    def mark(self, parts: Sequence[PartEntry]) -> None:
        """Replace the index entries of parts; their files do not change."""
        new = {part.number: part for part in parts}
        self._index = replace(self._index, parts=tuple(new.get(part.number, part) for part in self._index.parts))

    def add(self, items: Sequence[ArchivedMessage], seal: bool) -> None:
        """Write messages as blocks, and the rest as a small part, or as a block if `seal`."""
        for block, whole in blocks(items, self._coding.block_tokens):
            if not (whole or seal):
                self._put(small_part(self._index.next, block))
                continue
            self._put(self._block(block))
            if self._dictionary_is_due():
                self._train([part.number for part in self._index.parts if part.sealed])

    def clean(self, parts: Sequence[PartEntry]) -> None:
        """Rewrite parts without their deleted messages, and the dictionary without their text."""
        for part in parts:
            items = self._items(part)
            if items:
                new = self._block(items) if part.sealed else small_part(self._index.next, items)
                # Rewritten blocks are untaught by default; the number of
                # taught blocks decides when the next dictionary is due.
                self._put(new._replace(part=replace(new.part, taught=part.taught)), part)
            else:
                self.drop([part])
        # The deleted text is still in the dictionary, which is the text
        # of these blocks: all blocks are written again with a new one.
        if any(part.taught for part in parts):
            self._train([part.number for part in self._index.parts if part.taught])

    def _dictionary_is_due(self) -> bool:
        """Return whether to make a dictionary: there is none, or it has room and is made of half the blocks."""
        if self._coding.dictionary == "none":
            return False
        taught = sum(part.taught for part in self._index.parts)
        whole = sum(part.sealed for part in self._index.parts)
        if not taught:
            return whole >= FIRST
        dictionary = self._store.dictionary(self._index)
        # A raw dictionary of twice the blocks is twice as long. A trained one is of zstd's choosing and is made once.
        room = dictionary.kind == "raw" and 2 * len(dictionary.data) <= self._coding.dictionary_bytes
        return room and whole >= 2 * taught

    def _train(self, numbers: Sequence[int]) -> None:
        """Make a dictionary of these parts, and write every block with it.

        It is made of the layout by fields: matching whole records saves more than columns by key do.
        """
        blocks = {part.number: (part, self._items(part)) for part in self._index.parts if part.sealed}
        texts = [by_field(blocks[number][1]) for number in numbers if blocks[number][1]]
        dictionary = build_dictionary(texts, self._coding)
        file = None
        if dictionary.data:
            file = self._store.put_dictionary(self._index.next, dictionary, self._coding.level)
        self._index = replace(self._index, dictionary=file, next=self._index.next + 1)
        for part, items in blocks.values():
            if items:
                new = self._block(items)
                self._put(new._replace(part=replace(new.part, taught=bool(file) and part.number in numbers)), part)
            else:
                self.drop([part])

    def _block(self, items: Sequence[ArchivedMessage]) -> NewPart:
        dictionary = self._store.dictionary(self._index)
        using = self._index.dictionary.number if self._index.dictionary else 0
        return block_part(self._index.next, items, self._coding, dictionary, using, self._count)

    def _put(self, new: NewPart, replaced: PartEntry | None = None) -> None:
        """Add a part, or replace one."""
        self._store.put_part(new)
        parts = self._index.parts
        if replaced is None:
            parts = (*parts, new.part)
        else:
            parts = tuple(new.part if part.number == replaced.number else part for part in parts)
        self._index = replace(self._index, parts=parts, next=self._index.next + 1)

    def _items(self, part: PartEntry) -> list[ArchivedMessage]:
        table = self._store.table(part)
        return live_messages(part, table, self._store.messages(part, table))


def live_messages(part: PartEntry, table: PartTable, messages: PartMessages) -> list[ArchivedMessage]:
    """Return the messages of a part that are not deleted."""
    deleted = {at for at, _ in part.deleted}
    places = (at for at in range(part.messages) if at not in deleted)
    return [ArchivedMessage(table.ids[at], table.tokens[at], messages[at]) for at in places]


def blocks(items: Sequence[ArchivedMessage], most: int) -> Iterator[tuple[Sequence[ArchivedMessage], bool]]:
    """Yield messages cut into blocks of at most `most` tokens (a larger one alone), and whether each block is full."""
    start, tokens = 0, 0
    for at, item in enumerate(items):
        # `at > start` lets a message larger than a block stand alone instead of leaving an empty block before it.
        if at > start and (tokens + item.tokens > most or at - start == MESSAGES):
            yield items[start:at], True
            start, tokens = at, 0
        tokens += item.tokens
    if start < len(items):
        yield items[start:], tokens >= most

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

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from ....scenarios.model import Message
from .catalogue import Catalogue
from .coding import Coding, Dictionary
from .draft import Draft, live
from .errors import ArchiveError, Damaged
from .files import Files, Folder
from .index import NAME as INDEX
from .index import Part
from .item import Item
from .layout import Laid
from .part import Count, Summary
from .store import Store

PARTS = 16
"""How many parts there may be that are no blocks yet."""
DELAY = 5.0
"""Seconds between deleting a message and cleaning it away (004 §4.3)."""


class Archive:
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
        self._store = Store(Folder(where) if isinstance(where, Path) else where, write, keep)
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
    def parts(self) -> tuple[Part, ...]:
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

    def get(self, id: str) -> Item:
        """One message, from its block alone. Raises KeyError if it is not there, Damaged if it cannot be read."""
        return self._store.fresh(lambda: self._get(id), self._look)

    def items(self) -> Iterator[Item]:
        """All messages that are there now, in the order they were put, a block in memory at a time."""
        items: dict[str, Item] = {}
        for id in self.ids:
            if id not in items:
                items = self._store.fresh(partial(self._beside, id), self._look)
            if id in items:
                yield items[id]

    def summaries(self) -> Iterator[Summary]:
        """The extractive summaries of the blocks that have one. The blocks are there as well."""
        for part in self.parts:
            if part.summary is not None:
                yield Summary(self._catalogue.tables[part.number].ids, self._store.summary(part))

    def content(self, part: Part) -> bytes:
        """The decompressed bytes of a part, as they are laid out."""
        return self._store.content(part)

    def frame(self, part: Part) -> tuple[Dictionary, bytes]:
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

    def put(self, items: Iterable[Item]) -> int:
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

    def _write(self, instead_of: list[Part], items: list[Item], seal: bool = False) -> None:
        before = [item for part in instead_of for item in self._live(part)]
        with self._drafting() as draft:
            draft.drop(instead_of)
            draft.add([*before, *items], seal)

    def _live(self, part: Part) -> list[Item]:
        table = self._catalogue.tables[part.number]
        return live(part, table, self._store.laid(part, table))

    def _get(self, id: str) -> Item:
        if id not in self:
            raise KeyError(id)
        number, at = self._catalogue.places[id]
        table = self._catalogue.tables[number]
        return Item(id, table.tokens[at], self._store.laid(self._catalogue.parts[number], table)[at])

    def _beside(self, id: str) -> dict[str, Item]:
        """The messages of the part that a message is in; none if a writer has deleted it meanwhile."""
        if id not in self:
            return {}
        return {item.id: item for item in self._live(self._catalogue.parts[self._catalogue.places[id][0]])}

    def _new(self, items: Iterable[Item]) -> list[Item]:
        """Those that are not there yet."""
        new: dict[str, Item] = {}
        for item in items:
            self._check(item)
            there = new.get(item.id) or (self.get(item.id) if item.id in self else None)
            if there is None:
                new[item.id] = item
            elif there != item:
                what = f"message {item.id!r} is there already, and is another"
                raise ArchiveError(self._store.files.where, what, "give every message an id of its own")
        return list(new.values())

    def _check(self, item: Item) -> None:
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

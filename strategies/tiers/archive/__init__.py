"""The Archive tier: messages in compressed blocks of 64K tokens, each readable alone (design document 004 §2.3).

    archive = ArchiveTier(BlockTable("archive.db"))
    archive.put([ArchivedMessage("conv-1/m1", 12, message)])
    archive.get("conv-1/m1").message

It works without the harness. `part.py` has one block, the layout of its messages and the index of all. Its files are
rows of the archive's store (`strategies/archive/store.py`), which change in one transaction. Decision 16 has figures.

Messages form small parts, which are merged, until there are enough tokens for a block. The dictionary is made of the
first two blocks, and again each time their number has doubled, until it is full; they are then written again with it,
and take almost nothing. A message that is deleted disappears at once; `clean` rewrites its block and the dictionary
without it once the delay is over. Time is given by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ...archive.store import BlockTable, StoreError
from .part import (
    FAST,
    INDEX,
    ArchivedMessage,
    ArchiveIndex,
    Coding,
    Dictionary,
    DictionaryFile,
    IndexSection,
    PartEntry,
    PartMessages,
    PartTable,
    block_part,
    build_dictionary,
    by_field,
    checksum,
    dictionary_name,
    index_bytes,
    new_part,
    parse_index,
    part_name,
    section_of,
    table_of,
)

__all__ = ["ArchiveTier", "ArchivedMessage", "BlockTable", "Coding", "Damaged", "Dictionary", "blocks"]

PARTS = 16  # small parts at which they are merged
DELAY = 5.0  # seconds between deleting a message and removing its bytes (004 §4.3)
FIRST = 2  # blocks of the first dictionary
MESSAGES = 1 << 15  # most messages of a block, however few tokens they have


class Damaged(StoreError):
    """A file of an archive is altered or missing."""

    def __init__(self, store: BlockTable, name: str) -> None:
        super().__init__(store.path or "memory", f"{name} is altered or missing", "archive its messages anew")


class ArchiveTier:
    """An archive in a table of blocks. Its errors are StoreErrors."""

    def __init__(self, store: BlockTable, coding: Coding | None = None, keep: int = 0) -> None:
        """Open the archive. `keep` is the number of decompressed blocks that stay in memory."""
        self.coding = Coding() if coding is None else coding
        """Coding of the next block. It may be replaced at any time."""
        self.store, self._keep = store, keep
        self.index = ArchiveIndex()
        """All files of the archive."""
        self._cache: dict[int, PartMessages] = {}  # decompressed blocks, in order of use
        self.dictionary = Dictionary()
        """Dictionary of its blocks; an empty one if there is none."""
        # The place of every message that is not deleted: the number of its part, and its place there.
        self._parts: dict[int, PartEntry] = {}
        self._tables: dict[int, PartTable] = {}
        self._places: dict[str, tuple[int, int]] = {}
        data = store.read(INDEX)
        if data is not None:
            index = parse_index(data)
            if index is None:
                raise Damaged(store, INDEX)
            for part in index.parts:
                self._tables[part.number] = table_of(self._section(part_name(part.number), part.table))
            if index.dictionary is not None:
                frame = self._section(dictionary_name(index.dictionary.number), index.dictionary.data)
                self.dictionary = Dictionary(Dictionary().decompress(frame))
            self._take_in(index)

    def close(self) -> None:
        self.store.close()

    def __contains__(self, id: str) -> bool:
        return id in self._places

    @property
    def parts(self) -> tuple[PartEntry, ...]:
        """Parts of the archive, as listed in its index."""
        return self.index.parts

    @property
    def size(self) -> int:
        """Bytes of its files: blocks, tables, dictionary, index."""
        sections = [section for part in self.parts for section in (part.table, part.content)]
        if self.index.dictionary is not None:
            sections.append(self.index.dictionary.data)
        return len(index_bytes(self.index)) + sum(section.size for section in sections)

    def get(self, id: str) -> ArchivedMessage:
        """Read one message from its block. Raises KeyError for an unknown id, Damaged if it cannot be read."""
        number, at = self._places[id]
        return ArchivedMessage(id, self._tables[number].tokens[at], self._messages(self._parts[number])[at])

    def items(self) -> Iterator[ArchivedMessage]:
        """Yield all messages in order of addition, with one block in memory at a time."""
        for part in self.parts:
            yield from self.live(part)

    def frame(self, part: PartEntry) -> tuple[Dictionary, bytes]:
        """Return the dictionary of a part and its compressed bytes."""
        dictionary = self.dictionary if part.dictionary else Dictionary()
        return dictionary, self._section(part_name(part.number), part.content)

    def content(self, part: PartEntry) -> bytes:
        """Return the decompressed bytes of a part in its layout."""
        dictionary, frame = self.frame(part)
        return dictionary.decompress(frame)

    def put(self, items: Iterable[ArchivedMessage]) -> int:
        """Store messages, all or none of them. Return how many are new.

        Raises ValueError for an empty id, and for an id that has another message already.
        """
        new: dict[str, ArchivedMessage] = {}
        for item in items:
            # `new` is asked as well: one call may name an id twice.
            known = new.get(item.id) or (self.get(item.id) if item.id in self else None)
            if not item.id or known not in (None, item):
                raise ValueError(f"message {item.id!r} is there already: give every message an id of its own")
            if known is None:
                new[item.id] = item
        small = [part for part in self.parts if not part.sealed]
        tokens = sum(part.tokens for part in small) + sum(item.tokens for item in new.values())
        if new:
            is_merged = len(small) >= PARTS or tokens >= self.coding.block_tokens
            self._write(small if is_merged else [], list(new.values()))
        return len(new)

    def seal(self) -> None:
        """Write all small parts as a block, however small."""
        small = [part for part in self.parts if not part.sealed]
        if small:
            self._write(small, [], seal=True)

    def delete(self, ids: Iterable[str], now: float) -> int:
        """Mark messages as deleted. Return how many there were. Their bytes stay until `clean`."""
        places_by_part: dict[int, list[int]] = {}
        for id in dict.fromkeys(ids):
            if id in self:
                number, at = self._places[id]
                places_by_part.setdefault(number, []).append(at)
        draft = Draft(self)
        for at, part in enumerate(self.parts):
            if places := places_by_part.get(part.number):
                left = part.tokens - sum(self._tables[part.number].tokens[place] for place in places)
                deleted = tuple(sorted([*part.deleted, *((place, now) for place in places)]))
                draft.parts[at] = replace(part, tokens=left, deleted=deleted)
        if places_by_part:
            self._commit(draft)
        return sum(map(len, places_by_part.values()))

    def clean(self, now: float, delay: float = DELAY, least: float = 0.0) -> int:
        """Rewrite parts without their deleted messages. Return the bytes freed.

        A part is due if a message of it was deleted at least `delay` seconds ago and at least the share `least` of its
        messages is deleted.
        """
        due = [part for part in self.parts if any(when + delay <= now for _, when in part.deleted)]
        due = [part for part in due if len(part.deleted) >= least * part.messages]
        size = self.size
        if due:
            draft = Draft(self)
            draft.clean(due)
            self._commit(draft)
        return size - self.size

    def _write(self, replaced: list[PartEntry], items: list[ArchivedMessage], seal: bool = False) -> None:
        # Small parts come before the new messages, so the order of addition holds; their deleted messages are left
        # behind.
        earlier = [item for part in replaced for item in self.live(part)]
        draft = Draft(self)
        draft.parts = [part for part in self.parts if part not in replaced]
        draft.add([*earlier, *items], seal)
        self._commit(draft)

    def _commit(self, draft: Draft) -> None:
        """Write the draft's files and the index that names them, and remove the files that it does not name."""
        index = ArchiveIndex(draft.next, tuple(draft.parts), draft.file)
        names = index.names()
        written = {name: data for name, data in draft.files.items() if name in names}
        self.store.replace({**written, INDEX: index_bytes(index)}, self.index.names() - names)
        for part in index.parts:
            if (data := written.get(part_name(part.number))) is not None:
                self._tables[part.number] = table_of(data[: part.table.size])
        self.dictionary = draft.dictionary
        self._take_in(index)

    def _take_in(self, index: ArchiveIndex) -> None:
        """Enter the places of new and changed parts, and take out those of parts that are gone."""
        before = self._parts
        now = {part.number: part for part in index.parts}
        for number, part in before.items():
            # Identity: an index shares the entries that did not change, so a `put` looks at its own parts only.
            if now.get(number) is not part:
                for at, id in enumerate(self._tables[number].ids):
                    if self._places.get(id) == (number, at):
                        del self._places[id]
        self.index, self._parts = index, now
        for number, part in now.items():
            if before.get(number) is not part:
                deleted = {at for at, _ in part.deleted}
                ids = self._tables[number].ids
                self._places.update((id, (number, at)) for at, id in enumerate(ids) if at not in deleted)
        self._tables = {number: self._tables[number] for number in now}

    def live(self, part: PartEntry) -> list[ArchivedMessage]:
        """Return the messages of a part that are not deleted."""
        table, messages, deleted = self._tables[part.number], self._messages(part), {at for at, _ in part.deleted}
        places = (at for at in range(part.messages) if at not in deleted)
        return [ArchivedMessage(table.ids[at], table.tokens[at], messages[at]) for at in places]

    def _messages(self, part: PartEntry) -> PartMessages:
        """Return the messages of a part. The last few parts stay in memory."""
        # Taken out and put back at the end: the dict is in order of use, and its first entry is the one to drop.
        messages = self._cache.pop(part.number, None) or PartMessages(self.content(part), self._tables[part.number].ids)
        self._cache[part.number] = messages
        while len(self._cache) > self._keep:
            del self._cache[next(iter(self._cache))]
        return messages

    def _section(self, name: str, section: IndexSection) -> bytes:
        data = self.store.read(name, section.start, section.size)
        if data is None or len(data) < section.size or checksum(data) != section.crc:
            raise Damaged(self.store, name)
        return data


class Draft:
    """A change of the archive: new files, and the index that will name them."""

    def __init__(self, archive: ArchiveTier) -> None:
        self._archive, self._coding, self.dictionary = archive, archive.coding, archive.dictionary
        self.parts, self.next, self.file = [*archive.parts], archive.index.next, archive.index.dictionary
        self.files: dict[str, bytes] = {}
        self._items: dict[int, list[ArchivedMessage]] = {}  # of the new parts, by number

    def add(self, items: Sequence[ArchivedMessage], seal: bool) -> None:
        """Write messages as blocks, and the rest as a small part, or as a block if `seal`."""
        for block, whole in blocks(items, self._coding.block_tokens):
            self.parts.append(self._new_part(block, is_block := whole or seal))
            sealed = [part.number for part in self.parts if part.sealed]
            taught = sum(part.taught for part in self.parts)
            if not is_block or self._coding.dictionary == "none":
                continue
            # A dictionary of twice the blocks is twice as long, if it has room.
            has_room = 2 * len(self.dictionary.data) <= self._coding.dictionary_bytes
            is_due = has_room and len(sealed) >= 2 * taught
            if is_due if taught else len(sealed) >= FIRST:
                self._train(sealed)

    def clean(self, parts: Sequence[PartEntry]) -> None:
        """Rewrite parts without their deleted messages, and the dictionary without their text."""
        for part in parts:
            # The number of taught blocks decides when the next dictionary is due.
            self._replace(part, part.taught)
        # The deleted text is still in the dictionary, which is the text of these blocks: all blocks are written again
        # with a new one.
        if any(part.taught for part in parts):
            self._train([part.number for part in self.parts if part.taught])

    def _train(self, numbers: Sequence[int]) -> None:
        """Make a dictionary of these parts, and write every block with it.

        It is made of the layout by fields: matching whole records saves more than columns by key do.
        """
        taught = [items for part in self.parts if part.number in numbers and (items := self._live(part))]
        self.dictionary, self.file = build_dictionary([by_field(items) for items in taught], self._coding), None
        if self.dictionary.data:
            frame = Dictionary().compressor(self._coding.level)(self.dictionary.data)
            self.files[dictionary_name(self.next)] = frame
            self.file = DictionaryFile(self.next, "raw", section_of(frame))
        self.next += 1
        for part in [part for part in self.parts if part.sealed]:
            self._replace(part, self.file is not None and part.number in numbers)

    def _replace(self, part: PartEntry, taught: bool) -> None:
        """Write a part again without its deleted messages. One that has no others is gone."""
        items = self._live(part)
        new = [replace(self._new_part(items, part.sealed), taught=taught)] if items else []
        at = self.parts.index(part)
        self.parts[at : at + 1] = new

    def _new_part(self, items: Sequence[ArchivedMessage], is_block: bool) -> PartEntry:
        number, self.next = self.next, self.next + 1
        if is_block:
            using = self.file.number if self.file else 0
            part, data = block_part(number, items, self._coding.level, self.dictionary, using)
        else:
            part, data = new_part(number, items, by_field(items), Dictionary().compressor(FAST))
        self.files[part_name(number)], self._items[number] = data, list(items)
        return part

    def _live(self, part: PartEntry) -> list[ArchivedMessage]:
        return self._items[part.number] if part.number in self._items else self._archive.live(part)


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

"""The files of an archive and what they mean: opened, read with their checksums, and replaced all at once.

One process writes; any number read meanwhile. A reader whose files a writer has replaced reads the new index and goes
on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from . import index as indexing
from .codec import Dictionary
from .errors import ArchiveError, Damaged, telling
from .files import Files, checksum, read_checked
from .index import ArchiveIndex, DictionaryFile, IndexSection, PartEntry, dictionary_name, part_name
from .part import Laid, Made, PartTable, summary_of, table_of

_PATIENCE = 8
"""How often a reader looks again while a writer replaces what it reads."""
Found = TypeVar("Found")


class ArchiveFiles:
    """Files of parts. `index` is what they are; `put_part` and `commit` replace it."""

    def __init__(self, files: Files, write: bool, keep: int = 0) -> None:
        self.files, self._writes = files, write
        self._keep, self._kept = keep, dict[int, Laid]()
        self._dictionaries = {0: Dictionary()}
        if write:
            files.lock()
        try:
            found = indexing.load(files)
        except ArchiveError:
            self.close()
            raise
        if found is None and not write:
            raise ArchiveError(files.where, "no archive is there", "name the folder of an archive")
        self.index = found or ArchiveIndex()
        if write:
            self._sweep(self.index)

    def close(self) -> None:
        """Let others write."""
        if self._writes:
            self.files.unlock()
            self._writes = False

    def may_write(self) -> None:
        """Raise ArchiveError if this is open for reading, or closed."""
        if not self._writes:
            raise ArchiveError(self.files.where, "it is open for reading only, or closed", "open it with write=True")

    def table(self, part: PartEntry) -> PartTable:
        """The ids of a part."""
        return table_of(self._section(part_name(part.number), part.table))

    def laid(self, part: PartEntry, table: PartTable) -> Laid:
        """The messages of a part. Those of the last few parts are kept."""
        found = self._kept.pop(part.number, None) or Laid(self.content(part), table.ids)
        self._kept[part.number] = found
        while len(self._kept) > self._keep:
            del self._kept[next(iter(self._kept))]
        return found

    def content(self, part: PartEntry) -> bytes:
        """The bytes of a part, decompressed."""
        dictionary, frame = self.frame(part)
        return dictionary.decompress(frame)

    def frame(self, part: PartEntry) -> tuple[Dictionary, bytes]:
        """The bytes of a part as they are on disk, and what decompresses them."""
        return self._dictionary(part.dictionary), self._section(part_name(part.number), part.content)

    def summary(self, part: PartEntry) -> str:
        """The summary kept with a part; empty if none is."""
        return "" if part.summary is None else summary_of(self._section(part_name(part.number), part.summary))

    def dictionary(self, index: ArchiveIndex) -> Dictionary:
        """The dictionary of an index; an empty one if it has none."""
        return self._dictionary(index.dictionary.number if index.dictionary else 0)

    def fresh(self, read: Callable[[], Found], look: Callable[[], None] | None = None) -> Found:
        """What `read` finds. If a file is gone because a writer has replaced it: from the new index, after a `look`."""
        for _ in range(_PATIENCE):
            try:
                return read()
            except FileNotFoundError as error:
                missing = Damaged(Path(str(error.filename)), "it is missing")
            newer = indexing.load(self.files)
            if newer is None or newer == self.index:
                raise missing
            self.index = newer
            self._dictionaries = {0: Dictionary()}
            if look is not None:
                self.fresh(look)
        raise missing

    def put_part(self, made: Made) -> None:
        """Write the file of a part. It is no part of the archive before `commit`."""
        self.files.write(part_name(made.part.number), made.data)

    def put_dictionary(self, number: int, dictionary: Dictionary, level: int) -> DictionaryFile:
        """Write the file of a dictionary. It is no part of the archive before `commit`."""
        assert dictionary.kind != "none"
        frame = Dictionary().compress(dictionary.data, level)
        self.files.write(dictionary_name(number), frame)
        self._dictionaries[number] = dictionary
        return DictionaryFile(number, dictionary.kind, IndexSection(0, len(frame), checksum(frame)))

    def commit(self, index: ArchiveIndex) -> None:
        """Make this the archive. What it does not name is removed."""
        indexing.save(self.files, index)
        self.index = index
        self._sweep(index)
        kept = {0, index.dictionary.number if index.dictionary else 0}
        self._dictionaries = {number: each for number, each in self._dictionaries.items() if number in kept}

    def abandon(self) -> None:
        """Remove what was written since the last commit. What counts is the index on disk: it may be the new one."""
        self.index = indexing.load(self.files) or ArchiveIndex()
        self._sweep(self.index)

    def size(self) -> int:
        """Bytes of all its files."""
        with telling(self.files.where):
            return sum(self.files.size(name) for name in (indexing.NAME, *self.index.names()))

    def check_end(self, part: PartEntry) -> None:
        """Raise Damaged if more is in a part's file than was written."""
        name = part_name(part.number)
        end = max(each.start + each.size for each in (part.table, part.content, part.summary) if each is not None)
        size = self.files.size(name)
        if size > end:
            raise Damaged(self.files.where / name, f"it has {size} bytes, {end} were written")

    def _dictionary(self, number: int) -> Dictionary:
        """A dictionary, read once: in memory nothing changes it."""
        file = self.index.dictionary
        if number not in self._dictionaries:
            assert file is not None
            assert file.number == number
            data = Dictionary().decompress(self._section(dictionary_name(number), file.data))
            self._dictionaries[number] = Dictionary(data, file.kind)
        return self._dictionaries[number]

    def _section(self, name: str, section: IndexSection) -> bytes:
        return read_checked(self.files, name, section.start, section.size, section.crc)

    def _sweep(self, index: ArchiveIndex) -> None:
        """Remove files of ours that the index does not name: what a writer left that was killed."""
        named = {*index.names(), indexing.NAME}
        for name in self.files.names():
            if name not in named and name.startswith(("part-", "dictionary-", indexing.NAME + ".")):
                self.files.remove(name)

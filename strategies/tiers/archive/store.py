"""The files of an archive: read with their checksums, and replaced all at once.

One process writes; any number read meanwhile. A reader whose files a writer has replaced reads the new index and
continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from .codec import Dictionary
from .files import (
    INDEX,
    ArchiveError,
    ArchiveIndex,
    Damaged,
    DictionaryFile,
    Files,
    IndexSection,
    PartEntry,
    checksum,
    dictionary_name,
    load_index,
    part_name,
    read_checked,
    reporting_as_archive_error,
    save_index,
)
from .part import NewPart, PartMessages, PartTable, summary_of, table_of

_RETRIES = 8  # times that a reader reads the new index while a writer replaces files
Value = TypeVar("Value")


class ArchiveFiles:
    """Files of parts. `index` lists them; `put_part` and `commit` replace it."""

    def __init__(self, files: Files, write: bool, keep: int = 0) -> None:
        self.files, self._writes = files, write
        self._keep, self._cache = keep, dict[int, PartMessages]()
        self._dictionaries = {0: Dictionary()}
        # Readers take no lock, so that they never stop a writer. They pay with `fresh`.
        if write:
            files.lock()
        try:
            index = load_index(files)
        except ArchiveError:
            self.close()
            raise
        if index is None and not write:
            raise ArchiveError(files.where, "there is no archive", "name the folder of an archive")
        self.index = index or ArchiveIndex()
        # Only a writer sweeps: to a reader the new files of a running writer look like what a killed one left.
        if write:
            self._sweep(self.index)

    def close(self) -> None:
        """Release the lock."""
        if self._writes:
            self.files.unlock()
            self._writes = False

    def may_write(self) -> None:
        """Raise ArchiveError if the archive is open for reading only, or closed."""
        if not self._writes:
            raise ArchiveError(self.files.where, "it is open for reading only, or closed", "open it with write=True")

    def table(self, part: PartEntry) -> PartTable:
        """Read the table of a part."""
        return table_of(self._section(part_name(part.number), part.table))

    def messages(self, part: PartEntry, table: PartTable) -> PartMessages:
        """Return the messages of a part. The last few parts stay in memory."""
        # Taken out and put back at the end: the dict is in order of use, and its first entry is the one to drop.
        messages = self._cache.pop(part.number, None) or PartMessages(self.content(part), table.ids)
        self._cache[part.number] = messages
        while len(self._cache) > self._keep:
            del self._cache[next(iter(self._cache))]
        return messages

    def content(self, part: PartEntry) -> bytes:
        """Return the decompressed bytes of a part."""
        dictionary, frame = self.frame(part)
        return dictionary.decompress(frame)

    def frame(self, part: PartEntry) -> tuple[Dictionary, bytes]:
        """Return the dictionary of a part and its compressed bytes."""
        return self._dictionary(part.dictionary), self._section(part_name(part.number), part.content)

    def summary(self, part: PartEntry) -> str:
        """Return the summary of a part; empty if it has none."""
        return "" if part.summary is None else summary_of(self._section(part_name(part.number), part.summary))

    def dictionary(self, index: ArchiveIndex) -> Dictionary:
        """Return the dictionary of an index; an empty one if it has none."""
        return self._dictionary(index.dictionary.number if index.dictionary else 0)

    def fresh(self, read: Callable[[], Value], look: Callable[[], None] | None = None) -> Value:
        """Return the result of `read`. If a writer has replaced a file, `look` at the new index and read again."""
        for _ in range(_RETRIES):
            try:
                return read()
            except FileNotFoundError as error:
                missing = Damaged(Path(str(error.filename)), "it is missing")
            newer = load_index(self.files)
            # No writer has been here since, so the file is really gone.
            if newer is None or newer == self.index:
                raise missing
            self.index = newer
            self._dictionaries = {0: Dictionary()}
            if look is not None:
                self.fresh(look)
        raise missing

    def put_part(self, new: NewPart) -> None:
        """Write the file of a part, which joins the archive with `commit`."""
        self.files.write(part_name(new.part.number), new.data)

    def put_dictionary(self, number: int, dictionary: Dictionary, level: int) -> DictionaryFile:
        """Write the file of a dictionary, which joins the archive with `commit`."""
        assert dictionary.kind != "none"
        frame = Dictionary().compress(dictionary.data, level)
        self.files.write(dictionary_name(number), frame)
        self._dictionaries[number] = dictionary
        return DictionaryFile(number, dictionary.kind, IndexSection(0, len(frame), checksum(frame)))

    def commit(self, index: ArchiveIndex) -> None:
        """Make this the index of the archive, and remove the files that it does not name."""
        # The index first: until it is replaced the old files must be there for it, and after a crash in between the
        # next writer removes what it does not name.
        save_index(self.files, index)
        self.index = index
        self._sweep(index)
        current = {0, index.dictionary.number if index.dictionary else 0}
        self._dictionaries = {number: self._dictionaries[number] for number in self._dictionaries if number in current}

    def abandon(self) -> None:
        """Remove the files written since the last commit. The index on disk decides: it may be the new one."""
        self.index = load_index(self.files) or ArchiveIndex()
        self._sweep(self.index)

    def size(self) -> int:
        """Return the bytes of all files."""
        with reporting_as_archive_error(self.files.where):
            return sum(self.files.size(name) for name in (INDEX, *self.index.names()))

    def check_end(self, part: PartEntry) -> None:
        """Raise Damaged if a part's file, or its dictionary's, is longer than its sections."""
        self._check_end(part_name(part.number), (part.table, part.content, part.summary))
        if part.dictionary and self.index.dictionary is not None:
            self._check_end(dictionary_name(part.dictionary), (self.index.dictionary.data,))

    def _check_end(self, name: str, sections: Iterable[IndexSection | None]) -> None:
        end = max(section.start + section.size for section in sections if section is not None)
        size = self.files.size(name)
        if size > end:
            raise Damaged(self.files.where / name, f"it has {size} bytes instead of {end}")

    def _dictionary(self, number: int) -> Dictionary:
        """Return a dictionary, reading it once."""
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
        """Remove files of the archive that the index does not name: a killed writer may have left some."""
        named = {*index.names(), INDEX}
        for name in self.files.names():
            # Other files in the folder are not ours to remove, the lock
            # among them. `index.` is an index that was never renamed.
            if name not in named and name.startswith(("part-", "dictionary-", INDEX + ".")):
                self.files.remove(name)

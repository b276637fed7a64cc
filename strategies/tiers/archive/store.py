"""The files of an archive and what they mean: opened, read with their checksums, and replaced all at once.

One process writes; any number read meanwhile. A reader whose files a writer has replaced reads the new index and goes
on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from . import index as indexing
from .coding import Dictionary
from .errors import ArchiveError, Damaged, telling
from .files import checksum, read_checked, remove, write_whole
from .index import DictionaryFile, Index, Part, Section, dictionary_name, part_name
from .layout import Laid
from .part import Made, Table, summary_of, table_of

LOCK = ".lock"
_PATIENCE = 8
"""How often a reader looks again while a writer replaces what it reads."""
Found = TypeVar("Found")


class Store:
    """A folder of parts. `index` is what is on disk; `stage` and `commit` replace it."""

    def __init__(self, folder: Path, write: bool) -> None:
        self.folder = folder
        self._lock = self._locked() if write else None
        self._dictionaries = {0: Dictionary()}
        try:
            found = indexing.load(folder)
        except ArchiveError:
            self.close()
            raise
        if found is None and not write:
            raise ArchiveError(folder, "no archive is there", "name the folder of an archive")
        self.index = found or Index()
        if write:
            self._sweep(self.index)

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def may_write(self) -> None:
        """Raise ArchiveError if this is open for reading, or closed."""
        if self._lock is None:
            raise ArchiveError(self.folder, "it is open for reading only, or closed", "open it with write=True")

    def table(self, part: Part) -> Table:
        """The ids of a part."""
        return table_of(self._section(part_name(part.number), part.table))

    def laid(self, part: Part, table: Table) -> Laid:
        """The messages of a part."""
        return Laid(self.content(part), table.ids)

    def content(self, part: Part) -> bytes:
        """The bytes of a part, decompressed."""
        dictionary, frame = self.frame(part)
        return dictionary.decompress(frame)

    def frame(self, part: Part) -> tuple[Dictionary, bytes]:
        """The bytes of a part as they are on disk, and what decompresses them."""
        return self._dictionary(part.dictionary), self._section(part_name(part.number), part.content)

    def summary(self, part: Part) -> str:
        """The summary kept with a part; empty if none is."""
        return "" if part.summary is None else summary_of(self._section(part_name(part.number), part.summary))

    def dictionary(self, index: Index) -> Dictionary:
        """The dictionary of an index; an empty one if it has none."""
        return self._dictionary(index.dictionary.number if index.dictionary else 0)

    def fresh(self, read: Callable[[], Found], look: Callable[[], None] | None = None) -> Found:
        """What `read` finds. If a file is gone because a writer has replaced it: from the new index, after a `look`."""
        for _ in range(_PATIENCE):
            try:
                return read()
            except FileNotFoundError as error:
                missing = Damaged(Path(str(error.filename)), "it is missing")
            newer = indexing.load(self.folder)
            if newer is None or newer == self.index:
                raise missing
            self.index = newer
            self._dictionaries = {0: Dictionary()}
            if look is not None:
                self.fresh(look)
        raise missing

    def put_part(self, made: Made) -> None:
        """Write the file of a part. It is no part of the archive before `commit`."""
        write_whole(self.folder / part_name(made.part.number), made.data)

    def put_dictionary(self, number: int, dictionary: Dictionary, level: int) -> DictionaryFile:
        """Write the file of a dictionary. It is no part of the archive before `commit`."""
        assert dictionary.kind != "none"
        frame = Dictionary().compress(dictionary.data, level)
        write_whole(self.folder / dictionary_name(number), frame)
        self._dictionaries[number] = dictionary
        return DictionaryFile(number, dictionary.kind, Section(0, len(frame), checksum(frame)))

    def commit(self, index: Index) -> None:
        """Make this the archive. What it does not name is removed."""
        indexing.save(self.folder, index)
        self.index = index
        self._sweep(index)
        kept = {0, index.dictionary.number if index.dictionary else 0}
        self._dictionaries = {number: each for number, each in self._dictionaries.items() if number in kept}

    def abandon(self) -> None:
        """Remove what was written since the last commit. What counts is the index on disk: it may be the new one."""
        self.index = indexing.load(self.folder) or Index()
        self._sweep(self.index)

    def size(self) -> int:
        """Bytes of all its files."""
        with telling(self.folder):
            return sum((self.folder / name).stat().st_size for name in (indexing.NAME, *self.index.names()))

    def check_end(self, part: Part) -> None:
        """Raise Damaged if more is in a part's file than was written."""
        path = self.folder / part_name(part.number)
        end = max(each.start + each.size for each in (part.table, part.content, part.summary) if each is not None)
        size = path.stat().st_size
        if size > end:
            raise Damaged(path, f"it has {size} bytes, {end} were written")

    def _dictionary(self, number: int) -> Dictionary:
        """A dictionary, read once: in memory nothing changes it."""
        file = self.index.dictionary
        if number not in self._dictionaries:
            assert file is not None
            assert file.number == number
            data = Dictionary().decompress(self._section(dictionary_name(number), file.data))
            self._dictionaries[number] = Dictionary(data, file.kind)
        return self._dictionaries[number]

    def _section(self, name: str, section: Section) -> bytes:
        path = self.folder / name
        try:
            return read_checked(path, section.start, section.size, section.crc)
        except FileNotFoundError:
            raise
        except OSError:
            with telling(path):
                raise

    def _locked(self) -> FileLock:
        with telling(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / LOCK, timeout=0)
            try:
                lock.acquire()
            except Timeout:
                what, remedy = "another process writes here", "wait until it is done, or open it with write=False"
                raise ArchiveError(self.folder, what, remedy) from None
        return lock

    def _sweep(self, index: Index) -> None:
        """Remove files of ours that the index does not name: what a writer left that was killed."""
        named = {*index.names(), indexing.NAME}
        with telling(self.folder):
            names = sorted(os.listdir(self.folder))
        for name in names:
            if name not in named and name.startswith(("part-", "dictionary-", indexing.NAME + ".")):
                remove(self.folder / name)

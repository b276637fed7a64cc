"""Files that are written completely or not at all and checked when they are read, and the index that names them.

In a folder a file is written under another name, synced and renamed, and its folder synced. So whenever the writer is
killed, either the previous file is there or the new one, and nothing between. Files in memory end with the process.

The checksum is CRC-32C: it finds every change of one bit, and every burst of up to 32, in files of any length here. (A
hash such as xxh64 misses one only by chance, but may.) It is computed over the compressed bytes, in hardware.

The index is one of these files:

    ctxbench archive 1          version of the format
    {"next": 7, "parts": [...], ...}
    2f8a91c0                    CRC-32C of all above it, in hex

A file that it does not name is not part of the archive. An archive changes by writing new files, then a new index in
the place of the old one, and then removing the files that it does not name.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from filelock import FileLock, Timeout
from google_crc32c import value as _crc32c

from ctxbench.scenarios.errors import UserError

_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EDQUOT: ("the disk quota is used up", "free some space"),
    errno.EROFS: ("the disk is read-only", "name a folder that can be written, or open it with write=False"),
    errno.EACCES: ("no permission", "name a folder that can be written, or open it with write=False"),
    errno.EPERM: ("no permission", "name a folder that can be written, or open it with write=False"),
    errno.ENOTDIR: ("a part of its path is a file", "name a folder"),
    errno.EEXIST: ("it is a file", "name a folder"),
}


class ArchiveError(UserError):
    """An archive that cannot be opened, written or read as it is."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        self.path, self.what, self.remedy = path, what, remedy
        super().__init__(f"{path}: {what} ({remedy})")


class Damaged(ArchiveError):
    """A file of an archive is altered or cut off."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(path, what, "restore this file from a backup; the other files can still be read")


def archive_error(path: Path, error: OSError) -> ArchiveError:
    """Return the error of the system for a path as one line."""
    what, remedy = _REASONS.get(error.errno or 0, (error.strerror or str(error), "see what the system says"))
    return ArchiveError(path, what, remedy)


@contextmanager
def reporting_as_archive_error(path: Path) -> Iterator[None]:
    """Raise the errors of the system for a path as ArchiveErrors."""
    try:
        yield
    except OSError as error:
        raise archive_error(path, error) from None


BESIDE = ".new"
"""Suffix of a file that is not renamed yet."""
LOCK = ".lock"


class Files(Protocol):
    """Files by name. All but `names` and `remove` raise FileNotFoundError for one that is not there."""

    @property
    def where(self) -> Path:
        """Path shown in errors."""
        ...

    def lock(self) -> None:
        """Lock the files against other writers. Raises ArchiveError."""
        ...

    def unlock(self) -> None:
        """Release the lock."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        ...

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Read bytes of a file; fewer than `size` if it ends before."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file. Raises ArchiveError and changes nothing."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it is there. A failure is ignored: the next opening tries again."""
        ...


class FolderFiles:
    """Files on disk. The folder is created by `lock`."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self._lock: FileLock | None = None

    def lock(self) -> None:
        with reporting_as_archive_error(self.where):
            self.where.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.where / LOCK, timeout=0)
            try:
                lock.acquire()
            except Timeout:
                what, remedy = "another process writes here", "wait until it is done, or open it with write=False"
                raise ArchiveError(self.where, what, remedy) from None
        self._lock = lock

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def names(self) -> list[str]:
        with reporting_as_archive_error(self.where):
            return sorted(os.listdir(self.where))

    def size(self, name: str) -> int:
        return (self.where / name).stat().st_size

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        path = self.where / name
        try:
            handle = os.open(path, os.O_RDONLY)
            try:
                return os.pread(handle, os.fstat(handle).st_size - start if size is None else size, start)
            finally:
                os.close(handle)
        # Not an ArchiveError: a reader takes it as a sign that a
        # writer has replaced the file, and reads the index again.
        except FileNotFoundError:
            raise
        except OSError as error:
            raise archive_error(path, error) from None

    def write(self, name: str, data: bytes) -> None:
        path = self.where / name
        beside = path.with_name(path.name + BESIDE)
        with reporting_as_archive_error(self.where):
            try:
                _write(beside, data)
                # Only a complete, synced file gets its name; a crash before this line leaves the previous one.
                os.replace(beside, path)
            except OSError:
                self.remove(beside.name)
                raise
            _sync_folder(self.where)

    def remove(self, name: str) -> None:
        try:
            os.unlink(self.where / name)
        except OSError:
            return


class MemoryFiles:
    """Files in memory, which end with the process."""

    where = Path("memory")

    def __init__(self, held: Mapping[str, bytes] | None = None) -> None:
        self.held = dict(held or {})

    def lock(self) -> None:
        """Do nothing: no other process can write."""

    def unlock(self) -> None:
        """Do nothing: no other process can write."""

    def names(self) -> list[str]:
        return sorted(self.held)

    def size(self, name: str) -> int:
        return len(self._file(name))

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        return self._file(name)[start : None if size is None else start + size]

    def write(self, name: str, data: bytes) -> None:
        self.held[name] = data

    def remove(self, name: str) -> None:
        self.held.pop(name, None)

    def _file(self, name: str) -> bytes:
        if name not in self.held:
            raise FileNotFoundError(2, "No such file", str(self.where / name))
        return self.held[name]


def checksum(data: bytes) -> int:
    """Return the CRC-32C of bytes."""
    crc: int = _crc32c(data)
    return crc


def read_checked(files: Files, name: str, start: int, size: int, expected: int) -> bytes:
    """Read bytes of a file and check them. Raises Damaged, FileNotFoundError, ArchiveError."""
    data = files.read(name, start, size)
    path = files.where / name
    if len(data) < size:
        raise Damaged(path, f"it ends after {start + len(data)} bytes instead of {start + size}")
    if checksum(data) != expected:
        raise Damaged(path, f"bytes {start} to {start + size} are altered: the checksum differs")
    return data


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        left = memoryview(data)
        while left:
            # One write may take fewer bytes than it was given (a signal, 2 GB on Linux).
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(path: Path) -> None:
    """Make the renaming of files in a folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


INDEX_VERSION = 1

INDEX = "index"

_MAGIC = b"ctxbench archive "

_VERSION = re.compile(_MAGIC + rb"(\d{1,9})\n")


class IndexSection(msgspec.Struct, frozen=True, array_like=True):
    """A range of bytes of a file, with its checksum."""

    start: int
    size: int
    crc: int


class PartEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of messages: `part-NNNNNN`."""

    number: int
    messages: int
    tokens: int
    """Tokens of the messages that are not deleted."""
    table: IndexSection
    content: IndexSection
    raw_bytes: int
    """Size of the content before compression."""
    sealed: bool = False
    """Whether it is a block; the others are small parts that will be written into blocks."""
    dictionary: int = 0
    """Number of its dictionary; 0 = none."""
    taught: bool = False
    """Whether the dictionary is made of this part."""
    summary: IndexSection | None = None
    deleted: tuple[tuple[int, float], ...] = ()
    """Places of deleted messages, and the times of their deletion."""


class DictionaryFile(msgspec.Struct, frozen=True):
    """A file with a dictionary: `dictionary-NNNNNN`."""

    number: int
    kind: Literal["trained", "raw"]
    data: IndexSection


class ArchiveIndex(msgspec.Struct, frozen=True, omit_defaults=True):
    """All files of an archive."""

    next: int = 1
    """Number of the next file; never reused."""
    parts: tuple[PartEntry, ...] = ()
    dictionary: DictionaryFile | None = None

    def names(self) -> set[str]:
        """Return the names of all files."""
        named = {part_name(part.number) for part in self.parts}
        return named | ({dictionary_name(self.dictionary.number)} if self.dictionary else set())


def part_name(number: int) -> str:
    """Return the name of a file of messages."""
    return f"part-{number:06}"


def dictionary_name(number: int) -> str:
    """Return the name of a file with a dictionary."""
    return f"dictionary-{number:06}"


def index_bytes(index: ArchiveIndex) -> bytes:
    """Return the bytes of an index."""
    body = _MAGIC + str(INDEX_VERSION).encode() + b"\n" + msgspec.json.encode(index) + b"\n"
    return body + f"{checksum(body):08x}\n".encode()


def save_index(files: Files, index: ArchiveIndex) -> None:
    """Replace the index. This commits a change of the archive."""
    files.write(INDEX, index_bytes(index))


def load_index(files: Files) -> ArchiveIndex | None:
    """Read the index; None if there is none. Raises ArchiveError."""
    path = files.where / INDEX
    try:
        data = files.read(INDEX)
    except FileNotFoundError:
        return None
    version = _VERSION.match(data)
    if version is None:
        raise ArchiveError(
            path, "this is not the index of an archive", "restore it from a backup, or name another folder"
        )
    # The version goes before the checksum: another version may have its checksum elsewhere, and is not damaged.
    if int(version[1]) != INDEX_VERSION:
        what = f"it is an archive of version {int(version[1])}, this ctxbench reads version {INDEX_VERSION}"
        raise ArchiveError(path, what, "read it with the ctxbench that wrote it")
    # Eight hex digits and the line's end.
    body, crc = data[:-9], data[-9:]
    if crc != f"{checksum(body):08x}\n".encode():
        raise Damaged(path, "it is altered: the checksum differs")
    return msgspec.json.decode(body[version.end() :], type=ArchiveIndex)

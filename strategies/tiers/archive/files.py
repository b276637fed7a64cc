"""Files that are written whole or not at all, and checked whenever they are read: in a folder, or in memory.

In a folder a file is written beside its place, synced, moved there, and its folder synced. So whenever the writer is
killed, what stood there before stands there, or what was written, and nothing between. In memory they end with the
process.

The checksum is CRC-32C: it finds every change of one bit, and every burst of up to 32, of any length that a file here
can have. (A hash such as xxh64 misses one by chance only, but may.) It is taken over the compressed bytes, in
hardware.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout
from google_crc32c import value as _crc32c

from .errors import ArchiveError, Damaged, telling, told

BESIDE = ".new"
"""What the name of a file ends with that is not in its place yet."""
LOCK = ".lock"


class Files(Protocol):
    """Files by name. All but `names` and `remove` raise FileNotFoundError for one that is not there."""

    @property
    def where(self) -> Path:
        """What they are called in errors."""
        ...

    def lock(self) -> None:
        """Let nobody else write. Raises ArchiveError."""
        ...

    def unlock(self) -> None:
        """Let others write."""
        ...

    def names(self) -> list[str]:
        """Of all files, sorted."""
        ...

    def size(self, name: str) -> int:
        """Bytes of a file."""
        ...

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Bytes of a file; fewer than `size` if it ends before."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Put a file in its place, whole. Raises ArchiveError, and then nothing has changed."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it is there. That it cannot be removed is no harm: it is tried again at the next opening."""
        ...


class FolderFiles:
    """Files on disk. The folder is made when it is locked."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self._lock: FileLock | None = None

    def lock(self) -> None:
        with telling(self.where):
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
        with telling(self.where):
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
        except FileNotFoundError:
            raise
        except OSError as error:
            raise told(path, error) from None

    def write(self, name: str, data: bytes) -> None:
        path = self.where / name
        beside = path.with_name(path.name + BESIDE)
        with telling(self.where):
            try:
                _write(beside, data)
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
    """Files that end with the process."""

    where = Path("memory")

    def __init__(self, held: Mapping[str, bytes] | None = None) -> None:
        self.held = dict(held or {})

    def lock(self) -> None:
        """Nobody else can write."""

    def unlock(self) -> None:
        """Nobody else can write."""

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
    """CRC-32C of some bytes."""
    found: int = _crc32c(data)
    return found


def read_checked(files: Files, name: str, start: int, size: int, expected: int) -> bytes:
    """Bytes of a file that are as they were written. Raises Damaged, FileNotFoundError, ArchiveError."""
    data = files.read(name, start, size)
    path = files.where / name
    if len(data) < size:
        raise Damaged(path, f"it ends after {start + len(data)} bytes, {start + size} are wanted")
    if checksum(data) != expected:
        raise Damaged(path, f"bytes {start} to {start + size} are not what was written: the checksum differs")
    return data


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(path: Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

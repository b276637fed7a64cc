"""The journal of locations: in memory, or a file that is right after every crash.

The file is lines, a CRC-32 and a record as JSON each. A record is on disk when `append` returns. A last line that was
not written to its end did not happen, and is cut off; a line that is wrong before the last means that somebody altered
the file, which is refused whole. `rewrite` puts a shorter file in its place, whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from zlib import crc32

import msgspec
from filelock import FileLock, Timeout

from ....scenarios.errors import UserError
from .records import Record

HEADER = b"ctxbench locations 1\n"


class JournalError(UserError):
    """A journal that cannot be opened, read or written as it is."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"{path}: {what} ({remedy})")


class Journal(Protocol):
    """Records in order. `append` returns once a record will be there after a crash."""

    def __len__(self) -> int: ...
    def records(self) -> Iterable[Record]: ...
    def append(self, record: Record) -> None: ...
    def rewrite(self, records: Iterable[Record]) -> None: ...


class MemoryJournal:
    """A list: for tiers that all end with the process."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def __len__(self) -> int:
        return len(self._records)

    def records(self) -> Iterable[Record]:
        """All of them."""
        return tuple(self._records)

    def append(self, record: Record) -> None:
        """One more."""
        self._records.append(record)

    def rewrite(self, records: Iterable[Record]) -> None:
        """These instead of all before."""
        self._records = list(records)


class FileJournal:
    """A file that one process writes. Made if it is not there."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._handle = -1
        with self._telling():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(f"{self.path}.lock")
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise JournalError(self.path, "another process writes it", "wait for it to end") from None
        try:
            with self._telling():
                if not self.path.exists():
                    self._replace(())
                self._records, self._end = self._read()
                self._open()
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
        """Let others write."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        self._lock.release()

    def __len__(self) -> int:
        return self._records

    def records(self) -> Iterator[Record]:
        """All of them, as they are on disk."""
        with self._telling():
            lines = self.path.read_bytes()[len(HEADER) :].splitlines(keepends=True)
        return (_parsed(line) for line in lines)

    def append(self, record: Record) -> None:
        """One more, on disk. Raises JournalError, and then nothing was added."""
        line = _line(record)
        with self._telling():
            try:
                _write(self._handle, line)
            except OSError:
                os.ftruncate(self._handle, self._end)
                raise
        self._end += len(line)
        self._records += 1

    def rewrite(self, records: Iterable[Record]) -> None:
        """These instead of all before. Raises JournalError, and then nothing has changed."""
        with self._telling():
            self._records = self._replace(records)
            os.close(self._handle)
            self._open()

    def _open(self) -> None:
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self._end = os.fstat(self._handle).st_size

    def _replace(self, records: Iterable[Record]) -> int:
        lines = [_line(record) for record in records]
        beside = self.path.with_name(self.path.name + ".new")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            _write(handle, HEADER + b"".join(lines))
        finally:
            os.close(handle)
        os.replace(beside, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return len(lines)

    def _read(self) -> tuple[int, int]:
        """Check every line, and cut a last one off that has no end. How many are left, and their bytes."""
        data = self.path.read_bytes()
        if not data.startswith(HEADER):
            raise JournalError(self.path, "it is no journal of this version", "name another file, or remove this one")
        end, lines = len(HEADER), data[len(HEADER) :].splitlines(keepends=True)
        for number, line in enumerate(lines, 2):
            try:
                _parsed(line)
            except (ValueError, msgspec.MsgspecError):
                if number < len(lines) + 1 or line.endswith(b"\n"):
                    raise JournalError(
                        self.path, f"line {number} is not what was written", "restore the file from a backup"
                    ) from None
                os.truncate(self.path, end)
                return number - 2, end
            end += len(line)
        return len(lines), end

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JournalError(self.path, error.strerror or str(error), "see what the system says") from None


def _line(record: Record) -> bytes:
    text = msgspec.json.encode(record)
    return b"%08x %b\n" % (crc32(text), text)


def _parsed(line: bytes) -> Record:
    """Raises ValueError or MsgspecError if it is not what was written."""
    crc, text = line[:8], line[9:-1]
    if line[8:9] != b" " or line[-1:] != b"\n" or crc != b"%08x" % crc32(text):
        raise ValueError("altered")
    found: Record = msgspec.json.decode(text, type=Record)
    return found


def _write(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)

"""Snapshot files: named sections, a table of them, and a digest of everything.

    magic · version · sections … · table as JSON · length of the table · BLAKE2b of all bytes before

The digest is checked before any section is used: a file of another version or kind, or one that is cut off or altered,
raises SnapshotError, and nothing is loaded. A file is written under another name and then renamed, so a crash leaves
the previous file in place. Arrays are little endian; nothing is pickled.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.errors import UserError

MAGIC = b"ctxbench-mem"
VERSION = 1
_HEAD = struct.Struct("<12sI")
_LENGTH = struct.Struct("<Q")
_DIGEST = 32
_BLOCK = 1 << 20
_UNFIT = (
    msgspec.MsgspecError,
    UserError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    MemoryError,
    RuntimeError,
)
Kind = TypeVar("Kind")


class SnapshotError(UserError):
    """A snapshot that cannot be written, read or used."""


class _Section(msgspec.Struct, frozen=True):
    name: str
    at: int
    size: int
    dtype: str = ""
    shape: tuple[int, ...] = ()


class _Table(msgspec.Struct, frozen=True):
    kind: str
    sections: list[_Section]


class SnapshotWriter:
    """Writer of sections, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash, self._at = file, hashlib.blake2b(digest_size=_DIGEST), 0
        self._sections: list[_Section] = []
        self.write(_HEAD.pack(MAGIC, VERSION))

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes to the file and to its digest."""
        self._file.write(data)
        self._hash.update(data)
        self._at += len(data)

    def stream(self, name: str, produce: Callable[[Callable[[bytes], None]], None]) -> None:
        """Write a section whose bytes `produce` passes to the function that it is called with."""
        start = self._at
        produce(self.write)
        self._sections.append(_Section(name, start, self._at - start))

    def array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array as a section."""
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        start = self._at
        # memoryview cannot cast a shape with a 0 in it.
        if plain.size:
            self.write(plain.data.cast("B"))
        self._sections.append(_Section(name, start, self._at - start, plain.dtype.str, plain.shape))

    def json(self, name: str, value: object) -> None:
        """Write a value as a section of JSON."""
        self.stream(name, lambda write: write(msgspec.json.encode(value)))

    def end(self, kind: str) -> None:
        """Write the table of sections and the digest."""
        start = self._at
        self.write(msgspec.json.encode(_Table(kind, self._sections)))
        self.write(_LENGTH.pack(self._at - start))
        self._file.write(self._hash.digest())


class SnapshotReader:
    """Reader of the sections of a file whose digest has been checked."""

    def __init__(self, file: BufferedReader, path: Path, kind: str) -> None:
        self._file, self._path = file, path
        self._sections = {section.name: section for section in _checked_table(file, path, kind).sections}

    def array(self, name: str) -> NDArray[Any]:
        """Return the array of a section."""
        section = self._sections[name]
        self._file.seek(section.at)
        array = np.empty(section.shape, section.dtype)
        if array.size:
            self._file.readinto(array.data.cast("B"))
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def json(self, name: str, kind: type[Kind]) -> Kind:
        """Return the value of a section of JSON."""
        section = self._sections[name]
        self._file.seek(section.at)
        return msgspec.json.decode(self._file.read(section.size), type=kind)

    def has(self, name: str) -> bool:
        """Return whether the file has a section."""
        return name in self._sections

    def size(self, name: str) -> int:
        """Return the number of bytes of a section."""
        return self._sections[name].size

    def stream(self, name: str) -> Callable[[int], bytes]:
        """Return a function that reads a section from its start, so many bytes at a time."""
        section = self._sections[name]
        self._file.seek(section.at)
        left = section.size

        def read(size: int) -> bytes:
            nonlocal left
            taken = min(size, left)
            left -= taken
            return self._file.read(taken)

        return read

    def refuse(self, why: str) -> SnapshotError:
        """Return the error for an intact file that cannot be used here."""
        return SnapshotError(f"{self._path}: {why}")


@contextmanager
def writing(path: Path, kind: str) -> Iterator[SnapshotWriter]:
    """Open a snapshot for writing. The file appears under its name once all of it is written."""
    # By process, so that two writers of one snapshot do not write into each other's file; the last to rename wins.
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        try:
            with open(beside, "wb") as file:
                writer = SnapshotWriter(file)
                yield writer
                writer.end(kind)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        finally:
            with suppress(FileNotFoundError):
                beside.unlink()
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def reading(path: Path, kind: str) -> Iterator[SnapshotReader]:
    """Open a snapshot of a kind for reading, after checking all of it. Raises SnapshotError.

    Raises it for what cannot be restored from an intact file, too: sections that are missing, or that do not fit.
    """
    try:
        with open(path, "rb") as file:
            yield SnapshotReader(file, path, kind)
    except SnapshotError:
        raise
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read: {error.strerror or error}") from None
    except _UNFIT as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise SnapshotError(f"{path}: cannot be restored: {what}: write it again") from None


def _checked_table(file: BinaryIO, path: Path, kind: str) -> _Table:
    """Return the table of an intact file. Raises SnapshotError for any other file."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or head[: len(MAGIC)] != MAGIC:
        raise SnapshotError(f"{path}: this is not a snapshot of a memory tier")
    version = _HEAD.unpack(head)[1]
    # Before the digest, whose place and kind another version may have changed.
    if version != VERSION:
        raise SnapshotError(f"{path}: has format version {version}, this ctxbench reads {VERSION}: write it again")
    end = size - _DIGEST
    # The digest is compared before anything after the version is parsed, so the JSON below is what the writer wrote.
    if end < _HEAD.size + _LENGTH.size or file_digest(file, end) != file.read(_DIGEST):
        raise SnapshotError(f"{path}: is cut off or altered (its digest is wrong): write it again")
    file.seek(end - _LENGTH.size)
    length = _LENGTH.unpack(file.read(_LENGTH.size))[0]
    file.seek(end - _LENGTH.size - length)
    table = msgspec.json.decode(file.read(length), type=_Table)
    if table.kind != kind:
        raise SnapshotError(f"{path}: holds a snapshot of {table.kind}, expected {kind}")
    return table


def file_digest(file: BinaryIO, end: int) -> bytes:
    """Return the digest of the first `end` bytes, and leave the file at that position."""
    digest = hashlib.blake2b(digest_size=_DIGEST)
    file.seek(0)
    left = end
    while left > 0:
        block = file.read(min(left, _BLOCK))
        if not block:
            break
        digest.update(block)
        left -= len(block)
    return digest.digest()

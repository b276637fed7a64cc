"""The file form of a snapshot: sections, a table of them, and a digest of everything.

    magic · version · sections … · table as JSON · length of the table · BLAKE2b of all bytes before

A file is read whole for its digest before anything of it is used. Another version, another kind, a cut or an altered
byte: SnapshotError, and nothing is loaded. It is written beside its place and moved there, so a crash leaves the file
that was there before. Arrays are little endian; nothing is pickled.
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

from ...scenarios.errors import UserError

MAGIC = b"ctxbench-mem"
VERSION = 1
_HEAD = struct.Struct("<12sI")
_LENGTH = struct.Struct("<Q")
_DIGEST = 32
_BLOCK = 1 << 20
Kind = TypeVar("Kind")


class SnapshotError(UserError):
    """A snapshot that cannot be written, or not be used."""


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
    """Writes sections one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash, self._at = file, hashlib.blake2b(digest_size=_DIGEST), 0
        self._sections: list[_Section] = []
        self.write(_HEAD.pack(MAGIC, VERSION))

    def write(self, some: bytes | memoryview) -> None:
        """Write bytes of the section that is open."""
        self._file.write(some)
        self._hash.update(some)
        self._at += len(some)

    def stream(self, name: str, made: Callable[[Callable[[bytes], None]], None]) -> None:
        """A section of which `made` writes the bytes."""
        start = self._at
        made(self.write)
        self._sections.append(_Section(name, start, self._at - start))

    def array(self, name: str, array: NDArray[Any]) -> None:
        """An array as a section."""
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        start = self._at
        if plain.size:
            self.write(plain.data.cast("B"))
        self._sections.append(_Section(name, start, self._at - start, plain.dtype.str, plain.shape))

    def json(self, name: str, value: object) -> None:
        """A value as a section."""
        self.stream(name, lambda write: write(msgspec.json.encode(value)))

    def end(self, kind: str) -> None:
        """The table and the digest."""
        start = self._at
        self.write(msgspec.json.encode(_Table(kind, self._sections)))
        self.write(_LENGTH.pack(self._at - start))
        self._file.write(self._hash.digest())


class SnapshotReader:
    """Reads sections of a file whose digest is right."""

    def __init__(self, file: BufferedReader, path: Path, kind: str) -> None:
        self._file, self._path = file, path
        found = _checked(file, path, kind)
        self._sections = {section.name: section for section in found.sections}

    def array(self, name: str) -> NDArray[Any]:
        """The array of a section."""
        section = self._sections[name]
        self._file.seek(section.at)
        found = np.empty(section.shape, section.dtype)
        if found.size:
            self._file.readinto(found.data.cast("B"))
        return found.astype(found.dtype.newbyteorder("="), copy=False)

    def json(self, name: str, kind: type[Kind]) -> Kind:
        """The value of a section."""
        section = self._sections[name]
        self._file.seek(section.at)
        return msgspec.json.decode(self._file.read(section.size), type=kind)

    def has(self, name: str) -> bool:
        """Whether there is such a section."""
        return name in self._sections

    def size(self, name: str) -> int:
        """The bytes of a section."""
        return self._sections[name].size

    def stream(self, name: str) -> Callable[[int], bytes]:
        """A function that reads a section on from its start."""
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
        """The error for a file that is whole, and of no use here."""
        return SnapshotError(f"{self._path}: {why}")


@contextmanager
def writing(path: Path, kind: str) -> Iterator[SnapshotWriter]:
    """A file that is there when all of it is written, and not before."""
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
    """A file of this kind, checked whole. Raises SnapshotError."""
    try:
        with open(path, "rb") as file:
            yield SnapshotReader(file, path, kind)
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read: {error.strerror or error}") from None


def _checked(file: BinaryIO, path: Path, kind: str) -> _Table:
    """The table of a file whose every byte is as it was written."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or head[: len(MAGIC)] != MAGIC:
        raise SnapshotError(f"{path}: is no snapshot of a memory tier")
    version = _HEAD.unpack(head)[1]
    if version != VERSION:
        raise SnapshotError(f"{path}: has format version {version}, this ctxbench reads {VERSION}: write it anew")
    end = size - _DIGEST
    if end < _HEAD.size + _LENGTH.size or file_digest(file, end) != file.read(_DIGEST):
        raise SnapshotError(f"{path}: is cut off or altered (its digest is wrong): write it anew")
    file.seek(end - _LENGTH.size)
    length = _LENGTH.unpack(file.read(_LENGTH.size))[0]
    file.seek(end - _LENGTH.size - length)
    table = msgspec.json.decode(file.read(length), type=_Table)
    if table.kind != kind:
        raise SnapshotError(f"{path}: holds {table.kind}, {kind} is wanted")
    return table


def file_digest(file: BinaryIO, end: int) -> bytes:
    """The digest of the first `end` bytes. The file is left there."""
    found = hashlib.blake2b(digest_size=_DIGEST)
    file.seek(0)
    left = end
    while left > 0:
        block = file.read(min(left, _BLOCK))
        if not block:
            break
        found.update(block)
        left -= len(block)
    return found.digest()

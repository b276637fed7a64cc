"""Snapshot files, `.hctx`: a zip archive with a member for each named section, as JSON, bytes or a NumPy array.

Zip has a checksum of every member. A file of another version or kind, or one that is cut off or altered, raises
SnapshotError. A file is written under another name and then renamed. Nothing is pickled.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile, ZipFile, ZipInfo

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.errors import UserError

VERSION = 3
_UNFIT = (
    *(BadZipFile, msgspec.MsgspecError, UserError, ValueError, TypeError, LookupError, AttributeError),
    *(EOFError, NotImplementedError, RuntimeError),
)
Kind = TypeVar("Kind")


class SnapshotError(UserError):
    """A snapshot that cannot be written, read or used."""


class _About(msgspec.Struct, frozen=True):
    kind: str
    version: int


class SnapshotWriter:
    """Writer of sections, one after the other."""

    def __init__(self, archive: ZipFile) -> None:
        self._zip = archive

    def bytes(self, name: str, data: bytes) -> None:
        """Write bytes as a section."""
        self._zip.writestr(ZipInfo(name), data)  # a `ZipInfo` has a fixed date, so equal states have equal files

    def json(self, name: str, value: object) -> None:
        """Write a value as a section of JSON."""
        self.bytes(name, msgspec.json.encode(value))

    def array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array as a section."""
        with self._zip.open(ZipInfo(name), "w", force_zip64=True) as section:
            np.lib.format.write_array(section, array, allow_pickle=False)


class SnapshotReader:
    """Reader of the sections of a file."""

    def __init__(self, archive: ZipFile, path: Path) -> None:
        self._zip, self._path = archive, path

    def bytes(self, name: str) -> bytes:
        """Return the bytes of a section."""
        return self._zip.read(name)

    def json(self, name: str, kind: type[Kind]) -> Kind:
        """Return the value of a section of JSON."""
        return msgspec.json.decode(self.bytes(name), type=kind)

    def array(self, name: str) -> NDArray[Any]:
        """Return the array of a section."""
        with self._zip.open(name) as section:
            array: NDArray[Any] = np.lib.format.read_array(section, allow_pickle=False)
            section.read()  # to the end of the member, where zip compares its checksum
        return array

    def has(self, name: str) -> bool:
        """Return whether the file has a section."""
        return name in self._zip.namelist()

    def refuse(self, why: str) -> SnapshotError:
        """Return the error for an intact file that cannot be used here."""
        return SnapshotError(f"{self._path}: {why}")


@contextmanager
def writing(path: Path, kind: str) -> Iterator[SnapshotWriter]:
    """Open a snapshot for writing. The file appears under its name once all of it is written."""
    beside = path.with_name(f"{path.name}.part")
    try:
        try:
            with ZipFile(beside, "w") as archive:
                writer = SnapshotWriter(archive)
                writer.json("about", _About(kind, VERSION))
                yield writer
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def reading(path: Path, kind: str) -> Iterator[SnapshotReader]:
    """Open a snapshot of a kind for reading. Raises SnapshotError, also for what cannot be restored from it."""
    try:
        with ZipFile(path) as archive:
            reader = SnapshotReader(archive, path)
            about = reader.json("about", _About)
            if about.version != VERSION:
                raise reader.refuse(f"has version {about.version}, this ctxbench reads {VERSION}: write it again")
            if about.kind != kind:
                raise reader.refuse(f"holds a snapshot of {about.kind}, expected {kind}")
            yield reader
    except SnapshotError:
        raise
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read: {error.strerror or error}") from None
    except _UNFIT as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise SnapshotError(f"{path}: cannot be restored: {what}: write it again") from None

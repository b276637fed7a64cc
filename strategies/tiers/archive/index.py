"""The index: the one file that says which files make up an archive, and what their bytes must be.

    ctxbench archive 1          the format's version
    {"next": 7, "parts": [...], ...}
    2f8a91c0                    CRC-32C of all above it, in hex

Whatever is not named in it is not there. To change an archive is to write new files, then a new index in the place of
the old one, then to remove what it does not name.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from .errors import ArchiveError, Damaged
from .files import Files, checksum

VERSION = 1
NAME = "index"
_MAGIC = b"ctxbench archive "
_VERSION = re.compile(_MAGIC + rb"(\d{1,9})\n")


class IndexSection(msgspec.Struct, frozen=True, array_like=True):
    """Some bytes of a file."""

    start: int
    size: int
    crc: int


class PartEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of messages: `part-NNNNNN`."""

    number: int
    messages: int
    tokens: int
    """Of the messages that are not deleted."""
    table: IndexSection
    content: IndexSection
    raw_bytes: int
    """Of the content before compression."""
    sealed: bool = False
    """A whole block. The others are what has come since, and are written into blocks."""
    dictionary: int = 0
    """Number of the dictionary that it needs; 0 = none."""
    taught: bool = False
    """The dictionary is made of this part."""
    summary: IndexSection | None = None
    deleted: tuple[tuple[int, float], ...] = ()
    """Places of messages that are deleted, and when they were."""


class DictionaryFile(msgspec.Struct, frozen=True):
    """A file with a dictionary: `dictionary-NNNNNN`."""

    number: int
    kind: Literal["trained", "raw"]
    data: IndexSection


class ArchiveIndex(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that an archive is made of."""

    next: int = 1
    """The number of the next file. None is given twice."""
    parts: tuple[PartEntry, ...] = ()
    dictionary: DictionaryFile | None = None

    def names(self) -> set[str]:
        """The files that it names."""
        named = {part_name(part.number) for part in self.parts}
        return named | ({dictionary_name(self.dictionary.number)} if self.dictionary else set())


def part_name(number: int) -> str:
    """The name of a file of messages."""
    return f"part-{number:06}"


def dictionary_name(number: int) -> str:
    """The name of a file with a dictionary."""
    return f"dictionary-{number:06}"


def written(index: ArchiveIndex) -> bytes:
    """The bytes of an index."""
    body = _MAGIC + str(VERSION).encode() + b"\n" + msgspec.json.encode(index) + b"\n"
    return body + f"{checksum(body):08x}\n".encode()


def save(files: Files, index: ArchiveIndex) -> None:
    """Put an index in the place of the one before. With this an archive has changed."""
    files.write(NAME, written(index))


def load(files: Files) -> ArchiveIndex | None:
    """The index; None if there is none. Raises ArchiveError."""
    path = files.where / NAME
    try:
        data = files.read(NAME)
    except FileNotFoundError:
        return None
    version = _VERSION.match(data)
    if version is None:
        raise ArchiveError(
            path, "it is not the index of an archive", "restore it from a backup, or name another folder"
        )
    if int(version[1]) != VERSION:
        what = f"it is an archive of version {int(version[1])}, this ctxbench reads version {VERSION}"
        raise ArchiveError(path, what, "read it with the ctxbench that wrote it")
    body, crc = data[:-9], data[-9:]
    if crc != f"{checksum(body):08x}\n".encode():
        raise Damaged(path, "it is not what was written: the checksum differs")
    return msgspec.json.decode(body[version.end() :], type=ArchiveIndex)

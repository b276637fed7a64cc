"""Damage to an SQLite file: bits flipped, bytes zeroed, pages swapped, the file cut, rows changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
Answers = dict[str, object]


class Target(NamedTuple):
    """A folder in which to damage a file, with what it is made of."""

    folder: Path
    whole: bytes
    foreign: bytes
    """Another file of the kind."""
    torn: tuple[bytes, bytes]
    """The file and its journal as a writer left them that was killed between two writes."""
    expected: Answers
    name: str

    @property
    def file(self) -> Path:
        """File to damage."""
        return self.folder / self.name

    @property
    def journal(self) -> Path:
        """Rollback journal beside it."""
        return self.folder / f"{self.name}-journal"


def flip(place: Target, chance: Random) -> str:
    """Flip one to three bits."""
    data, where = bytearray(place.whole), []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at, bit = chance.randrange(len(data)), chance.randrange(8)
        data[at] ^= 1 << bit
        where.append(f"{at}.{bit}")
    place.file.write_bytes(data)
    return f"bits flipped: {' '.join(where)}"


def blank(place: Target, chance: Random) -> str:
    """Put zeros, or other bytes, in place of some."""
    size = chance.choice((1, 16, 512, 4096))
    at = chance.randrange(len(place.whole)) // size * size
    new = bytes(size) if chance.random() < 0.5 else chance.randbytes(size)
    place.file.write_bytes((place.whole[:at] + new + place.whole[at + size :])[: len(place.whole)])
    return f"{size} bytes written at {at}"


def cut(place: Target, chance: Random) -> str:
    """Cut the file, but not to nothing: an empty file is how every one begins."""
    at = chance.choice((chance.randrange(1, len(place.whole)), chance.randrange(1, len(place.whole) // 4096) * 4096))
    place.file.write_bytes(place.whole[:at])
    return f"cut at {at}"


def swap_pages(place: Target, chance: Random) -> str:
    """Swap two pages, or put one in place of another, of this file or of another."""
    size = 4096
    one, other = (chance.randrange(len(place.whole) // size) * size for _ in range(2))
    data, source = bytearray(place.whole), chance.choice((place.whole, place.foreign))
    if chance.random() < 0.5:
        data[other : other + size] = place.whole[one : one + size]
    data[one : one + size] = source[other : other + size].ljust(size, b"\0")
    place.file.write_bytes(data)
    return f"pages {one} and {other} swapped"


@contextmanager
def sql(place: Target) -> Iterator[sqlite3.Connection]:
    """Open the target, whole, as a database."""
    place.file.write_bytes(place.whole)
    with closing(sqlite3.connect(place.file, isolation_level=None)) as connection:
        yield connection

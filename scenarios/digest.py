"""Digests of rows in a database: a changed row is noticed when it is read, a lost one by the total of all.

A digest is the BLAKE2b of the values, keyed with the random name of the database, so that a row of another one is
noticed too. The values are written as MessagePack, which has one form for each: neither two values nor two types are
taken for one another, and numbers keep all their bits. A total is the number of rows and the sum of a part of each
digest; adding a row to it, or taking one away, needs no other row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from secrets import token_hex
from typing import NamedTuple, Self

import msgspec

SIZE = 16
"""Bytes of a digest."""
DIGITS = 2 * SIZE
"""Hexadecimal digits of a digest, or of a name."""

_encode = msgspec.msgpack.Encoder().encode


def new_name() -> str:
    """Return a random name for a database."""
    return token_hex(SIZE)


def digest_of(data: bytes) -> str:
    """Return the digest of some bytes, in hex."""
    return blake2b(data, digest_size=SIZE).hexdigest()


def row_digest(values: Sequence[str | bytes | float | None], name: str = "") -> str:
    """Return the digest of a row's values in the database of that name. Raises ValueError for text that is none."""
    return blake2b(_encode(values), digest_size=SIZE, key=name.encode()).hexdigest()


def share(digest: str) -> int:
    """Return what a row with this digest adds to the sum of a total."""
    return int(digest[:8], 16)


class RowTotal(NamedTuple):
    """The number of rows, and the sum of the first four bytes of each digest: 64 bits hold 2³¹ of them."""

    rows: int = 0
    digests: int = 0

    @classmethod
    def of(cls, digests: Iterable[str]) -> Self:
        """Return the total of rows with these digests."""
        shares = list(map(share, digests))
        return cls(len(shares), sum(shares))

    def less(self, other: RowTotal) -> RowTotal:
        """Return the total without the rows of another."""
        return RowTotal(self.rows - other.rows, self.digests - other.digests)

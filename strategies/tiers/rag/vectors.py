"""Search by unit vectors behind one interface, and its exact form.

`Exact` compares a query with every vector. `hnsw.FaissHnsw` and `hnswlib_index.Hnswlib` walk a graph and compare it
with some: faster from tens of thousands of vectors on, and now and then one of the nearest is missed.
`switching.Vectors` takes the exact one while there are few.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ....metrics.rows import Rows
from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, ranked

Matrix = NDArray[np.float32]

DEAD = 0.25
"""The share of vectors that may be deleted before an index is made anew without them."""
DECIMALS = 6
"""Of a cosine. What differs beyond them differs between machines, and must not change an order."""


class VectorIndex(Protocol):
    """Unit vectors under ascending keys."""

    kind: ClassVar[str]

    @property
    def dimension(self) -> int:
        """Coordinates of a vector."""
        ...

    def __len__(self) -> int:
        """Vectors that are there."""
        ...

    def add(self, keys: Numbers, vectors: Matrix) -> None:
        """Add vectors, one a key. Raises ValueError for another dimension, and for keys that do not ascend."""
        ...

    def delete(self, keys: Numbers) -> None:
        """Take vectors out. Keys that are not there are passed over."""
        ...

    def search(self, query: Matrix, k: int, among: Numbers | None = None) -> Ranked:
        """The `k` nearest by cosine, all or `among` these keys (sorted): always `k` of them, if there are so many."""
        ...

    def cosines(self, query: Matrix, keys: Numbers) -> NDArray[np.float64]:
        """The exact cosine of each of these keys; -1 for one that is not there."""
        ...

    def take(self) -> tuple[Numbers, Matrix]:
        """All keys and vectors that are there."""
        ...

    def save(self, writer: SnapshotWriter) -> None:
        """Write all of it."""
        ...


def checked(vectors: Matrix, dimension: int, keys: Numbers | None = None) -> Matrix:
    """Vectors of the right shape, without holes. Raises ValueError."""
    made = np.ascontiguousarray(np.atleast_2d(vectors), np.float32)
    if made.shape[1] != dimension:
        raise ValueError(f"vectors have {made.shape[1]} coordinates, the index has {dimension}")
    if keys is not None and len(made) != len(keys):
        raise ValueError(f"{len(made)} vectors for {len(keys)} keys")
    if not np.isfinite(made).all():
        raise ValueError("a vector has a coordinate that is no number")
    return made


class Exact:
    """A query is compared with every vector: one matrix product."""

    kind: ClassVar[str] = "exact"
    __slots__ = ("_keys", "_matrix", "dimension")

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._keys = Keys()
        self._matrix: Rows[np.float32] = Rows(np.float32, dimension)

    def __len__(self) -> int:
        return self._keys.live

    def add(self, keys: Numbers, vectors: Matrix) -> None:
        made = checked(vectors, self.dimension, keys)
        self._keys.add(keys)
        self._matrix.add(made)

    def delete(self, keys: Numbers) -> None:
        self._keys.delete(keys)
        if self._keys.dead > DEAD * len(self._keys):
            living = self._matrix.all[self._keys.drop_dead()]
            self._matrix = Rows(np.float32, self.dimension)
            self._matrix.add(living)

    def search(self, query: Matrix, k: int, among: Numbers | None = None) -> Ranked:
        if not len(self):
            return NOTHING
        query = checked(query, self.dimension)[0]
        if among is not None:
            rows = self._keys.rows(among)
            return ranked(self._keys.of(rows), rounded(self._matrix.all[rows] @ query), k)
        cosines = rounded(self._matrix.all @ query)
        if not self._keys.dead:
            return ranked(self._keys.of(np.arange(len(cosines))), cosines, k)
        rows = self._keys.living()
        return ranked(self._keys.of(rows), cosines[rows], k)

    def cosines(self, query: Matrix, keys: Numbers) -> NDArray[np.float64]:
        return cosines_of(self._keys, self._matrix.all, checked(query, self.dimension)[0], keys)

    def take(self) -> tuple[Numbers, Matrix]:
        rows = self._keys.living()
        return self._keys.of(rows), self._matrix.all[rows]

    def save(self, writer: SnapshotWriter) -> None:
        save_plain(self, writer)

    @classmethod
    def load(cls, reader: SnapshotReader) -> Exact:
        """Read all of it."""
        vectors = reader.array("vectors")
        made = cls(vectors.shape[1])
        made.add(reader.array("vectors.keys"), vectors)
        return made


def save_plain(index: VectorIndex, writer: SnapshotWriter) -> None:
    """Write the keys and vectors that are there, without what makes their search fast."""
    keys, vectors = index.take()
    writer.json("vectors.kind", index.kind)
    writer.array("vectors.keys", keys)
    writer.array("vectors", vectors)


def cosines_of(held: Keys, matrix: Matrix, query: Matrix, keys: Numbers) -> NDArray[np.float64]:
    """The exact cosine of each of these keys; -1 for one that is not there."""
    rows, there = held.find(keys)
    found = np.full(len(keys), -1.0)
    found[there] = rounded(matrix[rows[there]] @ query)
    return found


def rounded(cosines: Matrix) -> NDArray[np.float64]:
    """Cosines to DECIMALS."""
    found: NDArray[np.float64] = cosines.astype(np.float64).round(DECIMALS)
    return found


class Keys:
    """Ascending keys, one a row. A row that is deleted stays, dead, until the rows are made anew."""

    __slots__ = ("_keys", "alive", "live")

    def __init__(self) -> None:
        self._keys = Rows(np.int64)
        self.alive = Rows(np.bool_)
        self.live = 0
        """How many rows are there."""

    def __len__(self) -> int:
        """How many rows there are, the dead ones too."""
        return self._keys.size

    @property
    def dead(self) -> int:
        """How many rows are dead."""
        return len(self) - self.live

    def add(self, keys: Numbers) -> None:
        """New rows at the end. Raises ValueError for keys that do not ascend."""
        last = self._keys.all[-1:]
        if (np.diff(np.concatenate((last, keys))) <= 0).any():
            raise ValueError("keys must ascend: one is not above the key before it")
        self._keys.add(keys)
        self.alive.add(np.ones(len(keys), np.bool_))
        self.live += len(keys)

    def delete(self, keys: Numbers) -> Numbers:
        """The rows that had these keys; keys that are not there are passed over."""
        rows = self.rows(keys)
        self.alive.all[rows] = False
        self.live -= len(rows)
        return rows

    def rows(self, keys: Numbers) -> Numbers:
        """The living rows of these keys, in their order."""
        rows, there = self.find(keys)
        return rows[there]

    def find(self, keys: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """For each of these keys a row, and whether that is its row and lives."""
        if not len(self):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        if self._keys.all[-1] == len(self) - 1:  # none is left out, so that each is its own row
            at = np.clip(keys, 0, len(self) - 1)
        else:
            at = np.minimum(np.searchsorted(self._keys.all, keys), len(self) - 1)
        return at, (self._keys.all[at] == keys) & self.alive.all[at]

    def of(self, rows: NDArray[np.int64]) -> Numbers:
        """The keys of rows."""
        return self._keys.all[rows]

    def living(self) -> Numbers:
        """The rows that are there."""
        return np.flatnonzero(self.alive.all)

    def drop_dead(self) -> Numbers:
        """The rows that were there; from now on they are numbered without gaps."""
        rows = self.living()
        keys = self._keys.all[rows]
        self._keys.size = self.alive.size = self.live = 0
        self.add(keys)
        return rows

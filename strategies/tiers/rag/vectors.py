"""The interface of search by unit vectors, and its exact form.

`Exact` compares a query with every vector. `hnsw.FaissHnsw` and `hnsw.Hnswlib` walk a graph and compare it with some of
them: faster from tens of thousands of vectors on, but a near vector may be missed. `vector_store.VectorStore` uses the
exact one while there are few vectors.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.rows import Rows

from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, top_k

Matrix = NDArray[np.float32]

DEAD = 0.25
"""Share of vectors that may be deleted before an index is rebuilt without them."""
DECIMALS = 6
"""Decimals of a cosine. Further ones differ between machines, and must not change an order."""


class VectorIndex(Protocol):
    """Unit vectors under ascending keys."""

    kind: ClassVar[str]

    @property
    def dimension(self) -> int:
        """Number of coordinates of a vector."""
        ...

    def __len__(self) -> int:
        """Return the number of vectors."""
        ...

    def add(self, keys: Numbers, vectors: Matrix) -> None:
        """Add a vector for each key. Raises ValueError for another dimension, and for keys that do not ascend."""
        ...

    def delete(self, keys: Numbers) -> None:
        """Delete vectors. Unknown keys are ignored."""
        ...

    def search(self, query: Matrix, k: int, among: Numbers | None = None) -> Ranked:
        """Return the `k` nearest by cosine, all or among the sorted keys `among`; fewer only if none is left."""
        ...

    def cosines(self, query: Matrix, keys: Numbers) -> NDArray[np.float64]:
        """Return the exact cosine of each key, -1 for an unknown one."""
        ...

    def take(self) -> tuple[Numbers, Matrix]:
        """Return all keys and vectors."""
        ...

    def save(self, writer: SnapshotWriter) -> None:
        """Write the index."""
        ...


def checked(vectors: Matrix, dimension: int, keys: Numbers | None = None) -> Matrix:
    """Return vectors as a matrix of 32-bit rows. Raises ValueError for another shape and for missing numbers."""
    matrix = np.ascontiguousarray(np.atleast_2d(vectors), np.float32)
    if matrix.shape[1] != dimension:
        raise ValueError(f"vectors have {matrix.shape[1]} coordinates, the index has {dimension}")
    if keys is not None and len(matrix) != len(keys):
        raise ValueError(f"{len(matrix)} vectors for {len(keys)} keys")
    if not np.isfinite(matrix).all():
        raise ValueError("a vector has a coordinate that is no number")
    return matrix


class Exact:
    """Exact search: one matrix product compares a query with every vector."""

    kind: ClassVar[str] = "exact"
    __slots__ = ("_keys", "_matrix", "dimension")

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._keys = Keys()
        self._matrix: Rows[np.float32] = Rows(np.float32, dimension)

    def __len__(self) -> int:
        return self._keys.live

    def add(self, keys: Numbers, vectors: Matrix) -> None:
        matrix = checked(vectors, self.dimension, keys)
        self._keys.add(keys)
        self._matrix.add(matrix)

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
            return top_k(self._keys.of(rows), rounded(self._matrix.all[rows] @ query), k)
        cosines = rounded(self._matrix.all @ query)
        if not self._keys.dead:
            return top_k(self._keys.all, cosines, k)
        rows = self._keys.living()
        return top_k(self._keys.of(rows), cosines[rows], k)

    def cosines(self, query: Matrix, keys: Numbers) -> NDArray[np.float64]:
        rows, there = self._keys.find(keys)
        cosines = np.full(len(keys), -1.0)
        cosines[there] = rounded(self._matrix.all[rows[there]] @ checked(query, self.dimension)[0])
        return cosines

    def take(self) -> tuple[Numbers, Matrix]:
        rows = self._keys.living()
        return self._keys.of(rows), self._matrix.all[rows]

    def save(self, writer: SnapshotWriter) -> None:
        keys, vectors = self.take()
        writer.json("vectors.kind", self.kind)
        writer.array("vectors.keys", keys)
        writer.array("vectors", vectors)

    @classmethod
    def load(cls, reader: SnapshotReader) -> Exact:
        """Read an index."""
        vectors = reader.array("vectors")
        index = cls(vectors.shape[1])
        index.add(reader.array("vectors.keys"), vectors)
        return index


def rounded(cosines: Matrix) -> NDArray[np.float64]:
    """Round cosines to DECIMALS."""
    cosines_64: NDArray[np.float64] = cosines.astype(np.float64).round(DECIMALS)
    return cosines_64


class Keys:
    """Ascending keys, one per row. A deleted row stays as a dead row until `drop_dead`."""

    __slots__ = ("_keys", "alive", "live")

    def __init__(self) -> None:
        self._keys = Rows(np.int64)
        self.alive = Rows(np.bool_)
        self.live = 0
        """Number of living rows."""

    def __len__(self) -> int:
        """Return the number of rows, dead ones included."""
        return self._keys.size

    @property
    def dead(self) -> int:
        """Number of dead rows."""
        return len(self) - self.live

    def add(self, keys: Numbers) -> None:
        """Append rows. Raises ValueError for keys that do not ascend."""
        # A slice, which is empty before the first key; `[-1]` would raise.
        last = self._keys.all[-1:]
        if (np.diff(np.concatenate((last, keys))) <= 0).any():
            raise ValueError("keys must ascend: one is not above the key before it")
        self._keys.add(keys)
        self.alive.add(np.ones(len(keys), np.bool_))
        self.live += len(keys)

    def delete(self, keys: Numbers) -> Numbers:
        """Delete keys and return their rows. Unknown keys are ignored."""
        rows = self.rows(keys)
        self.alive.all[rows] = False
        self.live -= len(rows)
        return rows

    def rows(self, keys: Numbers) -> Numbers:
        """Return the living rows of keys, in their order."""
        rows, there = self.find(keys)
        return rows[there]

    def find(self, keys: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """Return a row for each key, and whether the row is really its own and alive."""
        if not len(self):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        if self._keys.all[-1] == len(self) - 1:  # no key was skipped, so each key is its own row
            at = np.clip(keys, 0, len(self) - 1)
        else:
            at = np.minimum(np.searchsorted(self._keys.all, keys), len(self) - 1)
        return at, (self._keys.all[at] == keys) & self.alive.all[at]

    @property
    def all(self) -> Numbers:
        """Keys of all rows, dead ones included."""
        return self._keys.all

    def of(self, rows: NDArray[np.int64]) -> Numbers:
        """Return the keys of rows."""
        return self._keys.all[rows]

    def living(self) -> Numbers:
        """Return the living rows."""
        return np.flatnonzero(self.alive.all)

    def drop_dead(self) -> Numbers:
        """Remove dead rows and number the others without gaps. Return their old rows."""
        rows = self.living()
        keys = self._keys.all[rows]
        # `keys` is a copy (made by an index array), so the rows may be overwritten from the start.
        self._keys.size = self.alive.size = self.live = 0
        self.add(keys)
        return rows

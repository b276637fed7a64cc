"""Unit vectors of documents, searched exactly, or by a graph (HNSW, Malkov & Yashunin 2018) of hnswlib.

**Exact** search is one matrix product. It is the default: nothing is missed, and it needs nothing beside NumPy.

**hnsw** compares a query with a few vectors of a graph: faster from tens of thousands of vectors on, but a near vector
may be missed. If a walk finds too few, all are compared. A deleted vector stays in the graph as a passage; when a share
of all is dead (`DEAD`), the graph is built again.

Equal vectors wreck a graph: their nearest neighbours are each other, so no link leads in or out (20 000 equal vectors
among 2 000 others: recall 0.011). So each different vector is stored once, in a slot, and its documents share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.rows import Rows
from ctxbench.metrics.tfidf import Scores
from ctxbench.scenarios.errors import MissingExtra

from .postings import NOTHING, Numbers, Ranked, top_k

Matrix = NDArray[np.float32]
Index = Literal["exact", "hnsw"]

DEAD = 0.25  # share of vectors that may be deleted before the others are stored anew
DECIMALS = 6
"""Decimals of a cosine. Further ones differ between machines, and must not change an order."""
SEED = 100


@dataclass(frozen=True, slots=True)
class Graph:
    """Parameters of an HNSW graph: M, efConstruction and efSearch of the paper.

    The defaults find 95 % of the ten nearest of a million vectors (docs/decisions/0017-search.md).
    """

    links: int = 24  # neighbours of a vector on each level; twice as many on the lowest
    construction: int = 160  # candidates examined to place a vector
    search: int = 256  # candidates in the list of a search
    threads: int = 1
    """Threads that add vectors. With one the same vectors give the same graph."""


GRAPH = Graph()


class Vectors:
    """Unit vectors under the numbers of documents."""

    def __init__(self, dimension: int, index: Index = "exact", graph: Graph = GRAPH) -> None:
        self.dimension, self.index, self._graph = dimension, index, graph
        self._clear()

    def _clear(self) -> None:
        self._slots: dict[int, int] = {}  # slot of the vector of each document
        self._table: tuple[Numbers, Numbers] | None = None  # the same as two arrays, for searches
        self._uses = Rows(np.int64)  # number of documents of each slot
        self._slot_of: dict[bytes, int] = {}  # by digest of the vector
        self._matrix: Rows[np.float32] = Rows(np.float32, self.dimension)  # empty if hnswlib has the vectors
        self._walker = None if self.index == "exact" else HnswGraph(self.dimension, self._graph)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def different(self) -> int:
        """Number of vectors in use, which are all different."""
        return len(self._slot_of)

    def add(self, numbers: Numbers, vectors: Matrix) -> None:
        """Add the vectors of documents that have none yet, a row each."""
        matrix, documents = np.ascontiguousarray(vectors, np.float32), numbers.tolist()
        slots, new = [], list[int]()
        for at, vector in enumerate(matrix):
            next_slot = self._uses.size + len(new)
            slots.append(self._slot_of.setdefault(_digest(vector), next_slot))
            if slots[-1] == next_slot:
                new.append(at)
        self._slots.update(zip(documents, slots, strict=True))
        self._table = None
        (self._walker or self._matrix).add(matrix[new])
        self._uses.add(np.zeros(len(new), np.int64))
        np.add.at(self._uses.all, slots, 1)

    def delete(self, numbers: Numbers) -> None:
        """Delete documents. Unknown ones are ignored."""
        slots = np.array([self._slots.pop(number) for number in numbers.tolist() if number in self._slots], np.int64)
        self._table = None
        np.subtract.at(self._uses.all, slots, 1)
        unused = np.unique(slots[self._uses.all[slots] == 0])
        for vector in self._vectors(unused):
            del self._slot_of[_digest(vector)]
        if self._walker is not None:
            self._walker.delete(unused)
        if self._uses.size - self.different > DEAD * self._uses.size:
            living, left = self._arrays()
            vectors = self._vectors(left)
            self._clear()
            self.add(living, vectors)

    def search(self, query: Matrix, k: int) -> Ranked:
        """Return the `k` nearest documents by cosine; of equals the later first."""
        if not len(self):
            return NOTHING
        numbers, slots = self._arrays()
        if self._walker is None:
            return top_k(numbers, _rounded(self._matrix.all @ query)[slots], k)
        nearest = self._walker.search(query, min(k, self.different))
        # If each document has the slot of its place, as without equal vectors and deletions, no look-up is needed.
        places = nearest if self._uses.size == len(self) == self.different else np.flatnonzero(np.isin(slots, nearest))
        return top_k(numbers[places], _rounded(self._vectors(slots[places]) @ query), k)

    def score(self, query: Matrix, numbers: Numbers) -> Scores:
        """Return the exact cosine of each document, -1 for an unknown one."""
        slots = np.array([self._slots.get(number, -1) for number in numbers.tolist()], np.int64)
        cosines = np.full(len(numbers), -1.0)
        cosines[slots >= 0] = _rounded(self._vectors(slots[slots >= 0]) @ query)
        return cosines

    def _arrays(self) -> tuple[Numbers, Numbers]:
        """Return the documents, in order of addition, and their slots."""
        if self._table is None:
            numbers, slots = (np.array(list(part), np.int64) for part in (self._slots, self._slots.values()))
            self._table = numbers, slots
        return self._table

    def _vectors(self, slots: Numbers) -> Matrix:
        return self._matrix.all[slots] if self._walker is None else self._walker.vectors(slots)


class HnswGraph:
    """The index of hnswlib over unit vectors, by inner product. Vectors are numbered in order of addition."""

    def __init__(self, dimension: int, graph: Graph) -> None:
        try:
            import hnswlib
        except ModuleNotFoundError:
            raise MissingExtra("hnswlib", "hnswlib") from None
        self.dimension, self._graph, self._alive = dimension, graph, Rows(np.bool_)
        self._index: Any = hnswlib.Index(space="ip", dim=dimension)
        self._index.init_index(1024, M=graph.links, ef_construction=graph.construction, random_seed=SEED)

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that brings back the graph of now. It goes on as a copy: nothing undoes an addition."""
        index, restore_alive = self._index, self._alive.checkpoint()
        self._index = deepcopy(index)

        def restore() -> None:
            self._index = deepcopy(index)
            restore_alive()

        return restore

    def add(self, vectors: Matrix) -> None:
        start = self._alive.size
        self._alive.add(np.ones(len(vectors), np.bool_))
        if self._alive.size > self._index.get_max_elements():
            self._index.resize_index(max(self._alive.size, 2 * self._index.get_max_elements()))
        if len(vectors):
            self._index.add_items(vectors, np.arange(start, self._alive.size), num_threads=self._graph.threads)

    def delete(self, numbers: Numbers) -> None:
        self._alive.all[numbers] = False
        for number in numbers.tolist():
            self._index.mark_deleted(number)

    def vectors(self, numbers: Numbers) -> Matrix:
        """Return vectors that are not deleted."""
        if not len(numbers):
            return np.zeros((0, self.dimension), np.float32)
        return np.asarray(self._index.get_items(numbers, return_type="numpy"), np.float32)

    def search(self, query: Matrix, k: int) -> Numbers:
        """Return the `k` nearest that a walk finds; all that are not deleted if it finds fewer."""
        self._index.set_ef(max(self._graph.search, k))
        try:
            nearest, _ = self._index.knn_query(query, k, num_threads=1)
        except RuntimeError:
            return np.flatnonzero(self._alive.all)
        numbers: Numbers = nearest[0].astype(np.int64)
        return numbers


def _digest(vector: Matrix) -> bytes:
    return hashlib.blake2b(vector.tobytes(), digest_size=16).digest()


def _rounded(cosines: Matrix) -> Scores:
    rounded: Scores = cosines.astype(np.float64).round(DECIMALS)
    return rounded

"""HNSW (Malkov & Yashunin 2018) by faiss: a graph over the vectors, of which a search compares a few with the query.

**Delete.** A deleted vector stays in the graph, and searches pass through it without returning it. When a share of all
are dead (`vectors.DEAD`), the graph is built anew from the rest; that takes as long as building it did.

**Filters.** What is found is always `among` the keys asked for. Few of them are compared one by one, exactly: as long
as that is less work than the walk, which a filter makes longer. Else the walk goes on until it has seen `search`
vectors that pass, and where it comes back with fewer than there are, all that pass are compared.

**The same graph again.** faiss draws levels from a fixed seed, but adds with several threads in any order: `threads`
is 1 unless somebody says otherwise, and then same vectors, same graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....scenarios.errors import MissingExtra
from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, ranked
from .vectors import DEAD, Keys, Matrix, checked, cosines_of, rounded


@dataclass(frozen=True, slots=True)
class Graph:
    """What an HNSW graph is made and searched with: M, efConstruction and efSearch of the paper.

    By default what a million vectors need for 95 % of the ten nearest (docs/decisions/0017-rag-tier.md).
    """

    links: int = 24
    """Neighbours of a vector on each level; twice as many on the lowest."""
    construction: int = 160
    """Candidates that are looked at to place a vector."""
    search: int = 256
    """Candidates that a search keeps."""
    threads: int = 1
    """That add vectors."""


GRAPH = Graph()


def filter_is_few(among: int, of: int, graph: Graph) -> bool:
    """Whether comparing `among` vectors takes less work than a walk over `of` of which only these pass.

    A walk that keeps `search` that pass sees `search · of / among`, and compares about `links` for each.
    """
    return among * among <= graph.search * graph.links * of


class FaissHnsw:
    """`IndexHNSWFlat` over unit vectors, by inner product."""

    kind: ClassVar[str] = "hnsw"
    __slots__ = ("_faiss", "_graph", "_index", "_keys", "dimension")

    def __init__(self, dimension: int, graph: Graph = GRAPH) -> None:
        self._faiss = _library()
        self.dimension, self._graph = dimension, graph
        self._keys = Keys()
        self._index = self._new()

    def __len__(self) -> int:
        return self._keys.live

    def add(self, keys: Numbers, vectors: Matrix) -> None:
        made = checked(vectors, self.dimension, keys)
        self._keys.add(keys)
        with self._threads():
            self._index.add(made)

    def delete(self, keys: Numbers) -> None:
        self._keys.delete(keys)
        if self._keys.dead > DEAD * len(self._keys):
            living = self._matrix()[self._keys.drop_dead()]
            self._index = self._new()
            with self._threads():
                self._index.add(living)

    def search(self, query: Matrix, k: int, among: Numbers | None = None) -> Ranked:
        if not len(self):
            return NOTHING
        query = checked(query, self.dimension)
        rows = None if among is None else self._keys.rows(among)
        if rows is not None and filter_is_few(len(rows), len(self._keys), self._graph):
            return self._compared(query, k, rows)
        found = self._walked(query, k, rows)
        if len(found.numbers) < min(k, len(self) if rows is None else len(rows)):
            return self._compared(query, k, self._keys.living() if rows is None else rows)
        return found

    def cosines(self, query: Matrix, keys: Numbers) -> NDArray[np.float64]:
        return cosines_of(self._keys, self._matrix(), checked(query, self.dimension)[0], keys)

    def take(self) -> tuple[Numbers, Matrix]:
        rows = self._keys.living()
        return self._keys.of(rows), self._matrix()[rows]

    def save(self, writer: SnapshotWriter) -> None:
        writer.json("vectors.kind", self.kind)
        writer.array("vectors.keys", self._keys.of(np.arange(len(self._keys))))
        writer.array("vectors.alive", self._keys.alive.all)

        def stream(write: Any) -> None:
            self._faiss.write_index(self._index, self._faiss.PyCallbackIOWriter(write, 1 << 20))

        writer.stream("vectors.graph", stream)

    @classmethod
    def load(cls, reader: SnapshotReader, graph: Graph) -> FaissHnsw:
        """Read all of it. The links and the candidates of the building are those of the file."""
        faiss = _library()
        index = faiss.read_index(faiss.PyCallbackIOReader(reader.stream("vectors.graph"), 1 << 20))
        made = cls(index.d, graph)
        made._index = index
        made._keys.add(reader.array("vectors.keys"))
        made._keys.delete(made._keys.of(np.flatnonzero(~reader.array("vectors.alive"))))
        return made

    def _new(self) -> Any:
        index = self._faiss.IndexHNSWFlat(self.dimension, self._graph.links, self._faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self._graph.construction
        return index

    def _matrix(self) -> Matrix:
        """The vectors as faiss holds them, without a copy: valid until the next addition."""
        size = len(self._keys)
        if not size:
            return np.zeros((0, self.dimension), np.float32)
        held = self._faiss.downcast_index(self._index.storage).get_xb()
        found: Matrix = self._faiss.rev_swig_ptr(held, size * self.dimension).reshape(size, self.dimension)
        return found

    def _compared(self, query: Matrix, k: int, rows: Numbers) -> Ranked:
        """The nearest of these rows, each compared."""
        return ranked(self._keys.of(rows), rounded(self._matrix()[rows] @ query[0]), k)

    def _walked(self, query: Matrix, k: int, rows: Numbers | None) -> Ranked:
        """The nearest that a walk finds."""
        size, keep = len(self._keys), max(self._graph.search, k)
        parameters = self._faiss.SearchParametersHNSW(efSearch=keep)
        if rows is not None or self._keys.dead:
            passing = self._keys.alive.all
            if rows is not None:
                passing = np.zeros(size, np.bool_)
                passing[rows] = True
                parameters.efSearch = min(size, keep * size // max(len(rows), 1))
            bits = np.packbits(passing, bitorder="little")
            parameters.sel = self._faiss.IDSelectorBitmap(bits)
        cosines, found = self._index.search(query, min(k, size), params=parameters)
        there = found[0] >= 0
        return ranked(self._keys.of(found[0][there]), rounded(cosines[0][there]), k)

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """faiss has one number of threads for the whole process."""
        before = self._faiss.omp_get_max_threads()
        self._faiss.omp_set_num_threads(self._graph.threads)
        try:
            yield
        finally:
            self._faiss.omp_set_num_threads(before)


def _library() -> ModuleType:
    try:
        import faiss
    except ModuleNotFoundError:
        raise MissingExtra("faiss-cpu", "tiers") from None
    library: ModuleType = faiss
    return library

"""HNSW (Malkov & Yashunin 2018) by faiss and by hnswlib: a search compares the query with a few vectors of a graph.

**Delete.** A deleted vector stays in the graph, and searches pass through it without returning it. When a share of all
vectors is dead (`vectors.DEAD`), the graph is rebuilt from the rest; that takes as long as building it did.

**Filters.** Few vectors that pass a filter are compared one by one, exactly, if that is less work than a walk, which a
filter makes longer. Otherwise the walk goes on until it has seen `search` vectors that pass. If it returns too few, all
vectors that pass are compared.

***Reproducible graphs.** faiss draws levels from a fixed seed, but adds in any order with several threads. With the
default of one thread the same vectors give the same graph.

**hnswlib** is the library of the authors, measured beside faiss. It is distributed as source alone (0.8.0 of 2023) and
compiled at installation, so it has an extra of its own. It marks deleted vectors itself, and calls a Python function
for each vector that a filtered walk meets.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.errors import MissingExtra

from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, top_k
from .vectors import DEAD, Keys, Matrix, checked, rounded


@dataclass(frozen=True, slots=True)
class Graph:
    """Parameters of an HNSW graph: M, efConstruction and efSearch of the paper.

    The defaults find 95 % of the ten nearest of a million vectors (docs/decisions/0017-rag-tier.md).
    """

    links: int = 24
    """Neighbours of a vector on each level; twice as many on the lowest."""
    construction: int = 160
    """Candidates examined to place a vector."""
    search: int = 256
    """Candidates in the list of a search."""
    threads: int = 1
    """Threads that add vectors."""


GRAPH = Graph()


def is_cheaper_exactly(among: int, of: int, graph: Graph) -> bool:
    """Return whether comparing `among` vectors is less work than a walk over `of` vectors of which only these pass.

    A walk that needs `search` passing vectors meets `search · of / among`, and compares about `links` for each.
    """
    return among * among <= graph.search * graph.links * of


class _HnswIndex(ABC):
    """The parts common to both libraries: keys, exact comparison, and when a search walks the graph."""

    __slots__ = ("_graph", "_keys", "dimension")

    def __init__(self, dimension: int, graph: Graph) -> None:
        self.dimension, self._graph, self._keys = dimension, graph, Keys()

    def __len__(self) -> int:
        return self._keys.live

    def search(self, query: Matrix, k: int, among: Numbers | None = None) -> Ranked:
        """Return the `k` nearest vectors, all or among the sorted keys `among`; fewer only if none is left."""
        if not len(self):
            return NOTHING
        query = checked(query, self.dimension)
        rows = None if among is None else self._keys.rows(among)
        if rows is not None and is_cheaper_exactly(len(rows), len(self._keys), self._graph):
            return self._compare(query, k, rows)
        nearest = self._walk(query, k, rows)
        # A walk ends where no unvisited neighbour is nearer. Behind a
        # filter or among dead vectors that may be too early.
        if len(nearest.numbers) < min(k, len(self) if rows is None else len(rows)):
            return self._compare(query, k, self._keys.living() if rows is None else rows)
        return nearest

    def cosines(self, query: Matrix, keys: Numbers) -> NDArray[np.float64]:
        """Return the exact cosine of each key, -1 for an unknown one."""
        rows, there = self._keys.find(keys)
        cosines = np.full(len(keys), -1.0)
        cosines[there] = rounded(self._vectors(rows[there]) @ checked(query, self.dimension)[0])
        return cosines

    def take(self) -> tuple[Numbers, Matrix]:
        """Return all keys and vectors."""
        rows = self._keys.living()
        return self._keys.of(rows), self._vectors(rows)

    def _save_keys(self, writer: SnapshotWriter) -> None:
        writer.array("vectors.keys", self._keys.of(np.arange(len(self._keys))))
        writer.array("vectors.alive", self._keys.alive.all)

    def _load_keys(self, reader: SnapshotReader) -> None:
        self._keys.add(reader.array("vectors.keys"))
        self._keys.delete(self._keys.of(np.flatnonzero(~reader.array("vectors.alive"))))

    def _compare(self, query: Matrix, k: int, rows: Numbers) -> Ranked:
        """Return the nearest of these rows, comparing each."""
        return top_k(self._keys.of(rows), rounded(self._vectors(rows) @ query[0]), k)

    @abstractmethod
    def _vectors(self, rows: Numbers) -> Matrix:
        """Return the vectors of rows."""

    @abstractmethod
    def _walk(self, query: Matrix, k: int, rows: Numbers | None) -> Ranked:
        """Return the nearest vectors that a walk finds, all or among these rows."""


class FaissHnsw(_HnswIndex):
    """`IndexHNSWFlat` of faiss over unit vectors, by inner product."""

    kind: ClassVar[str] = "hnsw"
    __slots__ = ("_faiss", "_index")

    def __init__(self, dimension: int, graph: Graph = GRAPH) -> None:
        super().__init__(dimension, graph)
        self._faiss = _import_faiss()
        self._index = self._new()

    def add(self, keys: Numbers, vectors: Matrix) -> None:
        matrix = checked(vectors, self.dimension, keys)
        self._keys.add(keys)
        with self._threads():
            self._index.add(matrix)

    def delete(self, keys: Numbers) -> None:
        self._keys.delete(keys)
        if self._keys.dead > DEAD * len(self._keys):
            # Indexing copies the rows, so they outlive the old index,
            # whose memory `_matrix` only borrows. The argument is
            # evaluated after `_matrix()`, whose size therefore still counts the dead rows.
            living = self._matrix()[self._keys.drop_dead()]
            self._index = self._new()
            with self._threads():
                self._index.add(living)

    def save(self, writer: SnapshotWriter) -> None:
        writer.json("vectors.kind", self.kind)
        self._save_keys(writer)

        def stream(write: Any) -> None:
            self._faiss.write_index(self._index, self._faiss.PyCallbackIOWriter(write, 1 << 20))

        writer.stream("vectors.graph", stream)

    @classmethod
    def load(cls, reader: SnapshotReader, graph: Graph) -> FaissHnsw:
        """Read an index. Its links and construction candidates are those of the file."""
        faiss = _import_faiss()
        stored = faiss.read_index(faiss.PyCallbackIOReader(reader.stream("vectors.graph"), 1 << 20))
        index = cls(stored.d, graph)
        index._index = stored
        index._load_keys(reader)
        return index

    def _new(self) -> Any:
        index = self._faiss.IndexHNSWFlat(self.dimension, self._graph.links, self._faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self._graph.construction
        return index

    def _matrix(self) -> Matrix:
        """Return the vectors inside faiss without copying them: valid until the next addition."""
        size = len(self._keys)
        if not size:
            return np.zeros((0, self.dimension), np.float32)
        pointer = self._faiss.downcast_index(self._index.storage).get_xb()
        matrix: Matrix = self._faiss.rev_swig_ptr(pointer, size * self.dimension).reshape(size, self.dimension)
        return matrix

    def _vectors(self, rows: Numbers) -> Matrix:
        return self._matrix()[rows]

    def _walk(self, query: Matrix, k: int, rows: Numbers | None) -> Ranked:
        size, keep = len(self._keys), max(self._graph.search, k)
        parameters = self._faiss.SearchParametersHNSW(efSearch=keep)
        if rows is not None or self._keys.dead:
            passing = self._keys.alive.all
            if rows is not None:
                passing = np.zeros(size, np.bool_)
                passing[rows] = True
                # faiss counts what does not pass as candidates, too: with a tenth passing, ten times as many are needed
                # for `keep` that pass.
                parameters.efSearch = min(size, keep * size // max(len(rows), 1))
            # faiss numbers the bits of a byte from the lowest, NumPy by default from the highest.
            bits = np.packbits(passing, bitorder="little")
            parameters.sel = self._faiss.IDSelectorBitmap(bits)
        cosines, nearest = self._index.search(query, min(k, size), params=parameters)
        # -1 pads what the walk did not find.
        there = nearest[0] >= 0
        return top_k(self._keys.of(nearest[0][there]), rounded(cosines[0][there]), k)

    @contextmanager
    def _threads(self) -> Iterator[None]:
        # faiss has one number of threads for the whole process
        before = self._faiss.omp_get_max_threads()
        self._faiss.omp_set_num_threads(self._graph.threads)
        try:
            yield
        finally:
            self._faiss.omp_set_num_threads(before)


def _import_faiss() -> ModuleType:
    try:
        import faiss
    except ModuleNotFoundError:
        raise MissingExtra("faiss-cpu", "tiers") from None
    library: ModuleType = faiss
    return library


SEED = 100
ROOM = 1024
"""Initial room for vectors, doubled when it is full."""


class Hnswlib(_HnswIndex):
    """The index of hnswlib over unit vectors, by inner product."""

    kind: ClassVar[str] = "hnswlib"
    __slots__ = ("_index", "_library")

    def __init__(self, dimension: int, graph: Graph = GRAPH) -> None:
        super().__init__(dimension, graph)
        self._library = _import_hnswlib()
        self._index = self._new(ROOM)

    def add(self, keys: Numbers, vectors: Matrix) -> None:
        matrix = checked(vectors, self.dimension, keys)
        start = len(self._keys)
        self._keys.add(keys)
        self._insert(matrix, start)

    def delete(self, keys: Numbers) -> None:
        for row in self._keys.delete(keys).tolist():
            self._index.mark_deleted(row)
        if self._keys.dead > DEAD * len(self._keys):
            living = self._vectors(self._keys.drop_dead())
            self._index = self._new(max(ROOM, len(living)))
            self._insert(living, 0)

    def save(self, writer: SnapshotWriter) -> None:
        writer.json("vectors.kind", self.kind)
        writer.json("vectors.dimension", self.dimension)
        self._save_keys(writer)

        def stream(write: Callable[[bytes], None]) -> None:
            with tempfile.TemporaryDirectory() as folder:  # hnswlib can only write to a path
                path = Path(folder) / "graph"
                self._index.save_index(str(path))
                with open(path, "rb") as file:
                    while chunk := file.read(1 << 20):
                        write(chunk)

        writer.stream("vectors.graph", stream)

    @classmethod
    def load(cls, reader: SnapshotReader, graph: Graph) -> Hnswlib:
        """Read an index. Its links and construction candidates are those of the file."""
        index = cls(reader.json("vectors.dimension", int), graph)
        read = reader.stream("vectors.graph")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            with open(path, "wb") as file:
                while chunk := read(1 << 20):
                    file.write(chunk)
            index._index = index._library.Index(space="ip", dim=index.dimension)
            index._index.load_index(str(path))
        index._index.set_num_threads(graph.threads)
        index._load_keys(reader)
        return index

    def _new(self, room: int) -> Any:
        index = self._library.Index(space="ip", dim=self.dimension)
        graph = self._graph
        index.init_index(room, M=graph.links, ef_construction=graph.construction, random_seed=SEED)
        return index

    def _insert(self, vectors: Matrix, start: int) -> None:
        need = start + len(vectors)
        if need > self._index.get_max_elements():
            self._index.resize_index(max(need, 2 * self._index.get_max_elements()))
        if len(vectors):
            self._index.add_items(vectors, np.arange(start, need), num_threads=self._graph.threads)

    def _vectors(self, rows: Numbers) -> Matrix:
        if not len(rows):
            return np.zeros((0, self.dimension), np.float32)
        return np.asarray(self._index.get_items(rows, return_type="numpy"), np.float32)

    def _walk(self, query: Matrix, k: int, rows: Numbers | None) -> Ranked:
        size, keep = len(self._keys), max(self._graph.search, k)
        passes = None
        if rows is not None:
            passing = np.zeros(size, np.bool_)
            passing[rows] = True
            keep, passes = min(size, keep * size // max(len(rows), 1)), passing.__getitem__
        self._index.set_ef(keep)
        try:
            nearest, distances = self._index.knn_query(query, min(k, len(self)), num_threads=1, filter=passes)
        except RuntimeError:  # raised if the walk finds fewer than `k`
            return NOTHING
        # The distance of the space "ip" is 1 - inner product.
        return top_k(self._keys.of(nearest[0].astype(np.int64)), rounded(1 - distances[0]), k)


def _import_hnswlib() -> ModuleType:
    try:
        import hnswlib
    except ModuleNotFoundError:
        raise MissingExtra("hnswlib", "hnswlib") from None
    library: ModuleType = hnswlib
    return library

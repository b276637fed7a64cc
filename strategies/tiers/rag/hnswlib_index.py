"""HNSW by hnswlib, its authors' own library: the second of two, to be measured beside faiss.

It is distributed as source alone (0.8.0 of 2023) and compiled at installation, so it has an extra of its own. Deleting,
filters and what is exact are as in `hnsw`; it marks deleted vectors itself, and asks a Python function for each vector
that a filtered walk meets.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....scenarios.errors import MissingExtra
from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, ranked
from .hnsw import GRAPH, Graph, filter_is_few
from .vectors import DEAD, Keys, Matrix, checked, rounded

SEED = 100
ROOM = 1024
"""Vectors that there is room for at first; doubled as they come."""


class Hnswlib:
    """hnswlib's index over unit vectors, by inner product."""

    kind: ClassVar[str] = "hnswlib"
    __slots__ = ("_graph", "_index", "_keys", "_library", "dimension")

    def __init__(self, dimension: int, graph: Graph = GRAPH) -> None:
        self._library = _library()
        self.dimension, self._graph = dimension, graph
        self._keys = Keys()
        self._index = self._new(ROOM)

    def __len__(self) -> int:
        return self._keys.live

    def add(self, keys: Numbers, vectors: Matrix) -> None:
        made = checked(vectors, self.dimension, keys)
        start = len(self._keys)
        self._keys.add(keys)
        self._insert(made, start)

    def delete(self, keys: Numbers) -> None:
        for row in self._keys.delete(keys).tolist():
            self._index.mark_deleted(row)
        if self._keys.dead > DEAD * len(self._keys):
            living = self._vectors(self._keys.drop_dead())
            self._index = self._new(max(ROOM, len(living)))
            self._insert(living, 0)

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
        rows, there = self._keys.find(keys)
        found = np.full(len(keys), -1.0)
        if there.any():
            found[there] = rounded(self._vectors(rows[there]) @ checked(query, self.dimension)[0])
        return found

    def take(self) -> tuple[Numbers, Matrix]:
        rows = self._keys.living()
        return self._keys.of(rows), self._vectors(rows)

    def save(self, writer: SnapshotWriter) -> None:
        writer.json("vectors.kind", self.kind)
        writer.json("vectors.dimension", self.dimension)
        writer.array("vectors.keys", self._keys.of(np.arange(len(self._keys))))
        writer.array("vectors.alive", self._keys.alive.all)

        def stream(write: Callable[[bytes], None]) -> None:
            with tempfile.TemporaryDirectory() as folder:  # it writes to a path and nowhere else
                path = Path(folder) / "graph"
                self._index.save_index(str(path))
                with open(path, "rb") as file:
                    while some := file.read(1 << 20):
                        write(some)

        writer.stream("vectors.graph", stream)

    @classmethod
    def load(cls, reader: SnapshotReader, graph: Graph) -> Hnswlib:
        """Read all of it. The links and the candidates of the building are those of the file."""
        made = cls(reader.json("vectors.dimension", int), graph)
        read = reader.stream("vectors.graph")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            with open(path, "wb") as file:
                while some := read(1 << 20):
                    file.write(some)
            made._index = made._library.Index(space="ip", dim=made.dimension)
            made._index.load_index(str(path))
        made._index.set_num_threads(graph.threads)
        made._keys.add(reader.array("vectors.keys"))
        made._keys.delete(made._keys.of(np.flatnonzero(~reader.array("vectors.alive"))))
        return made

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

    def _compared(self, query: Matrix, k: int, rows: Numbers) -> Ranked:
        """The nearest of these rows, each compared."""
        return ranked(self._keys.of(rows), rounded(self._vectors(rows) @ query[0]), k)

    def _walked(self, query: Matrix, k: int, rows: Numbers | None) -> Ranked:
        """The nearest that a walk finds; none at all where it finds fewer than `k`: then the library has no answer."""
        size, keep = len(self._keys), max(self._graph.search, k)
        passes = None
        if rows is not None:
            passing = np.zeros(size, np.bool_)
            passing[rows] = True
            keep, passes = min(size, keep * size // max(len(rows), 1)), passing.__getitem__
        self._index.set_ef(keep)
        try:
            found, distances = self._index.knn_query(query, min(k, len(self)), num_threads=1, filter=passes)
        except RuntimeError:
            return NOTHING
        return ranked(self._keys.of(found[0].astype(np.int64)), rounded(1 - distances[0]), k)


def _library() -> ModuleType:
    try:
        import hnswlib
    except ModuleNotFoundError:
        raise MissingExtra("hnswlib", "hnswlib") from None
    library: ModuleType = hnswlib
    return library

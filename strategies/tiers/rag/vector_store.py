"""Vectors of documents, searched exactly while they are few and by a graph when they are many.

Equal vectors wreck an HNSW graph: their nearest neighbours are each other, so no link leads in or out (20 000 equal
vectors among 2 000 others: recall 0.005). So each different vector is stored once, and its documents share it.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np

from ctxbench.metrics.rows import Rows

from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, Scores, is_among, top_k
from .hnsw import GRAPH, FaissHnsw, Graph, Hnswlib
from .vectors import Exact, Keys, Matrix, VectorIndex, checked

Kind = Literal["auto", "exact", "hnsw", "hnswlib"]

EXACT_BELOW = 50_000
"""Most different vectors that `auto` searches exactly."""
_DIGEST = 16


class VectorStore:
    """Unit vectors under the numbers of documents, which ascend."""

    __slots__ = ("_digests", "_first", "_graph", "_index", "_keys", "_kind", "_more", "_slot_of", "_slots", "dimension")

    def __init__(self, dimension: int, kind: Kind = "auto", graph: Graph = GRAPH) -> None:
        self.dimension, self._kind, self._graph = dimension, kind, graph
        self._keys = Keys()
        self._slots = Rows(np.int64)  # slot of the vector of each document
        self._digests = Rows(np.uint8, _DIGEST)
        self._slot_of: dict[bytes, int] = {}
        self._first = Rows(np.int64)  # first document of each slot; -1 once it is deleted
        self._more: dict[int, list[int]] = {}  # other documents of a slot
        self._index: VectorIndex = _new_index("exact" if kind == "auto" else kind, dimension, graph)

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._keys.live

    @property
    def different(self) -> int:
        """Number of stored vectors, which are all different."""
        return len(self._index)

    @property
    def kind(self) -> str:
        """Current kind of search: exact, hnsw or hnswlib."""
        return self._index.kind

    def add(self, numbers: Numbers, vectors: Matrix) -> None:
        """Add the vectors of documents. Raises ValueError for vectors that do not fit, and adds none."""
        matrix = checked(vectors, self.dimension, numbers)
        self._keys.add(numbers)
        new: list[int] = []
        for at, (number, vector) in enumerate(zip(numbers.tolist(), matrix, strict=True)):
            digest = hashlib.blake2b(vector.tobytes(), digest_size=_DIGEST).digest()
            # The next free slot, if the vector is new: that it is new is then seen from the number.
            slot = self._slot_of.setdefault(digest, self._first.size)
            if slot == self._first.size:
                self._first.add(np.array([number]))
                self._digests.add(np.frombuffer(digest, np.uint8)[None])
                new.append(at)
            else:
                self._more.setdefault(slot, []).append(number)
            self._slots.add(np.array([slot]))
        if new:
            self._index.add(np.arange(self._first.size - len(new), self._first.size), matrix[new])
        if self._kind == "auto" and self._index.kind == "exact" and len(self._index) > EXACT_BELOW:
            graph = _new_index("hnsw", self.dimension, self._graph)
            graph.add(*self._index.take())
            self._index = graph

    def delete(self, numbers: Numbers) -> None:
        """Delete documents. Unknown ones are ignored."""
        unused: list[int] = []
        for row in self._keys.delete(numbers).tolist():
            slot, number = int(self._slots.all[row]), int(self._keys.of(np.array([row]))[0])
            # The first document has a place of its own, so that a vector of one document needs no list.
            if self._first.all[slot] == number:
                self._first.all[slot] = -1
            else:
                self._more[slot].remove(number)
            if self._first.all[slot] < 0 and not self._more.get(slot):
                self._more.pop(slot, None)
                del self._slot_of[self._digests.all[slot].tobytes()]
                unused.append(slot)
        if unused:
            # Slots are keys of the index and, like them, never reused.
            self._index.delete(np.array(sorted(unused)))

    def search(self, query: Matrix, k: int, among: Numbers | None = None) -> Ranked:
        """Return the `k` nearest documents by cosine, all or among the sorted `among`; of equals the later first."""
        slots = None if among is None else self._slots_of(among)
        # Each slot has a living document that passes, so `k` slots are enough for `k` documents.
        nearest = self._index.search(query, k, slots)
        if not self._more:  # each vector is of one document, its first
            return top_k(self._first.all[nearest.numbers], nearest.scores, k)
        parts = [self._members(slot) for slot in nearest.numbers.tolist()]
        if among is not None:
            parts = [members[is_among(members, among)] for members in parts]
        if not parts:
            return NOTHING
        return top_k(np.concatenate(parts), np.repeat(nearest.scores, [len(members) for members in parts]), k)

    def score(self, query: Matrix, numbers: Numbers) -> Scores:
        """Return the exact cosine of each document, -1 for an unknown one."""
        rows, there = self._keys.find(numbers)
        cosines = np.full(len(numbers), -1.0)
        if there.any():
            cosines[there] = self._index.cosines(query, self._slots.all[rows[there]])
        return cosines

    def save(self, writer: SnapshotWriter) -> None:
        """Write the store."""
        rows = self._keys.living()
        writer.array("vectors.documents", self._keys.of(rows))
        writer.array("vectors.slots", self._slots.all[rows])
        writer.array("vectors.digests", self._digests.all)
        self._index.save(writer)

    @classmethod
    def load(
        cls, reader: SnapshotReader, dimension: int | None = None, kind: Kind = "auto", graph: Graph = GRAPH
    ) -> VectorStore:
        """Read a store. Raises SnapshotError for vectors of another dimension, or an index of another kind."""
        stored_kind = reader.json("vectors.kind", str)
        if kind not in ("auto", stored_kind):
            raise reader.refuse(f"its vectors are in an index of kind {stored_kind}, not {kind}: build it again")
        index = _load_index(stored_kind, reader, graph)
        if dimension not in (None, index.dimension):
            raise reader.refuse(
                f"its vectors have {index.dimension} coordinates, the embedder makes {dimension}: build it again"
            )
        store = cls(index.dimension, "exact", graph)
        store._kind, store._index = kind, index
        numbers, slots = reader.array("vectors.documents"), reader.array("vectors.slots")
        store._keys.add(numbers)
        store._slots.add(slots)
        store._digests.add(reader.array("vectors.digests"))
        store._first.add(np.full(store._digests.size, -1))
        for number, slot in zip(numbers.tolist(), slots.tolist(), strict=True):
            if store._first.all[slot] < 0:
                store._first.all[slot] = number
            else:
                store._more.setdefault(slot, []).append(number)
        for slot in np.unique(slots).tolist():
            store._slot_of[store._digests.all[slot].tobytes()] = slot
        return store

    def _slots_of(self, numbers: Numbers) -> Numbers:
        """Return the slots of documents, sorted, each once."""
        has = np.zeros(self._first.size, np.bool_)
        has[self._slots.all[self._keys.rows(numbers)]] = True
        return np.flatnonzero(has)

    def _members(self, slot: int) -> Numbers:
        first = self._first.all[slot]
        return np.array([*([first] if first >= 0 else []), *self._more.get(slot, ())], np.int64)


def _new_index(kind: str, dimension: int, graph: Graph) -> VectorIndex:
    match kind:
        case "exact":
            return Exact(dimension)
        case "hnsw":
            return FaissHnsw(dimension, graph)
        case _:
            return Hnswlib(dimension, graph)


def _load_index(kind: str, reader: SnapshotReader, graph: Graph) -> VectorIndex:
    match kind:
        case "exact":
            return Exact.load(reader)
        case "hnsw":
            return FaissHnsw.load(reader, graph)
        case _:
            return Hnswlib.load(reader, graph)

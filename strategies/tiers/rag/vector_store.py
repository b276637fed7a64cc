"""Vectors of documents: each different one stored once, searched exactly while they are few, by a graph when many.

Equal vectors wreck an HNSW graph: their nearest neighbours are each other, so nothing leads in or out (20 000 equal
vectors among 2 000 others: recall 0.005). So a vector that is there already is not added again; its documents share it.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np

from ....metrics.rows import Rows
from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, Scores, ranked, within
from .hnsw import GRAPH, FaissHnsw, Graph
from .hnswlib_index import Hnswlib
from .vectors import Exact, Keys, Matrix, VectorIndex, checked

Kind = Literal["auto", "exact", "hnsw", "hnswlib"]

EXACT_BELOW = 50_000
"""Different vectors from which `auto` builds a graph."""
_DIGEST = 16


class VectorStore:
    """Unit vectors under the numbers of documents, which ascend."""

    __slots__ = ("_digests", "_first", "_graph", "_index", "_keys", "_kind", "_more", "_slot_of", "_slots", "dimension")

    def __init__(self, dimension: int, kind: Kind = "auto", graph: Graph = GRAPH) -> None:
        self.dimension, self._kind, self._graph = dimension, kind, graph
        self._keys = Keys()
        self._slots = Rows(np.int64)
        """For each document, the slot of its vector."""
        self._digests = Rows(np.uint8, _DIGEST)
        self._slot_of: dict[bytes, int] = {}
        self._first = Rows(np.int64)
        """For each slot the document that brought it; -1 when that is gone."""
        self._more: dict[int, list[int]] = {}
        """The other documents of a slot that has some."""
        self._index: VectorIndex = _made("exact" if kind == "auto" else kind, dimension, graph)

    def __len__(self) -> int:
        """Documents that are there."""
        return self._keys.live

    @property
    def different(self) -> int:
        """Vectors that are stored."""
        return len(self._index)

    @property
    def kind(self) -> str:
        """How they are searched now: exact, hnsw or hnswlib."""
        return self._index.kind

    def add(self, numbers: Numbers, vectors: Matrix) -> None:
        """Add the vectors of documents. Raises ValueError, and then none is added, for vectors that do not fit."""
        made = checked(vectors, self.dimension, numbers)
        self._keys.add(numbers)
        new: list[int] = []
        for at, (number, vector) in enumerate(zip(numbers.tolist(), made, strict=True)):
            digest = hashlib.blake2b(vector.tobytes(), digest_size=_DIGEST).digest()
            slot = self._slot_of.setdefault(digest, self._first.size)
            if slot == self._first.size:
                self._first.add(np.array([number]))
                self._digests.add(np.frombuffer(digest, np.uint8)[None])
                new.append(at)
            else:
                self._more.setdefault(slot, []).append(number)
            self._slots.add(np.array([slot]))
        if new:
            self._index.add(np.arange(self._first.size - len(new), self._first.size), made[new])
        if self._kind == "auto" and self._index.kind == "exact" and len(self._index) > EXACT_BELOW:
            graph = _made("hnsw", self.dimension, self._graph)
            graph.add(*self._index.take())
            self._index = graph

    def delete(self, numbers: Numbers) -> None:
        """Take documents out; those that are not there are passed over."""
        gone: list[int] = []
        for row in self._keys.delete(numbers).tolist():
            slot, number = int(self._slots.all[row]), int(self._keys.of(np.array([row]))[0])
            if self._first.all[slot] == number:
                self._first.all[slot] = -1
            else:
                self._more[slot].remove(number)
            if self._first.all[slot] < 0 and not self._more.get(slot):
                self._more.pop(slot, None)
                del self._slot_of[self._digests.all[slot].tobytes()]
                gone.append(slot)
        if gone:
            self._index.delete(np.array(sorted(gone)))

    def search(self, query: Matrix, k: int, among: Numbers | None = None) -> Ranked:
        """The `k` documents nearest by cosine, all or `among` these (sorted); of equally near ones the later first."""
        slots = None if among is None else self._slots_of(among)
        found = self._index.search(query, k, slots)
        parts = [self._members(slot) for slot in found.numbers.tolist()]
        if among is not None:
            parts = [members[within(members, among)] for members in parts]
        if not parts:
            return NOTHING
        return ranked(np.concatenate(parts), np.repeat(found.scores, [len(members) for members in parts]), k)

    def score(self, query: Matrix, numbers: Numbers) -> Scores:
        """The exact cosine of each of these documents; -1 for one that is not there."""
        rows, there = self._keys.find(numbers)
        found = np.full(len(numbers), -1.0)
        if there.any():
            found[there] = self._index.cosines(query, self._slots.all[rows[there]])
        return found

    def save(self, writer: SnapshotWriter) -> None:
        """Write all of it."""
        rows = self._keys.living()
        writer.array("vectors.documents", self._keys.of(rows))
        writer.array("vectors.slots", self._slots.all[rows])
        writer.array("vectors.digests", self._digests.all)
        self._index.save(writer)

    @classmethod
    def load(
        cls, reader: SnapshotReader, dimension: int | None = None, kind: Kind = "auto", graph: Graph = GRAPH
    ) -> VectorStore:
        """Read all of it. Raises SnapshotError for vectors of another dimension, or of an index of another kind."""
        there = reader.json("vectors.kind", str)
        if kind not in ("auto", there):
            raise reader.refuse(f"its vectors are in an index of the kind {there}, {kind} is wanted: build it anew")
        index = _loaded(there, reader, graph)
        if dimension not in (None, index.dimension):
            raise reader.refuse(
                f"its vectors have {index.dimension} coordinates, the embedder makes {dimension}: build it anew"
            )
        made = cls(index.dimension, "exact", graph)
        made._kind, made._index = kind, index
        numbers, slots = reader.array("vectors.documents"), reader.array("vectors.slots")
        made._keys.add(numbers)
        made._slots.add(slots)
        made._digests.add(reader.array("vectors.digests"))
        made._first.add(np.full(made._digests.size, -1))
        for number, slot in zip(numbers.tolist(), slots.tolist(), strict=True):
            if made._first.all[slot] < 0:
                made._first.all[slot] = number
            else:
                made._more.setdefault(slot, []).append(number)
        for slot in np.unique(slots).tolist():
            made._slot_of[made._digests.all[slot].tobytes()] = slot
        return made

    def _slots_of(self, numbers: Numbers) -> Numbers:
        """The slots of documents, sorted, each once."""
        has = np.zeros(self._first.size, np.bool_)
        has[self._slots.all[self._keys.rows(numbers)]] = True
        return np.flatnonzero(has)

    def _members(self, slot: int) -> Numbers:
        first = self._first.all[slot]
        return np.array([*([first] if first >= 0 else []), *self._more.get(slot, ())], np.int64)


def _made(kind: str, dimension: int, graph: Graph) -> VectorIndex:
    match kind:
        case "exact":
            return Exact(dimension)
        case "hnsw":
            return FaissHnsw(dimension, graph)
        case _:
            return Hnswlib(dimension, graph)


def _loaded(kind: str, reader: SnapshotReader, graph: Graph) -> VectorIndex:
    match kind:
        case "exact":
            return Exact.load(reader)
        case "hnsw":
            return FaissHnsw.load(reader, graph)
        case _:
            return Hnswlib.load(reader, graph)

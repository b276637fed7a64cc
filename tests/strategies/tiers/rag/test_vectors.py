"""Vectors: what is found is what a full comparison finds, whatever was added, deleted and asked among."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ctxbench.scenarios.errors import MissingExtra
from ctxbench.strategies.tiers.rag import vector_store
from ctxbench.strategies.tiers.rag.hnsw import FaissHnsw, Graph, Hnswlib
from ctxbench.strategies.tiers.rag.vector_store import Kind, VectorStore
from tests.examples import examples

DIMENSION = 8
HNSW = [
    pytest.param("hnsw", marks=pytest.mark.skipif(find_spec("faiss") is None, reason="needs faiss-cpu")),
    pytest.param("hnswlib", marks=pytest.mark.skipif(find_spec("hnswlib") is None, reason="needs hnswlib")),
]
KINDS = ["exact", *HNSW]


def unit(count: int, seed: int = 0, dimension: int = DIMENSION) -> NDArray[np.float32]:
    made = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def expected(vectors: dict[int, NDArray[np.float32]], query: NDArray[np.float32], k: int) -> list[float]:
    return sorted((round(float(vector @ query), 4) for vector in vectors.values()), reverse=True)[:k]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@examples(15)
def test_finds_the_nearest(kind: Kind, data: st.DataObject) -> None:
    """Always `k` of those that are there and asked among, and here, where all are few, always the nearest."""
    pool = unit(12)  # few different ones: equal vectors are common
    index, there = VectorStore(DIMENSION, kind), dict[int, NDArray[np.float32]]()
    came = 0
    for size, gone in data.draw(st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 40))), max_size=6)):
        new = [data.draw(st.integers(0, 11)) for _ in range(size)]
        index.add(np.arange(came, came + size), pool[new])
        there |= {came + at: pool[each] for at, each in enumerate(new)}
        came += size
        index.delete(np.array(sorted(gone), np.int64))
        there = {number: vector for number, vector in there.items() if number not in gone}
    assert len(index) == len(there)
    assert index.different == len({vector.tobytes() for vector in there.values()})
    query, k = unit(1, 99)[0], data.draw(st.integers(1, 8))
    among = data.draw(st.none() | st.sets(st.integers(0, 30)))
    wanted = {number: each for number, each in there.items() if among is None or number in among}
    found = index.search(query, k, None if among is None else np.array(sorted(among), np.int64))
    assert set(found.numbers.tolist()) <= set(wanted)
    assert found.scores.round(4).tolist() == pytest.approx(expected(wanted, query, k), abs=2e-4)
    if among is not None:
        numbers = np.array(sorted(among), np.int64)
        exact = [float(there[number] @ query) if number in there else -1.0 for number in numbers.tolist()]
        assert index.score(query, numbers) == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("kind", HNSW)
def test_recall_among_many(kind: Kind) -> None:
    """A graph over 3 000 vectors misses few of the nearest, unfiltered and through a filter of half of them."""
    vectors, queries = unit(3000, dimension=16), unit(50, 1, 16)
    index = VectorStore(16, kind, Graph(links=8, construction=40, search=40))
    index.add(np.arange(3000), vectors)
    half = np.arange(0, 3000, 2)
    for among in (None, half):
        hits = 0
        for query in queries:
            pool = np.arange(3000) if among is None else among
            best = set(pool[np.argsort(-(vectors[pool] @ query))[:10]].tolist())
            hits += len(best & set(index.search(query, 10, among).numbers.tolist()))
        assert hits / 500 > 0.9


@pytest.mark.parametrize("kind", HNSW)
def test_equal_vectors_do_not_hide_others(kind: Kind) -> None:
    """Thousands of equal vectors among others: the others are found, and of the equal ones the newest first."""
    vectors = unit(300, dimension=16)
    every = np.concatenate((np.repeat(vectors[:1], 2000, axis=0), vectors))
    index = VectorStore(16, kind, Graph(links=8, construction=40, search=64))
    index.add(np.arange(2300), every)
    assert index.different == 300
    assert all(index.search(vectors[at], 1).numbers.tolist() == [2000 + at] for at in range(300))
    assert index.search(vectors[0], 3).numbers.tolist() == [2000, 1999, 1998]


def test_same_vectors_same_graph() -> None:
    """One thread: the graph of faiss has the same bytes each time."""
    faiss = pytest.importorskip("faiss")
    both = [FaissHnsw(DIMENSION, Graph(links=4, construction=20)) for _ in range(2)]
    for index in both:
        index.add(np.arange(500), unit(500))
    first, second = (faiss.serialize_index(index._index).tobytes() for index in both)
    assert first == second


def test_auto_turns_to_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` is exact until there are too many different vectors, and finds the same after."""
    pytest.importorskip("faiss")
    monkeypatch.setattr(vector_store, "EXACT_BELOW", 50)
    index, vectors = VectorStore(DIMENSION), unit(80)
    index.add(np.arange(50), vectors[:50])
    assert index.kind == "exact"
    before = index.search(vectors[3], 5)
    index.add(np.arange(50, 80), vectors[50:])
    assert index.kind == "hnsw"
    index.delete(np.arange(50, 80))
    after = index.search(vectors[3], 5)
    assert before.numbers.tolist() == after.numbers.tolist()


@pytest.mark.parametrize("made", [FaissHnsw, Hnswlib])
def test_deleting_builds_anew(made: type[FaissHnsw] | type[Hnswlib]) -> None:
    """When a quarter is dead the graph is built without them, and the rest is still found."""
    pytest.importorskip("faiss" if made is FaissHnsw else "hnswlib")
    index, vectors = made(DIMENSION), unit(100)
    index.add(np.arange(100), vectors)
    index.delete(np.arange(24))
    assert index._keys.dead == 24
    index.delete(np.arange(24, 40))
    assert index._keys.dead == 0
    assert len(index) == 60
    assert index.search(vectors[70], 1).numbers.tolist() == [70]
    index.delete(np.arange(100))
    assert index.search(vectors[70], 1).numbers.tolist() == []


@pytest.mark.parametrize(("kind", "module", "extra"), [("hnsw", "faiss", "tiers"), ("hnswlib", "hnswlib", "hnswlib")])
def test_without_its_library(kind: Kind, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index whose library is not installed names the extra that brings it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"ctxbench\[{extra}\]"):
        VectorStore(DIMENSION, kind)


@pytest.mark.parametrize(
    ("numbers", "vectors", "why"),
    [
        ([0, 1], unit(2, dimension=9), "9 coordinates, the index has 8"),
        ([0], unit(2), "2 vectors for 1 keys"),
        ([1, 1], unit(2), "must ascend"),
        ([0], np.full((1, DIMENSION), np.nan, np.float32), "no number"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_refused_whole(kind: Kind, numbers: list[int], vectors: NDArray[np.float32], why: str) -> None:
    """Vectors that do not fit are refused with the reason, and none of them is added."""
    index = VectorStore(DIMENSION, kind)
    with pytest.raises(ValueError, match=why):
        index.add(np.array(numbers), vectors)
    assert len(index) == index.different == 0

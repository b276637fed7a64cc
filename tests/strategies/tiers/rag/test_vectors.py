"""Vectors: what is found is what a full comparison finds, whatever was added, deleted and asked among."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ctxbench.harness.probes import checkpoint
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.strategies.tiers.rag.vectors import Graph, Index, Vectors
from tests.examples import examples

DIMENSION = 8
needs_hnswlib = pytest.mark.skipif(find_spec("hnswlib") is None, reason="needs hnswlib")
INDEXES = ["exact", pytest.param("hnsw", marks=needs_hnswlib)]


def unit(count: int, seed: int = 0, dimension: int = DIMENSION) -> NDArray[np.float32]:
    made = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("index", INDEXES)
@given(data=st.data())
@examples(15)
def test_finds_the_nearest(index: Index, data: st.DataObject) -> None:
    """Always `k` of those that are there, and here, where all are few, always the nearest."""
    pool = unit(12)  # few different ones: equal vectors are common
    store, there = Vectors(DIMENSION, index), dict[int, NDArray[np.float32]]()
    came = 0
    for size, gone in data.draw(st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 40))), max_size=6)):
        new = [data.draw(st.integers(0, 11)) for _ in range(size)]
        store.add(np.arange(came, came + size), pool[new])
        there |= {came + at: pool[each] for at, each in enumerate(new)}
        came += size
        store.delete(np.array(sorted(gone), np.int64))
        there = {number: vector for number, vector in there.items() if number not in gone}
    assert len(store) == len(there)
    assert store.different == len({vector.tobytes() for vector in there.values()})
    query, k = unit(1, 99)[0], data.draw(st.integers(1, 8))
    found = store.search(query, k)
    assert set(found.numbers.tolist()) <= set(there)
    best = sorted((round(float(vector @ query), 4) for vector in there.values()), reverse=True)[:k]
    assert found.scores.round(4).tolist() == pytest.approx(best, abs=2e-4)
    exact = [float(there[number] @ query) if number in there else -1.0 for number in range(40)]
    assert store.score(query, np.arange(40)) == pytest.approx(exact, abs=1e-5)


@needs_hnswlib
def test_recall_among_many() -> None:
    """A graph over 3 000 vectors misses few of the nearest, also with a fifth deleted."""
    vectors, queries = unit(3000, dimension=16), unit(50, 1, 16)
    store = Vectors(16, "hnsw", Graph(links=8, construction=40, search=40))
    store.add(np.arange(3000), vectors)
    for start in (0, 600):
        store.delete(np.arange(start))
        hits = 0
        for query in queries:
            best = set((start + np.argsort(-(vectors[start:] @ query))[:10]).tolist())
            hits += len(best & set(store.search(query, 10).numbers.tolist()))
        assert hits / 500 > 0.9


@pytest.mark.parametrize("index", INDEXES)
def test_a_copy_goes_on_alone(index: Index) -> None:
    """A strategy is put back after a probe: what was added and deleted since is taken back."""
    vectors, store = unit(40), Vectors(DIMENSION, index)
    store.add(np.arange(20), vectors[:20])
    before, restore = store.search(vectors[3], 5), checkpoint(store.search, None)
    for _ in range(2):
        store.delete(np.arange(10))
        store.add(np.arange(20, 40), vectors[20:])
        assert 3 not in store.search(vectors[3], 20).numbers
        restore()
        after = store.search(vectors[3], 5)
        assert (after.numbers.tolist(), after.scores.tolist()) == (before.numbers.tolist(), before.scores.tolist())


@pytest.mark.parametrize("index", INDEXES)
def test_equal_vectors_do_not_hide_others(index: Index) -> None:
    """Thousands of equal vectors among others: the others are found, and of the equal ones the newest first."""
    vectors = unit(300, dimension=16)
    every = np.concatenate((np.repeat(vectors[:1], 2000, axis=0), vectors))
    store = Vectors(16, index, Graph(links=8, construction=40, search=64))
    store.add(np.arange(2300), every)
    assert store.different == 300
    assert all(store.search(vectors[at], 1).numbers.tolist() == [2000 + at] for at in range(300))
    assert store.search(vectors[0], 3).numbers.tolist() == [2000, 1999, 1998]


def test_without_hnswlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that brings it is named; exact search needs none."""
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with pytest.raises(MissingExtra, match=r"ctxbench\[hnswlib\]"):
        Vectors(DIMENSION, "hnsw")

"""The entity graph: what an entity is, and that the walk is personalised PageRank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ctxbench.strategies.tiers.rag.graph import EntityGraph, entities
from tests.examples import examples

NAMES = [f"ent{letter}x" for letter in "abcdefg"]


def test_entities() -> None:
    """Values as they are compared, names with their parts, Chinese nouns, then content words."""
    names = ("ab-1234", "45000", "anna berg", "anna", "berg", "ticket", "ab", "1234", "cost", "45,000")
    assert entities("Ticket AB-1234 cost $45,000 for Anna Berg.") == names
    assert entities("我们下周搬到新办公室")[0] == "办公室"
    assert "paint" in entities("she painted it")
    assert entities("") == ()


def dense(texts: list[list[str]], query: list[str], restart: float) -> NDArray[np.float64]:
    """Personalised PageRank by its definition: the stationary distribution, by 200 steps of the whole matrix."""
    names = sorted({name for text in texts for name in text})
    size = len(texts) + len(names)
    step = np.zeros((size, size))
    for at, text in enumerate(texts):
        for name in set(text):
            step[at, len(texts) + names.index(name)] = step[len(texts) + names.index(name), at] = 1
    having = step.sum(axis=1)[len(texts) :]
    step /= np.maximum(step.sum(axis=1, keepdims=True), 1)
    start = np.zeros(size)
    for name in set(query) & set(names):
        df = having[names.index(name)]
        start[len(texts) + names.index(name)] = np.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
    if not start.any():
        return np.zeros(len(texts))
    start /= start.sum()
    found = start
    for _ in range(200):
        found = restart * start + (1 - restart) * found @ step
    return found[: len(texts)]


@given(
    texts=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), min_size=1, max_size=12),
    query=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
)
@examples(30)
def test_is_personalised_pagerank(texts: list[list[str]], query: list[str]) -> None:
    """Pushed to a fine precision, every score is that of the definition."""
    graph = EntityGraph(precision=1e-12)
    for text in texts:
        graph.add(" ".join(text))
    found = graph.score(" ".join(query), np.arange(len(texts)))
    assert found == pytest.approx(dense(texts, query, 0.5), abs=1e-8)


def test_reaches_over_what_is_shared() -> None:
    """A text that shares nothing with the question is found over one that shares something with both."""
    graph = EntityGraph()
    for text in ("Anna Berg rents the cabin", "The cabin is in Lofoten", "Quarterly figures are due"):
        graph.add(text)
    assert graph.search("Anna", 5).numbers.tolist() == [0, 1]
    graph.delete(0)
    assert graph.search("Anna", 5).numbers.tolist() == []

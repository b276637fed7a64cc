"""TF-IDF: against scikit-learn on the same words, whatever is added when; and what is best of scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.rows import Rows
from ctxbench.metrics.tfidf import TfIdf, best

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "你好", "世界"]), max_size=8)


@given(batches=st.lists(st.lists(WORDS, max_size=4), min_size=1, max_size=4), query=WORDS)
def test_it_is_scikit_learn_s(batches: list[list[list[str]]], query: list[str]) -> None:
    """After each batch of documents the cosines are those of a TfidfVectorizer fitted on all documents so far."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    index, said = TfIdf(), []
    for batch in batches:
        index.add(batch)
        said += batch
        found = index.cosine(query)
        assert found.shape == (len(said),) == (len(index),)
        if not any(said):
            assert not found.any()
            continue
        fitted = TfidfVectorizer(analyzer=lambda words: words)
        vectors = fitted.fit_transform(said).toarray()
        assert np.allclose(found, vectors @ fitted.transform([query]).toarray()[0], atol=1e-12)


def test_by_hand() -> None:
    """Two documents: a word in both has idf 1, a word in one ln(3/2) + 1."""
    index = TfIdf()
    index.add([["pytest", "tests"], ["docker", "tests"]])
    rare = math.log(3 / 2) + 1
    assert index.cosine(["pytest"]) == pytest.approx([rare / math.hypot(rare, 1), 0])
    assert index.overlap(["pytest", "tests"]) == pytest.approx([1, 1 / (1 + rare)])


def test_overlap_counts_words_that_nobody_knows() -> None:
    """The share is of all words asked for: unknown ones weigh the most and are in no document."""
    index = TfIdf()
    assert index.overlap(["a"]).tolist() == []
    index.add([["a"], []])
    assert index.overlap([]).tolist() == index.overlap(["b"]).tolist() == [0, 0]
    known, unknown = math.log(3 / 2) + 1, math.log(3) + 1
    assert index.overlap(["a", "b", "a"]) == pytest.approx([known / (known + unknown), 0])


@given(scores=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=12), most=st.integers(0, 14))
def test_best_is_a_sort(scores: list[float], most: int) -> None:
    """The highest first, and of equal ones the later, as a full sort has it."""
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], -at))
    assert best(np.array(scores), most) == order[:most]


def test_rows_grow() -> None:
    """Rows keep what was added, over the room that they began with."""
    rows: Rows[np.float32] = Rows(np.float32, 3)
    blocks = [np.full((size, 3), size, np.float32) for size in (1, 60, 0, 200)]
    for block in blocks:
        rows.add(block)
    assert np.array_equal(rows.all, np.concatenate(blocks))


BATCHES = st.lists(WORDS, max_size=3)


@given(st.lists(BATCHES, max_size=4), st.lists(BATCHES, max_size=4), st.lists(BATCHES, max_size=4))
def test_additions_are_taken_back(
    before: list[list[list[str]]], asked: list[list[list[str]]], after: list[list[list[str]]]
) -> None:
    """An index that is put back, however often, and added to is what it would be had nothing been added in between."""
    index, alone = TfIdf(), TfIdf()
    for some in before:
        index.add(some)
    index.cosine(["a"])
    restore = index.checkpoint()
    for _ in range(2):
        for some in asked:
            index.add(some)
            index.cosine(["a"])
        restore()
    for some in after:
        index.add(some)
    for some in (*before, *after):
        alone.add(some)
    for query in (["a"], ["b", "a", "世界"], ["g", "never"]):
        assert index.overlap(query).tolist() == alone.overlap(query).tolist()
        assert index.cosine(query).tolist() == alone.cosine(query).tolist()

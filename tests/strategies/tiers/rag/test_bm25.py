"""BM25 that is added to and deleted from: at every moment what bm25s finds in an index made anew."""

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.language import terms
from ctxbench.strategies.tiers.rag.postings import Bm25
from tests.examples import examples

WORDS = [f"word{letter}" for letter in "abcdefghij"]
changes = st.lists(st.one_of(st.lists(st.sampled_from(WORDS), max_size=6), st.integers(0, 30)), min_size=1, max_size=40)
"""A list of words is a text to add, a number deletes the text that stands there then."""


def made(steps: list[list[str] | int]) -> tuple[Bm25, dict[int, str]]:
    index, there, came = Bm25(), dict[int, str](), 0
    for step in steps:
        if isinstance(step, list):
            there[came] = " ".join(step)
            index.add(there[came])
            came += 1
        elif there:
            number = list(there)[step % len(there)]
            del there[number]
            index.delete(number)
    return index, there


@given(steps=changes, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
@examples(100)
def test_equals_bm25s_made_anew(steps: list[list[str] | int], query: list[str]) -> None:
    """After any additions and deletions, scores are those of bm25s over the texts that are left."""
    index, there = made(steps)
    tokens = [terms(text) for text in there.values()]
    if not any(tokens):
        assert len(index.search(" ".join(query), 5).numbers) == 0
        return
    reference = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    reference.index(tokens, show_progress=False)
    known = [term for term in dict.fromkeys(terms(" ".join(query))) if term in reference.vocab_dict]
    expected = reference.get_scores(known) if known else np.zeros(len(there))
    found = index.score(" ".join(query), np.array(list(there)))
    assert found == pytest.approx(expected, abs=1e-5)


def test_by_hand() -> None:
    """Three texts: the rarer word weighs more, the shorter text wins, equal ones come the later first."""
    index = Bm25()
    for text in ("apple pear", "apple", "apple", "quince pear plum"):
        index.add(text)
    assert index.search("apple", 5).numbers.tolist() == [2, 1, 0]
    assert index.search("apple quince", 1).numbers.tolist() == [3]

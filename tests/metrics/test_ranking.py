"""Rankings against evidence: worked by hand, and against the textbook formulas."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.probes import MEASURES, ranked


def test_by_hand() -> None:
    """b at 1 and a at 3 of {a, b}: half is found at 1, all at 5; gain 1 + ½ of 1 + 1/log₂3."""
    [found] = ranked([["b", "c", "a"]], [{"a", "b"}])
    assert found == pytest.approx(
        {"recall@1": 0.5, "recall@5": 1.0, "recall@10": 1.0, "nDCG@10": 1.5 / (1 + 1 / math.log2(3)), "MRR": 1.0}
    )


def test_nothing_recalled_scores_nothing() -> None:
    """It is a zero, measured: the strategy recalls, and recalled nothing here."""
    assert ranked([[], ["x"]], [{"a"}, {"x"}]) == [dict.fromkeys(MEASURES, 0.0), dict.fromkeys(MEASURES, 1.0)]
    assert ranked([[]], [{"a"}]) == [dict.fromkeys(MEASURES, 0.0)]


NAMES = st.sampled_from([f"D{at}:{at}" for at in range(14)])


@given(
    st.lists(st.tuples(st.lists(NAMES, unique=True), st.sets(NAMES, min_size=1, max_size=4)), min_size=1, max_size=6)
)
def test_the_textbook_formulas(questions: list[tuple[list[str], set[str]]]) -> None:
    """Recall, nDCG with binary gains, and reciprocal rank as any textbook has them."""
    for found, (ranking, relevant) in zip(ranked(*map(list, zip(*questions, strict=True))), questions, strict=True):  # type: ignore[arg-type]
        hits = [name in relevant for name in ranking]
        gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits[:10]))
        best = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
        assert found == pytest.approx(
            {
                **{f"recall@{k}": sum(hits[:k]) / len(relevant) for k in (1, 5, 10)},
                "nDCG@10": gain / best,
                "MRR": 1 / (hits.index(True) + 1) if any(hits) else 0.0,
            }
        )

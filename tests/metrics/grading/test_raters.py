"""Raters among themselves: by hand, and against statsmodels and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.grading.agreement import Raters, raters
from ctxbench.metrics.value import Missing
from tests.examples import examples

VOTES = st.lists(st.tuples(*[st.integers(1, 4)] * 3), min_size=2, max_size=20)


def rated(votes: list[tuple[int, ...]]) -> Raters:
    found = raters(votes, [3] * len(votes), [f"q{at}" for at in range(len(votes))], resamples=10)
    assert found is not None
    return found


def test_by_hand() -> None:
    """Two raters, four answers, one disputed: 6 of 8 pairs agree, 34/64 by chance, so kappa is 7/15."""
    found = rated([(4, 4), (3, 4), (1, 2), (4, 1)])
    assert found.same == pytest.approx(0.75)
    assert found.verdicts.value == pytest.approx((0.75 - 34 / 64) / (1 - 34 / 64))
    assert found.raters == (2, 2)


@examples(40)
@given(VOTES)
def test_of_equally_many_raters(votes: list[tuple[int, int, int]]) -> None:
    """Kappa of the verdicts is Fleiss' kappa of statsmodels."""
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    right = [sum(vote >= 3 for vote in each) for each in votes]
    found = rated(list(votes)).verdicts.value
    if isinstance(found, Missing):
        assert len(set(right)) == 1
    else:
        assert found == pytest.approx(inter_rater.fleiss_kappa(np.array([[each, 3 - each] for each in right])))


def test_answers_with_one_rater() -> None:
    """They say nothing of agreement and are left out; if there are no others, there is none."""
    with_one = [(4, 4), (1,), (1, 2), (), (4, 3, 1)]
    assert rated(with_one) == rated([(4, 4), (1, 2), (4, 3, 1)])
    assert rated(with_one).answers == 3
    assert rated(with_one).raters == (2, 3)
    assert raters([(4,), (1,)], [3, 3], ["a", "b"]) is None

"""Thresholds and the area under the curve, against an obvious version."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.grading.agreement import FIGURES, Verdicts, auc_of, best_threshold, figures, halves

SCORED = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30)


def verdicts(scored: list[tuple[bool, int]]) -> Verdicts:
    people, score = zip(*scored, strict=True)
    return Verdicts.of(people, [each > 0 for each in score], score, [str(at) for at in range(len(scored))])


@given(SCORED, st.sampled_from(["accuracy", "kappa"]))
def test_the_best_threshold(scored: list[tuple[bool, int]], figure: str) -> None:
    """No other threshold has a higher figure; of equals it is the strictest."""
    given, at = verdicts(scored), FIGURES.index(figure)
    tried = [-math.inf, *sorted({score - 0.5 for _, score in scored}), math.inf]
    values = [float(figures(given.at(each).cells().sum(axis=0))[at]) for each in tried]
    found = best_threshold(given, figure)
    if found is None:
        assert all(map(math.isnan, values))
    else:
        value = figures(given.at(found).cells().sum(axis=0))[at]
        assert value == pytest.approx(np.nanmax(values))
        strictest = max(each for each, tried_value in zip(tried, values, strict=True) if tried_value >= value - 1e-12)
        assert strictest >= found - 3


@given(SCORED, st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_the_area_of_a_resample(scored: list[tuple[bool, int]], weights: list[int]) -> None:
    """Under weights it is that of the answers repeated as often: pairs of a right and a wrong one, ties half."""
    drawn = [one for one, times in zip(scored, weights, strict=False) for _ in range(times)]
    pairs = [(a > b) + (a == b) / 2 for right, a in drawn if right for wrong, b in drawn if not wrong]
    order = sorted(range(len(scored)), key=str)  # questions are numbered by name
    area = auc_of(verdicts(scored))(np.array([[weights[at] for at in order]], dtype=np.float64))
    assert area.shape == (1, 1)
    assert area[0, 0] == pytest.approx(np.mean(pairs)) if pairs else math.isnan(area[0, 0])


def test_halves() -> None:
    """A question is in the same half whatever stands beside it; another seed divides otherwise; both are about half."""
    names = [f"q{at}" for at in range(1000)]
    first = halves(names)
    assert (halves(names[::-1])[::-1] == first).all()
    assert 450 < first.sum() < 550
    assert (halves(names, seed=1) != first).any()

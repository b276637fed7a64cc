"""The area under the ROC curve, against an obvious version."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.grading.agreement import Verdicts, auc_of

SCORED = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30)


def verdicts(scored: list[tuple[bool, int]]) -> Verdicts:
    people, score = zip(*scored, strict=True)
    return Verdicts.of(people, [each > 0 for each in score], score, [str(at) for at in range(len(scored))])


@given(SCORED, st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_the_area_of_a_resample(scored: list[tuple[bool, int]], weights: list[int]) -> None:
    """Under weights it is that of the answers repeated as often: pairs of a right and a wrong one, ties half."""
    drawn = [one for one, times in zip(scored, weights, strict=False) for _ in range(times)]
    pairs = [(a > b) + (a == b) / 2 for right, a in drawn if right for wrong, b in drawn if not wrong]
    order = sorted(range(len(scored)), key=str)  # questions are numbered by name
    area = auc_of(verdicts(scored))(np.array([[weights[at] for at in order]], dtype=np.float64))
    assert area.shape == (1, 1)
    assert area[0, 0] == pytest.approx(np.mean(pairs)) if pairs else math.isnan(area[0, 0])

"""Corrected accuracy: by hand, against published arithmetic, and by simulation."""

import numpy as np
import pytest

from ctxbench.metrics.grading.agreement import Known, Verdicts, agreement, corrected
from ctxbench.metrics.value import Missing


def test_by_hand() -> None:
    """Of 100 answers 80 are right; a grader that finds 9 of 10, and rejects 3 of 4 wrong ones, calls 77 right."""
    found = corrected(0.77, 100, Known(0.9, 400, 0.75, 200))
    assert found.value == pytest.approx(0.8)
    low, high = found.interval  # type: ignore[misc]
    assert low < 0.8 < high


def test_the_interval_of_the_paper() -> None:
    """Lang and Reiczigel's formula, worked step by step with other variable names."""
    z, n, seen = 1.959964, 150 + 1.959964**2, (23 + 1.959964**2 / 2) / (150 + 1.959964**2)
    se, sp = (0.96 * 50 + 1) / 52, (0.89 * 100 + 1) / 102
    p = (seen + sp - 1) / (se + sp - 1)
    vs, vp = se * (1 - se) / 52, sp * (1 - sp) / 102
    middle = p + 2 * z * z * (p * vs - (1 - p) * vp)
    half = z * (seen * (1 - seen) / n + p * p * vs + (1 - p) ** 2 * vp) ** 0.5 / (se + sp - 1)
    found = corrected(23 / 150, 150, Known(0.96, 50, 0.89, 100))
    assert found.value == pytest.approx(0.0510, abs=1e-4)
    assert found.interval == pytest.approx((max(0.0, middle - half), middle + half), abs=1e-6)


@pytest.mark.parametrize("known", [Known(0.5, 100, 0.5, 100), Known(0.3, 100, 0.4, 100)])
def test_a_grader_no_better_than_chance(known: Known) -> None:
    """Its verdicts say nothing, and so does the correction."""
    found = corrected(0.6, 100, known)
    assert isinstance(found.value, Missing)
    assert "no better than chance" in found.value.detail


def test_what_cannot_be() -> None:
    """A share lower than a grader's false positives alone would make it is corrected to 0, never below; of no answers
    nothing is known."""
    found = corrected(0.05, 100, Known(0.9, 100, 0.8, 100))
    assert found.value == 0.0
    assert found.interval[0] == 0.0  # type: ignore[index]
    assert isinstance(corrected(0.0, 0, Known(0.9, 100, 0.8, 100)).value, Missing)


def test_a_calibration_of_one_class() -> None:
    """Without a wrong answer among the labelled ones the specificity is missing, and nothing can be corrected."""
    found = Known.of(agreement(Verdicts.of([True] * 40, [True] * 40, [1.0] * 40, [str(at) for at in range(40)])))
    assert found == Missing("undefined", "people call no answer wrong")


def test_coverage_where_answers_go_together() -> None:
    """Five answers to each of 60 questions, alike in what the grader makes of them: the design effect keeps 93 %."""
    random, questions, systems = np.random.default_rng(2), 60, 5
    hits = plain = 0
    code = np.repeat(np.arange(questions), systems).astype(np.intp)
    for _ in range(1000):
        people = random.random((questions, systems)) < random.beta(3, 2, (questions, 1))
        graded_right = random.random((questions, systems)) < random.beta(4.25, 0.75, (questions, 1))
        graded_wrong = random.random((questions, systems)) < random.beta(1, 4, (questions, 1))
        grader = np.where(people, graded_right, graded_wrong).ravel()
        found = agreement(Verdicts(people.ravel(), grader, grader.astype(float), code), resamples=1)
        known = Known.of(found)
        assert isinstance(known, Known)
        called = random.binomial(3000, 0.7 * 0.85 + 0.3 * 0.2) / 3000
        low, high = corrected(called, 3000, known).interval  # type: ignore[misc]
        hits += low <= 0.7 <= high
        alone = Known(known.recall, found.confusion.right, known.specificity, found.confusion.wrong)
        low, high = corrected(called, 3000, alone).interval  # type: ignore[misc]
        plain += low <= 0.7 <= high
    assert hits >= 930 > plain  # the second as if every answer had a question of its own

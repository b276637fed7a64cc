"""Student's t, Holm's correction and intervals of shares: against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ctxbench.metrics.statistics.comparison import holm
from ctxbench.metrics.statistics.intervals import Ends, Interval, of_seeds, of_share, p_value, wilson
from ctxbench.metrics.value import Missing


@pytest.mark.parametrize("size", [2, 3, 5, 12, 31, 40, 100])
def test_intervals_are_those_of_student(size: int) -> None:
    """Against scipy's."""
    values = np.random.default_rng(size).random(size)
    found = of_seeds(values.tolist())
    assert isinstance(found, Interval)
    low, high = stats.t.interval(0.95, size - 1, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_what_is_missing_stays_missing() -> None:
    """In one of the seeds, or if there is one only: never a number."""
    gone = Missing("undefined", "no access counts")
    assert of_seeds([0.5, gone]) == gone
    single = of_seeds([0.5])
    assert isinstance(single, Interval)
    assert isinstance(single.low, Missing)
    assert isinstance(of_seeds([]), Missing)


def test_p_values_are_those_of_the_paired_test() -> None:
    """Against scipy's paired t-test."""
    random = np.random.default_rng(6)
    before = random.normal(0, 1, 18)
    after = before + random.normal(0.2, 0.5, 18)
    moved = after - before
    error = float(stats.sem(moved))
    assert p_value(moved.mean(), error, 17) == pytest.approx(stats.ttest_rel(after, before).pvalue)


def test_without_spread() -> None:
    """All conversations moved by the same, or none did: certain either way."""
    assert p_value(0.0, 0.0, 9) == 1
    assert p_value(0.1, 0.0, 9) == 0


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_holm_is_that_of_statsmodels(size: int) -> None:
    """In the order given, equal ones among them."""
    p_values = np.random.default_rng(size).beta(0.3, 2, size).round(3).tolist()
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_holm_by_hand() -> None:
    """.01 of four counts four times, .02 three times, .03 twice; none less than the one before."""
    assert holm([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([]) == []


def test_nothing_in_every_conversation_is_not_certain() -> None:
    """0 of 10 conversations may be up to 28 % of all, 10 of 10 down to 72 %; never "0.0 to 0.0"."""
    assert of_share(0.0, Ends(0, 0), 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert of_share(1.0, Ends(1, 1), 10) == pytest.approx((0.7225, 1), abs=1e-4)


def test_no_share_is_below_0_or_above_1() -> None:
    """Student's ends are cut; others stay; what is missing stays missing."""
    assert of_share(0.1, Ends(-0.05, 0.3), 10) == (0, 0.3)
    assert of_share(0.9, Ends(0.7, 1.1), 10) == (0.7, 1)
    none = Missing("undefined", "one conversation")
    assert of_share(0.0, none, 1) == none
    assert isinstance(wilson(0, 0), Missing)

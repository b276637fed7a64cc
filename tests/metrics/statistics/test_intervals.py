"""Student's t, Holm's correction and intervals of shares: against scipy and statsmodels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ctxbench.metrics.statistics.comparison import holm
from ctxbench.metrics.statistics.intervals import (
    Ends,
    Interval,
    clopper_pearson,
    enough,
    mean_of,
    of_change,
    of_events,
    of_seeds,
    of_share,
    over_units,
    p_value,
)
from ctxbench.metrics.value import Missing


@pytest.mark.parametrize("size", [2, 3, 12, 100])
def test_intervals_of_seeds_are_those_of_student(size: int) -> None:
    """Against scipy's; those of conversations are cut to the least and the greatest, and fewer have their range."""
    values = np.random.default_rng(size).random(size)
    found, cut = of_seeds(values.tolist()), of_seeds(values.tolist(), 8)
    assert isinstance(found, Interval)
    assert isinstance(cut, Interval)
    low, high = stats.t.interval(0.95, size - 1, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    across = Ends(values.min(), values.max())
    if size < 8:
        assert cut.low == cut.high == Missing("few", f"{size} independent conversations are too few", across)
    else:
        assert (cut.low, cut.high) == (pytest.approx(max(low, across.low)), pytest.approx(min(high, across.high)))


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


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_holm_is_that_of_statsmodels(size: int) -> None:
    """In the order given, equal ones among them."""
    p_values = np.random.default_rng(size).beta(0.3, 2, size).round(3).tolist()
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_nothing_in_every_conversation_is_not_certain() -> None:
    """0 of 8 may be 31 % (one-sided, at 95 %), and 59 conversations are needed for 5 %; 3 of 20 is scipy's; answers of
    conversations that differ in length, or agree among themselves, are worth fewer."""
    for size, end in ((8, 0.3123), (59, 0.0495)):
        assert of_share(np.zeros(size), np.ones(size), 0.9) == pytest.approx((0, end), abs=1e-4)
        assert of_share(np.ones(size), np.ones(size), 0.9) == pytest.approx((1 - end, 1), abs=1e-4)
    hits = np.repeat([1.0, 0.0], [3, 17])
    exact = stats.binomtest(3, 20).proportion_ci(method="exact")
    assert of_share(hits, np.ones(20)) == pytest.approx((exact.low, exact.high))
    assert of_share(10 * hits, np.full(20, 10.0)) == pytest.approx((exact.low, exact.high))
    assert of_share(np.zeros(8), np.array([8.0] + [1] * 7), 0.9).high > 0.5
    assert clopper_pearson(0, 10).high == pytest.approx(stats.beta.ppf(0.975, 1, 10))


def test_rare_events_are_poisson() -> None:
    """None in 20 conversations may be 3.0 (one-sided, at 95 %); one each in 5 is scipy's; 5 in one says less."""
    assert of_events(np.zeros(20), 0.9) == pytest.approx((0, 2.9957), abs=1e-4)
    single = of_events(np.repeat([1.0, 0.0], [5, 15]))
    assert single == pytest.approx((stats.chi2.ppf(0.025, 10) / 2, stats.chi2.ppf(0.975, 12) / 2))
    assert of_events(np.array([5.0, 0, 0])).high > single.high


def test_a_paired_difference_of_shares_is_joined() -> None:
    """Newcombe's distances of what rose and what fell, each exact: 3 of 40 rose, 1 of 40 fell."""
    moved = np.repeat([1.0, -1.0, 0.0], [3, 1, 36])
    rose, fell = (stats.binomtest(hits, 40).proportion_ci() for hits in (3, 1))
    low = 0.05 - np.hypot(3 / 40 - rose.low, fell.high - 1 / 40)
    high = 0.05 + np.hypot(rose.high - 3 / 40, 1 / 40 - fell.low)
    assert of_change(0.05, moved, np.ones(40)) == pytest.approx((low, high))
    still = of_change(0.0, np.zeros(40), None, 0.9)
    assert still == pytest.approx((-2.9957, 2.9957), abs=1e-4)


def test_few_units_have_no_interval() -> None:
    """Seven, and eight of which one has more than a third, in any column; a ratio of amounts takes 15,
    and a mean of them 30."""
    assert enough(np.ones(8)) is None
    assert enough(np.array([3.0, 1, 1, 1, 1, 1, 1, 1])) is None
    assert enough(np.ones(7), Ends(0.0, 2.0)) == Missing("few", "7 independent conversations are too few", (0.0, 2.0))
    assert enough(np.array([[1.0, 6]] + [[1, 1]] * 7)) == Missing("few", "one conversation is 46 % of the whole")
    table = np.column_stack([np.arange(1.0, 30), np.ones(29)])
    assert over_units(table, mean_of, 0.0).low == Missing(
        "few", "29 independent conversations are too few", (1.0, 29.0)
    )
    for size, kind in ((14, Missing), (15, float)):
        assert isinstance(over_units(table[:size, ::-1], mean_of, 0.0).low, kind)


lopsided = st.sampled_from([0.0, 1, 2, 3, 10, 1e3, 1e6, 1e9])


@given(st.lists(st.tuples(lopsided, lopsided), min_size=1, max_size=17), st.sampled_from(["mean", "share", "ratio"]))
def test_no_interval_leaves_what_a_resample_can_reach(rows: list[tuple[float, float]], kind: str) -> None:
    """Of any mean and ratio, which lies within its units'; a share lies within 0 and 1, and none is of few units."""
    table = np.array(rows) + [0, 1]
    table[:, 1] = 1 if kind == "mean" else table[:, 1]
    table[:, 0] = np.minimum(*table.T) if kind == "share" else table[:, 0]
    found = over_units(table, mean_of, 0.0, *[1.0] * (kind == "share"), draws=100)
    weights = table[:, 0] if kind == "mean" else table[:, 1]
    if len(rows) < 8 or weights.max() > sum(weights) / 3 + 1e-6:
        assert isinstance(found.low, Missing)
        assert found.low.across == pytest.approx((min(table[:, 0] / table[:, 1]), max(table[:, 0] / table[:, 1])))
    elif not isinstance(found.low, Missing):
        least, most = (0, 1) if kind == "share" else (min(table[:, 0] / table[:, 1]), max(table[:, 0] / table[:, 1]))
        slack = 1e-9 * max(1, most)
        assert least - slack <= found.low <= found.mean + slack  # type: ignore[operator]
        assert found.mean - slack <= found.high <= most + slack  # type: ignore[operator]

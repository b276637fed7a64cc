"""Intervals by drawing conversations: against scipy's, by hand, and how often they hold what they should."""

import numpy as np
import pytest
from scipy import stats

from ctxbench.metrics.statistics.intervals import Interval, Resampled, by_unit, interval, mean_of, resampled
from ctxbench.metrics.value import Missing


def made(sums: object, statistic: object = mean_of, **how: int) -> Resampled:
    found = resampled(np.asarray(sums, float), statistic, **how)  # type: ignore[arg-type]
    assert isinstance(found, Resampled)
    return found


def test_bca_is_that_of_scipy() -> None:
    """On skewed sums and on ratios, up to what the draws differ; without the levels that are our own."""
    random = np.random.default_rng(4)
    sums = np.column_stack([random.exponential(2, 25), random.integers(1, 9, 25)])

    def ratio(top: np.ndarray, bottom: np.ndarray, axis: int) -> np.ndarray:
        return top.sum(axis) / bottom.sum(axis)

    theirs = stats.bootstrap(
        tuple(sums.T), ratio, paired=True, n_resamples=40_000, method="BCa", vectorized=True, rng=1
    )
    ours = made(sums, draws=40_000)
    spread = ours.error
    assert ours.bca(1.959964) == pytest.approx(theirs.confidence_interval, abs=0.03 * spread)


def test_error_is_that_of_the_textbook() -> None:
    """Of a mean, the jackknife's error is the standard error of the mean."""
    values = np.random.default_rng(1).random(17)
    assert made(np.column_stack([values, np.ones(17)])).error == pytest.approx(stats.sem(values))


def test_units_are_drawn_whole() -> None:
    """What is added up by unit is a row of the bootstrap. Where every conversation is a unit, not a digit changes."""
    sums = np.random.default_rng(7).random((12, 2))
    assert (by_unit(sums, range(12)) == sums).all()
    assert made(by_unit(sums, range(12))).interval() == made(sums).interval()
    twins = by_unit(np.vstack([sums, sums]), [*range(12), *range(12)])
    assert made(twins).interval() == pytest.approx(made(sums).interval())
    assert by_unit(np.array([[1.0, 2], [3, 4], [5, 6]]), ["b", "a", "b"]).tolist() == [[6, 8], [3, 4]]
    assert by_unit(np.zeros((0, 2)), []).shape == (0, 2)


def test_large_samples_are_drawn_in_blocks() -> None:
    """Of 3,000 conversations the interval is that of the normal distribution, and of the same draws each time."""
    values = np.random.default_rng(3).random(3000)
    sums = np.column_stack([values, np.ones(3000)])
    found = made(sums)
    assert found.interval() == pytest.approx(stats.norm.interval(0.95, values.mean(), stats.sem(values)), abs=5e-4)
    assert made(sums).interval() == found.interval()


def test_no_interval() -> None:
    """One conversation has a mean and no interval; no values have neither; a ratio of nothing has none."""
    found = interval([0.0, 1.0], ["a", "a"])
    assert isinstance(found, Interval)
    assert found.mean == 0.5
    assert found.low == Missing("few", "one conversation is too few", (0.5, 0.5))
    assert isinstance(interval([], []), Missing)
    assert isinstance(resampled(np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]), mean_of), Missing)


def test_constant_data_has_no_width() -> None:
    """Every draw is the same, up to the last digit of a sum."""
    found = interval([0.1] * 30, range(30))
    assert isinstance(found, Interval)
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_what_is_no_number_is_refused() -> None:
    """By its place: a missing value has no number that stands for it."""
    with pytest.raises(ValueError, match=r"values\[1\] is nan: not a finite number"):
        interval([0.5, float("nan")], "ab")


def test_freedom() -> None:
    """As many degrees as conversations less one where they are alike; few where one has most of the figure."""
    assert made(np.column_stack([np.arange(10.0), np.ones(10)])).freedom == 9
    assert made(np.column_stack([[10.0, *[1.0] * 9], np.ones(10)])).freedom == pytest.approx(1.64, abs=0.01)


def test_amounts_may_be_log_normal() -> None:
    """The upper end is Cox's of the half above the median, within the largest: of e^-1, 1, e (32 times) Σ above² is 32,
    σ² 2 · 32 / 95, and σ²/2 + t · √(σ²/96 + σ⁴/190) .337 + 1.985 · .097, so that it is 1 · e^.530."""
    sums = np.column_stack([np.exp([-1.0, 0, 1] * 32), np.ones(96)])
    found = made(sums)
    plain, amounts = found.interval(), found.interval(least=0.0, weights=np.ones(96))
    assert amounts.low == plain.low
    assert amounts.high == pytest.approx(np.exp(0.5294), abs=2e-3)
    few = made(sums[:8])
    assert few.interval(least=0.0, weights=np.ones(8)).high <= np.e

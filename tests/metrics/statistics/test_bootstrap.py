"""Intervals by drawing conversations: against scipy's, by hand, and how often they hold what they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ctxbench.metrics.statistics.intervals import Interval, Resampled, by_unit, interval, mean_of, resampled
from ctxbench.metrics.value import Missing


def made(sums: object, statistic: object = mean_of, **how: int) -> Resampled:
    found = resampled(np.asarray(sums, float), statistic, **how)  # type: ignore[arg-type]
    assert isinstance(found, Resampled)
    return found


def clusters(kind: str, size: int, random: np.random.Generator) -> tuple[np.ndarray, float]:
    """Conversations as (sum, weight), and the mean of those that there could be."""
    one = np.ones(size)
    match kind:
        case "normal":
            return np.column_stack([random.normal(1, 1, size), one]), 1.0
        case "exponential":
            return np.column_stack([random.exponential(1, size), one]), 1.0
        case "log-normal, σ = ½":
            return np.column_stack([random.lognormal(0, 0.5, size), one]), float(np.exp(0.125))
        case "probes":
            asked = random.integers(1, 15, size)
            return np.column_stack([random.binomial(asked, random.beta(4, 1.5, size)), asked]), 4 / 5.5
        case "steps":  # long conversations weigh more
            steps = np.maximum(random.lognormal(3, 1, size).round(), 1)
            return np.column_stack([random.binomial(steps.astype(int), random.beta(8, 2, size)), steps]), 0.8
        case _:  # "ratio, S, N": after over before, sizes of σ S, and noise of σ N
            sizes, noise = (float(sigma) for sigma in kind.removeprefix("ratio, ").split(", "))
            before = random.lognormal(0, sizes, size)
            return np.column_stack([before * random.lognormal(0, noise, size), before]), float(np.exp(noise**2 / 2))


SHARES = ("probes", "steps")
REACHED = (
    "normal",
    "exponential",
    "log-normal, σ = ½",
    *SHARES,
    "ratio, 0.5, 0.1",
    "ratio, 1.2, 0.1",
    "ratio, 1.2, 0.5",
)
"""Data of which 94 % are held from 10 conversations on."""


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


def test_conversations_are_drawn_whole() -> None:
    """Ten answers of two conversations that agree among themselves say less than ten of ten."""
    values = [1.0] * 5 + [0.0] * 5
    together, alone = interval(values, ["a"] * 5 + ["b"] * 5), interval(values, range(10))
    assert isinstance(together, Interval)
    assert isinstance(alone, Interval)
    assert together.mean == alone.mean == 0.5
    assert together.high - together.low > alone.high - alone.low  # type: ignore[operator]


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
    assert found.low == Missing("undefined", "one conversation")
    assert isinstance(interval([], []), Missing)
    assert isinstance(resampled(np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]), mean_of), Missing)


def test_constant_data_has_no_width() -> None:
    """Every draw is the same, up to the last digit of a sum."""
    found = interval([0.1] * 12, range(12))
    assert isinstance(found, Interval)
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_what_is_no_number_is_refused() -> None:
    """By its place: a missing value has no number that stands for it."""
    with pytest.raises(ValueError, match=r"values\[1\] is nan: not a finite number"):
        interval([0.5, float("nan")], "ab")


def coverage(kind: str, size: int, samples: int = 2000) -> float:
    """The share of samples whose interval holds what they were drawn from."""
    random = np.random.default_rng(11)
    least = -np.inf if kind in ("normal", *SHARES) else 0.0
    held = 0
    for _ in range(samples):
        sums, true = clusters(kind, size, random)
        low, high = made(sums, draws=1000).interval(least=least)
        held += low <= true <= high
    return held / samples


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 24, 100])
@pytest.mark.parametrize("kind", REACHED)
def test_coverage(kind: str, size: int) -> None:
    """Of 2,000 samples, 94 % have an interval that holds what they were drawn from, but for twice the error of 0.5."""
    assert coverage(kind, size) >= 0.93


def test_freedom() -> None:
    """As many degrees as conversations less one where they are alike; few where one has most of the figure. A log scale
    takes the upper end of what cannot be negative further up, and cuts the lower one."""
    even = made(np.column_stack([np.arange(10.0), np.ones(10)]))
    assert even.freedom == 9
    one = made(np.column_stack([[10.0, *[1.0] * 9], np.ones(10)]))
    assert one.freedom == pytest.approx(1.64, abs=0.01)
    plain, cut = one.interval(), one.interval(least=0.0)
    assert plain.low < 0 == cut.low
    assert even.interval(least=0.0).high > even.interval().high


def test_coverage_in_short() -> None:
    """The same of 150 samples of skewed data: BCa at the usual levels holds less than it says, ours does not."""
    random = np.random.default_rng(12)
    ours = plain = 0
    for _ in range(150):
        sums, true = clusters("exponential", 20, random)
        found = made(sums, draws=1000)
        low, high = found.interval()
        ours += low <= true <= high
        low, high = found.bca(1.959964)
        plain += low <= true <= high
    assert plain < ours
    assert ours / 150 >= 0.93

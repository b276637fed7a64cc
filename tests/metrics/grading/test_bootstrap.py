"""Intervals: against scipy's, by simulation, and where there can be none."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ctxbench.metrics.grading.agreement import figures, intervals
from ctxbench.metrics.value import Missing


def cells(questions: int, seed: int, systems: int = 3) -> NDArray[np.float64]:
    """Confusion matrices of questions whose answers go together."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet([3.0, 0.4, 0.8, 1.5], questions)
    return np.array([random.multinomial(systems, each) for each in shares], dtype=np.float64)


def test_as_scipy_has_it() -> None:
    """With many resamples the ends are those of scipy's BCa bootstrap."""
    stats = pytest.importorskip("scipy.stats")
    counts = cells(60, 3)

    def kappa(*columns: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        return figures(np.stack([each.sum(axis=axis) for each in columns], axis=-1))[..., 1]

    theirs = stats.bootstrap(
        tuple(counts.T), kappa, paired=True, vectorized=True, n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    ours = intervals(lambda weights: figures(weights @ counts), 60, resamples=20_000)[1]
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_figures_that_are_often_undefined() -> None:
    """Where only one question has a wrong answer, a third of the resamples has none: there is no interval."""
    counts = np.zeros((50, 4))
    counts[:, 0] = 1
    counts[0] = [0, 0, 0, 1]
    found = intervals(lambda weights: figures(weights @ counts), 50)
    assert isinstance(found[4], Missing)
    assert "undefined in" in found[4].detail

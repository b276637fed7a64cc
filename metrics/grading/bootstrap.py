"""Intervals of figures by a bootstrap over questions: BCa, seeded.

Questions are drawn with replacement, each with all its answers. Nothing is graded again: a resample is a weight for
each question, and a statistic takes the weights of many resamples at once.

Source: Efron 1987, "Better bootstrap confidence intervals"; the acceleration is from a jackknife by groups of
questions, of which there are at most `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..statistics.bootstrap import AT_ONCE, Ends, counts, of_draws
from ..value import Missing

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From weights, shape (resamples, questions), to figures, shape (resamples, figures); nan where one is undefined."""

RESAMPLES, SEED, LEVEL = 2000, 0, 0.95
FEWEST = 30
"""Questions that a bootstrap needs: with fewer its intervals are too short."""
GROUPS = 1000
_NORMAL = NormalDist()


def intervals(
    statistic: Statistic, size: int, resamples: int = RESAMPLES, seed: int = SEED, width: int = 0
) -> list[Ends | Missing]:
    """The interval of each figure, over `size` questions. `width`: numbers that the statistic makes of a resample."""
    if size < FEWEST:
        few = Missing("undefined", f"{size} questions are too few for an interval, {FEWEST} are needed")
        count = statistic(np.ones((1, size))).shape[1] if size else statistic(np.zeros((1, 0))).shape[1]
        return [few] * count
    drawn = np.concatenate([statistic(weights) for weights in counts(size, seed, resamples, width)])
    left = np.concatenate([statistic(weights) for weights in _left_out(size, max(1, AT_ONCE // max(size, width)))])
    whole = statistic(np.ones((1, size)))[0]
    return [_bca(drawn[:, at], left[:, at], float(whole[at])) for at in range(len(whole))]


def _left_out(size: int, rows: int) -> Iterator[NDArray[np.float64]]:
    """All questions but one group of them, group by group."""
    groups = min(size, GROUPS)
    group = np.arange(size) * groups // size
    for begin in range(0, groups, rows):
        some = np.arange(begin, min(begin + rows, groups))
        yield (group[None, :] != some[:, None]).astype(np.float64)


def _bca(drawn: NDArray[np.float64], left: NDArray[np.float64], whole: float) -> Ends | Missing:
    found = of_draws(whole, drawn, left[~np.isnan(left)])
    if isinstance(found, Missing):
        lost = np.count_nonzero(np.isnan(drawn))
        return Missing("undefined", f"it is undefined in {lost} of {len(drawn)} resamples")
    if found.drawn[0] == found.drawn[-1]:
        return Missing("undefined", "it is the same in every resample")
    return found.bca(_NORMAL.inv_cdf((1 + LEVEL) / 2))

"""The Pareto frontier of cost and quality: the alternatives worth choosing.

One alternative dominates another if it costs no more and is no worse, and is better in one of the two. The frontier is
the alternatives that nothing dominates; `beyond_noise` keeps of it what is surely better than all that is cheaper.
`how_often` tells from resamples of the independent units how sure it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
SEED = 0
_AT_ONCE = 4_000_000  # numbers in one table of draws, which bounds the memory

Floats = NDArray[np.float64]


class Point(NamedTuple):
    """One alternative."""

    cost: float
    quality: float

    def dominates(self, other: Point) -> bool:
        """Return whether the other is never the better choice."""
        return self != other and self.cost <= other.cost and self.quality >= other.quality


def frontier(points: Mapping[str, Point]) -> list[str]:
    """Return the names of the alternatives that nothing dominates, most expensive first."""
    best = [name for name, point in points.items() if not any(other.dominates(point) for other in points.values())]
    return sorted(best, key=lambda name: -points[name].cost)


def dominators(points: Mapping[str, Point]) -> dict[str, list[str]]:
    """Map each dominated alternative to those of the frontier that dominate it, cheapest first."""
    best = sorted(frontier(points), key=lambda name: points[name].cost)
    by_name = {name: [other for other in best if points[other].dominates(point)] for name, point in points.items()}
    return {name: dominating for name, dominating in by_name.items() if dominating}


class FrontierSums(NamedTuple):
    """Sums behind cost and quality: a row per independent unit, a column per alternative. Quality is got / wanted."""

    cost: Floats
    got: Floats
    wanted: Floats


class Resamples(NamedTuple):
    """Cost and quality in resamples of independent units: a row per resample, a column per alternative."""

    cost: Floats
    quality: Floats


def resampled(sums: FrontierSums, draws: int = DRAWS, seed: int = SEED) -> Resamples:
    """Draw resamples; none from fewer than two units. One in which nothing is wanted is left out."""
    units, alternatives = sums.cost.shape
    random = np.random.default_rng(seed)
    costs, qualities = [np.zeros((0, alternatives))], [np.zeros((0, alternatives))]
    for size in _batches(draws if units > 1 else 0, units):
        # How often each unit is drawn, without making the draws one by one.
        drawn = random.multinomial(units, np.full(units, 1 / units), size).astype(float)
        cost, got, wanted = (drawn @ part for part in sums)
        valid = (wanted > 0).all(axis=1)
        costs.append(cost[valid])
        qualities.append(got[valid] / wanted[valid])
    return Resamples(np.vstack(costs), np.vstack(qualities))


def how_often(resamples: Resamples) -> Floats:
    """Return the share of resamples in which each alternative is on the frontier; NaN where there are none."""
    draws, alternatives = resamples.cost.shape
    # Sums of the same numbers in another order differ in their last digit, and are the same cost.
    most = max(float(resamples.cost.max(initial=0)), np.finfo(float).tiny)
    on, start, every_cost = np.zeros(alternatives), 0, np.round(resamples.cost / most, 10)
    for size in _batches(draws, alternatives**2):
        cost, quality = every_cost[start : start + size], resamples.quality[start : start + size]
        start += size
        # Shape (draws, alternatives, alternatives): [d, i, j] compares i with j, so `any` over axis 1 asks whether
        # anything dominates j.
        cheaper, as_cheap = cost[:, :, None] < cost[:, None, :], cost[:, :, None] <= cost[:, None, :]
        better, as_good = quality[:, :, None] > quality[:, None, :], quality[:, :, None] >= quality[:, None, :]
        on += (~(as_cheap & as_good & (cheaper | better)).any(axis=1)).sum(axis=0)
    return on / draws if draws else np.full(alternatives, np.nan)


def beyond_noise(points: Mapping[str, Point], is_better: Callable[[str, str], bool]) -> list[str]:
    """Return what is worth choosing where quality is uncertain, most expensive first.

    From cheap to dear, an alternative stays if it is surely better than each that stays already.
    """
    worth: list[str] = []
    for name in sorted(points, key=lambda name: (points[name].cost, -points[name].quality)):
        if all(is_better(name, cheaper) for cheaper in worth):
            worth.append(name)
    return worth[::-1]


def _batches(draws: int, width: int) -> list[int]:
    """Return the sizes of the batches in which draws are made."""
    size = max(1, _AT_ONCE // max(width, 1))
    return [min(size, draws - start) for start in range(0, draws, size)]

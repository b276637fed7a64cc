"""Which of several alternatives are worth choosing, by cost and quality: the Pareto frontier.

One dominates another if it costs no more and is no worse, and is better in one of the two. The frontier is what nothing
dominates. On other conversations it would be another: `how_often` asks by drawing the conversations again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
SEED = 0
_AT_ONCE = 4_000_000
"""Numbers of a table of draws that is made at once."""

Floats = NDArray[np.float64]


class Point(NamedTuple):
    """One alternative."""

    cost: float
    quality: float

    def dominates(self, other: Point) -> bool:
        """Whether the other is never the better choice."""
        return self != other and self.cost <= other.cost and self.quality >= other.quality


def frontier(points: Mapping[str, Point]) -> list[str]:
    """The names of what nothing dominates, the dearest first."""
    found = [name for name, point in points.items() if not any(each.dominates(point) for each in points.values())]
    return sorted(found, key=lambda name: -points[name].cost)


def dominators(points: Mapping[str, Point]) -> dict[str, list[str]]:
    """Of each that is dominated, those of the frontier that dominate it, the cheapest first."""
    best = sorted(frontier(points), key=lambda name: points[name].cost)
    found = {name: [each for each in best if points[each].dominates(point)] for name, point in points.items()}
    return {name: those for name, those in found.items() if those}


class FrontierSums(NamedTuple):
    """What cost and quality are made of: a row a conversation, a column an alternative. Quality is got / wanted."""

    cost: Floats
    got: Floats
    wanted: Floats


def how_often(sums: FrontierSums, draws: int = DRAWS, seed: int = SEED) -> Floats:
    """Of each alternative, in what share of draws of whole conversations, with replacement, it is on the frontier.

    NaN with fewer than two conversations. A draw in which nothing is wanted does not count.
    """
    conversations, alternatives = sums.cost.shape
    if conversations < 2:
        return np.full(alternatives, np.nan)
    random = np.random.default_rng(seed)
    on, counted = np.zeros(alternatives), 0
    for size in _batches(draws, max(conversations, alternatives**2)):
        drawn = random.multinomial(conversations, np.full(conversations, 1 / conversations), size).astype(float)
        cost, got, wanted = (drawn @ each for each in sums)
        asked = (wanted > 0).all(axis=1)
        on += _on_frontier(_even(cost[asked]), got[asked] / wanted[asked]).sum(axis=0)
        counted += int(asked.sum())
    return on / counted if counted else np.full(alternatives, np.nan)


def _even(cost: Floats) -> Floats:
    """Sums of the same numbers in another order differ in their last digit, and are the same cost."""
    return np.round(cost / max(float(cost.max(initial=0)), np.finfo(float).tiny), 10)


def _on_frontier(cost: Floats, quality: Floats) -> NDArray[np.bool_]:
    """Of each draw (row) and alternative, whether nothing dominates it."""
    cheaper, as_cheap = cost[:, :, None] < cost[:, None, :], cost[:, :, None] <= cost[:, None, :]
    better, as_good = quality[:, :, None] > quality[:, None, :], quality[:, :, None] >= quality[:, None, :]
    return np.asarray(~(as_cheap & as_good & (cheaper | better)).any(axis=1))


def _batches(draws: int, width: int) -> list[int]:
    """How many draws are made at a time."""
    size = max(1, _AT_ONCE // width)
    return [min(size, draws - start) for start in range(0, draws, size)]

"""The Pareto frontier of cost and quality: the alternatives worth choosing.

One alternative dominates another if it costs no more and is no worse, and is better in one of the two. The frontier is
the alternatives that nothing dominates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Point(NamedTuple):
    """Cost and quality of one alternative."""

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
    """Map each dominated alternative to the frontier alternatives that dominate it, cheapest first."""
    best = sorted(frontier(points), key=lambda name: points[name].cost)
    by_name = {name: [other for other in best if points[other].dominates(point)] for name, point in points.items()}
    return {name: dominating for name, dominating in by_name.items() if dominating}

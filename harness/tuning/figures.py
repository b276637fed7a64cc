"""What a setting costs, and how good it is, with intervals over conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...metrics.frontier import Point, frontier
from ...metrics.statistics.bootstrap import Ends, mean_of, resampled
from ...metrics.statistics.paired import Difference, Pairs, difference
from ...metrics.statistics.shares import of_share
from ...metrics.value import Missing, Value
from .trying import Tried


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a setting, on some conversations."""

    cost: Value
    """The mean of a conversation."""
    cost_interval: Ends | Missing
    quality: Value
    quality_interval: Ends | Missing
    conversations: int
    """That say anything of the quality."""

    @property
    def point(self) -> Point | None:
        """Cost and quality, if both are known."""
        if isinstance(self.cost, Missing) or isinstance(self.quality, Missing):
            return None
        return Point(self.cost, self.quality)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting on both sides of the split."""

    spec: str
    chosen: bool
    """Whether it is on the frontier of the conversations searched on."""
    whole: bool
    """Whether it is the whole history, which nothing was chosen for."""
    train: Figures
    held_out: Figures
    against: Against | None
    """The held-out figures beside those of the whole history; None if it is that itself, or failed."""
    lacking: int
    """Held-out calls that lack the newest message."""
    calls: int
    failed: str
    """Why it has no figures on the conversations held out."""


class Against(NamedTuple):
    """How a setting differs from the whole history, in pairs of conversations."""

    cost: Difference
    """Relative: −0.6 = 60 % cheaper."""
    quality: Difference


def figures(tried: Tried, quality: str) -> Figures:
    """The figures of one setting."""
    if tried.failed:
        none = Missing("failed", tried.failed)
        return Figures(none, none, none, none, 0)
    cost = np.column_stack([tried.cost, np.ones(len(tried.cost))])
    sums = np.array(tried.quality.get(quality, []), float).reshape(-1, 2)
    some = sums[sums[:, 1] > 0]
    return Figures(*_mean(cost), *_share(some), len(some))


def against(tried: Tried, whole: Tried, quality: str) -> Against | None:
    """How a setting differs from the whole history; None if it failed."""
    if tried.failed:
        return None
    cost, sums = (
        [np.array(each, float).reshape(len(whole.conversations), -1) for each in both]
        for both in ((whole.cost, tried.cost), (whole.quality[quality], tried.quality.get(quality, [])))
    )
    ones = np.ones((len(whole.conversations), 1))
    before, after = (np.hstack([each, ones]) for each in cost)
    dearer = difference(Pairs("total", before, after), relative=True)
    if dearer.relative and not isinstance(dearer.shown, Missing):  # nothing is cheaper than by all of it
        dearer = dearer._replace(shown=Ends(max(dearer.shown.low, -1.0), dearer.shown.high))
    return Against(dearer, difference(Pairs("ratio", *sums)))


def settings(tried: Mapping[str, Tried], quality: str) -> list[str]:
    """The settings that nothing dominates, the dearest first; of settings with the same figures the first."""
    points: dict[str, Point] = {}
    for spec, each in tried.items():
        point = figures(each, quality).point
        if point is not None and point not in points.values():
            points[spec] = point
    return frontier(points)


def _mean(sums: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[Value, Ends | Missing]:
    value = float(mean_of(sums.sum(axis=0)))
    found = resampled(sums, mean_of)
    return value, found if isinstance(found, Missing) else Ends(max(found.interval().low, 0.0), found.interval().high)


def _share(sums: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[Value, Ends | Missing]:
    if not len(sums):
        none = Missing("undefined", "no conversation has anything to measure it by")
        return none, none
    value, found = float(mean_of(sums.sum(axis=0))), resampled(sums, mean_of)
    return value, of_share(value, found if isinstance(found, Missing) else found.interval(), len(sums))

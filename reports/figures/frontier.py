"""Quality against cost: a numbered mark a strategy, and the line of those that nothing dominates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import cos, dist, hypot, pi, sin
from typing import TYPE_CHECKING, Any, NamedTuple

from ...metrics.frontier import Point
from .style import COLOURS, FAINT, INK, figure, legible, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


ON_COLOUR = "#fefefe"
"""Letters on a coloured mark: nearly white, whatever the paper of the page."""
NEAR = (0.045, 0.05)
"""Of the width and the height: marks nearer than that would hide each other."""


def frontier(
    points: Mapping[str, Point], best: Sequence[str], numbers: Mapping[str, int], up: str, along: str
) -> Figure:
    """The numbers are those of the table beside it. `best`: the names on the frontier, the dearest first."""
    with style():
        drawn = figure(5.6, 4.4)
        axes = drawn.subplots()
        axes.step([points[name].cost for name in best], [points[name].quality for name in best], **_LINE)
        _marks(axes, points, best, numbers)
        axes.set_xlabel(along)
        axes.set_ylabel(up)
        axes.xaxis.set_major_formatter(lambda value, _: f"\\${value:g}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
        axes.margins(0.06)
        axes.set_xlim(left=0)
        marks: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 8}
        axes.plot([], [], **marks, color=COLOURS[0], label="on the frontier")
        axes.plot([], [], **marks, markerfacecolor="white", markeredgecolor=INK, label="dominated")
        drawn.legend(loc="outside upper center", ncols=2)
    return drawn


_LINE: dict[str, Any] = {"where": "pre", "color": COLOURS[0], "linewidth": 1.2, "zorder": 1}


def _marks(axes: Axes, points: Mapping[str, Point], best: Sequence[str], numbers: Mapping[str, int]) -> None:
    from matplotlib.collections import LineCollection

    places = _apart(points)
    moved = [[points[name], at] for name, at in places.items() if dist(points[name], at) > 1e-9]
    axes.add_collection(LineCollection(moved, colors=FAINT, linewidths=0.6, zorder=2), autolim=False)
    for at, (face, edge, letters) in enumerate((("white", INK, INK), (COLOURS[0], COLOURS[0], ON_COLOUR))):
        these = {name: place for name, place in places.items() if (name in best) == bool(at)}
        axes.plot(
            [x for x, _ in these.values()],
            [y for _, y in these.values()],
            linestyle="none",
            marker="o",
            markersize=11,
            markeredgewidth=0.8,
            markerfacecolor=face,
            markeredgecolor=edge,
            zorder=3 + at,
        )
        for name, (x, y) in these.items():
            text = str(numbers[name])
            axes.text(x, y, text, ha="center", va="center_baseline", color=letters, fontsize=6.5, zorder=5 + at)


def _apart(points: Mapping[str, Point]) -> dict[str, tuple[float, float]]:
    """Where each mark is put: at its point, or as near to it as there is room."""
    qualities = [each.quality for each in points.values()]
    wide = NEAR[0] * (max((each.cost for each in points.values()), default=0) or 1)
    high = NEAR[1] * (max(qualities, default=0) - min(qualities, default=0) or 1)
    placed: list[tuple[float, float]] = []
    for point in points.values():
        x, y = point.cost / wide, point.quality / high
        placed.append(next((a, b) for a, b in _around(x, y) if all(hypot(a - c, b - d) >= 1 for c, d in placed)))
    return {name: (x * wide, y * high) for name, (x, y) in zip(points, placed, strict=True)}


def _around(x: float, y: float) -> Iterator[tuple[float, float]]:
    """The place itself, then places on wider and wider circles around it."""
    yield x, y
    for ring in count(1):
        yield from ((x + ring / 2 * cos(turn * pi / 6), y + ring / 2 * sin(turn * pi / 6)) for turn in range(12))


ROW = 0.26
"""Inches of a strategy."""
ENDS = {"floor": ("last_turn", COLOURS[1], ":"), "ceiling": ("evidence_only", COLOURS[2], "--")}


class IntervalMark(NamedTuple):
    """A share with its interval; the ends are the share where there is none."""

    name: str
    share: float
    low: float
    high: float


def between(marks: Sequence[IntervalMark], bounds: dict[str, float]) -> Figure:
    """The marks in their order, from the top. `bounds`: the shares of the floor and of the ceiling, as far as known."""
    with style():
        drawn = figure(6.4, 1.2 + ROW * len(marks))
        axes = drawn.subplots()
        rows = list(range(len(marks)))
        around = [[mark.share - mark.low for mark in marks], [mark.high - mark.share for mark in marks]]
        axes.errorbar(
            [mark.share for mark in marks], rows, xerr=around, fmt="o", color=COLOURS[0], ecolor=INK, elinewidth=0.8
        )
        for name, (bound, colour, line) in ENDS.items():
            if name in bounds:
                axes.axvline(bounds[name], color=colour, linestyle=line, linewidth=1.2, label=f"{name}: {bound}")
        axes.set_yticks(rows, [legible(mark.name) for mark in marks])
        axes.set_ylim(len(marks) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
        axes.set_xlabel("correct")
        if bounds:
            drawn.legend(loc="outside upper center", ncols=2)
    return drawn

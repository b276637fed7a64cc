"""Quality against cost: the frontier of strategies, that of a search of settings, and shares between bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import cos, dist, hypot, pi, sin
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ctxbench.harness.tune.trial import TOKENS
from ctxbench.harness.tune.tune import Tuned
from ctxbench.metrics.frontier import Point
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.scenarios.text import printable

from ..tune import numbers, unit
from .frames import PLACES
from .style import COLOURS, FAINT, INK, ON_COLOUR, figure, legible, row_name, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NAMED = "strategy: "
"""Begins the id of a mark, which ends with the strategy's name: the page says it on hover."""
# Marks nearer than these shares of width and height would hide each other.
_NEAR = (0.045, 0.05)
# Inches of a row of a strategy.
_ROW = 0.26


def frontier(rows: pd.DataFrame, up: str, along: str) -> Figure:
    """Draw strategies by cost and quality, numbered as in the table, from `frames.frontier`."""
    points = {str(row.strategy): Point(float(row.cost), float(row.quality)) for row in _tuples(rows)}
    places = dict(zip(rows.strategy, rows.place, strict=True))
    numbers = dict(zip(rows.strategy, rows.number, strict=True))
    best = sorted((name for name in points if places[name] == PLACES[0]), key=lambda name: -points[name].cost)
    with style():
        drawn = figure(5.6, 4.4)
        axes = drawn.subplots()
        axes.step([points[name].cost for name in best], [points[name].quality for name in best], **_LINE)
        faint: dict[str, Any] = {"colors": FAINT, "linewidth": 0.6, "zorder": 0.5}
        axes.vlines(rows.cost, rows.low, rows.high, **faint)
        axes.hlines(rows.quality, rows.cost_low, rows.cost_high, **faint)
        ends = [*rows.low.dropna(), *rows.high.dropna(), *rows.quality]
        _marks(axes, points, places, numbers, ends)
        axes.set_xlabel(along)
        axes.set_ylabel(up)
        axes.xaxis.set_major_formatter(lambda value, _: f"\\${value:g}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
        axes.margins(0.06)
        axes.set_xlim(left=0)
        if len(set(ends)) == 1:
            axes.set_ylim(-0.03, 1.03)
        for group in _GROUPS:
            axes.plot([], [], **{**group.mark, "markersize": 8}, label=group.label)
        drawn.legend(loc="outside upper center", ncols=len(_GROUPS))
    return drawn


def _tuples(rows: pd.DataFrame) -> Any:
    return rows.itertuples()


_LINE: dict[str, Any] = {"where": "pre", "color": COLOURS[0], "linewidth": 1.2, "zorder": 1}


class _Group(NamedTuple):
    """How the marks of one kind of strategies look."""

    label: str
    mark: Mapping[str, Any]
    letters: str


def _group(label: str, marker: str, face: str, edge: str, letters: str) -> _Group:
    looks = {"marker": marker, "markerfacecolor": face, "markeredgecolor": edge}
    return _Group(label, {**looks, "linestyle": "none", "markersize": 11, "markeredgewidth": 0.8}, letters)


# Shapes differ, not only colours.
_GROUPS = (
    _group(PLACES[0], "o", COLOURS[0], COLOURS[0], ON_COLOUR),
    _group(PLACES[1], "o", "white", INK, INK),
    _group(PLACES[2], "s", "white", FAINT, INK),
)


def _marks(
    axes: Axes,
    points: Mapping[str, Point],
    group_of: Mapping[str, str],
    numbers: Mapping[str, int],
    ends: Sequence[float],
) -> None:
    from matplotlib.collections import LineCollection

    places = _apart(points, ends)
    moved = [[points[name], at] for name, at in places.items() if dist(points[name], at) > 1e-9]
    axes.add_collection(LineCollection(moved, colors=FAINT, linewidths=0.6, zorder=2), autolim=False)
    for number, group in enumerate(_GROUPS):
        # What is on the frontier is drawn last, above the others.
        above = 2 * (len(_GROUPS) - number)
        own = {name: place for name, place in places.items() if group_of[name] == group.label}
        for name, (x, y) in own.items():
            axes.plot([x], [y], **group.mark, zorder=1 + above, gid=NAMED + printable(name))
            looks: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 7, "zorder": 2 + above}
            axes.text(x, y, str(numbers[name]), color=group.letters, **looks)


def _apart(points: Mapping[str, Point], ends: Sequence[float]) -> dict[str, tuple[float, float]]:
    """Return the place of each mark: its point, or as near to it as there is room. `ends` are values of the axis."""
    wide = _NEAR[0] * (max((point.cost for point in points.values()), default=0) or 1)
    high = _NEAR[1] * (max(ends, default=0) - min(ends, default=0) or 1)
    placed: list[tuple[float, float]] = []
    for point in points.values():
        x, y = point.cost / wide, point.quality / high
        placed.append(next((a, b) for a, b in _around(x, y) if all(hypot(a - c, b - d) >= 1 for c, d in placed)))
    return {name: (x * wide, y * high) for name, (x, y) in zip(points, placed, strict=True)}


def _around(x: float, y: float) -> Iterator[tuple[float, float]]:
    """Yield the place itself, then places on wider and wider circles around it."""
    yield x, y
    for ring in count(1):
        yield from ((x + ring / 2 * cos(turn * pi / 6), y + ring / 2 * sin(turn * pi / 6)) for turn in range(12))


_BOUNDS = {"floor": ("last_turn", COLOURS[1], ":"), "ceiling": ("evidence_only", COLOURS[2], "--")}


def between(rows: pd.DataFrame, bounds: Mapping[str, float], along: str = "correct", *, share: bool = True) -> Figure:
    """Draw values with their intervals, from `frames.shares`, and the known `bounds`: those of floor and ceiling."""
    with style():
        drawn = figure(6.4, 1.2 + _ROW * len(rows))
        axes = drawn.subplots()
        places = list(range(len(rows)))
        around = [(rows.share - rows.low).tolist(), (rows.high - rows.share).tolist()]
        axes.errorbar(rows.share.tolist(), places, xerr=around, fmt="o", color=COLOURS[0], ecolor=INK, elinewidth=0.8)
        for name, (bound, colour, line) in _BOUNDS.items():
            if name in bounds:
                axes.axvline(bounds[name], color=colour, linestyle=line, linewidth=1.2, label=f"{name}: {bound}")
        axes.set_yticks(places, [row_name(name) for name in rows.strategy])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.grid(axis="y", visible=False)
        if share:
            axes.xaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
        axes.set_xlabel(along)
        if bounds:
            drawn.legend(loc="outside upper center", ncols=2)
    return drawn


_HELD_OUT: dict[str, Any] = {"marker": "s", "linestyle": "none", "markersize": 4, "elinewidth": 0.8, "zorder": 4}


def tuning_frontier(tuned: Tuned) -> Figure:
    """Draw the settings: circles on the conversations searched on, squares with 95 % intervals on those held out."""
    tried = [point for _, setting in tuned.tried if (point := setting.point) is not None]
    chosen = [
        (setting.spec, point)
        for setting in tuned.settings
        if setting.chosen and (point := setting.train.point) is not None
    ]
    with style():
        drawn = figure(6.4, 4.4)
        axes = drawn.subplots()
        axes.plot(
            [setting.cost for setting in tried],
            [setting.quality for setting in tried],
            linestyle="none",
            marker="o",
            markersize=3,
            color=FAINT,
            label="tried",
        )
        axes.step(
            [point.cost for _, point in chosen],
            [point.quality for _, point in chosen],
            where="pre",
            color=COLOURS[0],
            marker="o",
            markersize=4,
            label="frontier, searched on",
            zorder=3,
        )
        _searched_on(axes, tuned)
        _held_out(axes, tuned)
        axes.set_xlabel(legible(f"cost ({unit(tuned.cost)})"))
        axes.set_ylabel(tuned.quality)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if tuned.cost == TOKENS else f"\\${value:g}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
        axes.set_xlim(left=0)
        drawn.legend(loc="outside upper center", ncols=3)
    return drawn


def _searched_on(axes: Any, tuned: Tuned) -> None:
    """Draw the settings on the conversations searched on, also those beside the frontier."""
    names = numbers(tuned)
    for setting in tuned.settings:
        if (point := setting.train.point) is None:
            continue
        if not setting.chosen:
            axes.plot(*point, marker="o", markersize=5, markerfacecolor="white", color=COLOURS[0], zorder=3)
        axes.annotate(
            names[setting.spec], point, textcoords="offset points", xytext=(-8, 4), fontsize=7, color=COLOURS[0]
        )


def _held_out(axes: Any, tuned: Tuned) -> None:
    """Draw the settings on the held-out conversations, each with its number."""
    names, first = numbers(tuned), True
    for setting in tuned.settings:
        point, ends = setting.held_out.point, setting.held_out.quality_interval
        if point is None:
            continue
        bars = None
        if isinstance(ends, Ends):
            bars = [[max(0.0, point.quality - ends.low)], [max(0.0, ends.high - point.quality)]]
        label = "held out" if first else None
        axes.errorbar([point.cost], [point.quality], yerr=bars, color=COLOURS[1], label=label, **_HELD_OUT)
        axes.annotate(
            names[setting.spec], point, textcoords="offset points", xytext=(5, 3), fontsize=7, color=COLOURS[1]
        )
        first = False

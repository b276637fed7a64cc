"""A search of parameters: every setting that was tried, the frontier, and what it came to on what was held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.tune.trial import TOKENS
from ...harness.tune.tune import Tuned
from ...metrics.statistics.intervals import Ends
from ..tune import numbers, unit
from .style import COLOURS, FAINT, figure, legible, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_HELD: dict[str, Any] = {"marker": "s", "linestyle": "none", "markersize": 4, "elinewidth": 0.8, "zorder": 4}


def frontier(found: Tuned) -> Figure:
    """Circles: the conversations searched on. Squares, with 95 % intervals of quality: those held out."""
    tried = [point for _, each in found.tried if (point := each.point) is not None]
    chosen = [(each.spec, point) for each in found.settings if each.chosen and (point := each.train.point) is not None]
    with style():
        drawn = figure(6.4, 4.4)
        axes = drawn.subplots()
        axes.plot(
            [each.cost for each in tried],
            [each.quality for each in tried],
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
        _searched_on(axes, found)
        _held_out(axes, found)
        axes.set_xlabel(legible(f"cost ({unit(found.cost)})"))
        axes.set_ylabel(found.quality)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if found.cost == TOKENS else f"\\${value:g}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
        axes.set_xlim(left=0)
        drawn.legend(loc="outside upper center", ncols=3)
    return drawn


def _searched_on(axes: Any, found: Tuned) -> None:
    """The numbers of the same settings on what was searched on, and what is beside the frontier."""
    names = numbers(found)
    for each in found.settings:
        if (point := each.train.point) is None:
            continue
        if not each.chosen:
            axes.plot(*point, marker="o", markersize=5, markerfacecolor="white", color=COLOURS[0], zorder=3)
        axes.annotate(names[each.spec], point, textcoords="offset points", xytext=(-8, 4), fontsize=7, color=COLOURS[0])


def _held_out(axes: Any, found: Tuned) -> None:
    """The settings of the table on what was held out, each with its number."""
    names, first = numbers(found), True
    for each in found.settings:
        point, ends = each.held_out.point, each.held_out.quality_interval
        if point is None:
            continue
        bars = None
        if isinstance(ends, Ends):
            bars = [[max(0.0, point.quality - ends.low)], [max(0.0, ends.high - point.quality)]]
        label = "held out" if first else None
        axes.errorbar([point.cost], [point.quality], yerr=bars, color=COLOURS[1], label=label, **_HELD)
        axes.annotate(names[each.spec], point, textcoords="offset points", xytext=(5, 3), fontsize=7, color=COLOURS[1])
        first = False

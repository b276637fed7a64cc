"""How long strategies take to decide: from the median to the slowest hundredth, on one scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .style import COLOURS, MARKERS, figure, legible, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def decisions(times: Mapping[str, tuple[float, float]]) -> Figure:
    """Of each strategy the median and the 99th percentile, in microseconds."""
    from matplotlib.ticker import NullLocator

    names = list(times)
    rows = range(len(names))
    with style():
        drawn = figure(7.2, 1.1 + 0.24 * len(names))
        axes = drawn.subplots()
        medians, slowest = [times[name][0] for name in names], [times[name][1] for name in names]
        axes.hlines(rows, medians, slowest, color=COLOURS[0], linewidth=1)
        dots: dict[str, Any] = {"linestyle": "none", "color": COLOURS[0], "markersize": 4}
        axes.plot(medians, rows, marker=MARKERS[0], label="median", **dots)
        axes.plot(slowest, rows, marker=MARKERS[1], label="99th percentile", **{**dots, "color": COLOURS[1]})
        axes.set_yticks(rows, [legible(name) for name in names])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("time to decide")
        axes.xaxis.set_major_formatter(lambda value, _: duration(value))
        axes.xaxis.set_minor_locator(NullLocator())
        drawn.legend(loc="outside lower center", ncols=2)
    return drawn


def duration(microseconds: float) -> str:
    """At a tick: 0.1 µs · 10 µs · 1 ms · 2 s."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds:g} µs"

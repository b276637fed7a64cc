"""A small panel for each strategy, all with the same axes: lines that would hide each other in one figure.

All panels are drawn on one sheet in inches, with grid, frames and ticks of our own. As matplotlib's axes, one a panel,
they take many times as long to lay out and to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .style import COLOURS, FAINT, GRID, INK, MARKERS, figure, legible, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

DASHES = ("-", "--", ":", "-.")
REFERENCE = {"color": INK, "linewidth": 0.9, "linestyle": "--"}
"""Look of a line that is in every panel, to compare with."""

ACROSS = 4
# Inches of a panel, and between two beside each other.
WIDE, HIGH, BETWEEN = 2.0, 1.15, 0.16
# Inches of the first line above a panel, and of each more.
TITLE, LINE = 0.14, 0.12
LEFT, BOTTOM, TOP, RIGHT = 0.75, 0.55, 0.38, 0.1
# Inches of a figure at least, for the words along its axis.
LEAST = 3.6
# Letters of a line above a panel.
LETTERS = 34
# Points of a line that have a marker, about.
MARKED = 8


class Line(NamedTuple):
    """Points in order, with the words of the legend and how they look."""

    x: Floats
    y: Floats
    label: str
    look: Mapping[str, Any]


def look(at: int) -> dict[str, Any]:
    """Return the look of the line of a number: colour, shape and dashes differ."""
    at %= len(COLOURS)
    return {"color": COLOURS[at], "marker": MARKERS[at], "linestyle": DASHES[at % len(DASHES)], "markersize": 2.5}


class Scale(NamedTuple):
    """Axis that places values between its ends, 0 to 1, with ticks at some values."""

    low: float
    high: float
    ticks: tuple[float, ...]
    text: Callable[[float], str]
    log: bool = False
    shift: float = 0.0
    """Added to values before their logarithm is taken: 1 on an axis with a 0."""

    def place(self, values: Floats) -> Floats:
        """Return the places of values; NaN for a value that cannot be shown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high, places = (np.asarray(part, float) for part in (self.low, self.high, values))
            if self.log:
                low, high, places = (np.log10(part + self.shift) for part in (low, high, places))
            places = (places - low) / (high - low)
        return np.where(np.isfinite(places), places, np.nan)


def linear(text: Callable[[float], str], low: float | None = None, high: float | None = None) -> Maker:
    """Return a maker of linear scales from `low` to `high`, by default from the lowest to the highest value."""

    def make(values: Floats) -> Scale:
        from matplotlib.ticker import MaxNLocator

        first = float(np.nanmin(values, initial=np.inf)) if low is None else low
        last = float(np.nanmax(values, initial=-np.inf)) if high is None else high
        if not first < last:
            first, last = (first - 0.5, first + 0.5) if np.isfinite(first) else (0.0, 1.0)
        ticks = MaxNLocator(4).tick_values(first, last)
        return Scale(first, last, tuple(float(tick) for tick in ticks if first <= tick <= last), text)

    return make


def from_nothing(text: Callable[[float], str]) -> Maker:
    """Return a maker of logarithmic scales of counts that begin at 0: values are taken one higher."""

    def make(values: Floats) -> Scale:
        most = max(float(np.nanmax(values, initial=0)), 1.0)
        tens = (10.0**power for power in range(int(np.log10(most)) + 1))
        return Scale(0.0, most, (0.0, *tens), text, log=True, shift=1.0)

    return make


def logarithmic(text: Callable[[float], str]) -> Maker:
    """Return a maker of logarithmic scales with ticks at powers of ten, or where those are too few also at 2 and 5."""

    def make(values: Floats) -> Scale:
        some = values[np.isfinite(values) & (values > 0)]
        low, high = (float(some.min()), float(some.max())) if len(some) else (1.0, 10.0)
        if low == high:
            low, high = low / 2, high * 2
        powers = [10.0**tick for tick in range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)]
        tens = [tick for tick in powers if low <= tick <= high]
        if len(tens) < 3:
            tens = [tick * by for tick in powers for by in (1, 2, 5) if low <= tick * by <= high]
        return Scale(low, high, tuple(tens), text, log=True)

    return make


Maker = Callable[[Floats], Scale]
"""Function from all values of an axis to its scale."""


def panels(
    lines: Mapping[str, Sequence[Line]], along: str, up: str, x: Maker, y: Maker, rule: float | None = None
) -> Figure:
    """Draw a panel with lines for each name. `rule` is a value of `y` where a line goes across."""
    names = {name: wrap(legible(name), LETTERS) or [""] for name in lines}
    over = TITLE + LINE * max((len(title) for title in names.values()), default=1)
    across = min(ACROSS, max(1, len(lines)))
    down = max(1, -(-len(lines) // across))
    wide, high = max(LEAST, LEFT + across * (WIDE + BETWEEN) + RIGHT), TOP + down * (HIGH + over) + BOTTOM
    values = [(line.x, line.y) for panel in lines.values() for line in panel] or [(np.empty(0), np.empty(0))]
    scales = [make(np.concatenate(axis)) for make, axis in zip((x, y), zip(*values, strict=True), strict=True)]
    corners = [
        (LEFT + at % across * (WIDE + BETWEEN), high - TOP - (at // across + 1) * (HIGH + over))
        for at in range(len(lines))
    ]
    with style():
        drawn = figure(wide, high)
        drawn.set_layout_engine("none")
        sheet = drawn.add_axes((0, 0, 1, 1))
        sheet.set(xlim=(0, wide), ylim=(0, high))
        sheet.set_axis_off()
        _frames(sheet, corners, scales, rule)
        _ticks(sheet, corners, scales, across)
        handles: dict[str, Any] = {}
        for (left, bottom), (name, panel) in zip(corners, lines.items(), strict=True):
            sheet.text(left, bottom + HIGH + 0.05, "\n".join(names[name]), fontsize=7, va="bottom")
            for line in panel:
                places = left + WIDE * scales[0].place(line.x), bottom + HIGH * scales[1].place(line.y)
                (artist,) = sheet.plot(*places, markevery=max(1, len(line.x) // MARKED), **line.look)
                handles.setdefault(legible(line.label), artist)
        middle = LEFT + (across * (WIDE + BETWEEN) - BETWEEN) / 2
        sheet.text(middle, 0.1, along, ha="center", va="bottom", fontsize=9)
        sheet.text(0.12, (high - TOP + BOTTOM) / 2, up, rotation=90, ha="left", va="center", fontsize=9)
        if handles:
            place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (middle, high - 0.05), "borderaxespad": 0}
            sheet.legend(handles.values(), handles, **place, bbox_transform=sheet.transData, ncols=len(handles))
    return drawn


def _frames(sheet: Axes, corners: Sequence[tuple[float, float]], scales: Sequence[Scale], rule: float | None) -> None:
    """Draw the left and the lower side of every panel, its grid, and the rule."""
    from matplotlib.collections import LineCollection

    xs, ys = (scale.place(np.array(scale.ticks)) for scale in scales)
    grid = [[(a + WIDE * x, b), (a + WIDE * x, b + HIGH)] for a, b in corners for x in xs]
    grid += [[(a, b + HIGH * y), (a + WIDE, b + HIGH * y)] for a, b in corners for y in ys]
    sides = [[(a, b + HIGH), (a, b), (a + WIDE, b)] for a, b in corners]
    sheet.add_collection(LineCollection(grid, colors=GRID, linewidths=0.6, zorder=0), autolim=False)
    sheet.add_collection(LineCollection(sides, colors=INK, linewidths=0.6, zorder=1), autolim=False)
    if rule is not None and scales[1].low <= rule <= scales[1].high:
        at = float(scales[1].place(np.array([rule]))[0]) * HIGH
        rules = [[(a, b + at), (a + WIDE, b + at)] for a, b in corners]
        sheet.add_collection(LineCollection(rules, colors=FAINT, linewidths=1, zorder=1), autolim=False)


def _ticks(sheet: Axes, corners: Sequence[tuple[float, float]], scales: Sequence[Scale], across: int) -> None:
    """Write ticks beside the panels on the left, and below those that have no panel below."""
    xs, ys = ([*zip(scale.ticks, scale.place(np.array(scale.ticks)), strict=True)] for scale in scales)
    small: dict[str, Any] = {"fontsize": 7, "color": INK}
    for number, (a, b) in enumerate(corners):
        if number % across == 0:
            for value, at in ys:
                sheet.text(a - 0.05, b + HIGH * at, scales[1].text(value), ha="right", va="center", **small)
        if number + across >= len(corners):
            for value, at in xs:
                sheet.text(a + WIDE * at, b - 0.05, scales[0].text(value), ha="center", va="top", **small)

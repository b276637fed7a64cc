"""Quality against cost: the frontier of strategies, and shares between bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ctxbench.harness.folder.schema import short_names
from ctxbench.metrics.frontier import Point

from ..render import CROSS, percent
from ..verdict import Place
from .style import COLOURS, FAINT, INK, by_row, figure, legible, share_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


class PlaceLook(NamedTuple):
    """Words, mark and colour of a place: each colour and each mark means one thing, on the page and in pictures."""

    words: str
    marker: str
    face: str
    edge: str
    tone: str = ""  # colour of the words on the page: that of the mark


PLACES: dict[Place, PlaceLook] = {
    "chosen": PlaceLook("chosen", "*", COLOURS[2], COLOURS[2], "good"),
    "frontier": PlaceLook("cheapest for its quality", "o", COLOURS[0], COLOURS[0], "best"),
    "beaten": PlaceLook("beaten by another", "o", "white", INK),
    "doubtful": PlaceLook("not to be counted on", "D", "white", COLOURS[4], "unsure"),
    "broken": PlaceLook(f"{CROSS} breaks calls", "X", COLOURS[1], COLOURS[1], "bad"),
    "bound": PlaceLook("bound, no strategy", "", FAINT, FAINT),
    "unknown": PlaceLook("no figure", "", FAINT, FAINT),
}
# Characters of a name beside a mark, and points of its letters.
_NAME, _LETTERS = 26, 7.5
# Inches of a row of a strategy.
_ROW = 0.26
# Part of what the marks span that is free beside them, for names, and above and below.
_BESIDE, _ABOVE = 0.24, 0.16
_HIGH = 0.1  # part of the axis within which a mark is as high as a bound


def frontier(
    rows: pd.DataFrame, up: str, along: str, bounds: Mapping[str, float], width: float = 5.8, columns: int = 3
) -> Figure:
    """Draw strategies by cost and quality, from the overview, each with its name, and the qualities of the bounds.

    The axes follow the marks: a longer interval is cut, with a tip there, and a bound beyond them is told in words.
    """
    points = dict(zip(rows.strategy, map(Point, rows.cost, rows.quality), strict=True))
    best = sorted(rows.strategy[rows.on_frontier], key=lambda name: (-points[name].cost, -points[name].quality))
    shown = [place for place in PLACES if (rows.place == place).any()]
    drawn = figure(width, 5.2, 0.75, above=-(-len(shown) // columns) + 0.2)
    (axes,) = drawn.axes
    ends = [points[name] for name in best]
    corners = [*ends[:1], *(at for here, there in pairwise(ends) for at in ((here.cost, there.quality), there))]
    axes.plot([x for x, _ in corners], [y for _, y in corners], color=COLOURS[0], linewidth=1.2, zorder=1)
    for above, place in enumerate(reversed(shown), start=2):  # the chosen one comes last
        look = PLACES[place]
        mark: dict[str, Any] = {"marker": look.marker, "markerfacecolor": look.face, "markeredgecolor": look.edge}
        mark |= {"linestyle": "none", "markeredgewidth": 1.0, "zorder": above}
        mark["markersize"] = 12 if place == "chosen" else 6
        own = rows[rows.place == place]
        axes.plot(own.cost, own.quality, **mark, label=look.words.removeprefix(f"{CROSS} "))
    axes.set_xlim(_limits(rows.cost, _BESIDE))
    low, high = _limits(rows.quality, _ABOVE)
    axes.set_ylim(low, min(high, 1 + 0.07 * (1 - low)))  # shares, and room for a name
    axes.set_xlabel(along)
    axes.set_ylabel(up)
    axes.xaxis.set_major_formatter(lambda value, _: f"\\${value:g}")
    share_axis(axes.yaxis)
    _draw_intervals(axes, rows)
    handles, labels = axes.get_legend_handles_labels()
    close = {"handlelength": 1.0, "columnspacing": 1.0} if width < 4 else {}  # a telephone cuts its words else
    drawn.legend(handles[::-1], labels[::-1], loc="upper center", ncols=columns, **close)
    bounded = _draw_bounds(axes, bounds, np.array(list(points.values())))
    _name_marks(axes, {name: points[name] for name in (*best, *points)}, corners, bounded)
    return drawn


def _limits(values: pd.Series[float], around: float) -> tuple[float, float]:
    """Return the ends of an axis around marks, none below 0 but for room for a mark."""
    low, high = float(values.min()), float(values.max())
    room = max(around * (high - low), 0.1 * high, 0.01)
    return max(low - room, -0.03 * (high + room)), high + room


def _draw_intervals(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw both intervals of each mark, cut at the frame: a tip says that an interval goes on."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    faint: dict[str, Any] = {"color": FAINT, "linewidth": 0.6, "zorder": 0.5}
    axes.vlines(rows.cost, rows.low.clip(low), rows.high.clip(upper=high), **faint)
    axes.hlines(rows.quality, rows.cost_low.clip(left), rows.cost_high.clip(upper=right), **faint)
    for x, y, tip in (
        *((x, low, 7) for x in rows.cost[rows.low < low]),
        *((x, high, 6) for x in rows.cost[rows.high > high]),
        *((left, y, 4) for y in rows.quality[rows.cost_low < left]),
        *((right, y, 5) for y in rows.quality[rows.cost_high > right]),
    ):
        axes.plot(x, y, marker=tip, markersize=4, clip_on=False, scalex=False, scaley=False, **faint)


_BOUNDS = {"last_turn": ":", "evidence_only": "--"}
"""Lines of the bounds: of what has no memory, and of what has the evidence alone."""


def _draw_bounds(axes: Axes, bounds: Mapping[str, float], marks: Floats) -> Floats:
    """Draw each bound as a line with its name on it, or say where beyond the marks it is; return the names' boxes.

    A name stands at the right, or at the left where fewer marks, which have names of their own, are as high.
    """
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    boxes = []
    for name, dashes in _BOUNDS.items():
        if name not in bounds:
            continue
        value, words = bounds[name], f"bound: {name}, {percent(bounds[name])}"
        if low <= value <= high:
            axes.axhline(value, color=INK, linestyle=dashes, linewidth=0.8, zorder=0.6)
        else:
            words += " ↑" if value > high else " ↓"
        at = min(max(value, low), high)
        up = -1 if at > (low + high) / 2 else 1
        beside = marks[np.abs(marks[:, 1] - at) < _HIGH * (high - low), 0] > (left + right) / 2
        is_left = 2 * beside.sum() > len(beside)
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        place |= {"ha": "left" if is_left else "right", "va": "bottom" if up > 0 else "top"}
        text = axes.annotate(words, (not is_left, at), (2 if is_left else -2, 4 * up), fontsize=_LETTERS, **place)
        boxes.append(text.get_window_extent().extents)
    return np.array(boxes).reshape(-1, 4)


def _name_marks(axes: Axes, points: Mapping[str, Point], path: Sequence[tuple[float, float]], taken: Floats) -> None:
    """Write the name of each strategy where it hides no mark, no name and no line; those in a crowd have first choice.

    A name away from its mark has a thin line to it. Strategies in one place have one label.
    """
    drawn = axes.get_figure(root=True)
    assert drawn is not None
    point, frame = drawn.dpi / 72, np.array(axes.get_window_extent().extents)
    labels: dict[tuple[float, float], tuple[Point, str]] = {}
    for name, short in short_names(points, _NAME).items():
        x, y = axes.transData.transform(points[name])
        here = next((at for at in labels if np.hypot(at[0] - x, at[1] - y) < _SAME * point), (x, y))
        of, words = labels.get(here, (points[name], ""))
        labels[here] = of, f"{words} =\n{legible(short)}".removeprefix(" =\n")
    thin = {"arrowstyle": "-", "linewidth": 0.5, "color": INK, "shrinkA": 0, "shrinkB": 4}
    look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center", "fontsize": _LETTERS}
    look |= {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.5}, "zorder": 20}  # over the intervals
    sizes = {}
    for at, (of, words) in labels.items():
        text = axes.annotate(words, of, (0, 0), **look)
        # Letters are a little wider where they are not drawn on whole pixels.
        sizes[at] = np.array(text.get_window_extent().size) / 2 * (1.05, 1)
        text.remove()
    marks = np.array(list(labels))
    corners = axes.transData.transform(np.array(path).reshape(-1, 2))
    boxes = np.vstack([_boxes(marks, 4 * point), taken, *(_boxes_along(*ends) for ends in pairwise(corners))])
    crowd = {at: int((np.abs(marks - at) < np.array(_NEAR) * point).all(axis=1).sum()) for at in labels}
    rounds = [*((away,) for away in _AWAY), _AWAY]  # the last one takes what hides least, at any distance
    for aways, at in product(rounds, sorted(labels, key=lambda at: -crowd[at])):
        if at not in labels:
            continue
        # The label's nearest side is so many points away from the mark.
        ways = np.array([np.multiply(way, sizes[at] + (6 + away) * point) for away, way in product(aways, _WAYS)])
        own = _boxes(at + ways, sizes[at] + point)
        outside = (own[:, :2] < frame[:2]).any(axis=1) | (own[:, 2:] > frame[2:]).any(axis=1)
        hidden = list(map(tuple, np.column_stack([outside, _overlaps(own, boxes)]).tolist()))
        if any(least := min(hidden)) and aways != _AWAY:
            continue
        # What a line to a label crosses matters less than what the label covers.
        best, line, fewest = 0, own[:0], np.inf
        for number in (number for number, each in enumerate(hidden) if each == least):
            is_beside = not aways[number // len(_WAYS)]
            along = own[:0] if is_beside else _boxes_along(np.array(at), at + ways[number], 8 * point)
            crossed = 0 if least[1] else int(_overlaps(along, boxes).sum())
            if crossed < fewest:
                best, line, fewest = number, along, crossed
            if not crossed:
                break
        if not fewest or aways == _AWAY:
            of, words = labels.pop(at)
            x, y = ways[best] / point
            axes.annotate(words, of, (x, y), **look, arrowprops=thin if len(line) else None)
            boxes = np.vstack([boxes, own[best : best + 1], line])


def _boxes(middles: Floats, half: float | Floats) -> Floats:
    """Return boxes around points by half their size: left, lower, right, upper."""
    return np.hstack([middles - half, middles + half])


def _boxes_along(start: Floats, end: Floats, skipped: float = 0) -> Floats:
    """Return small boxes along a line, but for so much of its beginning."""
    length = float(np.hypot(*(end - start)))
    shares = np.arange(skipped, length, _STEP) / (length or 1)
    return _boxes(start + shares[:, None] * (end - start), _STEP / 2)


def _overlaps(new: Floats, old: Floats) -> NDArray[np.int64]:
    """Return how many of the old boxes each new one overlaps."""
    (left, lower, right, upper), others = new.T[:, :, None], old.T
    within = (left < others[2]) & (right > others[0]) & (lower < others[3]) & (upper > others[1])
    counts: NDArray[np.int64] = within.sum(axis=1)
    return counts


# Points between the marks of strategies that are in one place; points from a mark to its name, the nearest first.
_SAME, _AWAY = 1.5, (0, 8, 16, 26, 38, 52, 70, 90, 115, 145)
# Points within which marks are a crowd; pixels between two of the small boxes that stand for a line.
_NEAR, _STEP = (90, 25), 4.0
# Ways from a mark to its name, the best first.
_WAYS = (
    *((1, 0), (-1, 0), (0, 1), (0, -1)),
    *product((1, -1), (1, -1)),
    *product((0.5, -0.5), (1, -1)),
    *product((0.25, -0.25, 0.75, -0.75), (1, -1)),
    *product((1, -1), (0.5, -0.5)),
)


def shares(marks: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Return strategy, share, low, high: both ends equal the share where it has no interval."""
    return pd.DataFrame(marks, columns=["strategy", "share", "low", "high"])


def between(
    rows: pd.DataFrame, bounds: Mapping[str, float], along: str = "correct", *, in_percent: bool = True
) -> Figure:
    """Draw values with their intervals, from `shares`, and the known `bounds` by their names."""
    drawn = by_row(rows.strategy, 6.4, _ROW, above=1.5 if bounds else 0)
    (axes,) = drawn.axes
    around = [(rows.share - rows.low).tolist(), (rows.high - rows.share).tolist()]
    places, values = list(range(len(rows))), rows.share.tolist()
    axes.errorbar(values, places, xerr=around, fmt="o", color=COLOURS[0], ecolor=INK, elinewidth=0.8)
    for name, line in _BOUNDS.items():
        if name in bounds:
            axes.axvline(bounds[name], color=INK, linestyle=line, linewidth=1.2, label=f"bound: {name}")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(left=0)
    if in_percent:
        share_axis(axes.xaxis)
    axes.set_xlabel(along)
    if bounds:
        drawn.legend(loc="upper center", ncols=2)
    return drawn

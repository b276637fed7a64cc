"""Quality against cost: the frontier of strategies, and shares between bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pandas as pd

from ctxbench.harness.folder.schema import short_names
from ctxbench.metrics.frontier import Point
from ctxbench.scenarios.errors import printable

from ..render import CROSS
from ..verdict import Place
from .style import COLOURS, FAINT, INK, by_row, figure, legible, share_axis, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


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
NAMED = "strategy: "  # begins the id of a mark, which ends with the strategy's name: the page says it on hover
# Characters of a name beside a mark.
_NAME = 26
# Inches of a row of a strategy.
_ROW = 0.26


def frontier(rows: pd.DataFrame, up: str, along: str, bounds: Mapping[str, float]) -> Figure:
    """Draw strategies by cost and quality, from the overview, and the qualities of the bounds as lines.

    A mark has its strategy's name beside it, or its number in the table where there is no room for the name.
    """
    points = dict(zip(rows.strategy, map(Point, rows.cost, rows.quality), strict=True))
    places, numbers = (dict(zip(rows.strategy, rows[key], strict=True)) for key in ("place", "number"))
    best = sorted(rows.strategy[rows.on_frontier], key=lambda name: (-points[name].cost, -points[name].quality))
    with style():
        drawn = figure(6.2, 5.2)  # as wide as its column of the page
        axes = drawn.subplots()
        ends = [points[name] for name in best]
        corners = [*ends[:1], *(at for here, there in pairwise(ends) for at in ((here.cost, there.quality), there))]
        (line,) = axes.plot([x for x, _ in corners], [y for _, y in corners], color=COLOURS[0], linewidth=1.2, zorder=1)
        shown = [place for place in PLACES if place in places.values()]
        for above, place in enumerate(reversed(shown), start=2):  # the chosen one comes last
            look = PLACES[place]
            mark: dict[str, Any] = {"marker": look.marker, "markerfacecolor": look.face, "markeredgecolor": look.edge}
            mark |= {"linestyle": "none", "markeredgewidth": 1.0, "zorder": above}
            mark["markersize"] = 12 if place == "chosen" else 6
            axes.plot([], [], **mark, label=look.words)
            for name in (name for name in points if places[name] == place):
                axes.plot(*points[name], **mark, gid=NAMED + printable(name))
        faint: dict[str, Any] = {"colors": FAINT, "linewidth": 0.6, "zorder": 0.5}
        axes.vlines(rows.cost, rows.low, rows.high, **faint)
        axes.hlines(rows.quality, rows.cost_low, rows.cost_high, **faint)
        axes.set_xlabel(along)
        axes.set_ylabel(up)
        axes.xaxis.set_major_formatter(lambda value, _: f"\\${value:g}")
        for name, dashes in _BOUNDS.items():
            if name in bounds:
                axes.axhline(
                    bounds[name], color=INK, linestyle=dashes, linewidth=0.8, label=f"bound: {name}", zorder=0.6
                )
        axes.margins(0.06)
        axes.set_xlim(left=0)
        low, high = axes.get_ylim()
        low = max(low, -0.03)
        axes.set_ylim(low, min(high, 1 + 0.04 * (1 - low)))  # shares, and room for a mark
        share_axis(axes.yaxis)
        handles, labels = axes.get_legend_handles_labels()
        drawn.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=3)
        _name_marks(axes, {name: points[name] for name in (*best, *points)}, numbers, line)
    return drawn


_BOUNDS = {"last_turn": ":", "evidence_only": "--"}
"""Lines of the bounds: of what has no memory, and of what has the evidence alone."""


def _name_marks(axes: Axes, points: Mapping[str, Point], numbers: Mapping[str, int], line: Line2D) -> None:
    """Write the name of each strategy where it hides no mark, no name and no line; the first ones have first choice."""
    from matplotlib.transforms import Bbox

    drawn = axes.get_figure(root=True)
    assert drawn is not None
    drawn.draw_without_rendering()  # lays out the axes
    around, path = axes.get_window_extent(), line.get_path().transformed(axes.transData)
    point = drawn.dpi / 72
    centres = {name: axes.transData.transform(place) for name, place in points.items()}
    taken = [Bbox.from_extents(x - 4 * point, y - 4 * point, x + 4 * point, y + 4 * point) for x, y in centres.values()]
    for name, short in short_names(points, _NAME).items():
        for text, (along, up, side) in product((legible(short), str(numbers[name])), _BESIDE):
            shown = axes.annotate(
                text,
                points[name],
                (along, up),
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=7,
                zorder=6,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # over the intervals
            )
            box = shown.get_window_extent().padded(point)
            x0, x1, y0, y1 = around.x0, around.x1, around.y0, around.y1
            inside = x0 <= box.x0 and box.x1 <= x1 and y0 <= box.y0 and box.y1 <= y1
            if inside and not path.intersects_bbox(box, False) and not any(map(box.overlaps, taken)):
                taken.append(box)
                break
            shown.remove()


# Places of a name: points to the right of its mark and above it, and the side of the name that is there.
_BESIDE: tuple[tuple[float, float, Literal["left", "center", "right"]], ...] = (
    *((6, 0, "left"), (-6, 0, "right"), (0, 9, "center"), (0, -9, "center")),
    *((6, 10, "left"), (6, -10, "left"), (-6, 10, "right"), (-6, -10, "right")),
)


def shares(marks: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Return strategy, share, low, high: both ends equal the share where it has no interval."""
    return pd.DataFrame(marks, columns=["strategy", "share", "low", "high"])


def between(
    rows: pd.DataFrame, bounds: Mapping[str, float], along: str = "correct", *, in_percent: bool = True
) -> Figure:
    """Draw values with their intervals, from `shares`, and the known `bounds` by their names."""
    with style():
        drawn, (axes,) = by_row(rows.strategy, 6.4, 1.2, _ROW)
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
            drawn.legend(loc="outside upper center", ncols=2)
    return drawn

"""Tokens read from the cache, predicted against reported: a panel a model, a mark a call, on the diagonal if exact."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from ...metrics.validation.recorded import Compared
from ..words import count
from .panels import short
from .style import COLOURS, FAINT, INK, MARKERS, figure, legible, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

KINDS = ("exact", "both read, another length", "only one of the two reads")
"""What is told apart, by shape and colour. The third kind lies on an axis."""
ACROSS = 2
SIDE = 3.6
"""Inches of a panel."""
LINE = 36
"""Characters of a line above a panel."""


def agreement(rows: Sequence[Compared]) -> Figure:
    """One panel a model and rule under which anything was read, or predicted to be, in the order of the tables."""
    panels: dict[tuple[str, str], list[Compared]] = {}
    for row in rows:
        if row.reported:
            panels.setdefault((row.model, row.rule.since), []).append(row)
    read = {name: calls for name, calls in panels.items() if any(row.read or row.predicted.read for row in calls)}
    across = max(1, min(ACROSS, len(read)))
    down = max(1, -(-len(read) // across))
    with style():
        drawn = figure(across * SIDE + 0.4, down * SIDE + 0.8)
        grid = list(drawn.subplots(down, across, squeeze=False).flat)
        for axes, ((model, since), calls) in zip(grid, read.items(), strict=False):
            _panel(axes, model, since, calls)
        for axes in grid[len(read) :]:
            axes.set_axis_off()
        if read:
            drawn.legend(loc="outside lower center", ncols=2 * across, handles=grid[0].get_legend_handles_labels()[0])
        else:
            grid[0].text(0.5, 0.5, "nothing was read from a cache,\nand nothing predicted to be", ha="center")
    return drawn


def _panel(axes: Axes, model: str, since: str, rows: Sequence[Compared]) -> None:
    top = max(max(row.predicted.read, row.read) for row in rows) * 1.05
    axes.axline((0, 0), slope=1, color=FAINT, linewidth=0.8, zorder=1, label="predicted = reported")
    for at, kind in enumerate(KINDS):
        points = [(row.read, row.predicted.read) for row in rows if _kind(row) == at]
        axes.plot(
            [reported for reported, _ in points],
            [predicted for _, predicted in points],
            linestyle="none",
            marker=MARKERS[at],
            color=COLOURS[at],
            markersize=5 if at else 3,
            markeredgewidth=0.4,
            markeredgecolor="white",
            alpha=1.0 if at else 0.6,
            label=kind,
            clip_on=False,
            zorder=2 + at,
        )
    axes.set(xlim=(0, top), ylim=(0, top), aspect="equal", xlabel="tokens reported", ylabel="tokens predicted")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(_ticks())
        axis.set_major_formatter(lambda value, _: short(value))
    axes.set_title("\n".join(_title(model, since, rows)), color=INK)


def _title(model: str, since: str, rows: Sequence[Compared]) -> list[str]:
    exact = sum(row.exact for row in rows)
    name = (line.replace("/ ", "/") for line in wrap(legible(model).replace("/", "/ "), LINE))
    return [
        *name,
        *([f"rule since {since}"] if since else []),
        f"{exact:,} of {count(len(rows), 'call')} exact",
    ]


def _kind(row: Compared) -> int:
    """The place of a call's kind in KINDS."""
    if row.exact:
        return 0
    return 1 if row.read and row.predicted.read else 2


def _ticks() -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5, integer=True, steps=[1, 2, 2.5, 5, 10])

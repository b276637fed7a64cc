"""Answers between the floor and the ceiling: a mark a strategy with its interval, two lines for the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .style import COLOURS, INK, figure, legible, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 0.26
"""Inches of a strategy."""
ENDS = {"floor": ("last_turn", COLOURS[1], ":"), "ceiling": ("evidence_only", COLOURS[2], "--")}


class Mark(NamedTuple):
    """A share with its interval; the ends are the share where there is none."""

    name: str
    share: float
    low: float
    high: float


def between(marks: Sequence[Mark], bounds: dict[str, float]) -> Figure:
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

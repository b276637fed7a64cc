"""ROC curves: a panel a labelled set, a line a grader, a mark where the grader's own verdicts lie."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from ...harness.calibrating.calibrate import Calibrated
from ...metrics.grading.roc import curve
from ...metrics.value import Missing
from ..calibration_tables import figure as figure_in_words
from ..words import printable
from .style import COLOURS, FAINT, MARKERS, figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS, SIDE, LINE = 2, 3.8, 40
"""Panels beside each other; inches of one; characters of a line in its legend."""


def roc(found: Sequence[Calibrated]) -> Figure:
    """The sets in their order. A set of one class has no curve, and its panel says so."""
    across = min(ACROSS, len(found))
    down = -(-len(found) // across)
    with style():
        drawn = figure(across * SIDE + 0.4, down * SIDE + 0.4)
        grid = list(drawn.subplots(down, across, squeeze=False).flat)
        for axes, each in zip(grid, found, strict=False):
            _panel(axes, each)
        for axes in grid[len(found) :]:
            axes.set_axis_off()
    return drawn


def _panel(axes: Axes, found: Calibrated) -> None:
    axes.axline((0, 0), slope=1, color=FAINT, linewidth=0.8)
    for at, (profile, verdicts) in enumerate(zip(found.profiles, found.verdicts, strict=True)):
        recall, specificity = profile.whole.recall.value, profile.whole.specificity.value
        if isinstance(recall, Missing) or isinstance(specificity, Missing):
            continue
        line, colour = curve(verdicts), COLOURS[at % len(COLOURS)]
        name = fill(printable(f"{profile.grader}  {figure_in_words(profile.whole.auc.value)}"), LINE)
        axes.plot(line.false_positive_rate, line.recall, color=colour, label=name)
        axes.plot(1 - specificity, recall, linestyle="none", marker=MARKERS[at % len(MARKERS)], color=colour)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.set(xlabel="of wrong answers, called right", ylabel="of right answers, called right")
    axes.set_title(printable(f"{found.labels.name}: {len(found.labels.answers):,} answers"))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", title="AUC", alignment="left")
    else:
        axes.text(0.5, 0.5, "labels of one class only:\nthere is no curve", ha="center", va="center")

"""Agreement figures: cache reads predicted against reported, and ROC curves of graders against human labels."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, wrap
from typing import TYPE_CHECKING

from ctxbench.harness.graders.calibration import Calibrated
from ctxbench.metrics.grading.agreement import curve
from ctxbench.metrics.validation.comparison import ComparedCall
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.text import printable

from ..calibration import figure as figure_in_words
from ..render import count
from .panels import short
from .style import COLOURS, FAINT, INK, MARKERS, figure, legible, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator


KINDS = ("exact", "both read, another length", "only one of the two reads")
"""Kinds of calls, told apart by shape and colour. The third kind lies on an axis."""

# Panels beside each other, inches of one, and characters of a line above it.
_ACROSS, _SIDE, _LINE = 2, 3.6, 36
# The same for ROC curves, the line being that of a legend.
_ROC_ACROSS, _ROC_SIDE, _ROC_LINE = 2, 3.8, 40


def agreement(rows: Sequence[ComparedCall]) -> Figure:
    """Draw tokens read from the cache, one panel for each model and rule with any, one mark for each call."""
    panels: dict[tuple[str, str], list[ComparedCall]] = {}
    for row in rows:
        if row.reported:
            panels.setdefault((row.model, row.rule.since), []).append(row)
    read = {name: calls for name, calls in panels.items() if any(row.read or row.predicted.read for row in calls)}
    across = max(1, min(_ACROSS, len(read)))
    down = max(1, -(-len(read) // across))
    with style():
        drawn = figure(across * _SIDE + 0.4, down * _SIDE + 0.8)
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


def _panel(axes: Axes, model: str, since: str, rows: Sequence[ComparedCall]) -> None:
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


def _title(model: str, since: str, rows: Sequence[ComparedCall]) -> list[str]:
    exact = sum(row.exact for row in rows)
    name = (line.replace("/ ", "/") for line in wrap(legible(model).replace("/", "/ "), _LINE))
    return [
        *name,
        *([f"rule since {since}"] if since else []),
        f"{exact:,} of {count(len(rows), 'call')} exact",
    ]


def _kind(row: ComparedCall) -> int:
    """Return the index of a call's kind in KINDS."""
    if row.exact:
        return 0
    return 1 if row.read and row.predicted.read else 2


def _ticks() -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5, integer=True, steps=[1, 2, 2.5, 5, 10])


def roc(results: Sequence[Calibrated]) -> Figure:
    """Draw ROC curves, one panel for each labelled set. A set of one class has no curve, and its panel says so."""
    across = min(_ROC_ACROSS, len(results))
    down = -(-len(results) // across)
    with style():
        drawn = figure(across * _ROC_SIDE + 0.4, down * _ROC_SIDE + 0.4)
        grid = list(drawn.subplots(down, across, squeeze=False).flat)
        for axes, calibrated in zip(grid, results, strict=False):
            _panel_roc(axes, calibrated)
        for axes in grid[len(results) :]:
            axes.set_axis_off()
    return drawn


def _panel_roc(axes: Axes, calibrated: Calibrated) -> None:
    axes.axline((0, 0), slope=1, color=FAINT, linewidth=0.8)
    for at, (profile, verdicts) in enumerate(zip(calibrated.profiles, calibrated.verdicts, strict=True)):
        recall, specificity = profile.whole.recall.value, profile.whole.specificity.value
        if isinstance(recall, Missing) or isinstance(specificity, Missing):
            continue
        line, colour = curve(verdicts), COLOURS[at % len(COLOURS)]
        name = fill(printable(f"{profile.grader}  {figure_in_words(profile.whole.auc.value)}"), _ROC_LINE)
        axes.plot(line.false_positive_rate, line.recall, color=colour, label=name)
        axes.plot(1 - specificity, recall, linestyle="none", marker=MARKERS[at % len(MARKERS)], color=colour)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.set(xlabel="of wrong answers, called right", ylabel="of right answers, called right")
    axes.set_title(printable(f"{calibrated.labels.name}: {len(calibrated.labels.answers):,} answers"))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", title="AUC", alignment="left")
    else:
        axes.text(0.5, 0.5, "labels of one class only:\nthere is no curve", ha="center", va="center")

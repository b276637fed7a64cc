"""The figures of a run's report, one by one: the only module here that knows how the report draws them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ctxbench.reports.figures.style import INK, row_name, style
from ctxbench.reports.html import sections
from ctxbench.reports.html.page import ReportSection, left_out
from ctxbench.reports.render import Table
from ctxbench.reports.results import Results
from ctxbench.scenarios.errors import RunError, SpecError
from ctxbench.scenarios.spec import suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: Mapping[str, tuple[Callable[[Results], ReportSection | None], str]] = {
    "frontier": (sections.overview_section, "frontier"),
    "growth": (sections.growth_section, "growth"),
    "bill": (sections.bill_section, "bill"),
    "cache": (sections.cache_section, "cached_share"),
    "break_even": (sections.cache_section, "break_even"),
    "grounding": (sections.grounding_section, "grounding"),
    "answers": (sections.answers_section, "answers"),
    "survival": (sections.survival_section, "survival"),
    "latency": (sections.latency_section, "decisions"),
    "miss_ratios": (sections.tiers_section, "miss_ratios"),
}
"""Section of the report that has each figure, and the figure's name there."""

_WIDTH_OF_NAMES = 2.6
"""Inches beside the frontier for the names of the strategies."""


def plot(results: Results, name: str) -> Figure:
    """Draw a figure for papers by its name in FIGURES. A notebook shows it inline.

    Raises SpecError for an unknown name, RunError where the run has nothing to draw.
    """
    if name not in FIGURES:
        raise SpecError(f"unknown figure {name!r}{suggestion(name, FIGURES)}")
    find, drawn_as = FIGURES[name]
    section = find(results)
    chart = next((chart for chart in (section.charts if section is not None else ()) if chart.name == drawn_as), None)
    if section is None or chart is None:
        raise RunError(f"{results.run.folder}: there is nothing to draw: {left_out(drawn_as).notes[0]}")
    _show_inline()
    drawn = chart.draw()
    if name == "frontier":
        from matplotlib.lines import Line2D

        # The names beside the numbers; in the report its table has them.
        rows = next((part.rows for part in section.parts if isinstance(part, Table) and part.heads[0] == "#"), ())
        look = {"linestyle": "none", "markersize": 5, "markeredgewidth": 0.2, "color": INK}
        names = [Line2D([], [], marker=f"${number}$", label=row_name(label), **look) for number, label, *_ in rows]  # type: ignore[arg-type]
        with style():
            drawn.set_figwidth(drawn.get_figwidth() + _WIDTH_OF_NAMES)
            drawn.legend(handles=names, loc="outside right center")
    return drawn


def _show_inline() -> None:
    """Have a notebook show figures that were drawn without pyplot, which would otherwise see to it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    from matplotlib.figure import Figure

    formatters = shell.display_formatter.formatters
    if not any(Figure in formatters[kind].type_printers for kind in ("image/png", "image/svg+xml", "image/jpeg")):
        from IPython.core.pylabtools import select_figure_formats

        select_figure_formats(shell, {"png"})  # type: ignore[no-untyped-call]

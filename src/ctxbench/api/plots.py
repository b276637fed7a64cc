"""The figures of a run's report, one by one: the only module here that knows how the report draws them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ctxbench.reports.figures.style import INK, row_name, style
from ctxbench.reports.html import sections
from ctxbench.reports.html.page import ReportSection, left_out
from ctxbench.reports.render import Table
from ctxbench.reports.results import Results
from ctxbench.scenarios.errors import RunError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_WIDTH_OF_NAMES = 2.6
"""Inches beside the frontier for the names of the strategies."""


def _drawing(section: Callable[[Results], ReportSection | None], chart: str, about: str) -> Callable[[Plots], Figure]:
    """Return the method that draws a chart of a section."""

    def draw(plots: Plots) -> Figure:
        found = section(plots.results)
        for drawn in found.charts if found is not None else ():
            if drawn.name == chart:
                _show_inline()
                return drawn.draw()
        raise RunError(f"{plots.results.run.folder}: there is nothing to draw: {left_out(chart).notes[0]}")

    draw.__doc__ = about
    return draw


class Plots:
    """Figures of a run as matplotlib draws them for papers. A notebook shows them inline.

    Each raises RunError where the run has nothing to draw.
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    def frontier(self) -> Figure:
        """Draw quality and cost of every strategy, numbered, and the line of those worth choosing."""
        from matplotlib.lines import Line2D

        drawn = _drawing(sections.overview_section, "frontier", "")(self)
        # The names beside the numbers; in the report its table has them.
        parts = sections.overview_section(self.results).parts
        rows = next((part.rows for part in parts if isinstance(part, Table) and part.heads[0] == "#"), ())
        look = {"linestyle": "none", "markersize": 5, "markeredgewidth": 0.2, "color": INK}
        names = [Line2D([], [], marker=f"${number}$", label=row_name(name), **look) for number, name, *_ in rows]  # type: ignore[arg-type]
        with style():
            drawn.set_figwidth(drawn.get_figwidth() + _WIDTH_OF_NAMES)
            drawn.legend(handles=names, loc="outside right center")
        return drawn

    growth = _drawing(sections.growth_section, "growth", "Draw the tokens of a call by turn.")
    bill = _drawing(sections.bill_section, "bill", "Draw the parts of each strategy's bill.")
    cache = _drawing(sections.cache_section, "cached_share", "Draw the share of calls read from the cache, by turn.")
    break_even = _drawing(sections.cache_section, "break_even", "Draw the cost up to each turn against `none`.")
    grounding = _drawing(sections.grounding_section, "grounding", "Draw grounding recall by turn.")
    answers = _drawing(sections.answers_section, "answers", "Draw the share of right answers, with intervals.")
    survival = _drawing(sections.survival_section, "survival", "Draw the facts still in the summary, by round.")
    latency = _drawing(sections.latency_section, "decisions", "Draw how long each strategy takes at a call.")
    miss_ratios = _drawing(sections.tiers_section, "miss_ratios", "Draw misses of caches of messages, by size.")


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

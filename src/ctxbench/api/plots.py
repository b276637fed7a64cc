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


class Plots:
    """Figures of a run as matplotlib draws them for papers. A notebook shows them inline.

    Each raises RunError where the run has nothing to draw.
    """

    def __init__(self, results: Results) -> None:
        self._results = results

    def frontier(self) -> Figure:
        """Draw quality and cost of every strategy, numbered, and the line of the cheapest for their quality."""
        from matplotlib.lines import Line2D

        drawn = self._draw(sections.overview_section, "frontier")
        # The names beside the numbers; in the report its table has them.
        parts = sections.overview_section(self._results).parts
        rows = next((part.rows for part in parts if isinstance(part, Table) and part.heads[0] == "#"), ())
        look = {"linestyle": "none", "markersize": 5, "markeredgewidth": 0.2, "color": INK}
        names = [Line2D([], [], marker=f"${number}$", label=row_name(name), **look) for number, name, *_ in rows]  # type: ignore[arg-type]
        with style():
            drawn.set_figwidth(drawn.get_figwidth() + _WIDTH_OF_NAMES)
            drawn.legend(handles=names, loc="outside right center")
        return drawn

    def growth(self) -> Figure:
        """Draw the tokens of a call by turn."""
        return self._draw(sections.growth_section, "growth")

    def bill(self) -> Figure:
        """Draw the parts of each strategy's bill: cache reads, cache writes, other input, output, own calls."""
        return self._draw(sections.bill_section, "bill")

    def cache(self) -> Figure:
        """Draw the share of each call that the provider reads from its cache, by turn."""
        return self._draw(sections.cache_section, "cached_share")

    def break_even(self) -> Figure:
        """Draw what each strategy has cost up to each turn, against the whole history."""
        return self._draw(sections.cache_section, "break_even")

    def grounding(self) -> Figure:
        """Draw grounding recall by turn."""
        return self._draw(sections.grounding_section, "grounding")

    def answers(self) -> Figure:
        """Draw the share of questions that each strategy's contexts let the model answer, with intervals."""
        return self._draw(sections.answers_section, "answers")

    def survival(self) -> Figure:
        """Draw the share of facts that are still in the summary, by round of summarising."""
        return self._draw(sections.survival_section, "survival")

    def latency(self) -> Figure:
        """Draw how long each strategy takes to build a context."""
        return self._draw(sections.latency_section, "decisions")

    def miss_ratios(self) -> Figure:
        """Draw miss ratios of caches of messages, by policy and size."""
        return self._draw(sections.tiers_section, "miss_ratios")

    def _draw(self, section: Callable[[Results], ReportSection | None], name: str) -> Figure:
        found = section(self._results)
        for chart in found.charts if found is not None else ():
            if chart.name == name:
                _show_inline()
                return chart.draw()
        raise RunError(f"{self._results.run.folder}: there is nothing to draw: {left_out(name).notes[0]}")


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

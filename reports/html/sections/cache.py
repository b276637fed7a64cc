"""What prompt caches hold: the share read at each step, when a strategy pays off, what breaks the prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache as once
from typing import TYPE_CHECKING

import pandas as pd

from ...billing import broken, causes
from ...figures.billing import against_none, by_gap, cached_share
from ...results import Results
from ..section import Drawn, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def section(results: Results) -> Section | None:
    """None where nothing was billed."""
    found = results.totals
    if found.empty:
        return None

    @once
    def calls() -> Mapping[str, pd.DataFrame]:
        return {scheme.model: results.billed.calls(scheme) for scheme in results.billed.schemes}

    def drawing(draw: Callable[[Mapping[str, pd.DataFrame]], Figure]) -> Callable[[], Figure]:
        return lambda: draw(calls())

    share = Drawn(
        "cached_share",
        "Share of the prompt read from the cache, by step",
        "A panel a strategy, a line a model: of the prompt tokens of the calls at that place in their conversations, "
        "the share that the provider would read from its cache.",
        drawing(cached_share),
    )
    gap = Drawn(
        "hit_rate_by_gap",
        "Hit rate by the pause before the call",
        "For the whole history (none), a line a model: the share of prompt tokens read from the cache, by how long the "
        "conversation was silent. A cache forgets after minutes.",
        drawing(by_gap),
    )
    even = Drawn(
        "break_even",
        "Cost so far against none, by turn",
        "A panel a strategy, a line a model: what the strategy has cost up to a turn, by what none has; the median of "
        "the conversations that are as long. Under 1 it has paid off.",
        drawing(against_none),
    )
    figures = [share, gap, even] if "none" in set(results.billed.cells.steps.strategy) else [share]
    table = broken(results.breaks, list(found.strategy.unique()), int(found.calls.max()))
    lead = (
        "A provider reads from its cache what is the same, from the start on, as in a call before. These are its "
        "rules, simulated."
    )
    lead = " ".join((lead, *results.sampled))
    return Section("cache", "Prompt cache", lead, (*figures, table), {"prefix_breaks": causes(results.breaks)})

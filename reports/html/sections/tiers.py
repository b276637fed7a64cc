"""Which memory tier had what was looked up, what went from one to another, and which limits were crossed."""

from __future__ import annotations

import pandas as pd

from ...figures.tiers import found_by_tier
from ...results import Results
from ...tier_deeds import TIERS, TierDeeds, tables
from ..section import Drawn, Section


def section(results: Results) -> Section | None:
    """None where no strategy has tiers."""
    found = results.summary.tiers
    if not found:
        return None
    looked = {name: deeds for name, deeds in found.items() if deeds.found.total() and deeds.has_quotas}
    drawn = Drawn(
        "tiers",
        "Which tier had what was looked up",
        "A bar a strategy: the shares of Focus, Working, Archive and RAG among the messages that it looked up.",
        lambda: found_by_tier(looked),
    )
    lead = "Memories go down to slower tiers as they age, and up when they are asked for."
    return Section("tiers", "Tiers", lead, (*((drawn,) if looked else ()), *tables(found)), _frames(found))


def _frames(found: dict[str, TierDeeds]) -> dict[str, pd.DataFrame]:
    """Exact figures, those that have any."""
    looked = [(name, tier, deeds.found[tier]) for name, deeds in found.items() if deeds.has_quotas for tier in TIERS]
    moved = [
        (name, source, to or "out", edge.times, edge.messages, edge.tokens if deeds.has_quotas else None, edge.waited)
        for name, deeds in found.items()
        for (source, to), edge in sorted(deeds.moves.items())
    ]
    crossed = [(name, *limit, times) for name, deeds in found.items() for limit, times in sorted(deeds.crossed.items())]
    made = {
        "tier_hits": pd.DataFrame(looked, columns=["strategy", "tier", "messages"]),
        "migrations": pd.DataFrame(
            moved, columns=["strategy", "from", "to", "times", "messages", "tokens", "waited_seconds"]
        ),
        "limits": pd.DataFrame(crossed, columns=["strategy", "tier", "limit", "times"]),
    }
    return {name: frame for name, frame in made.items() if not frame.empty}

"""Which memory tier had what was looked up, what went from one to another, which limits were crossed, and what a
Working tier of each size would miss.
"""

from __future__ import annotations

import pandas as pd

from ...figures.tiers import found_by_tier, miss_ratios
from ...render import Table
from ...results import Results
from ...tier_deeds import TIERS, TierDeeds, tables
from ...words import count
from ..section import Drawn, Section


def section(results: Results) -> Section | None:
    """None where no strategy has tiers, and nothing is gone back to."""
    found, curves = results.summary.tiers, results.miss_ratios
    looked = {name: deeds for name, deeds in found.items() if deeds.found.total() and deeds.has_quotas}
    parts: list[Drawn | Table] = []
    if looked:
        parts.append(
            Drawn(
                "tiers",
                "Which tier had what was looked up",
                "A bar a strategy: the shares of Focus, Working, Archive and RAG among the messages that it looked up.",
                lambda: found_by_tier(looked),
            )
        )
    parts += tables(found)
    if not curves.empty:
        parts.append(_curves(curves))
    lead = "Memories go down to slower tiers as they age, and up when they are asked for."
    return Section("tiers", "Tiers", lead, tuple(parts), _frames(found, curves)) if parts else None


def _curves(curves: pd.DataFrame) -> Drawn:
    look_ups, conversations = int(curves.look_ups.iloc[0]), int(curves.conversations.iloc[0])
    about = (
        "What the recordings go back to (quotations, identifiers, evidence of questions): "
        f"{count(look_ups, 'look-up')} in {count(conversations, 'conversation')}. The share that a cache of messages "
        "misses, by its size, under three policies; belady knows the future. Into the grey no policy comes."
    )
    return Drawn("miss_ratios", "How large Working would have to be", about, lambda: miss_ratios(curves))


def _frames(found: dict[str, TierDeeds], curves: pd.DataFrame) -> dict[str, pd.DataFrame]:
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
        "miss_ratios": curves,
        "limits": pd.DataFrame(crossed, columns=["strategy", "tier", "limit", "times"]),
    }
    return {name: frame for name, frame in made.items() if not frame.empty}

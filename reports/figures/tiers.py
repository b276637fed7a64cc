"""Where strategies with memory tiers found what they looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..tier_deeds import TIERS, TierDeeds
from .style import COLOURS, figure, legible, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES = {"focus": "Focus", "working": "Working", "archive": "Archive", "rag": "RAG"}


def found_by_tier(deeds: Mapping[str, TierDeeds]) -> Figure:
    """A bar a strategy: of the messages that it looked up, the share that each tier had, with their number."""
    with style():
        drawn = figure(6.4, 1.4 + 0.3 * len(deeds))
        axes = drawn.subplots()
        left = np.zeros(len(deeds))
        for at, tier in enumerate(TIERS):
            counts = np.array([each.found[tier] for each in deeds.values()], float)
            wide = 100 * counts / np.maximum([each.found.total() for each in deeds.values()], 1)
            bars = axes.barh(range(len(deeds)), wide, left=left, color=COLOURS[at], label=_NAMES[tier], height=0.75)
            told = [f"{count:,.0f}" if share > 8 else "" for count, share in zip(counts, wide, strict=True)]
            axes.bar_label(bars, told, label_type="center", color="white", fontsize=7)
            left += wide
        axes.set_yticks(range(len(deeds)), [legible(each) for each in deeds])
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel("of the messages looked up, %")
        axes.grid(visible=False, axis="y")
        drawn.legend(loc="outside lower center", ncols=len(TIERS))
    return drawn

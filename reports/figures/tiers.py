"""Where strategies with memory tiers found what they looked up, and what a Working tier of each size would miss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...harness.miss_ratios import BOUND
from ..tier_deeds import TIERS, TierDeeds
from .style import COLOURS, FAINT, MARKERS, figure, legible, style

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


def miss_ratios(found: pd.DataFrame) -> Figure:
    """A curve a policy: misses by the cache's size. Below the bound no policy comes."""
    with style():
        drawn = figure(6.4, 3.6)
        axes = drawn.subplots()
        for at, (policy, rows) in enumerate(found.groupby("policy", sort=False)):
            if policy == BOUND:
                axes.fill_between(rows["size"], 0, 100 * rows.misses, color=FAINT, alpha=0.5, lw=0, label="no policy")
            else:
                axes.plot(
                    rows["size"], 100 * rows.misses, label=legible(str(policy)), color=COLOURS[at], marker=MARKERS[at]
                )
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes := sorted(set(found["size"])), [f"{size // 1024}K" for size in sizes])
        axes.set_xlabel("tokens that Working holds")
        axes.set_ylabel("misses, %")
        axes.set_ylim(0, None)
        drawn.legend(loc="outside lower center", ncols=4)
    return drawn

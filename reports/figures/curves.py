"""What happens as conversations grow: tokens sent, values still in the context, facts that outlive summaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...metrics.survival import Survival
from .panels import REFERENCE, Line, from_nothing, linear, logarithmic, panels, share, short
from .style import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, np.inf)
"""Turns at which a bin begins, for shares that a single turn has too few of."""
FEW = 20
"""Values, or facts, below which a point is not drawn."""
OURS = {"color": COLOURS[0], "marker": MARKERS[0], "markersize": 2.5}


def growth(curve: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """Tokens of a model call by turn. `curve`: as `metrics.figures.growth` gives it."""
    lines = {}
    for name in strategies:
        rows = curve[curve.strategy == name].sort_values("turn")
        turns = rows.turn.to_numpy(float)
        lines[name] = [
            Line(turns, rows.tokens_full.to_numpy(float), "history", REFERENCE),
            Line(turns, rows.tokens_sent.to_numpy(float), "sent", {**OURS, "marker": ""}),
        ]
    x, y = logarithmic(short), logarithmic(short)
    return panels(lines, "turn of the conversation", "tokens of a model call (mean)", x, y)


def grounding(steps: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """Of the values that the recorded model used next, the share still in the context, by turn.

    `steps`: with `strategy`, `turn`, `demands`, `demands_kept`.
    """
    edges = np.array(EDGES)
    places = np.searchsorted(edges, steps.turn, side="right") - 1
    sums = steps.groupby([steps.strategy, places], observed=True)[["demands", "demands_kept"]].sum()
    middles = np.array([(low + min(high, 2 * low) - 1) / 2 for low, high in pairwise(edges)])
    lines = {}
    for name in strategies:
        rows = sums.loc[name] if name in sums.index.get_level_values(0) else sums.iloc[:0].droplevel(0)
        rows = rows[rows.demands >= FEW]
        at = middles[rows.index.to_numpy(int)]
        lines[name] = [Line(at, (rows.demands_kept / rows.demands).to_numpy(float), "still in the context", OURS)]
    x, y = logarithmic(short), linear(share, 0, 1)
    return panels(lines, "turn of the conversation", "values still in the context", x, y)


def survival(found: Mapping[str, Iterable[Survival]]) -> Figure:
    """Facts still in the summary by rounds of summarising, for each strategy that summarises."""
    lines = {}
    for name, rows in found.items():
        ages: dict[int, list[int]] = {}
        for row in rows:
            sums = ages.setdefault(row.age, [0, 0])
            sums[0] += row.values
            sums[1] += row.kept
        told = {age: kept / wanted for age, (wanted, kept) in sorted(ages.items()) if wanted >= FEW}
        x, y = np.array(list(told), float), np.array(list(told.values()), float)
        lines[name] = [Line(x, y, "facts still in the summary", OURS)]
    along = "rounds of summarising since the fact was replaced"
    return panels(lines, along, "facts still there", from_nothing(short), linear(share, 0, 1), rule=0.5)

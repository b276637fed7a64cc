"""Curves over turns, rounds and sizes: growth, grounding recall, facts in summaries, latency, tiers, misses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...harness.tier_bench.working import BOUND
from ...metrics.survival import Survival
from ..tier_actions import TIERS, TierActions
from .panels import REFERENCE, Line, from_nothing, linear, logarithmic, panels, share, short
from .style import COLOURS, FAINT, MARKERS, figure, legible, row_name, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Turns at which a bin begins, for shares that a single turn has too few values of.
_EDGES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, np.inf)
# Values, or facts, below which a point is not drawn.
_LEAST = 20
_LOOK = {"color": COLOURS[0], "marker": MARKERS[0], "markersize": 2.5}


def growth(curve: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """Draw the tokens of a model call by turn. `curve` comes from `metrics.figures.growth`."""
    lines = {}
    for name in strategies:
        rows = curve[curve.strategy == name].sort_values("turn")
        turns = rows.turn.to_numpy(float)
        lines[name] = [
            Line(turns, rows.tokens_full.to_numpy(float), "whole history", REFERENCE),
            Line(turns, rows.tokens_sent.to_numpy(float), "sent", {**_LOOK, "marker": ""}),
        ]
    x, y = logarithmic(short), logarithmic(short)
    return panels(lines, "turn of the conversation", "tokens of a model call (mean)", x, y)


def grounding(steps: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """Draw grounding recall by turn. `steps` has the columns `strategy`, `turn`, `demands` and `demands_kept`."""
    edges = np.array(_EDGES)
    places = np.searchsorted(edges, steps.turn, side="right") - 1
    sums = steps.groupby([steps.strategy, places], observed=True)[["demands", "demands_kept"]].sum()
    middles = np.array([(low + min(high, 2 * low) - 1) / 2 for low, high in pairwise(edges)])
    lines = {}
    for name in strategies:
        rows = sums.loc[name] if name in sums.index.get_level_values(0) else sums.iloc[:0].droplevel(0)
        rows = rows[rows.demands >= _LEAST]
        at = middles[rows.index.to_numpy(int)]
        lines[name] = [Line(at, (rows.demands_kept / rows.demands).to_numpy(float), "still in the context", _LOOK)]
    x, y = logarithmic(short), linear(share, 0, 1)
    return panels(lines, "turn of the conversation", "grounding recall", x, y)


def survival(facts: Mapping[str, Iterable[Survival]]) -> Figure:
    """Draw the facts still in the summary by rounds of summarising, for each strategy that summarises."""
    lines = {}
    for name, rows in facts.items():
        ages: dict[int, list[int]] = {}
        for row in rows:
            sums = ages.setdefault(row.age, [0, 0])
            sums[0] += row.values
            sums[1] += row.kept
        shares = {age: kept / wanted for age, (wanted, kept) in sorted(ages.items()) if wanted >= _LEAST}
        x, y = np.array(list(shares), float), np.array(list(shares.values()), float)
        lines[name] = [Line(x, y, "facts still in the summary", _LOOK)]
    along = "rounds of summarising since the fact was replaced"
    return panels(lines, along, "facts still in the summary", from_nothing(short), linear(share, 0, 1), rule=0.5)


def latency(times: Mapping[str, tuple[float, float]]) -> Figure:
    """Draw the median and the 99th percentile of each strategy's latency, given in microseconds."""
    from matplotlib.ticker import NullLocator

    names = list(times)
    rows = range(len(names))
    with style():
        drawn = figure(7.2, 1.1 + 0.24 * len(names))
        axes = drawn.subplots()
        medians, slowest = [times[name][0] for name in names], [times[name][1] for name in names]
        axes.hlines(rows, medians, slowest, color=COLOURS[0], linewidth=1)
        dots: dict[str, Any] = {"linestyle": "none", "color": COLOURS[0], "markersize": 4}
        axes.plot(medians, rows, marker=MARKERS[0], label="median", **dots)
        axes.plot(slowest, rows, marker=MARKERS[1], label="99th percentile", **{**dots, "color": COLOURS[1]})
        axes.set_yticks(rows, [row_name(name) for name in names])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("latency")
        axes.xaxis.set_major_formatter(lambda value, _: duration(value))
        axes.xaxis.set_minor_locator(NullLocator())
        drawn.legend(loc="outside lower center", ncols=2)
    return drawn


def duration(microseconds: float) -> str:
    """Return the text of a tick: 0.1 µs · 10 µs · 1 ms · 2 s."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds:g} µs"


_NAMES = {"focus": "Focus", "working": "Working", "archive": "Archive", "rag": "RAG"}


def found_by_tier(by_strategy: Mapping[str, TierActions]) -> Figure:
    """Draw the share of the looked-up messages that each tier had, with their number: one bar for each strategy."""
    with style():
        drawn = figure(6.4, 1.4 + 0.3 * len(by_strategy))
        axes = drawn.subplots()
        left = np.zeros(len(by_strategy))
        for at, tier in enumerate(TIERS):
            counts = np.array([actions.hits[tier] for actions in by_strategy.values()], float)
            wide = 100 * counts / np.maximum([actions.hits.total() for actions in by_strategy.values()], 1)
            bars = axes.barh(
                range(len(by_strategy)), wide, left=left, color=COLOURS[at], label=_NAMES[tier], height=0.75
            )
            labels = [f"{count:,.0f}" if share > 8 else "" for count, share in zip(counts, wide, strict=True)]
            axes.bar_label(bars, labels, label_type="center", color="white", fontsize=7)
            left += wide
        axes.set_yticks(range(len(by_strategy)), [row_name(name) for name in by_strategy])
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the messages looked up, %")
        axes.grid(visible=False, axis="y")
        drawn.legend(loc="outside lower center", ncols=len(TIERS))
    return drawn


def miss_ratios(ratios: pd.DataFrame) -> Figure:
    """Draw misses by the size of the cache, one curve for each policy. No policy can be below the bound."""
    with style():
        drawn = figure(6.4, 3.6)
        axes = drawn.subplots()
        for at, (policy, rows) in enumerate(ratios.groupby("policy", sort=False)):
            if policy == BOUND:
                axes.fill_between(rows["size"], 0, 100 * rows.misses, color=FAINT, alpha=0.5, lw=0, label="no policy")
            else:
                axes.plot(
                    rows["size"], 100 * rows.misses, label=legible(str(policy)), color=COLOURS[at], marker=MARKERS[at]
                )
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes := sorted(set(ratios["size"])), [f"{size // 1024}K" for size in sizes])
        axes.set_xlabel("tokens that Working holds")
        axes.set_ylabel("misses, %")
        axes.set_ylim(0, None)
        drawn.legend(loc="outside lower center", ncols=4)
    return drawn

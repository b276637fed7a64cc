"""Charts of a run's report, each a function that makes its rows and one that draws them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ctxbench.harness.tier_bench.working import BOUND
from ctxbench.metrics.survival import Survival

from ..render import count
from ..tier_actions import TIERS, TierActions
from .panels import REFERENCE, Line, Maker, from_nothing, linear, logarithmic, look, panels
from .style import COLOURS, FAINT, MARKERS, ON_COLOUR, by_row, duration, figure, legible, share, short, style, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PARTS = {
    "cost_read": "read from the cache",
    "cost_written": "written to it",
    "cost_fresh": "plain input",
    "cost_output": "output",
    "cost_storage": "storage",
    "cost_own": "own model calls",
}
"""Parts of a bill: the column of a table of costs, and its words."""
TIER_NAMES = {"focus": "Focus", "working": "Working", "archive": "Archive", "rag": "RAG"}
GAPS = {5: "< 5 s", 15: "15 s", 60: "1 min", 300: "5 min", 600: "10 min", 3600: "1 h", 86400: "1 day", np.inf: "more"}
"""Pauses between two calls: up to so many seconds, in words."""

Calls = Mapping[str, pd.DataFrame]
"""Calls of each model, as `Billed.calls` returns them."""
OF_CALLS = ("tokens", "read", "cost", "cost_own")
"""Columns of these calls that figures are made of, beside those of the steps and the pause."""

# Turns at which a bin begins, for shares that a single turn has too few values of.
_TURN_EDGES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, np.inf)
# Bins of steps along a conversation; calls that a bin, and conversations that a median needs at least.
_BINS = 24
_LEAST_CALLS = 5
_LEAST_CONVERSATIONS = 2
# Values, or facts, below which a point is not drawn.
_LEAST = 20


def _panels(
    rows: pd.DataFrame, columns: tuple[str, str], words: tuple[str, str], x: Maker, y: Maker, rule: float | None = None
) -> Figure:
    """Draw a panel for each strategy, with a line for each model where the rows have several.

    `columns` are those along and up, `words` stand beside the axes.
    """
    if "model" not in rows:
        rows = rows.assign(model=words[1])
    models, lines = list(rows.model.unique()), dict[str, list[Line]]()
    for (strategy, model), own in rows.groupby(["strategy", "model"], sort=False):
        x_values, y_values = own[[*columns]].to_numpy(float).T
        line = Line(x_values, y_values, str(model), look(models.index(model)))
        lines.setdefault(str(strategy), []).append(line)
    drawn = panels(lines, *words, x, y, rule)
    if not lines:
        drawn.text(0.5, 0.5, "nothing to compare with: none was not run", ha="center")
    return drawn


_TURN = "turn of the conversation"
_SHARES = linear(share, 0, 1)
grounding = partial(
    _panels, columns=("turn", "kept"), words=(_TURN, "grounding recall"), x=logarithmic(short), y=_SHARES
)
"""Draws grounding recall by turn."""
survival = partial(
    _panels,
    columns=("rounds", "kept"),
    words=("rounds of summarising since the fact was replaced", "facts still in the summary"),
    x=from_nothing(short),
    y=_SHARES,
    rule=0.5,
)
"""Draws the facts still in the summary by rounds of summarising."""
cached_share = partial(
    _panels,
    columns=("call", "read"),
    words=("model call of the conversation", "share of the prompt read from the cache"),
    x=linear(short, low=0),
    y=_SHARES,
)
"""Draws the share of prompt tokens read along a conversation."""
break_even = partial(
    _panels,
    columns=("turn", "ratio"),
    words=(_TURN, "cost so far, by that of none (median)"),
    x=linear(short),
    y=logarithmic(times),
    rule=1,
)
"""Draws the cost of a strategy up to each turn by that of `none`: below 1 it has paid off. The line jumps where some
conversations end."""


def growth_rows(curve: pd.DataFrame) -> pd.DataFrame:
    """Return strategy, turn, whole, sent: mean tokens of a call. `curve` comes from `metrics.figures.growth`."""
    # A call before the first turn has no place on a logarithmic axis.
    rows = curve[curve.turn > 0].sort_values(["strategy", "turn"])
    names = {"tokens_full": "whole", "tokens_sent": "sent"}
    return rows[["strategy", "turn", *names]].rename(columns=names).astype({"strategy": str}).reset_index(drop=True)


def growth(rows: pd.DataFrame) -> Figure:
    """Draw the tokens of a model call by turn."""
    looks = (("whole", "whole history", REFERENCE), ("sent", "sent", {"color": COLOURS[0]}))
    lines = {
        str(name): [Line(own.turn.to_numpy(float), own[key].to_numpy(float), label, of) for key, label, of in looks]
        for name, own in rows.groupby("strategy", sort=False)
    }
    x, y = logarithmic(short), logarithmic(short)
    return panels(lines, _TURN, "tokens of a model call (mean)", x, y)


def grounding_rows(steps: pd.DataFrame) -> pd.DataFrame:
    """Return strategy, turn, kept: the share of the values used next that the context has, by bins of turns.

    `steps` has the columns `strategy`, `turn`, `demands` and `demands_kept`.
    """
    edges = np.array(_TURN_EDGES)
    middles = np.array([(low + min(high, 2 * low) - 1) / 2 for low, high in pairwise(edges)])
    bins = np.searchsorted(edges, steps.turn, side="right") - 1
    sums = steps.groupby([steps.strategy.astype(str).rename("strategy"), bins])[["demands", "demands_kept"]].sum()
    sums = sums[sums.demands >= _LEAST]
    names, at = (sums.index.get_level_values(level) for level in (0, 1))
    kept = (sums.demands_kept / sums.demands).to_numpy()
    return pd.DataFrame({"strategy": names, "turn": middles[at.to_numpy(int)], "kept": kept})


def survival_rows(facts: Mapping[str, Iterable[Survival]]) -> pd.DataFrame:
    """Return strategy, rounds, kept: the share of the facts that a summary still has after rounds of summarising."""
    rows = []
    for name, survivals in facts.items():
        counts = pd.DataFrame(survivals).groupby("age")[["values", "kept"]].sum()
        counts = counts[counts["values"] >= _LEAST]
        rows += [(name, age, kept / wanted) for age, wanted, kept in counts.itertuples()]
    return pd.DataFrame(rows, columns=["strategy", "rounds", "kept"])


def bill_rows(sums: pd.DataFrame) -> pd.DataFrame:
    """Return model, strategy, part, dollars: the parts that any bill has, in the order of PARTS."""
    parts = {name: words for name, words in PARTS.items() if sums[name].fillna(0).to_numpy().any()}
    rows = sums[["model", "strategy", *parts]].astype({"model": str, "strategy": str})
    long = rows.melt(["model", "strategy"], list(parts), "part", "dollars").fillna({"dollars": 0.0})
    return long.assign(part=long.part.map(parts))


def bill(rows: pd.DataFrame) -> Figure:
    """Draw the parts of the bill: one panel for each model, one bar for each strategy."""
    models, strategies = list(rows.model.unique()), list(rows.strategy.unique())
    with style():
        drawn, grid = by_row(strategies, 2.6 + 3.0 * len(models), 1.3, 0.24, len(models))
        for axes, model in zip(grid, models, strict=True):
            _stack(axes, rows[rows.model == model], "part", "dollars", strategies)
            axes.set_title(legible(model))
            axes.set_xlabel("US dollars")
        labels = [axes.get_legend_handles_labels() for axes in grid]
        handles = {words: handle for pair in labels for handle, words in zip(*pair, strict=True)}
        drawn.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles))
    return drawn


def _stack(axes: Axes, rows: pd.DataFrame, part: str, value: str, strategies: list[str]) -> list[Any]:
    """Draw a bar of parts for each strategy; return what matplotlib draws for each part."""
    left, bars = np.zeros(len(strategies)), []
    for at, (name, own) in enumerate(rows.groupby(part, sort=False)):
        wide = own.set_index("strategy")[value].reindex(strategies, fill_value=0.0).to_numpy(float)
        bars.append(axes.barh(range(len(strategies)), wide, left=left, color=COLOURS[at], label=name, height=0.75))
        left += wide
    return bars


def cached_share_rows(calls: Calls) -> pd.DataFrame:
    """Return model, strategy, call, read: the share of the prompt tokens that the cache has, by bins of calls."""
    longest = max(int(frame.step.max()) for frame in calls.values()) + 1
    edges = np.unique(np.linspace(0, longest, min(_BINS, longest) + 1).astype(int))
    middles = (edges[:-1] + edges[1:] - 1) / 2
    frames = []
    for model, frame in calls.items():
        bins = np.searchsorted(edges, frame.step, side="right") - 1
        names = frame.strategy.astype(str).rename("strategy")
        sums = frame.groupby([names, bins], sort=False)[["read", "tokens"]].sum()
        at = sums.index.get_level_values(1).to_numpy(int)
        values = {"strategy": sums.index.get_level_values(0), "call": middles[at], "read": sums.read / sums.tokens}
        frames.append(pd.DataFrame({"model": model, **values}).reset_index(drop=True))
    return pd.concat(frames, ignore_index=True)


def break_even_rows(calls: Calls) -> pd.DataFrame:
    """Return model, strategy, turn, ratio: the cost up to a turn by that of `none`, the median of conversations.

    A turn that fewer than two conversations reach has no row: the median would be one of them.
    """
    frames = []
    for model, frame in calls.items():
        rows = frame.assign(strategy=frame.strategy.astype(str), whole=frame.cost + frame.cost_own)
        rows["so_far"] = rows.groupby(["conversation", "strategy"], observed=True).whole.cumsum()
        none = rows[rows.strategy == "none"].set_index(["conversation", "step"]).so_far
        joined = rows.join(none.rename("none"), on=["conversation", "step"])
        last = joined.groupby(["conversation", "strategy", "turn"], observed=True).tail(1)
        last = last.assign(ratio=last.so_far / last.none).dropna(subset=["ratio"])
        turns = last.groupby(["strategy", "turn"], sort=False).ratio.agg(["median", "size"])
        turns = turns[turns["size"] >= _LEAST_CONVERSATIONS].reset_index()
        frames.append(turns.assign(model=model).rename(columns={"median": "ratio"}))
    columns: list[str] = ["model", "strategy", "turn", "ratio"]
    return pd.concat(frames, ignore_index=True).reindex(columns=columns)


def gap_rows(calls: Calls) -> pd.DataFrame:
    """Return model, gap, calls, read: the share that `none` reads from the cache by the pause before the call."""
    frames = []
    for model, frame in calls.items():
        rows = frame[(frame.strategy == "none") & frame.gap.notna()]
        bins = np.searchsorted((0, *GAPS), rows.gap, side="right") - 1
        sums = rows.assign(calls=1).groupby(bins)[["calls", "read", "tokens"]].sum()
        sums = sums[sums.calls >= _LEAST_CALLS]
        gaps = [list(GAPS.values())[at] for at in sums.index]
        frames.append(pd.DataFrame({"model": model, "gap": gaps, "calls": sums.calls, "read": sums.read / sums.tokens}))
    return pd.concat(frames, ignore_index=True)


def hit_rate_by_gap(rows: pd.DataFrame) -> Figure:
    """Draw the hit rate of the whole history by the pause before the call: a line per model."""
    names, models = list(GAPS.values()), list(rows.groupby("model", sort=False))
    counts = np.zeros(len(names), int)
    with style():
        drawn = figure()
        axes = drawn.subplots()
        for at, (model, own) in enumerate(models):
            places = np.array([names.index(gap) for gap in own.gap], int)
            counts[places] = own.calls
            beside = (at - (len(models) - 1) / 2) * 0.08  # lines of equal figures stay visible
            axes.plot(places + beside, own.read, **{**look(at), "markersize": 6}, label=legible(str(model)))
        if rows.empty:
            axes.text(0.5, 0.5, "no recorded times, or none was not run", ha="center", transform=axes.transAxes)
        ticks = [f"{name}\n{count(int(number), 'call')}" for name, number in zip(names, counts, strict=True)]
        axes.set_xticks(range(len(names)), ticks)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("time since the call before in the conversation began, up to")
        axes.set_ylabel("prompt tokens read from the cache (none)")
        if models:
            axes.legend()
    return drawn


def latency_rows(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return strategy, median, slowest: the median and the 99th percentile of a strategy's latency in microseconds."""
    ends = [(row["strategy"], *(max(row[key], 1e-3) for key in ("latency_p50", "latency_p99"))) for row in rows]
    return pd.DataFrame(ends, columns=["strategy", "median", "slowest"])


def latency(rows: pd.DataFrame) -> Figure:
    """Draw the median and the 99th percentile of each strategy's latency."""
    from matplotlib.ticker import NullLocator

    places = range(len(rows))
    with style():
        drawn, (axes,) = by_row(rows.strategy, 7.2, 1.1, 0.24)
        axes.grid(visible=True, axis="y")
        axes.hlines(places, rows["median"], rows.slowest, color=COLOURS[0], linewidth=1)
        for at, (column, label) in enumerate({"median": "median", "slowest": "99th percentile"}.items()):
            dots = {"linestyle": "none", "color": COLOURS[at], "marker": MARKERS[at], "markersize": 4}
            axes.plot(rows[column], places, label=label, **dots)  # type: ignore[arg-type]
        axes.set_xscale("log")
        axes.set_xlabel("latency")
        axes.xaxis.set_major_formatter(duration)
        axes.xaxis.set_minor_locator(NullLocator())
        drawn.legend(loc="outside lower center", ncols=2)
    return drawn


def tier_rows(by_strategy: Mapping[str, TierActions]) -> pd.DataFrame:
    """Return strategy, tier, messages, share: which tier had the messages that were looked up."""
    rows = [
        (name, TIER_NAMES[tier], actions.hits[tier], actions.hits[tier] / max(actions.hits.total(), 1))
        for name, actions in by_strategy.items()
        for tier in TIERS
    ]
    return pd.DataFrame(rows, columns=["strategy", "tier", "messages", "share"])


def tiers(rows: pd.DataFrame) -> Figure:
    """Draw the share of the looked-up messages that each tier had, with their number."""
    strategies = list(rows.strategy.unique())
    with style():
        drawn, (axes,) = by_row(strategies, 6.4, 1.4, 0.3)
        rows = rows.assign(percent=100 * rows.share)
        bars = _stack(axes, rows, "tier", "percent", strategies)
        for bar, (_, own) in zip(bars, rows.groupby("tier", sort=False), strict=True):
            labels = [f"{n:,.0f}" if wide > 8 else "" for n, wide in zip(own.messages, own.percent, strict=True)]
            axes.bar_label(bar, labels, label_type="center", color=ON_COLOUR, fontsize=7)
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the messages looked up, %")
        drawn.legend(loc="outside lower center", ncols=len(bars))
    return drawn


def miss_rows(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return policy, size, misses, is_bound: the share of look-ups that a cache of that many tokens misses."""
    return ratios[["policy", "size", "misses"]].assign(is_bound=ratios.policy == BOUND).astype({"policy": str})


def miss_ratios(rows: pd.DataFrame) -> Figure:
    """Draw misses by the size of the cache, one curve for each policy. No policy can be below the bound."""
    with style():
        drawn = figure(6.4, 3.6)
        axes = drawn.subplots()
        for at, (policy, own) in enumerate(rows.groupby("policy", sort=False)):
            size, misses = own["size"], 100 * own.misses
            if own.is_bound.any():
                axes.fill_between(size, 0, misses, color=FAINT, alpha=0.5, lw=0, label="no policy")
            else:
                axes.plot(size, misses, label=legible(str(policy)), color=COLOURS[at], marker=MARKERS[at])
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes := sorted(set(rows["size"])), [f"{size // 1024}K" for size in sizes])
        axes.set_xlabel("tokens that Working holds")
        axes.set_ylabel("misses, %")
        axes.set_ylim(0, None)
        drawn.legend(loc="outside lower center", ncols=4)
    return drawn

"""The data of each figure as a table of tidy rows: what matplotlib draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from ctxbench.harness.tier_bench.working import BOUND
from ctxbench.metrics.survival import Survival

from ..tier_actions import TIERS, TierActions

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
PLACES = ("worth choosing", "no better than one of these", "breaks something")
"""Places of a strategy on the frontier of quality and cost."""
GAPS = ("< 5 s", "15 s", "1 min", "5 min", "10 min", "1 h", "1 day", "more")
"""Pauses between two calls, each up to."""

Calls = Mapping[str, pd.DataFrame]
"""Calls of each model, as `Billed.calls` returns them."""
OF_CALLS = ("tokens", "read", "cost", "cost_own")
"""Columns of these calls that figures are made of, beside those of the steps and the pause."""

# Edges of GAPS in seconds.
_GAP_EDGES = (0, 5, 15, 60, 300, 600, 3600, 86400, np.inf)
# Turns at which a bin begins, for shares that a single turn has too few values of.
_TURN_EDGES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, np.inf)
# Bins of steps along a conversation; calls that a bin, and conversations that a median needs at least.
_BINS = 24
_LEAST_CALLS = 5
_LEAST_CONVERSATIONS = 2
# Values, or facts, below which a point is not drawn.
_LEAST = 20


class IntervalMark(NamedTuple):
    """Share with its interval; without an interval both ends equal the share."""

    name: str
    share: float
    low: float
    high: float


def growth(curve: pd.DataFrame, strategies: Sequence[str]) -> pd.DataFrame:
    """Return strategy, turn, whole, sent: mean tokens of a call. `curve` comes from `metrics.figures.growth`."""
    # A call before the first turn has no place on a logarithmic axis.
    rows = curve[curve.strategy.isin(strategies) & (curve.turn > 0)].sort_values(["strategy", "turn"])
    names = {"tokens_full": "whole", "tokens_sent": "sent"}
    return rows[["strategy", "turn", *names]].rename(columns=names).astype({"strategy": str}).reset_index(drop=True)


def grounding(steps: pd.DataFrame, strategies: Sequence[str]) -> pd.DataFrame:
    """Return strategy, turn, kept: the share of the values used next that the context has, by bins of turns.

    `steps` has the columns `strategy`, `turn`, `demands` and `demands_kept`.
    """
    edges = np.array(_TURN_EDGES)
    middles = np.array([(low + min(high, 2 * low) - 1) / 2 for low, high in pairwise(edges)])
    rows = steps[steps.strategy.isin(strategies)]
    bins = np.searchsorted(edges, rows.turn, side="right") - 1
    sums = rows.groupby([rows.strategy.astype(str).rename("strategy"), bins])[["demands", "demands_kept"]].sum()
    sums = sums[sums.demands >= _LEAST]
    return pd.DataFrame(
        {
            "strategy": sums.index.get_level_values(0),
            "turn": middles[sums.index.get_level_values(1).to_numpy(int)],
            "kept": (sums.demands_kept / sums.demands).to_numpy(),
        }
    )


def survival(facts: Mapping[str, Iterable[Survival]]) -> pd.DataFrame:
    """Return strategy, rounds, kept: the share of the facts that a summary still has after rounds of summarising."""
    rows = []
    for name, survivals in facts.items():
        ages: dict[int, list[int]] = {}
        for row in survivals:
            sums = ages.setdefault(row.age, [0, 0])
            sums[0] += row.values
            sums[1] += row.kept
        rows += [(name, age, kept / wanted) for age, (wanted, kept) in sorted(ages.items()) if wanted >= _LEAST]
    return pd.DataFrame(rows, columns=["strategy", "rounds", "kept"])


def bill(sums: pd.DataFrame) -> pd.DataFrame:
    """Return model, strategy, part, dollars: the parts that any bill has, in the order of PARTS."""
    parts = {name: words for name, words in PARTS.items() if sums[name].fillna(0).to_numpy().any()}
    rows = sums[["model", "strategy", *parts]].astype({"model": str, "strategy": str})
    long = rows.melt(["model", "strategy"], list(parts), "part", "dollars").fillna({"dollars": 0.0})
    return long.assign(part=long.part.map(parts))


def cached_share(calls: Calls) -> pd.DataFrame:
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


def break_even(calls: Calls) -> pd.DataFrame:
    """Return model, strategy, turn, ratio: the cost up to a turn by that of `none`, the median of conversations.

    A turn that fewer than two conversations reach has no row: the median would be one of them.
    """
    frames = []
    for model, frame in calls.items():
        names = frame.strategy.astype(str)
        ratios = _against_none(frame.assign(strategy=names)).groupby(["strategy", "turn"], sort=False).ratio
        turns = ratios.agg(["median", "size"])
        turns = turns[turns["size"] >= _LEAST_CONVERSATIONS].reset_index()
        frames.append(turns.assign(model=model).rename(columns={"median": "ratio"}))
    columns: list[str] = ["model", "strategy", "turn", "ratio"]
    return pd.concat(frames, ignore_index=True).reindex(columns=columns)


def _against_none(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the cost so far at the last call of each turn divided by that of `none` at the same call."""
    keys = ["conversation", "strategy"]
    whole = frame.assign(whole=frame.cost + frame.cost_own).groupby(keys, observed=True).whole.cumsum()
    rows = frame[["conversation", "strategy", "step", "turn"]].assign(so_far=whole)
    none = rows[rows.strategy == "none"].set_index(["conversation", "step"]).so_far
    joined = rows.join(none.rename("none"), on=["conversation", "step"])
    last = joined.groupby([*keys, "turn"], observed=True).tail(1)
    return last.assign(ratio=last.so_far / last.none).dropna(subset=["ratio"])


def by_gap(calls: Calls) -> pd.DataFrame:
    """Return model, gap, calls, read: the share that `none` reads from the cache by the pause before the call."""
    frames = []
    for model, frame in calls.items():
        rows = frame[(frame.strategy == "none") & frame.gap.notna()]
        bins = np.searchsorted(_GAP_EDGES, rows.gap, side="right") - 1
        sums = rows.assign(calls=1).groupby(bins)[["calls", "read", "tokens"]].sum()
        sums = sums[sums.calls >= _LEAST_CALLS]
        gaps = [GAPS[at] for at in sums.index]
        frames.append(pd.DataFrame({"model": model, "gap": gaps, "calls": sums.calls, "read": sums.read / sums.tokens}))
    return pd.concat(frames, ignore_index=True)


def tier_hits(by_strategy: Mapping[str, TierActions]) -> pd.DataFrame:
    """Return strategy, tier, messages, share: which tier had the messages that were looked up."""
    rows = [
        (name, TIER_NAMES[tier], actions.hits[tier], actions.hits[tier] / max(actions.hits.total(), 1))
        for name, actions in by_strategy.items()
        for tier in TIERS
    ]
    return pd.DataFrame(rows, columns=["strategy", "tier", "messages", "share"])


def miss_ratios(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return policy, size, misses, is_bound: the share of look-ups that a cache of that many tokens misses."""
    return ratios[["policy", "size", "misses"]].assign(is_bound=ratios.policy == BOUND).astype({"policy": str})


def latency(times: Mapping[str, tuple[float, float]]) -> pd.DataFrame:
    """Return strategy, median, slowest: the median and the 99th percentile of a strategy's latency in microseconds."""
    return pd.DataFrame([(name, *ends) for name, ends in times.items()], columns=["strategy", "median", "slowest"])


def shares(marks: Sequence[IntervalMark]) -> pd.DataFrame:
    """Return strategy, share, low, high: shares with their intervals."""
    return pd.DataFrame(marks, columns=["strategy", "share", "low", "high"])

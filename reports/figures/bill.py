"""Figures of the bill: its parts, the share of each prompt read from the cache, and when a strategy pays off.

Each is drawn from the calls of `Billed.calls`, one table for each model, or from the sums of `reports.bill.totals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..render import count
from .panels import Line, Maker, linear, logarithmic, look, panels, share, short, times
from .style import COLOURS, figure, legible, row_name, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Calls = Mapping[str, pd.DataFrame]
"""Calls of each model."""
Points = tuple[NDArray[np.float64], NDArray[np.float64]]

_PARTS = {
    "cost_read": "read from the cache",
    "cost_written": "written to it",
    "cost_fresh": "plain input",
    "cost_output": "output",
    "cost_storage": "storage",
    "cost_own": "own model calls",
}
# Edges of the bins of pauses between calls, in seconds, and their names.
_GAPS = (0, 5, 15, 60, 300, 600, 3600, 86400, np.inf)
_GAP_NAMES = ("< 5 s", "15 s", "1 min", "5 min", "10 min", "1 h", "1 day", "more")
# Bins of steps along a conversation; calls that a bin, and conversations that a median needs at least.
_BINS = 24
_LEAST_CALLS = 5
_LEAST_CONVERSATIONS = 2


def parts(sums: pd.DataFrame) -> Figure:
    """Draw the parts of the bill: one panel for each model, one bar for each strategy."""
    models, strategies = list(sums.model.unique()), list(sums.strategy.unique())
    with style():
        drawn = figure(2.6 + 3.0 * len(models), 1.3 + 0.24 * len(strategies))
        grid = drawn.subplots(1, len(models), squeeze=False, sharey=True)[0]
        for axes, model in zip(grid, models, strict=True):
            rows = sums[sums.model == model].set_index("strategy").loc[strategies]
            left = np.zeros(len(rows))
            for at, (name, words) in enumerate(_PARTS.items()):
                wide = rows[name].fillna(0).to_numpy()
                if wide.any():
                    axes.barh(range(len(rows)), wide, left=left, color=COLOURS[at], label=words, height=0.75)
                left += wide
            axes.set_title(legible(model))
            axes.set_xlabel("US dollars")
            axes.grid(visible=False, axis="y")
        grid[0].set_yticks(range(len(strategies)), [row_name(strategy) for strategy in strategies])
        grid[0].invert_yaxis()
        handles = {
            words: handle for axes in grid for handle, words in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        drawn.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles))
    return drawn


def cached_share(calls: Calls) -> Figure:
    """Draw the share of prompt tokens read at each step: one panel for each strategy, one line for each model."""
    longest = max(int(frame.step.max()) for frame in calls.values()) + 1
    edges = np.unique(np.linspace(0, longest, min(_BINS, longest) + 1).astype(int))

    def line(rows: pd.DataFrame) -> Points:
        sums = rows.groupby(np.searchsorted(edges, rows.step, side="right") - 1)[["read", "tokens"]].sum()
        first = sums.index.to_numpy(int)
        return (edges[first] + edges[first + 1] - 1) / 2, (sums.read / sums.tokens).to_numpy()

    up = "share of the prompt read from the cache"
    return _panels(calls, line, "model call of the conversation", up, linear(short, low=0), linear(share, 0, 1))


def against_none(calls: Calls) -> Figure:
    """Draw the cost of a strategy up to each turn divided by that of `none`: below 1 it has paid off.

    The line is the median of the conversations that reach the turn, at least two: it jumps where some end.
    """

    def line(rows: pd.DataFrame) -> Points:
        turns = rows.groupby("turn").ratio.agg(["median", "size"])
        turns = turns[turns["size"] >= _LEAST_CONVERSATIONS]
        return turns.index.to_numpy(float), turns["median"].to_numpy()

    ratios = {model: _against(frame) for model, frame in calls.items()}
    up = "cost so far, by that of none (median)"
    return _panels(ratios, line, "turn of the conversation", up, linear(short), logarithmic(times), rule=1)


def by_gap(calls: Calls) -> Figure:
    """Draw the hit rate of the whole history by the pause before the call: one line for each model."""
    with style():
        drawn = figure()
        axes = drawn.subplots()
        counts = np.zeros(len(_GAPS) - 1, int)
        for at, (model, frame) in enumerate(calls.items()):
            rows = frame[(frame.strategy == "none") & frame.gap.notna()]
            bins = np.searchsorted(_GAPS, rows.gap, side="right") - 1
            sums = rows.groupby(bins)[["read", "tokens"]].sum()
            counts = np.bincount(bins, minlength=len(counts))
            sums = sums[counts[sums.index] >= _LEAST_CALLS]
            beside = (at - (len(calls) - 1) / 2) * 0.08  # lines of equal figures stay visible
            axes.plot(
                sums.index.to_numpy() + beside,
                sums.read / sums.tokens,
                **{**look(at), "markersize": 6, "markevery": 1},
                label=legible(model),
            )
        if not counts.any():
            axes.text(0.5, 0.5, "no recorded times, or none was not run", ha="center", transform=axes.transAxes)
        axes.set_xticks(
            range(len(counts)),
            [f"{name}\n{count(int(number), 'call')}" for name, number in zip(_GAP_NAMES, counts, strict=True)],
        )
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("time since the call before in the conversation began, up to")
        axes.set_ylabel("prompt tokens read from the cache (none)")
        axes.legend()
    return drawn


def figures(sums: pd.DataFrame, calls: Calls) -> dict[str, Figure]:
    """Return all figures by the names of their files."""
    return {
        "bill": parts(sums),
        "cached_share": cached_share(calls),
        "hit_rate_by_gap": by_gap(calls),
        "break_even": against_none(calls),
    }


def _against(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the cost so far at every call divided by that of `none` at the same call."""
    keys = ["conversation", "strategy"]
    whole = frame.assign(whole=frame.cost + frame.cost_own).groupby(keys, observed=True).whole.cumsum()
    rows = frame[["conversation", "strategy", "step", "turn"]].assign(so_far=whole)
    none = rows[rows.strategy == "none"].set_index(["conversation", "step"]).so_far
    joined = rows.join(none.rename("none"), on=["conversation", "step"])
    last = joined.groupby([*keys, "turn"], observed=True).tail(1)
    return last.assign(ratio=last.so_far / last.none).dropna(subset=["ratio"])


def _panels(
    calls: Calls,
    points: Callable[[pd.DataFrame], Points],
    along: str,
    up: str,
    x: Maker,
    y: Maker,
    rule: float | None = None,
) -> Figure:
    """Draw one panel for each strategy and one line for each model."""
    strategies = list(dict.fromkeys(name for frame in calls.values() for name in frame.strategy.unique()))
    lines = {
        str(strategy): [
            Line(*points(frame[frame.strategy == strategy]), model, look(at))
            for at, (model, frame) in enumerate(calls.items())
        ]
        for strategy in strategies
    }
    drawn = panels(lines, along, up, x, y, rule)
    if not lines:
        drawn.text(0.5, 0.5, "nothing to compare with: none was not run", ha="center")
    return drawn

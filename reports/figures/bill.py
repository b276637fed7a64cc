"""Figures of the bill: its parts, the share of each prompt read from the cache, and when a strategy pays off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..render import count
from . import frames
from .panels import Line, Maker, linear, logarithmic, look, panels, share, short, times
from .style import COLOURS, figure, legible, row_name, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def parts(rows: pd.DataFrame) -> Figure:
    """Draw the parts of the bill, from `frames.bill`: one panel for each model, one bar for each strategy."""
    models, strategies = list(rows.model.unique()), list(rows.strategy.unique())
    with style():
        drawn = figure(2.6 + 3.0 * len(models), 1.3 + 0.24 * len(strategies))
        grid = drawn.subplots(1, len(models), squeeze=False, sharey=True)[0]
        for axes, model in zip(grid, models, strict=True):
            left = np.zeros(len(strategies))
            for at, (part, own) in enumerate(rows[rows.model == model].groupby("part", sort=False)):
                wide = own.set_index("strategy").dollars.reindex(strategies, fill_value=0.0).to_numpy()
                axes.barh(range(len(strategies)), wide, left=left, color=COLOURS[at], label=part, height=0.75)
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


def cached_share(rows: pd.DataFrame) -> Figure:
    """Draw the share of prompt tokens read along a conversation, from `frames.cached_share`."""
    up = "share of the prompt read from the cache"
    x, y = linear(short, low=0), linear(share, 0, 1)
    return _panels(rows, ("call", "read"), "model call of the conversation", up, x, y)


def break_even(rows: pd.DataFrame) -> Figure:
    """Draw the cost of a strategy up to each turn by that of `none`, from `frames.break_even`: below 1 it has paid off.

    The line jumps where some conversations end.
    """
    up = "cost so far, by that of none (median)"
    return _panels(rows, ("turn", "ratio"), "turn of the conversation", up, linear(short), logarithmic(times), rule=1)


def by_gap(rows: pd.DataFrame) -> Figure:
    """Draw the hit rate of the whole history by the pause before the call, from `frames.by_gap`: a line per model."""
    with style():
        drawn = figure()
        axes = drawn.subplots()
        models = list(rows.groupby("model", sort=False))
        counts = np.zeros(len(frames.GAPS), int)
        for at, (model, own) in enumerate(models):
            places = np.array([frames.GAPS.index(gap) for gap in own.gap], int)
            counts[places] = own.calls
            beside = (at - (len(models) - 1) / 2) * 0.08  # lines of equal figures stay visible
            axes.plot(
                places + beside, own.read, **{**look(at), "markersize": 6, "markevery": 1}, label=legible(str(model))
            )
        if rows.empty:
            axes.text(0.5, 0.5, "no recorded times, or none was not run", ha="center", transform=axes.transAxes)
        axes.set_xticks(
            range(len(counts)),
            [f"{name}\n{count(int(number), 'call')}" for name, number in zip(frames.GAPS, counts, strict=True)],
        )
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("time since the call before in the conversation began, up to")
        axes.set_ylabel("prompt tokens read from the cache (none)")
        if models:
            axes.legend()
    return drawn


def figures(sums: pd.DataFrame, calls: frames.Calls) -> dict[str, Figure]:
    """Return all figures of a bill by the names of their files. `sums` are those of `reports.bill.totals`."""
    return {
        "bill": parts(frames.bill(sums)),
        "cached_share": cached_share(frames.cached_share(calls)),
        "hit_rate_by_gap": by_gap(frames.by_gap(calls)),
        "break_even": break_even(frames.break_even(calls)),
    }


def _panels(
    rows: pd.DataFrame,
    columns: tuple[str, str],
    along: str,
    up: str,
    x: Maker,
    y: Maker,
    rule: float | None = None,
) -> Figure:
    """Draw two columns, one panel for each strategy and one line for each model."""
    models = list(rows.model.unique())
    across, over = columns
    lines = {
        str(strategy): [
            Line(_floats(group[across]), _floats(group[over]), str(model), look(models.index(str(model))))
            for model, group in own.groupby("model", sort=False)
        ]
        for strategy, own in rows.groupby("strategy", sort=False)
    }
    drawn = panels(lines, along, up, x, y, rule)
    if not lines:
        drawn.text(0.5, 0.5, "nothing to compare with: none was not run", ha="center")
    return drawn


def _floats(column: pd.Series[float]) -> NDArray[np.float64]:
    return np.asarray(column, float)

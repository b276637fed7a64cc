"""Curves over turns, rounds and sizes: growth, grounding recall, facts, latency, tiers, misses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .panels import REFERENCE, Line, from_nothing, linear, logarithmic, panels, share, short
from .style import COLOURS, FAINT, MARKERS, ON_COLOUR, figure, legible, row_name, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_LOOK = {"color": COLOURS[0], "marker": MARKERS[0], "markersize": 2.5}


def growth(rows: pd.DataFrame) -> Figure:
    """Draw the tokens of a model call by turn, from `frames.growth`."""
    lines = {
        str(name): [
            Line(_floats(own.turn), _floats(own.whole), "whole history", REFERENCE),
            Line(_floats(own.turn), _floats(own.sent), "sent", {**_LOOK, "marker": ""}),
        ]
        for name, own in rows.groupby("strategy", sort=False)
    }
    x, y = logarithmic(short), logarithmic(short)
    return panels(lines, "turn of the conversation", "tokens of a model call (mean)", x, y)


def grounding(rows: pd.DataFrame) -> Figure:
    """Draw grounding recall by turn, from `frames.grounding`."""
    lines = _lines(rows, "turn", "still in the context")
    return panels(lines, "turn of the conversation", "grounding recall", logarithmic(short), linear(share, 0, 1))


def survival(rows: pd.DataFrame) -> Figure:
    """Draw the facts still in the summary by rounds of summarising, from `frames.survival`."""
    lines = _lines(rows, "rounds", "facts still in the summary")
    along = "rounds of summarising since the fact was replaced"
    return panels(lines, along, "facts still in the summary", from_nothing(short), linear(share, 0, 1), rule=0.5)


def _lines(rows: pd.DataFrame, along: str, label: str) -> dict[str, list[Line]]:
    """Return a line of the column `kept` for each strategy."""
    groups = rows.groupby("strategy", sort=False)
    return {str(name): [Line(_floats(own[along]), _floats(own.kept), label, _LOOK)] for name, own in groups}


def _floats(column: pd.Series[float]) -> NDArray[np.float64]:
    return np.asarray(column, float)


def latency(rows: pd.DataFrame) -> Figure:
    """Draw the median and the 99th percentile of each strategy's latency, from `frames.latency`."""
    from matplotlib.ticker import NullLocator

    places = range(len(rows))
    with style():
        drawn = figure(7.2, 1.1 + 0.24 * len(rows))
        axes = drawn.subplots()
        axes.hlines(places, rows["median"], rows.slowest, color=COLOURS[0], linewidth=1)
        dots: dict[str, Any] = {"linestyle": "none", "color": COLOURS[0], "markersize": 4}
        axes.plot(rows["median"], places, marker=MARKERS[0], label="median", **dots)
        axes.plot(rows.slowest, places, marker=MARKERS[1], label="99th percentile", **{**dots, "color": COLOURS[1]})
        axes.set_yticks(places, [row_name(name) for name in rows.strategy])
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


def found_by_tier(rows: pd.DataFrame) -> Figure:
    """Draw the share of the looked-up messages that each tier had, with their number, from `frames.tier_hits`."""
    strategies = list(rows.strategy.unique())
    with style():
        drawn = figure(6.4, 1.4 + 0.3 * len(strategies))
        axes = drawn.subplots()
        left = np.zeros(len(strategies))
        tiers = list(rows.groupby("tier", sort=False))
        for at, (tier, own) in enumerate(tiers):
            wide = 100 * own.share.to_numpy()
            bars = axes.barh(range(len(own)), wide, left=left, color=COLOURS[at], label=tier, height=0.75)
            labels = [f"{count:,.0f}" if share > 8 else "" for count, share in zip(own.messages, wide, strict=True)]
            axes.bar_label(bars, labels, label_type="center", color=ON_COLOUR, fontsize=7)
            left += wide
        axes.set_yticks(range(len(strategies)), [row_name(name) for name in strategies])
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the messages looked up, %")
        axes.grid(visible=False, axis="y")
        drawn.legend(loc="outside lower center", ncols=len(tiers))
    return drawn


def miss_ratios(rows: pd.DataFrame) -> Figure:
    """Draw misses by the size of the cache, one curve for each policy, from `frames.miss_ratios`.

    No policy can be below the bound.
    """
    with style():
        drawn = figure(6.4, 3.6)
        axes = drawn.subplots()
        for at, (policy, own) in enumerate(rows.groupby("policy", sort=False)):
            if own.is_bound.any():
                axes.fill_between(own["size"], 0, 100 * own.misses, color=FAINT, alpha=0.5, lw=0, label="no policy")
            else:
                axes.plot(
                    own["size"], 100 * own.misses, label=legible(str(policy)), color=COLOURS[at], marker=MARKERS[at]
                )
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes := sorted(set(rows["size"])), [f"{size // 1024}K" for size in sizes])
        axes.set_xlabel("tokens that Working holds")
        axes.set_ylabel("misses, %")
        axes.set_ylim(0, None)
        drawn.legend(loc="outside lower center", ncols=4)
    return drawn

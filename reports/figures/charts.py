"""Charts of a run's report, each a function that makes its rows and one that draws them.

Many show a small panel for each strategy, all with the same axes. They are drawn on one sheet in inches, with grid,
frames and ticks of our own: as matplotlib's axes they take many times as long to lay out and to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ctxbench.harness.tier_bench.working import BOUND
from ctxbench.metrics.survival import Survival

from ..tier_actions import TIERS, TierActions
from .style import (
    COLOURS,
    FAINT,
    GRID,
    INK,
    MARKERS,
    ON_COLOUR,
    by_row,
    duration,
    figure,
    legible,
    share,
    short,
    style,
    times,
)

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
LATENCIES = {"latency_p50": "median", "latency_p99": "99th percentile"}

Calls = Mapping[str, pd.DataFrame]  # calls of each model, as `Billed.calls` returns them

# Turns at which a bin begins, for shares that a single turn has too few values of.
_TURN_EDGES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, np.inf)
# Bins of steps along a conversation; conversations that a median needs at least.
_BINS = 24
_LEAST_CONVERSATIONS = 2
# Values, or facts, below which a point is not drawn.
_LEAST = 20


Floats = NDArray[np.float64]

DASHES = ("-", "--", ":", "-.")
REFERENCE = {"color": INK, "linewidth": 0.9, "linestyle": "--"}
"""Look of a line that is in every panel, to compare with."""

ACROSS = 4
# Inches of a panel, and between two beside each other.
WIDE, HIGH, BETWEEN = 2.0, 1.15, 0.16
# Inches of the first line above a panel, and of each more.
TITLE, LINE = 0.14, 0.12
LEFT, BOTTOM, TOP, RIGHT = 0.75, 0.55, 0.38, 0.1
# Inches of a figure at least, for the words along its axis.
LEAST = 3.6
# Letters of a line above a panel.
LETTERS = 34
# Points of a line that have a marker, about.
MARKED = 8


class Line(NamedTuple):
    """Points in order, with the words of the legend and how they look."""

    x: Floats
    y: Floats
    label: str
    look: Mapping[str, Any]


def look(at: int) -> dict[str, Any]:
    """Return the look of the line of a number: colour, shape and dashes differ."""
    at %= len(COLOURS)
    return {"color": COLOURS[at], "marker": MARKERS[at], "linestyle": DASHES[at % len(DASHES)], "markersize": 2.5}


class Scale(NamedTuple):
    """Axis that places values between its ends, 0 to 1, with ticks at some values."""

    low: float
    high: float
    ticks: tuple[float, ...]
    text: Callable[[float], str]
    log: bool = False
    shift: float = 0.0  # added to values before their logarithm is taken: 1 on an axis with a 0

    def place(self, values: Floats) -> Floats:
        """Return the places of values; NaN for a value that cannot be shown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high, places = (np.asarray(part, float) for part in (self.low, self.high, values))
            if self.log:
                low, high, places = (np.log10(part + self.shift) for part in (low, high, places))
            places = (places - low) / (high - low)
        return np.where(np.isfinite(places), places, np.nan)


def linear(values: Floats, text: Callable[[float], str], low: float | None = None, high: float | None = None) -> Scale:
    """Return a linear scale from `low` to `high`, by default from the lowest to the highest value."""
    from matplotlib.ticker import MaxNLocator

    first = float(np.nanmin(values, initial=np.inf)) if low is None else low
    last = float(np.nanmax(values, initial=-np.inf)) if high is None else high
    if not first < last:
        first, last = (first - 0.5, first + 0.5) if np.isfinite(first) else (0.0, 1.0)
    ticks = MaxNLocator(4).tick_values(first, last)
    return Scale(first, last, tuple(float(tick) for tick in ticks if first <= tick <= last), text)


def from_nothing(values: Floats, text: Callable[[float], str]) -> Scale:
    """Return a logarithmic scale of counts that begin at 0: values are taken one higher."""
    most = max(float(np.nanmax(values, initial=0)), 1.0)
    tens = (10.0**power for power in range(int(np.log10(most)) + 1))
    return Scale(0.0, most, (0.0, *tens), text, log=True, shift=1.0)


def logarithmic(values: Floats, text: Callable[[float], str]) -> Scale:
    """Return a logarithmic scale with ticks at powers of ten, and at 2 and 5 where these are too few."""
    some = values[np.isfinite(values) & (values > 0)]
    low, high = (float(some.min()), float(some.max())) if len(some) else (1.0, 10.0)
    if low == high:
        low, high = low / 2, high * 2
    powers = [10.0**tick for tick in range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)]
    tens = [tick for tick in powers if low <= tick <= high]
    if len(tens) < 3:
        tens = [tick * by for tick in powers for by in (1, 2, 5) if low <= tick * by <= high]
    return Scale(low, high, tuple(tens), text, log=True)


Maker = Callable[[Floats], Scale]  # function from all values of an axis to its scale


def panels(
    lines: Mapping[str, Sequence[Line]], along: str, up: str, x: Maker, y: Maker, rule: float | None = None
) -> Figure:
    """Draw a panel with lines for each name. `rule` is a value of `y` where a line goes across."""
    names = {name: wrap(legible(name), LETTERS) or [""] for name in lines}
    over = TITLE + LINE * max((len(title) for title in names.values()), default=1)
    across = min(ACROSS, max(1, len(lines)))
    down = max(1, -(-len(lines) // across))
    wide, high = max(LEAST, LEFT + across * (WIDE + BETWEEN) + RIGHT), TOP + down * (HIGH + over) + BOTTOM
    values = [(line.x, line.y) for panel in lines.values() for line in panel] or [(np.empty(0), np.empty(0))]
    scales = [make(np.concatenate(axis)) for make, axis in zip((x, y), zip(*values, strict=True), strict=True)]
    corners = [
        (LEFT + at % across * (WIDE + BETWEEN), high - TOP - (at // across + 1) * (HIGH + over))
        for at in range(len(lines))
    ]
    with style():
        drawn = figure(wide, high, 0)
        (sheet,) = drawn.axes
        sheet.set_position((0, 0, 1, 1))
        sheet.set(xlim=(0, wide), ylim=(0, high))
        sheet.set_axis_off()
        _draw_axes(sheet, corners, scales, across, rule)
        handles: dict[str, Any] = {}
        for (left, bottom), (name, panel) in zip(corners, lines.items(), strict=True):
            sheet.text(left, bottom + HIGH + 0.05, "\n".join(names[name]), fontsize=7, va="bottom")
            for line in panel:
                places = left + WIDE * scales[0].place(line.x), bottom + HIGH * scales[1].place(line.y)
                (artist,) = sheet.plot(*places, markevery=max(1, len(line.x) // MARKED), **line.look)
                handles.setdefault(legible(line.label), artist)
        middle = LEFT + (across * (WIDE + BETWEEN) - BETWEEN) / 2
        sheet.text(middle, 0.1, along, ha="center", va="bottom", fontsize=9)
        words = "\n".join(wrap(up, int(13 * high)))  # letters of 9 points, on as many lines as its height takes
        at = 0.02 if "\n" in words else 0.12
        sheet.text(at, (high - TOP + BOTTOM) / 2, words, rotation=90, ha="left", va="center", fontsize=9)
        if handles:
            place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (middle, high - 0.05), "borderaxespad": 0}
            sheet.legend(handles.values(), handles, **place, bbox_transform=sheet.transData, ncols=len(handles))
    return drawn


def _draw_axes(
    sheet: Axes, corners: Sequence[tuple[float, float]], scales: Sequence[Scale], across: int, rule: float | None
) -> None:
    """Draw the left and the lower side of every panel, its grid, and the rule, with ticks on the outer sides."""
    from matplotlib.collections import LineCollection

    xs, ys = (scale.place(np.array(scale.ticks)) for scale in scales)
    grid = [[(a + WIDE * x, b), (a + WIDE * x, b + HIGH)] for a, b in corners for x in xs]
    grid += [[(a, b + HIGH * y), (a + WIDE, b + HIGH * y)] for a, b in corners for y in ys]
    sides = [[(a, b + HIGH), (a, b), (a + WIDE, b)] for a, b in corners]
    sheet.add_collection(LineCollection(grid, colors=GRID, linewidths=0.6, zorder=0), autolim=False)
    sheet.add_collection(LineCollection(sides, colors=INK, linewidths=0.6, zorder=1), autolim=False)
    if rule is not None and scales[1].low <= rule <= scales[1].high:
        at = float(scales[1].place(np.array([rule]))[0]) * HIGH
        rules = [[(a, b + at), (a + WIDE, b + at)] for a, b in corners]
        sheet.add_collection(LineCollection(rules, colors=FAINT, linewidths=1, zorder=1), autolim=False)
    small: dict[str, Any] = {"fontsize": 7, "color": INK}
    for number, (a, b) in enumerate(corners):
        if number % across == 0:
            for value, y in zip(scales[1].ticks, ys, strict=True):
                sheet.text(a - 0.05, b + HIGH * y, scales[1].text(value), ha="right", va="center", **small)
        if number + across >= len(corners):
            for value, x in zip(scales[0].ticks, xs, strict=True):
                sheet.text(a + WIDE * x, b - 0.05, scales[0].text(value), ha="center", va="top", **small)


def _panels(
    rows: pd.DataFrame, columns: tuple[str, str], words: tuple[str, str], x: Maker, y: Maker, rule: float | None = None
) -> Figure:
    """Draw a panel for each strategy and in it a line for each model; `columns` are those along and up."""
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
_SHARES, _LOG = partial(linear, text=share, low=0, high=1), partial(logarithmic, text=short)
grounding = partial(_panels, columns=("turn", "kept"), words=(_TURN, "grounding recall"), x=_LOG, y=_SHARES)
"""Draws grounding recall by turn."""
survival = partial(
    _panels,
    columns=("rounds", "kept"),
    words=("rounds of summarising since the fact was replaced", "facts still in the summary"),
    x=partial(from_nothing, text=short),
    y=_SHARES,
    rule=0.5,
)
"""Draws the facts still in the summary by rounds of summarising."""
cached_share = partial(
    _panels,
    columns=("call", "read"),
    words=("model call of the conversation", "share of the prompt read from the cache"),
    x=partial(linear, text=short, low=0),
    y=_SHARES,
)
"""Draws the share of prompt tokens read along a conversation."""
break_even = partial(
    _panels,
    columns=("turn", "ratio"),
    words=(_TURN, "cost so far, by that of none (median)"),
    x=partial(linear, text=short),
    y=partial(logarithmic, text=times),
    rule=1,
)
"""Draws the cost of a strategy up to each turn by that of `none`: below 1 it has paid off. The line jumps where some
conversations end."""


def growth(curve: pd.DataFrame) -> Figure:
    """Draw the tokens of a model call by turn. `curve` comes from `metrics.figures.growth`, from the first turn on."""
    looks = (("tokens_full", "whole history", REFERENCE), ("tokens_sent", "sent", {"color": COLOURS[0]}))
    rows = curve.sort_values(["strategy", "turn"]).astype({"strategy": str})
    lines = {
        str(name): [Line(own.turn.to_numpy(float), own[key].to_numpy(float), label, of) for key, label, of in looks]
        for name, own in rows.groupby("strategy", sort=False)
    }
    return panels(lines, _TURN, "tokens of a model call (mean)", _LOG, _LOG)


def grounding_rows(steps: pd.DataFrame) -> pd.DataFrame:
    """Return strategy, turn, kept: the share of the values used next that the context has, by bins of turns."""
    middles = np.array([(low + min(high, 2 * low) - 1) / 2 for low, high in pairwise(_TURN_EDGES)])
    rows = steps.assign(turn=middles[np.searchsorted(_TURN_EDGES, steps.turn, side="right") - 1])
    sums = rows.astype({"strategy": str}).groupby(["strategy", "turn"])[["demands", "demands_kept"]].sum().reset_index()
    sums = sums[sums.demands >= _LEAST]
    return sums.assign(kept=sums.demands_kept / sums.demands)[["strategy", "turn", "kept"]]


def reuse(rows: pd.DataFrame) -> Figure:
    """Draw the share of calls that use a tool result older than a number of results, one curve for each tool."""
    tools = list(rows.tool.value_counts().index[: len(MARKERS)])
    drawn = figure(6.4, 3.6, 0.6, below=2)
    (axes,) = drawn.axes
    for at, tool in enumerate(tools):
        ages = np.sort(rows.age[rows.tool == tool])
        axes.step(
            ages, 100 * (1 - np.arange(1, len(ages) + 1) / len(ages)), where="post", color=COLOURS[at], label=tool
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("newest tool results that a window keeps")
    axes.set_ylabel("calls that use an older one, %")
    axes.set_ylim(0, 100)
    drawn.legend(loc="lower center", ncols=4)
    return drawn


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
    drawn = by_row(strategies, 2.6 + 2.7 * len(models), 0.24, 1, 1.5, len(models))
    for axes, model in zip(drawn.axes, models, strict=True):
        _stack(axes, rows[rows.model == model], "part", "dollars", strategies)
        axes.set_title(legible(model))
        axes.set_xlabel("US dollars")
    labels = [axes.get_legend_handles_labels() for axes in drawn.axes]
    handles = {words: handle for pair in labels for handle, words in zip(*pair, strict=True)}
    drawn.legend(handles.values(), handles, loc="lower center", ncols=len(handles))
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
        rows = frame[["read", "tokens", "strategy"]]
        rows = rows.assign(call=middles[np.searchsorted(edges, frame.step, side="right") - 1])
        sums = rows.groupby(["strategy", "call"], observed=True, sort=False).sum().reset_index()
        frames.append(sums.assign(model=model, read=sums.read / sums.tokens))
    return pd.concat(frames, ignore_index=True)[["model", "strategy", "call", "read"]].astype({"strategy": str})


def break_even_rows(calls: Calls) -> pd.DataFrame:
    """Return model, strategy, turn, ratio: the cost up to a turn by that of `none`, the median of conversations.

    A turn that fewer than two conversations reach has no row: the median would be one of them.
    """
    frames = []
    for model, frame in calls.items():
        rows = frame.assign(whole=frame.cost + frame.cost_own)
        rows["so_far"] = rows.groupby(["conversation", "strategy"], observed=True).whole.cumsum()
        step, turn = frame.step.to_numpy(), frame.turn.to_numpy()
        last = rows[np.append((step[1:] == 0) | (turn[1:] != turn[:-1]), True)]  # of each turn
        none = rows[rows.strategy == "none"].set_index(["conversation", "step"]).so_far
        last = last.join(none.rename("none"), on=["conversation", "step"])
        last = last.assign(ratio=last.so_far / last.none).dropna(subset=["ratio"])
        turns = last.groupby(["strategy", "turn"], observed=True, sort=False).ratio.agg(["median", "size"])
        turns = turns[turns["size"] >= _LEAST_CONVERSATIONS].reset_index()
        frames.append(turns.assign(model=model).rename(columns={"median": "ratio"}))
    columns: list[str] = ["model", "strategy", "turn", "ratio"]
    return pd.concat(frames, ignore_index=True).reindex(columns=columns).astype({"strategy": str})


def latency(rows: pd.DataFrame) -> Figure:
    """Draw the median and the 99th percentile of each strategy's latency, in microseconds."""
    from matplotlib.ticker import NullLocator

    places = range(len(rows))
    median, slowest = (rows[key].clip(lower=1e-3) for key in LATENCIES)
    drawn = by_row(rows.strategy, 7.2, 0.24, below=1.5)
    (axes,) = drawn.axes
    axes.grid(visible=True, axis="y")
    axes.hlines(places, median, slowest, color=COLOURS[0], linewidth=1)
    for at, (label, values) in enumerate(zip(LATENCIES.values(), (median, slowest), strict=True)):
        dots = {"linestyle": "none", "color": COLOURS[at], "marker": MARKERS[at], "markersize": 4}
        axes.plot(values, places, label=label, **dots)  # type: ignore[arg-type]
    axes.set_xscale("log")
    axes.set_xlabel("latency")
    axes.xaxis.set_major_formatter(duration)
    axes.xaxis.set_minor_locator(NullLocator())
    drawn.legend(loc="lower center", ncols=2)
    return drawn


def tier_rows(by_strategy: Mapping[str, TierActions]) -> pd.DataFrame:
    """Return strategy, tier, messages, share: which tier had the messages that were looked up."""
    rows = [
        (name, words, actions.found[tier], actions.found[tier] / max(actions.found.total(), 1))
        for name, actions in by_strategy.items()
        for tier, words in TIERS.items()
    ]
    return pd.DataFrame(rows, columns=["strategy", "tier", "messages", "share"])


def tiers(rows: pd.DataFrame) -> Figure:
    """Draw the share of the looked-up messages that each tier had, with their number."""
    strategies = list(rows.strategy.unique())
    drawn = by_row(strategies, 6.4, 0.3, below=1.5)
    (axes,) = drawn.axes
    rows = rows.assign(percent=100 * rows.share)
    bars = _stack(axes, rows, "tier", "percent", strategies)
    for bar, (_, own) in zip(bars, rows.groupby("tier", sort=False), strict=True):
        labels = [f"{n:,.0f}" if wide > 8 else "" for n, wide in zip(own.messages, own.percent, strict=True)]
        axes.bar_label(bar, labels, label_type="center", color=ON_COLOUR, fontsize=7)
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the messages looked up, %")
    drawn.legend(loc="lower center", ncols=len(bars))
    return drawn


def miss_ratios(rows: pd.DataFrame) -> Figure:
    """Draw misses by the size of the cache, one curve for each policy. No policy can be below the bound."""
    drawn = figure(6.4, 3.6, 0.6, below=2)
    (axes,) = drawn.axes
    for at, (policy, own) in enumerate(rows.astype({"policy": str}).groupby("policy", sort=False)):
        size, misses = own["size"], 100 * own.misses
        if policy == BOUND:
            axes.fill_between(size, 0, misses, color=FAINT, alpha=0.5, lw=0, label="no policy")
        else:
            axes.plot(size, misses, label=legible(str(policy)), color=COLOURS[at], marker=MARKERS[at])
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes := sorted(set(rows["size"])), [f"{size // 1024}K" for size in sizes])
    axes.set_xlabel("tokens that Working holds")
    axes.set_ylabel("misses, %")
    axes.set_ylim(0, None)
    drawn.legend(loc="lower center", ncols=4)
    return drawn

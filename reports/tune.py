"""The result of a search of parameters, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ctxbench.harness.answers.tally import tallies_json
from ctxbench.harness.tune.tune import TOKENS, Tuned
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.frontier import dominators, frontier
from ctxbench.metrics.statistics.intervals import Interval, ends_of
from ctxbench.metrics.value import Missing, Value

from .compare import between, moved
from .render import Column, Table, about, count, exact, no_interval, percent, table_of

# Settings without figures that are listed.
_MOST_FAILED = 8


def tables(tuned: Tuned) -> Iterator[Table]:
    """Yield the frontier, the settings against the whole history, failures, and the space that was searched."""
    names, beaten, money = numbers(tuned), dominated(tuned), partial(cost, tuned.cost)
    quality = METRICS[tuned.quality].name
    named = Column("setting", "spec"), Column("no.", lambda setting: names[setting.spec])
    columns = (
        *named,
        Column("cost", "train.cost", partial(_mean, money)),
        Column("held out", "held_out.cost", partial(_mean, money)),
        Column("95 % interval", "held_out.cost", partial(_between, money), spare=2),
        Column(quality, "train.quality", partial(_mean, percent)),
        Column("held out ", "held_out.quality", partial(_mean, percent)),
        Column("95 % interval ", "held_out.quality", partial(_between, percent)),
        Column("place, held out", lambda setting: beaten[setting.spec], spare=1),
    )
    title = f"Which {tuned.strategy} is worth its cost? Cost in {unit(tuned.cost)}, quality as {quality}"
    yield table_of(title, columns, tuned.settings, list(_notes(tuned)))
    if against := [setting for setting in tuned.settings if setting.against is not None]:
        differences = (
            *named,
            Column("cost", lambda row: moved(row.against.cost.value, "usd", row.against.cost.relative)),
            Column("95 % interval", lambda row: between(row.against.cost.shown, "usd", row.against.cost.relative)),
            Column(quality, lambda row: moved(row.against.quality.value, "share", False)),
            Column("95 % interval ", lambda row: between(row.against.quality.shown, "share", False)),
        )
        yield table_of("Held out: against the whole history", differences, against)
    if tuned.failed:
        more = len(tuned.failed) - _MOST_FAILED
        note = (f"{more} more are in tune.json.",) if more > 0 else ()
        yield Table("Settings without figures", ("setting", "why"), tuned.failed[:_MOST_FAILED], note, prose=True)
    rows = tuple((name, str(setting), tuned.space.why[name]) for name, setting in tuned.space.ranges.items())
    every, tail = ("all ", " of the space") if tuned.exhaustive else ("", "")
    searched = f"Searched: {every}{count(tuned.trials, 'setting')}{tail}"
    why = f"Quality: {tuned.why_quality} ({METRICS[tuned.quality].about})."
    yield Table(searched, ("parameter", "range", "why"), rows, (why,), prose=True)
    yield Table("How to read it", (), (), (about("tune"),))


def numbers(tuned: Tuned) -> dict[str, str]:
    """Map each setting to its mark: a number on the frontier, a letter elsewhere."""
    chosen = [setting.spec for setting in tuned.settings if setting.chosen]
    others = {setting.spec: "W" if setting.whole else "D" for setting in tuned.settings if not setting.chosen}
    return {spec: str(at) for at, spec in enumerate(chosen, 1)} | others


def dominated(tuned: Tuned) -> dict[str, str]:
    """Map each setting to its place on the frontier of the held-out conversations, or what dominates it there."""
    names = numbers(tuned)
    points = {setting.spec: point for setting in tuned.settings if (point := setting.held_out.point) is not None}
    best, by = set(frontier(points)), dominators(points)
    return {
        setting.spec: "on the frontier"
        if setting.spec in best
        else f"dominated by {', '.join(names[other] for other in by[setting.spec])}"
        if setting.spec in by
        else "–"
        for setting in tuned.settings
    }


def _mean(show: Callable[[Value], str], figure: Interval | Missing) -> str:
    return show(figure if isinstance(figure, Missing) else figure.mean)


def _between(show: Callable[[Value], str], figure: Interval | Missing) -> str:
    ends = ends_of(figure)
    if isinstance(ends, Missing):
        return no_interval(ends, lambda low, high: f"{show(low)} to {show(high)}")
    return f"{show(ends.low)} to {show(ends.high)}"


def cost(of: str, value: Value) -> str:
    """Return what a conversation costs."""
    if isinstance(value, Missing):
        return f"({value.why})"
    return f"{value:,.0f}" if of == TOKENS else f"${value:,.4f}"


def unit(of: str) -> str:
    """Return the unit of cost in words."""
    return "tokens a conversation" if of == TOKENS else f"US dollars a conversation under {of}"


def _notes(tuned: Tuned) -> Iterator[str]:
    yield (
        f"Searched on {count(tuned.train, 'conversation')}; {count(tuned.held_out, 'conversation')} held out. "
        f"W: the whole history.{' D: the strategy at its defaults.' if 'D' in numbers(tuned).values() else ''}"
    )
    if not tuned.worth:
        yield "No setting is worth its cost: the whole history costs no more than any of them, and is no worse."
    for name, end, there in tuned.at_ends:
        yield (
            f"{name} is {end}, an end of its range, in {count(there, 'setting')} of the frontier: better ones may lie "
            f"beyond (=?[low..high])."
        )
    if tuned.held_out == 1:
        yield "Only one conversation is held out: it has no interval and says little. Give more recordings."
    for setting in tuned.settings:
        if setting.failed:
            yield f"{setting.spec} failed on the held-out conversations: {setting.failed}."
    lacking = [
        f"{setting.spec} {setting.lacking:,} of {setting.calls:,}" for setting in tuned.settings if setting.lacking
    ]
    if lacking:
        yield f"Held-out calls that lack the newest message: {', '.join(lacking)}."


def as_json(tuned: Tuned) -> dict[str, Any]:
    """Return all exact figures. A missing figure is `{"why": "undefined", "detail": …}`."""
    beaten = dominated(tuned)
    figures: dict[str, Any] = exact(replace(tuned, problems=None))  # type: ignore[arg-type]
    del figures["problems"]
    for setting in figures["settings"]:
        setting["on_held_out"] = beaten[setting["spec"]]
    return {**figures, "replies": tallies_json(tuned.replies)}

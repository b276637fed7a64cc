"""The result of a search of parameters, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxbench.harness.answers.tally import tallies_json
from ctxbench.harness.tune.trial import TOKENS, BaselineComparison, Setting, TrialFigures
from ctxbench.harness.tune.tune import Tuned
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.frontier import dominators, frontier
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value

from .compare import between, moved
from .render import Table, count, percent

_HOW = (
    "Cost is the mean of a conversation; intervals are 95 %, over the conversations held out, in pairs where they are "
    "differences. Settings were chosen as the best of many on the conversations searched on, which flatters them: "
    "expect what was held out."
)
# Settings without figures that are listed.
_MOST_FAILED = 8


def tables(tuned: Tuned) -> Iterator[Table]:
    """Yield the frontier, the settings against the whole history, failures, and the space that was searched."""
    yield _frontier(tuned)
    if beside := [setting for setting in tuned.settings if setting.against is not None]:
        yield _against(tuned, beside)
    if tuned.failed:
        more = len(tuned.failed) - _MOST_FAILED
        note = (f"{more} more are in tune.json.",) if more > 0 else ()
        yield Table("Settings without figures", ("setting", "why"), tuned.failed[:_MOST_FAILED], note, prose=True)
    rows = tuple((name, str(setting), tuned.space.why[name]) for name, setting in tuned.space.ranges.items())
    yield Table(_searched(tuned), ("parameter", "range", "why"), rows, (_quality(tuned),), prose=True)
    yield Table("How to read it", (), (), (_HOW,))


def _frontier(tuned: Tuned) -> Table:
    names = numbers(tuned)
    heads = (
        "setting",
        "no.",
        "cost",
        "held out",
        "95 % interval",
        tuned.quality,
        "held out ",
        "95 % interval ",
        "of held out",
    )
    beaten = dominated(tuned)
    rows = tuple(
        (setting.spec, names[setting.spec], *_cells(tuned, setting), beaten[setting.spec]) for setting in tuned.settings
    )
    title = f"The frontier of {tuned.strategy}: cost ({unit(tuned.cost)}) and {tuned.quality}"
    return Table(title, heads, rows, tuple(_notes(tuned)), spare=("of held out", "95 % interval"))


def _against(tuned: Tuned, settings: list[Setting]) -> Table:
    """Return the settings on the conversations held out, against the whole history."""
    names = numbers(tuned)
    rows = []
    for setting in settings:
        assert setting.against is not None
        cells = [
            (moved(of.value, unit, of.relative), between(of.shown, unit, of.relative))
            for of, unit in zip(setting.against, ("usd", "share"), strict=True)
        ]
        rows.append((setting.spec, names[setting.spec], *cells[0], *cells[1]))
    heads = ("setting", "no.", "cost", "95 % interval", tuned.quality, "95 % interval ")
    return Table("Held out: against the whole history", heads, tuple(rows))


def numbers(tuned: Tuned) -> dict[str, str]:
    """Map each setting to its mark in the figure: a number on the frontier, a letter elsewhere."""
    marks: dict[str, str] = {}
    chosen = [setting.spec for setting in tuned.settings if setting.chosen]
    for at, spec in enumerate(chosen, 1):
        marks[spec] = str(at)
    for setting in tuned.settings:
        if not setting.chosen:
            marks[setting.spec] = "W" if setting.whole else "D"
    return marks


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


def _cells(tuned: Tuned, setting: Setting) -> tuple[str, ...]:
    train, held = setting.train, setting.held_out
    return (
        cost(tuned.cost, train.cost),
        cost(tuned.cost, held.cost),
        _ends(held.cost_interval, lambda value: cost(tuned.cost, value)),
        percent(train.quality),
        percent(held.quality),
        _ends(held.quality_interval, percent),
    )


def cost(of: str, value: Value) -> str:
    """Return what a conversation costs."""
    if isinstance(value, Missing):
        return f"({value.why})"
    return f"{value:,.0f}" if of == TOKENS else f"${value:,.4f}"


def unit(of: str) -> str:
    """Return the unit of cost in words."""
    return "tokens a conversation" if of == TOKENS else f"US dollars a conversation under {of}"


def _ends(ends: Ends | Missing, shown: Any) -> str:
    return f"({ends.why})" if isinstance(ends, Missing) else f"{shown(ends.low)} to {shown(ends.high)}"


def flattery(tuned: Tuned) -> tuple[float, float] | None:
    """Return the mean loss of quality of the chosen settings from the searched to the held-out conversations, and the
    loss of the whole history, which was not chosen; None if either is unknown.
    """
    lost = [
        _lost(setting.train, setting.held_out) for setting in tuned.settings if setting.chosen and not setting.whole
    ]
    known = [setting for setting in lost if setting is not None]
    whole = next((_lost(setting.train, setting.held_out) for setting in tuned.settings if setting.whole), None)
    if not known or whole is None:
        return None
    return sum(known) / len(known), whole


def _lost(train: TrialFigures, held: TrialFigures) -> float | None:
    if isinstance(train.quality, Missing) or isinstance(held.quality, Missing):
        return None
    return train.quality - held.quality


def _notes(tuned: Tuned) -> Iterator[str]:
    yield (
        f"Searched on {count(tuned.train, 'conversation')}; {count(tuned.held_out, 'conversation')} held out. "
        f"W: the whole history.{' D: the strategy at its defaults.' if 'D' in numbers(tuned).values() else ''}"
    )
    if not tuned.worth:
        yield "No setting is worth its cost: the whole history costs no more than any of them, and is no worse."
    if (lost := flattery(tuned)) is not None:
        chosen, whole = (f"{abs(setting) * 100:.1f} points {'less' if setting >= 0 else 'more'}" for setting in lost)
        flattered = moved(lost[0] - lost[1], "share", False) + ("" if lost[0] > lost[1] else ", none visible here")
        yield (
            f"Selection bias: {flattered}. Held out, the chosen settings have on average {chosen} {tuned.quality} than "
            f"on the conversations that chose them; the whole history, which was not chosen, has {whole}."
        )
    for name, end, there in tuned.at_ends:
        yield (
            f"{name} is {end}, an end of its range, in {count(there, 'setting')} of the frontier: better ones may lie "
            f"beyond (--space '{name}=…')."
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


def _searched(tuned: Tuned) -> str:
    if tuned.exhaustive:
        return f"Searched: all {count(tuned.trials, 'setting')} of the space"
    return f"Searched: {count(tuned.trials, 'setting')}"


def _quality(tuned: Tuned) -> str:
    return f"Quality: {tuned.why_quality} ({METRICS[tuned.quality].about})."


def as_json(tuned: Tuned) -> dict[str, Any]:
    """Return all exact figures. A missing figure is `{"why": "undefined", "detail": …}`."""
    lost = flattery(tuned)
    return {
        "strategy": tuned.strategy,
        "space": {
            name: {"range": str(span), "why": tuned.space.why[name]} for name, span in tuned.space.ranges.items()
        },
        "cost": tuned.cost,
        "quality": tuned.quality,
        "conversations": {"searched_on": tuned.train, "held_out": tuned.held_out},
        "trials": tuned.trials,
        "exhaustive": tuned.exhaustive,
        "at_ends": [{"parameter": name, "end": end, "settings": there} for name, end, there in tuned.at_ends],
        "dominated_by_whole_history": not tuned.worth,
        "frontier": [_setting(tuned, setting) for setting in tuned.settings if setting.chosen],
        "beside": [_setting(tuned, setting) for setting in tuned.settings if not setting.chosen],
        "selection_bias": None if lost is None else {"chosen_lose": lost[0], "whole_history_loses": lost[1]},
        "tried": [{"strategy": spec, **_figures(figures)} for spec, figures in tuned.tried],
        "failed": [{"setting": setting, "why": why} for setting, why in tuned.failed],
        "replies": tallies_json(tuned.replies),
    }


def _setting(tuned: Tuned, setting: Setting) -> dict[str, Any]:
    return {
        "strategy": setting.spec,
        "searched_on": _figures(setting.train),
        "held_out": _figures(setting.held_out),
        "on_held_out": dominated(tuned)[setting.spec],
        "against_whole_history": None if setting.against is None else _differences(setting.against),
        "without_newest": setting.lacking,
        "calls": setting.calls,
    }


def _differences(comparison: BaselineComparison) -> dict[str, Any]:
    return {
        name: {"value": of.value, "relative": of.relative, "interval_95": _exact(of.shown)}
        for name, of in comparison._asdict().items()
    }


def _exact(ends: Ends | Missing) -> Any:
    return ends if isinstance(ends, Missing) else list(ends)


def _figures(figures: TrialFigures) -> dict[str, Any]:
    return {
        "cost": figures.cost,
        "cost_interval_95": _exact(figures.cost_interval),
        "quality": figures.quality,
        "quality_interval_95": _exact(figures.quality_interval),
        "conversations": figures.conversations,
    }

"""What a search of parameters found, as tables and with exact figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..harness.tune.trial import TOKENS, BaselineComparison, Setting, TrialFigures
from ..harness.tune.tune import Tuned
from ..metrics.figures import METRICS
from ..metrics.frontier import dominators, frontier
from ..metrics.statistics.intervals import Ends
from ..metrics.value import Missing, Value
from .compare import between, moved
from .render import Table, count, percent

HOW = (
    "Cost: the mean of a conversation. Intervals: 95 %, over conversations held out; differences are taken in pairs of "
    "them. Settings were chosen by the figures of the conversations searched on, the best of many, which flatters "
    "them: what to expect is what was held out. Whoever chooses by those figures among them flatters again, a little."
)
SHOWN = 8
"""Settings without figures that are named."""


def tables(found: Tuned) -> Iterator[Table]:
    """The frontier, how much it was flattered, and what was searched."""
    yield _frontier(found)
    if beside := [each for each in found.settings if each.against is not None]:
        yield _against(found, beside)
    if found.failed:
        more = len(found.failed) - SHOWN
        note = (f"And {more} more, which are in tune.json.",) if more > 0 else ()
        yield Table("Settings without figures", ("setting", "why"), found.failed[:SHOWN], note, prose=True)
    rows = tuple((name, str(each), found.space.why[name]) for name, each in found.space.ranges.items())
    yield Table(_searched(found), ("parameter", "range", "why"), rows, (_quality(found),), prose=True)
    yield Table("How to read it", (), (), (HOW,))


def _frontier(found: Tuned) -> Table:
    names = numbers(found)
    heads = (
        "setting",
        "no.",
        "cost",
        "held out",
        "95 % interval",
        found.quality,
        "held out ",
        "95 % interval ",
        "of held out",
    )
    beaten = dominated(found)
    rows = tuple((each.spec, names[each.spec], *_cells(found, each), beaten[each.spec]) for each in found.settings)
    title = f"The frontier of {found.strategy}: cost ({unit(found.cost)}) and {found.quality}"
    return Table(title, heads, rows, tuple(_notes(found)), spare=("of held out", "95 % interval"))


def _against(found: Tuned, settings: list[Setting]) -> Table:
    """What was held out, beside the whole history."""
    names = numbers(found)
    rows = []
    for each in settings:
        assert each.against is not None
        cells = [
            (moved(of.value, unit, of.relative), between(of.shown, unit, of.relative))
            for of, unit in zip(each.against, ("usd", "share"), strict=True)
        ]
        rows.append((each.spec, names[each.spec], *cells[0], *cells[1]))
    heads = ("setting", "no.", "cost", "95 % interval", found.quality, "95 % interval ")
    return Table("On what was held out, against the whole history", heads, tuple(rows))


def numbers(found: Tuned) -> dict[str, str]:
    """What the settings are called in the figure: a number on the frontier, a letter beside it."""
    made: dict[str, str] = {}
    chosen = [each.spec for each in found.settings if each.chosen]
    for at, spec in enumerate(chosen, 1):
        made[spec] = str(at)
    for each in found.settings:
        if not each.chosen:
            made[each.spec] = "W" if each.whole else "D"
    return made


def dominated(found: Tuned) -> dict[str, str]:
    """Of each setting, whether it is on the frontier of the conversations held out, or by which it is dominated."""
    names = numbers(found)
    points = {each.spec: point for each in found.settings if (point := each.held_out.point) is not None}
    best, by = set(frontier(points)), dominators(points)
    return {
        each.spec: "on it"
        if each.spec in best
        else f"beaten by {', '.join(names[other] for other in by[each.spec])}"
        if each.spec in by
        else "–"
        for each in found.settings
    }


def _cells(found: Tuned, each: Setting) -> tuple[str, ...]:
    train, held = each.train, each.held_out
    return (
        cost(found.cost, train.cost),
        cost(found.cost, held.cost),
        _ends(held.cost_interval, lambda value: cost(found.cost, value)),
        percent(train.quality),
        percent(held.quality),
        _ends(held.quality_interval, percent),
    )


def cost(of: str, value: Value) -> str:
    """What a conversation costs."""
    if isinstance(value, Missing):
        return f"({value.why})"
    return f"{value:,.0f}" if of == TOKENS else f"${value:,.4f}"


def unit(of: str) -> str:
    """What cost is, in words."""
    return "tokens a conversation" if of == TOKENS else f"US dollars a conversation under {of}"


def _ends(ends: Ends | Missing, shown: Any) -> str:
    return f"({ends.why})" if isinstance(ends, Missing) else f"{shown(ends.low)} to {shown(ends.high)}"


def flattery(found: Tuned) -> tuple[float, float] | None:
    """How many points of quality the chosen settings lose on average from one side of the split to the other, and how
    many the whole history, which was not chosen. None where either is not known."""
    lost = [_lost(each.train, each.held_out) for each in found.settings if each.chosen and not each.whole]
    known = [each for each in lost if each is not None]
    whole = next((_lost(each.train, each.held_out) for each in found.settings if each.whole), None)
    if not known or whole is None:
        return None
    return sum(known) / len(known), whole


def _lost(train: TrialFigures, held: TrialFigures) -> float | None:
    if isinstance(train.quality, Missing) or isinstance(held.quality, Missing):
        return None
    return train.quality - held.quality


def _notes(found: Tuned) -> Iterator[str]:
    yield (
        f"Searched on {count(found.train, 'conversation')}; {count(found.held_out, 'conversation')} held out. "
        f"W: the whole history.{' D: the strategy at its defaults.' if 'D' in numbers(found).values() else ''}"
    )
    if not found.worth:
        yield "No setting is worth it: the whole history costs no more than any of them, and is no worse."
    if (lost := flattery(found)) is not None:
        chosen, whole = (f"{abs(each) * 100:.1f} points {'less' if each >= 0 else 'more'}" for each in lost)
        flattered = moved(lost[0] - lost[1], "share", False) + ("" if lost[0] > lost[1] else ", none to be seen here")
        yield (
            f"Selection bias: on what was held out the chosen settings have on average {chosen} {found.quality} than "
            f"on what chose them, the whole history, which was not chosen, {whole}. What choosing flatters is the "
            f"difference between the two: {flattered}."
        )
    for name, end, there in found.at_ends:
        yield (
            f"{name} is {end}, an end of its range, in {count(there, 'setting')} of the frontier: there may be better "
            f"ones beyond it (--space '{name}=…')."
        )
    if found.held_out == 1:
        yield "One conversation is held out: it has no interval, and says little. Give more recordings."
    for each in found.settings:
        if each.failed:
            yield f"{each.spec} failed on what was held out: {each.failed}."
    lacking = [f"{each.spec} {each.lacking:,} of {each.calls:,}" for each in found.settings if each.lacking]
    if lacking:
        yield f"Held-out calls that lack the newest message: {', '.join(lacking)}."


def _searched(found: Tuned) -> str:
    if found.exhaustive:
        return f"Searched: all {count(found.trials, 'setting')} of the space"
    return f"Searched: {count(found.trials, 'setting')}"


def _quality(found: Tuned) -> str:
    return f"Quality: {found.why_quality} ({METRICS[found.quality].about})."


def as_json(found: Tuned) -> dict[str, Any]:
    """Everything. A missing figure is `{"why": "undefined", "detail": …}`."""
    lost = flattery(found)
    return {
        "strategy": found.strategy,
        "space": {
            name: {"range": str(each), "why": found.space.why[name]} for name, each in found.space.ranges.items()
        },
        "cost": found.cost,
        "quality": found.quality,
        "conversations": {"searched_on": found.train, "held_out": found.held_out},
        "trials": found.trials,
        "exhaustive": found.exhaustive,
        "at_ends": [{"parameter": name, "end": end, "settings": there} for name, end, there in found.at_ends],
        "dominated_by_whole_history": not found.worth,
        "frontier": [_setting(found, each) for each in found.settings if each.chosen],
        "beside": [_setting(found, each) for each in found.settings if not each.chosen],
        "selection_bias": None if lost is None else {"chosen_lose": lost[0], "whole_history_loses": lost[1]},
        "tried": [{"strategy": spec, **_figures(each)} for spec, each in found.tried],
        "failed": [{"setting": setting, "why": why} for setting, why in found.failed],
    }


def _setting(found: Tuned, each: Setting) -> dict[str, Any]:
    return {
        "strategy": each.spec,
        "searched_on": _figures(each.train),
        "held_out": _figures(each.held_out),
        "on_held_out": dominated(found)[each.spec],
        "against_whole_history": None if each.against is None else _differences(each.against),
        "without_newest": each.lacking,
        "calls": each.calls,
    }


def _differences(each: BaselineComparison) -> dict[str, Any]:
    return {
        name: {"value": of.value, "relative": of.relative, "interval_95": _exact(of.shown)}
        for name, of in each._asdict().items()
    }


def _exact(ends: Ends | Missing) -> Any:
    return ends if isinstance(ends, Missing) else list(ends)


def _figures(each: TrialFigures) -> dict[str, Any]:
    return {
        "cost": each.cost,
        "cost_interval_95": _exact(each.cost_interval),
        "quality": each.quality,
        "quality_interval_95": _exact(each.quality_interval),
        "conversations": each.conversations,
    }

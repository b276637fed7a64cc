"""Say in words and in tables what the verdict on a run is: the decision, what happened here, what to expect elsewhere.

A run of the embedded traps has another table in its place. A trap is a small conversation that breaks context libraries
for one reason: what a strategy saves on it means nothing.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from math import isnan, nan
from typing import Any

from ctxbench.harness.answers.store import USUAL
from ctxbench.harness.bill import OWN_MODELS
from ctxbench.harness.folder.schema import short_names
from ctxbench.harness.graders.profiles import Profiles
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.statistics.intervals import FEWEST, HEAVIEST, Ends
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.spec import calls as stages_of

from .calibration import interval
from .render import (
    CROSS,
    Column,
    Table,
    about,
    count,
    dollars,
    library_column,
    metric_column,
    percent,
    reasons,
    sample,
    shares,
    table_of,
)
from .results import Results, by_conversation
from .verdict import MODELS_NAMED, WHOLE, RunVerdict, faults, guess, in_order

MOST_ROWS = 12
"""Strategies of a table up to which those that break something have a row of figures as well."""
PREFIX = "traps/"
"""Start of the ids of the traps."""
_BROKEN_NAMED = 2
_NAME = 32
_OF_SOME = ("compression_ratio", "lru_k_hit_rate")


def first_screen(verdict: RunVerdict, more: str = "") -> list[Table]:
    """Return the verdict on a run: the decision, the choice for each loss, and the five measures of each strategy."""
    choices = [choices_table(verdict)] if verdict.is_comparable else []
    return [answer(verdict, more), *choices, five_measures(verdict)]


def answer(verdict: RunVerdict, more: str = "") -> Table:
    """Return the decision with what happened here, in at most 12 lines: its price, who dominates, what to expect.

    The last line says how to see `more`: by default the command.
    """
    more = more or f"ctxbench report {shlex.quote(verdict.results.run.name)} --all"
    lines = _answer(verdict) if verdict.is_comparable else [("why", _why_no_verdict(verdict))]
    text = recorded_with(verdict)
    if guessed := guess(verdict):  # the headline says it, where there is one
        text = "; ".join([text or "without the name of a model", *[guessed] * (not verdict.is_comparable)])
        text += "; to bill under another: -m MODEL"
    recorded = [("recorded", text)] if text else []
    last = ("next", f"everything else: {more}")
    return Table(headline(verdict), ("", ""), (*lines, *_measured_by(verdict), *recorded, last), prose=True)


def headline(verdict: RunVerdict) -> str:
    """Return the decision in one sentence, with what it saved here."""
    if not verdict.is_comparable:
        return "No verdict"
    billed = f"; {guess(verdict)}" * bool(guess(verdict))
    if verdict.units < FEWEST:
        return f"No recommendation: {too_few(verdict)}{billed}"
    if (name := verdict.shipped) is not None:
        return f"{'Use' if verdict.is_sure else 'Try'} {name}: {here(verdict, name)}{billed}"
    why = about("verdict_keep", points=points_in_words(verdict.results.lose))
    if doubtful := verdict.but_for(verdict.doubts):
        unit = verdict.doubts[doubtful[0]].unit
        rests = f"rests on {unit_words(verdict, unit)}" if unit else "may be nothing elsewhere"
        why = f"what {doubtful[0]} saves here {rests}"
    return f"Keep {'the whole history' if verdict.base == WHOLE else verdict.base}: {why}{billed}"


def here(verdict: RunVerdict, name: str) -> str:
    """Return what a strategy cost here and in how many conversations it got cheaper: what happened, exactly."""
    cost, base = verdict.points[name].cost, verdict.points[verdict.base].cost
    change = f" ({'+' * (cost > base)}{percent(cost / base - 1)})" if base else ""
    cheaper, whole = verdict.cheaper_in(name), count(verdict.conversations, "conversation")
    return f"{dollars(cost)} instead of {dollars(base)} here{change}, cheaper in {cheaper:,} of {whole}"


def _answer(verdict: RunVerdict) -> Iterator[tuple[str, str]]:
    """Yield lines of a label and a text."""
    doubtful = verdict.but_for(verdict.doubts) if verdict.units >= FEWEST else []
    name = verdict.shipped or verdict.nearest
    if name is None and verdict.units < FEWEST:
        yield "nearest", "no strategy without broken calls cost less here"
    if name is not None and name != verdict.shipped and name not in doubtful:
        yield "nearest", f"{name}: {here(verdict, name)}"
    for other in doubtful[:2]:
        yield "doubtful", f"{other}: {_doubt(verdict, other)}"
    if name is not None:
        before, after = (percent(verdict.points[of].quality) for of in (verdict.base, name))
        whole = "the whole history" if verdict.base == WHOLE else verdict.base
        gain = f" instead of {before}: {_signed(_gain(verdict, name))} points" if before != after else f", as {whole}"
        yield "quality", f"{verdict.quality.name} {after}{gain}"
    unit, share = verdict.heaviest
    if share > HEAVIEST:
        is_told = name is None or verdict.units < 2 or (name in doubtful and verdict.doubts[name].unit == unit)
        left = "" if is_told else f"; without it {name} costs {_without(verdict, str(name), unit)}"
        yield "largest", f"{unit_words(verdict, unit)}: {percent(share)} of the bill{left}"
    # At the smallest loss for which there is another choice.
    choices = (verdict.choice(points) for points in verdict.losses if points < verdict.results.lose)
    careful = next((other for other in choices if other not in (verdict.base, name)), None)
    if verdict.shipped is not None and careful is not None:
        yield "more careful", f"{careful}: {here(verdict, careful)}; {_signed(_gain(verdict, careful))} points"
    if name is not None:
        yield "elsewhere", how_sure(verdict, name)
    if crossed := verdict.but_for(verdict.broken):
        broken = "; ".join(f"{other} ({_worst(verdict.broken[other])})" for other in crossed[:_BROKEN_NAMED])
        more = f"; {len(crossed) - _BROKEN_NAMED:,} more" * (len(crossed) > _BROKEN_NAMED)
        yield "broken", f"cheaper here, but breaks calls: {broken}{more}"
    if idle := _idle(verdict):
        yield "short", idle
    if verdict.shipped is not None and (have := how_to_have(verdict.shipped)):
        yield "what it is", have


def _gain(verdict: RunVerdict, name: str) -> float:
    return verdict.points[name].quality - verdict.points[verdict.base].quality


def _without(verdict: RunVerdict, name: str, unit: str) -> str:
    """Return what a strategy costs and gains without an independent unit, in words."""
    change, loss = map(float, verdict.without_each(name).loc[unit])
    gain = "" if isnan(loss) or _signed(-loss) == "0.0" else f", {_signed(-loss)} points"
    return f"{in_words(Ends(change, change))}{gain}"


def unit_words(verdict: RunVerdict, unit: str) -> str:
    """Return an independent unit in words: one conversation, or several that are one."""
    first, *others = verdict.conversations_of(unit)
    return f"{len(others) + 1:,} conversations that are one unit, {first} …" if others else f"one conversation, {first}"


def _doubt(verdict: RunVerdict, name: str) -> str:
    """Return why a strategy that was cheaper here is not chosen."""
    doubt = verdict.doubts[name]
    if not doubt.unit:
        return f"{here(verdict, name)}; {doubt.words}"
    unit = unit_words(verdict, doubt.unit)
    return f"{here(verdict, name)}; {doubt.words} {unit}: the others cost {_without(verdict, name, doubt.unit)}"


def why_placed(verdict: RunVerdict, name: str) -> str:
    """Return why a strategy has its place: what it breaks, why it is doubted, or what beats it; else empty."""
    match verdict.places[name]:
        case "broken":
            return "; ".join(verdict.broken[name])
        case "doubtful":
            return _doubt(verdict, name)
        case "beaten":
            return f"{verdict.beaten_by[name]} costs no more and is no worse"
    return ""


def how_to_have(name: str) -> str:
    """Return what each stage of a strategy does, and what to call in LangChain or at the provider to have it."""
    try:
        stages = dict.fromkeys(call.name for call in stages_of(name, "strategy"))
    except SpecError:  # a strategy of the user's own file
        return ""
    have = _have()
    return ". ".join(f"{stage}: {have.get(stage, f'see ctxbench list strategies {stage}')}" for stage in stages)


@cache
def _have() -> Mapping[str, str]:
    return tomllib.loads(resources.files(__package__).joinpath("have.toml").read_text("utf-8"))


def choices_table(verdict: RunVerdict) -> Table:
    """Return the strategy to choose for each loss of quality that a reader may accept, and what it saved here."""
    base = verdict.points[verdict.base]
    short = short_names([verdict.choice(points) for points in verdict.losses], _NAME)

    def row(points: float) -> tuple[str, ...]:
        name = verdict.choice(points)
        cost, mark = verdict.points[name].cost, " (--lose)" * (points == verdict.results.lose)
        saved = percent(1 - cost / base.cost) if base.cost else "–"
        label = points_in_words(points) if points else "nothing"
        return label + mark, short[name], dollars(cost), saved, _signed(_gain(verdict, name))

    few = verdict.units < FEWEST
    heads = ("if you accept to lose", "cheapest" if few else "choose", "cost", "saves", "points")
    title = "What was cheapest here, and what it saved" if few else "What to choose, and what it saves"
    return Table(title, heads, tuple(map(row, verdict.losses)), names=2, page=True)


def _idle(verdict: RunVerdict) -> str:
    """Return how many strategies had nothing to do, if those are more than half; more of the same would not help."""
    strategies = verdict.results.summary.strategies
    if WHOLE not in strategies:
        return ""
    whole = strategies[WHOLE]["tokens_sent"]
    others = [name for name in strategies if name != WHOLE]
    idle = [name for name in others if strategies[name]["tokens_sent"] == whole]
    if isinstance(whole, Missing) or not whole or 2 * len(idle) <= len(others):
        return ""
    return about("verdict_idle", idle=len(idle), others=count(len(others), "other strategy", "other strategies"))


def points_in_words(points: float) -> str:
    """Return a number of points of quality: 1 point, 2.5 points."""
    return f"{points:g} {'point' if points == 1 else 'points'}"


def how_sure(verdict: RunVerdict, name: str) -> str:
    """Return what to expect of other conversations: intervals, or where they cannot be had the range over units."""
    change, gain = verdict.cost_change(name), verdict.gain(name, verdict.base)
    drawn = sample(verdict.conversations, verdict.units)
    if isinstance(change.shown, Missing):
        cost = f"{in_words(change.across)} cost" if isinstance(change.across, Ends) else "any cost"
        quality = f" and {_points(gain.across)} points" if isinstance(gain.across, Ends) else ""
        return about("verdict_range", why=change.shown.detail, cost=cost, quality=quality)
    points = f" and {_points(gain.shown)} points of quality" if isinstance(gain.shown, Ends) else ""
    more = "" if verdict.surely_keeps(name) else f"; more than {points_in_words(verdict.results.lose)} may be lost"
    if isinstance(gain.shown, Missing) and gain.shown.why == "few" and isinstance(gain.across, Ends):
        more = f"; {_points(gain.across)} points in single conversations here: {gain.shown.detail}"
    return about("verdict_expect", cost=in_words(change.shown), points=points, drawn=drawn, more=more)


def in_words(ends: Ends) -> str:
    """Return a range of relative changes as more or less: 46.0 to 68.0 % less, 5.0 % less to 31.0 % more, the same."""
    low, high = ends
    if low < 0 < high:
        return f"{percent(-low)} less to {percent(high)} more"
    near, far = sorted(map(abs, ends))
    size = shares(near, far) if percent(near) != percent(far) else percent(far)
    return "the same" if size == percent(0) else f"{size} {'less' if low < 0 else 'more'}"


def too_few(verdict: RunVerdict) -> str:
    """Return why so few conversations say too little of others."""
    conversations, units = verdict.conversations, verdict.units
    of = "" if units == conversations else f" ({count(units, 'independent unit')})"
    are = "is" if conversations == 1 else "are"
    return f"{count(conversations, 'conversation')}{of} {are} too few to say what others would cost; it takes {FEWEST}"


def _why_no_verdict(verdict: RunVerdict) -> str:
    results = verdict.results
    if WHOLE not in results.strategies:
        return f"the whole history was not run: add --strategy {WHOLE}"
    if len(results.strategies) < 2:
        return "there is one strategy: add others with --strategy"
    if list(verdict.points) == [verdict.base]:
        return "no other strategy can be compared with the whole history: see the tables below"
    if why := reasons(value for value in verdict.values.values() if isinstance(value, Missing)):
        return f"{verdict.quality.name} is not known. {why}"
    return f"the bill under {verdict.model} is not known"


def recorded_with(verdict: RunVerdict) -> str:
    """Return which models were recorded, with their shares of all calls, and which one is billed; empty without any."""
    summary, model = verdict.results.summary, verdict.model
    calls, whole = summary.recorded, summary.calls
    if not calls:
        return ""
    rest = list(calls.values())[MODELS_NAMED:]
    shown = [*list(calls.items())[:MODELS_NAMED], (f"{len(rest)} more", sum(rest))]
    shown = [row for row in (*shown, ("without a model's name", whole - sum(calls.values()))) if row[1]]
    named = ", ".join(name + f" ({percent(number / whole)})" * (len(shown) > 1) for name, number in shown)
    if model == OWN_MODELS:
        return f"recorded with {named}; each billed under its own"
    if model not in calls:
        return f"recorded with {named}; billed under {model}"
    also = "and" if len(shown) == 1 else f"{named}; all"
    factors = verdict.results.billed.factors[model]
    is_ours = factors.family is not None or factors.prompt == 1
    text = f"recorded with {also} billed under {model}"
    return text if is_ours else f"{text}, which counted {factors.prompt:.2f} tokens for each of ours"


def _measured_by(verdict: RunVerdict) -> Iterator[tuple[str, str]]:
    """Yield what quality is, who answered and who graded, and how far that agrees with people."""
    quality = verdict.quality
    if quality.graded is None:
        yield "measured by", f"{quality.name}: {quality.about}"
    else:
        graded = quality.graded
        is_baseline = graded.answerer == USUAL[0]
        who = "the extractive baseline, which is no language model" if is_baseline else graded.answerer
        profiles = (quote.profile for quote in Profiles().of(graded.grader)[:2])
        kappas = ", ".join(f"{interval(profile.quoted.kappa)} on {profile.set}" for profile in profiles)
        agreement = f"kappa with people {kappas}" if kappas else "its agreement with people is not known"
        yield "answered by", f"{who}; graded by {graded.grader}: {agreement}"
    if quality.failed:
        yield "", f"{', '.join(quality.failed)}: none of its answers counts (--all shows why)"


def five_measures(verdict: RunVerdict) -> Table:
    """Return a row for each strategy: tokens and cost saved, cache hit rate, compression, LRU-K hit rate, quality.

    Of more than MOST_ROWS strategies those that break something are only named, under the table, unless they would do
    otherwise, or have a measure that no other has.
    """
    results, points, model, summary = verdict.results, verdict.points, verdict.model, verdict.results.summary

    def measured(name: str) -> set[str]:
        """Return those measures of only some strategies that this one has."""
        return {key for key in _OF_SOME if not isinstance(summary.strategies[name][key], Missing)}

    shown = in_order(verdict)
    if len(shown) > MOST_ROWS:
        crossed = verdict.but_for(verdict.broken) if verdict.is_comparable else []
        sound = [name for name in shown if name not in verdict.broken or name in crossed]
        common = set().union(*map(measured, sound))
        shown = [name for name in shown if name in sound or measured(name) - common]
    names = short_names(shown, _NAME)
    bills = {str(row.strategy): row for row in results.totals.itertuples() if row.model == model}
    rows: list[dict[str, Any]] = [
        {
            **summary.strategies[name],
            "strategy": name,
            "cost_saved": bills[name].saved_against_none if name in bills else nan,
            "hit_rate": bills[name].hit_rate if name in bills else nan,
            "quality": verdict.values[name],
            "gain": verdict.gain(name, WHOLE) if {name, WHOLE} <= points.keys() and name != WHOLE else None,
        }
        for name in shown
    ]

    def share(value: float) -> str:
        return "–" if isnan(value) else percent(value)

    columns = (
        Column("strategy", "strategy", lambda name: _marked(verdict, name, names[name])),
        *library_column(summary.manifest.libraries(), shown),
        metric_column("net_saving"),
        Column("cost saved", "cost_saved", share),
        Column("cache hit rate", "hit_rate", share),
        *map(metric_column, _OF_SOME),
        Column(verdict.quality.name, "quality", percent),
        Column("points more, 95 %", "gain", lambda gain: "–" if gain is None else gain_range(gain)),
    )
    subagents = f"{summary.subagents:,} of them of subagents, " if summary.subagents else ""
    title = (
        f"{sample(summary.conversations, summary.units)}, {subagents}{count(summary.messages, 'message')}, "
        f"{count(summary.calls, 'model call')}, billed under {'their own models' if model == OWN_MODELS else model}"
    )
    notes = [about("verdict_measures")]
    if any(row["gain"] is not None and gain_range(row["gain"]).startswith("[") for row in rows):
        notes.append(about("verdict_across"))
    if verdict.broken:
        # The names of the broken strategies by what they break, and in how many calls.
        short, by_reason = short_names(verdict.broken, _NAME), dict[str, list[str]]()
        for name, breaks in verdict.broken.items():
            reason, _, number = _worst(breaks).partition(": ")
            by_reason.setdefault(reason, []).append(f"{short[name]} {number}".rstrip())
        broken = "; ".join(f"{reason}: {', '.join(broken)}" for reason, broken in by_reason.items())
        notes.append(about("verdict_broken", cross=CROSS, broken=broken))
    return table_of(title, columns, rows, [*notes, *results.sampling_notes], page=True)


def _marked(verdict: RunVerdict, name: str, short: str) -> str:
    """Return a strategy's name with a cross where it breaks something, and with its place where it is no strategy."""
    place = verdict.places[name]
    return f"{CROSS} " * (place == "broken") + short + " (bound)" * (place == "bound")


def gain_range(gain: Difference) -> str:
    """Return the interval of a gain in points; where it has none, the range over units in brackets."""
    if isinstance(gain.shown, Missing) and isinstance(gain.across, Ends):
        return _signed(0) if gain.shown.why == "fixed" else f"[{_points(gain.across)}]"
    return _points(gain.shown)


def tags(verdict: RunVerdict) -> dict[str, str]:
    """Return the verdict as the tags of a tracker: those of the run, and under `place/STRATEGY` each one's place.

    There is none on a run of traps.
    """
    if is_traps(verdict.results):
        return {}
    chosen = {"choice": verdict.shipped} if verdict.shipped else {}
    of_run = {"verdict": headline(verdict), "accepted_loss": points_in_words(verdict.results.lose), **chosen}
    of_run["quality"] = verdict.quality.metric
    return of_run | {f"place/{name}": place for name, place in verdict.places.items()}


def points_of(change: Difference) -> str:
    """Return a difference of shares in points, as it was here."""
    return f"({change.value.why})" if isinstance(change.value, Missing) else f"{_signed(change.value)} points"


def _points(ends: Ends | Missing) -> str:
    if isinstance(ends, Missing):
        return f"({ends.why})"
    low, high = map(_signed, ends)
    return low if low == high else f"{low} to {high}"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def _worst(faults: Sequence[str]) -> str:
    """Return the fault that says most: a message that is missing, before who would reject the request for it."""
    return min(faults, key=lambda text: text.startswith("rejected"))


def is_traps(results: Results) -> bool:
    """Return whether all conversations of a run are traps."""
    names = results.run.table("conversations").conversation.astype(str)
    return bool(len(names)) and bool(names.str.startswith(PREFIX).all())


def trap_faults(results: Results) -> dict[str, dict[str, list[str]]]:
    """Map each strategy to the traps that it falls into, each with what it breaks and `none` does not, in words.

    Requests that a provider rejects count for the providers of all billed models.
    """
    rows = by_conversation(results.run)
    usual = {row["conversation"]: row for row in rows if row["strategy"] == WHOLE}
    by_strategy: dict[str, dict[str, list[str]]] = {name: {} for name in results.strategies}
    models = " ".join(results.models)
    for row in rows:
        name, trap = row["strategy"], row["conversation"]
        is_failed = trap in results.run.failures.get(name, {})
        broken = ["failed"] if is_failed else list(faults(row, usual.get(trap, {}), models))
        if results.summary.unrepeatable.get(name) == trap:
            broken.insert(0, "sends something else when it is replayed again")
        if broken:
            by_strategy[name][trap.removeprefix(PREFIX)] = broken
    return by_strategy


def trap_table(results: Results) -> Table:
    """Return a row for each strategy: how many traps it falls into, which, and what it breaks there."""
    by_strategy = trap_faults(results)
    names = short_names(list(by_strategy), 40)
    rows = [
        (
            names[name],
            str(len(traps)),
            "; ".join(f"{trap} ({_worst(what).partition(': ')[0]})" for trap, what in traps.items()),
        )
        for name, traps in sorted(by_strategy.items(), key=lambda entry: len(entry[1]))
    ]
    safe, traps = sum(not broken for broken in by_strategy.values()), count(results.summary.conversations, "trap")
    title = f"Which of {traps} break a strategy? {safe} of {len(by_strategy)} strategies pass them all"
    return Table(title, ("strategy", "broken", "by"), tuple(rows), (about("traps"),), prose=True)

"""Say in words and in one table what the verdict on a run is: what to ship, how sure that is, the five measures.

A run of the embedded traps has another table in its place. A trap is a small conversation that breaks context libraries
for one reason: what a strategy saves on it means nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from math import isnan, nan

from ctxbench.harness.answers.store import USUAL
from ctxbench.harness.folder.names import short_names
from ctxbench.harness.graders.profiles import Profiles
from ctxbench.metrics.frontier import DRAWS
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing

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
from .verdict import FEWEST, SURE, WHOLE, RunVerdict, faults, in_order

MOST_ROWS = 12
"""Strategies of a table up to which those that break something have a row of figures as well."""
PREFIX = "traps/"
"""Start of the ids of the traps."""
_MODELS_NAMED = 3
_NAME = 32
_OF_SOME = ("compression_ratio", "lru_k_hit_rate")


def answer(verdict: RunVerdict, more: str = "") -> Table:
    """Return in at most 12 lines which strategy to ship, what it saves, loses and breaks, and how sure that is.

    The last line says how to see `more`: by default the command.
    """
    shipped, is_comparable = verdict.shipped, WHOLE in verdict.points and len(verdict.points) > 1
    title = f"Ship {shipped}" if shipped else "Keep the whole history" if is_comparable else "No verdict"
    more = more or f"ctxbench report {shlex.quote(verdict.results.run.name)} --all"
    lines = _answer(verdict) if is_comparable else [("why", _why_no_verdict(verdict))]
    recorded = recorded_with(verdict)
    of_recording = [("recorded", recorded)] * bool(recorded)
    last = ("next", f"everything else: {more}")
    return Table(title, ("", ""), (*lines, *_measured_by(verdict), *of_recording, last), prose=True)


def _answer(verdict: RunVerdict) -> Iterator[tuple[str, str]]:
    """Yield lines of a label and a text."""
    if (name := verdict.shipped) is not None:
        yield from _figures(verdict, name)
        yield "breaks", "nothing that the whole history does not break"
        yield "how sure", how_sure(verdict, name)
    else:
        nothing = about("verdict_nothing", sure=100 * SURE, accepted=accepted_points(verdict))
        yield "why", too_few(verdict) if verdict.units < FEWEST else nothing
        if (nearest := verdict.nearest) is not None:
            yield "nearest", f"{nearest}: {how_sure(verdict, nearest)}"
            yield from _figures(verdict, nearest)
            yield "do", about("verdict_do")
        if idle := _idle(verdict):
            yield "short", idle
    if crossed := verdict.crossed:
        yield "not", f"{', '.join(crossed)}: would do but for what {'it breaks' if len(crossed) == 1 else 'they break'}"


def _idle(verdict: RunVerdict) -> str:
    """Return how many strategies had nothing to do, if those are more than half; more of the same would not help."""
    strategies = verdict.results.summary.strategies
    whole = strategies[WHOLE]["tokens_sent"]
    others = [name for name in strategies if name != WHOLE]
    idle = [name for name in others if strategies[name]["tokens_sent"] == whole]
    if isinstance(whole, Missing) or not whole or 2 * len(idle) <= len(others):
        return ""
    return about("verdict_idle", idle=len(idle), others=count(len(others), "other strategy", "other strategies"))


def accepted_points(verdict: RunVerdict) -> str:
    """Return the accepted loss in words: 5 points, or 2.1 points."""
    return f"{100 * verdict.accepted:.1f}".removesuffix(".0") + " points"


def _figures(verdict: RunVerdict, name: str) -> Iterator[tuple[str, str]]:
    """Yield what a strategy saves, and what it loses."""
    points = verdict.points
    costs = f"{dollars(points[name].cost)} instead of {dollars(points[WHOLE].cost)}"
    yield "saves", f"{less(verdict.cost_change(name))} of the bill under {verdict.model}: {costs}"
    yield "", f"{less(verdict.token_change(name))} of the tokens, its own model calls included"
    of = f"{percent(points[name].quality)}, of the whole history {percent(points[WHOLE].quality)}"
    yield "quality", f"{verdict.quality.name}: {of}: {points_of(verdict.gain(name, WHOLE))}"


def how_sure(verdict: RunVerdict, name: str) -> str:
    """Return in how many resamples a strategy costs less than the base and loses no more than accepted."""
    share, drawn = verdict.keeps[name], sample(verdict.conversations, verdict.units)
    # With a digit more where it would read as enough and is not.
    kept = f"{100 * share:.2f} %" if share < SURE and percent(share) == percent(SURE) else percent(share)
    words = f"cheaper, and at most {accepted_points(verdict)} worse, in {kept} of {DRAWS:,} resamples of {drawn}"
    if share < SURE or verdict.is_cheaper(name):
        return words
    return f"{words}, but few of these decide that: it saves {less(verdict.cost_change(name))}"


def too_few(verdict: RunVerdict) -> str:
    """Return why so few conversations can make nothing sure."""
    conversations, units = verdict.conversations, verdict.units
    of = "" if units == conversations else f"they are {count(units, 'independent unit')}, and "
    return f"{count(conversations, 'conversation')} can make nothing sure: {of}it takes {FEWEST} or more"


def _why_no_verdict(verdict: RunVerdict) -> str:
    results = verdict.results
    if WHOLE not in results.strategies:
        return f"the whole history was not run: add --strategy {WHOLE}"
    if len(results.strategies) < 2:
        return "there is one strategy: add others with --strategy"
    if list(verdict.points) == [WHOLE]:
        return "no other strategy can be compared with the whole history: see the tables below"
    if why := reasons(value for value in verdict.values.values() if isinstance(value, Missing)):
        return f"{verdict.quality.name} is not known. {why}"
    return f"the bill under {verdict.model} is not known"


def recorded_with(verdict: RunVerdict) -> str:
    """Return which models were recorded, and how many tokens they count for ours; empty where that is not known."""
    calls, model = verdict.results.summary.recorded, verdict.model
    if not calls:
        return ""
    shares = {name: f" ({percent(number / sum(calls.values()))})" for name, number in calls.items()}
    named = [name + share * (len(calls) > 1) for name, share in shares.items()][:_MODELS_NAMED]
    shown = "with " + ", ".join(named + [f"{len(calls) - _MODELS_NAMED} more"] * (len(calls) > _MODELS_NAMED))
    if model not in calls:
        return f"{shown}; billed under {model}"
    factors = verdict.results.billed.factors[model]
    is_ours = factors.family is not None or factors.prompt == 1
    return shown if is_ours else f"{shown}; {model} counted {factors.prompt:.2f} tokens for each of ours"


def _measured_by(verdict: RunVerdict) -> Iterator[tuple[str, str]]:
    """Yield who answered and who graded, and how far that agrees with people."""
    answers = verdict.results.summary.answers
    if verdict.quality.metric != "answer_quality" or answers is None:
        yield "measured by", f"{verdict.quality.name}: {verdict.quality.about}"
        return
    graded = answers.figures[0]
    is_baseline = graded.answerer == USUAL[0]
    who = "the extractive baseline, which is no language model" if is_baseline else graded.answerer
    profiles = (quote.profile for quote in Profiles().of(graded.grader)[:2])
    kappas = ", ".join(f"{interval(profile.quoted.kappa)} on {profile.set}" for profile in profiles)
    agreement = f"kappa with people {kappas}" if kappas else "its agreement with people is not known"
    yield "answered by", f"{who}; graded by {graded.grader}: {agreement}"


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
        sound = [name for name in shown if name not in verdict.broken or name in verdict.crossed]
        common = set().union(*map(measured, sound))
        shown = [name for name in shown if name in sound or measured(name) - common]
    names = short_names(shown, _NAME)
    bills = {str(row.strategy): row for row in results.totals.itertuples() if row.model == model}
    rows = [
        {
            **summary.strategies[name],
            "strategy": name,
            "cost_saved": bills[name].saved_against_none if name in bills else nan,
            "hit_rate": bills[name].hit_rate if name in bills else nan,
            "quality": verdict.values[name],
            "gain": verdict.gain(name, WHOLE).shown if {name, WHOLE} <= points.keys() and name != WHOLE else None,
        }
        for name in shown
    ]

    def share(value: float) -> str:
        return "–" if isnan(value) else percent(value)

    columns = (
        Column("strategy", "strategy", lambda name: f"{CROSS} " * (name in verdict.broken) + names[name]),
        *library_column(summary.manifest.libraries(), shown),
        metric_column("net_saving"),
        Column("cost saved", "cost_saved", share),
        Column("cache hit rate", "hit_rate", share),
        *map(metric_column, _OF_SOME),
        Column(verdict.quality.name, "quality", percent),
        Column("points more, 95 %", "gain", lambda ends: "–" if ends is None else _points(ends)),
    )
    subagents = f"{summary.subagents:,} of them of subagents, " if summary.subagents else ""
    title = (
        f"{sample(summary.conversations, summary.units)}, {subagents}{count(summary.messages, 'message')}, "
        f"{count(summary.calls, 'model call')}, billed under {model}"
    )
    notes = [about("verdict_measures")]
    if verdict.broken:
        # The names of the broken strategies by what they break, and in how many calls.
        short, by_reason = short_names(verdict.broken, _NAME), dict[str, list[str]]()
        for name, breaks in verdict.broken.items():
            reason, _, number = _worst(breaks).partition(": ")
            by_reason.setdefault(reason, []).append(f"{short[name]} {number}".rstrip())
        broken = "; ".join(f"{reason}: {', '.join(broken)}" for reason, broken in by_reason.items())
        notes.append(about("verdict_broken", cross=CROSS, broken=broken))
    return table_of(title, columns, rows, [*notes, *results.sampling_notes], page=True)


def less(change: Difference) -> str:
    """Return a relative change as what is saved, with its interval: 76.7 % (65.0 to 83.4 %)."""
    if isinstance(change.value, Missing):
        return f"({change.value.why})"
    low, high = (0.0, 0.0) if isinstance(change.shown, Missing) else (-change.shown.high, -change.shown.low)
    return percent(-change.value) + f" ({shares(low, high)})" * (percent(low) != percent(high))


def points_of(change: Difference) -> str:
    """Return a difference of shares in points, with its interval."""
    if isinstance(change.value, Missing):
        return f"({change.value.why})"
    low, high = (0.0, 0.0) if isinstance(change.shown, Missing) else change.shown
    return f"{_signed(change.value)} points" + f" ({_signed(low)} to {_signed(high)})" * (_signed(low) != _signed(high))


def _points(ends: Ends | Missing) -> str:
    return f"({ends.why})" if isinstance(ends, Missing) else f"{_signed(ends.low)} to {_signed(ends.high)}"


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

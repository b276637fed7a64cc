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
from .results import Results, RunSummary, by_conversation
from .verdict import FEWEST, SURE, WHOLE, RunVerdict, faults, in_order

MOST_ROWS = 12
"""Strategies of a table up to which those that break something have a row of figures as well."""
PREFIX = "traps/"
"""Start of the ids of the traps."""
_MODELS_NAMED = 3
_NAME = 32
_OF_SOME = ("compression_ratio", "lru_k_hit_rate")


def answer(run_verdict: RunVerdict, more: str = "") -> Table:
    """Return in at most 12 lines which strategy to ship, what it saves, loses and breaks, and how sure that is.

    The last line says how to see `more`: by default the command.
    """
    title, *lines = _answer(run_verdict)
    more = more or f"ctxbench report {shlex.quote(run_verdict.results.run.name)} --all"
    lines.append(("next", f"everything else: {more}"))
    return Table(title[0], ("", ""), tuple(lines), prose=True)


def _answer(verdict: RunVerdict) -> Iterator[tuple[str, ...]]:
    """Yield the title, and then lines of a label and a text."""
    points = verdict.points
    if WHOLE not in points or len(points) < 2:
        yield ("No verdict",)
        yield "why", _why_no_verdict(verdict)
    elif (name := verdict.shipped) is not None:
        yield (f"Ship {name}",)
        yield from _figures(verdict, name)
        yield "breaks", "nothing that the whole history does not break"
        yield "how sure", how_sure(verdict, name)
    else:
        yield ("Keep the whole history",)
        sure, accepted = f"{100 * SURE:.0f} % sure", accepted_points(verdict)
        nothing = f"no strategy without broken calls is {sure} to cost less and to lose at most {accepted}"
        yield "why", too_few(verdict) if verdict.units < FEWEST else nothing
        if (nearest := verdict.nearest) is not None:
            yield "nearest", f"{nearest}: {how_sure(verdict, nearest)}"
            yield from _figures(verdict, nearest)
            yield "do", "measure more conversations: the interval narrows with the root of their number"
        if idle := _idle(verdict):
            yield "short", idle
    if crossed := verdict.crossed:
        would = "would do but for what it breaks" if len(crossed) == 1 else "would do but for what they break"
        yield "not", f"{', '.join(crossed)}: {would}"
    yield from _measured_by(verdict)
    if recorded := recorded_with(verdict):
        yield "recorded", recorded


def _idle(verdict: RunVerdict) -> str:
    """Return how many strategies had nothing to do, if those are more than half; more of the same would not help."""
    strategies = verdict.results.summary.strategies
    whole = strategies[WHOLE]["tokens_sent"]
    others = [name for name in strategies if name != WHOLE]
    idle = [name for name in others if strategies[name]["tokens_sent"] == whole]
    if isinstance(whole, Missing) or not whole or 2 * len(idle) <= len(others):
        return ""
    number = f"{len(idle):,} of {count(len(others), 'other strategy', 'other strategies')}"
    return f"{number} sent as many tokens as the whole history: these conversations hardly reach their limits"


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
    calls = verdict.results.summary.recorded
    if not calls:
        return ""
    whole = sum(calls.values())
    names = [name + f" ({percent(number / whole)})" * (len(calls) > 1) for name, number in calls.items()]
    shown = ", ".join(names[:_MODELS_NAMED] + [f"{len(calls) - _MODELS_NAMED} more"] * (len(calls) > _MODELS_NAMED))
    if verdict.model not in calls:
        return f"with {shown}; billed under {verdict.model}"
    factors = verdict.results.billed.factors[verdict.model]
    if factors.family is not None or factors.prompt == 1:
        return f"with {shown}"
    return f"with {shown}; {verdict.model} counted {factors.prompt:.2f} tokens for each of ours"


def _measured_by(verdict: RunVerdict) -> Iterator[tuple[str, str]]:
    """Yield who answered and who graded, and how far that agrees with people."""
    answers = verdict.results.summary.answers
    if verdict.quality.metric != "answer_quality" or answers is None:
        yield "measured by", f"{verdict.quality.name}: {verdict.quality.about}"
        return
    graded = answers.figures[0]
    is_baseline = graded.answerer == USUAL[0]
    who = "the extractive baseline, which is no language model" if is_baseline else graded.answerer
    profiles = Profiles().of(graded.grader)[:2]
    kappas = [f"{interval(profile.profile.quoted.kappa)} on {profile.profile.set}" for profile in profiles]
    agreement = f"kappa with people {', '.join(kappas)}" if kappas else "its agreement with people is not known"
    yield "answered by", f"{who}; graded by {graded.grader}: {agreement}"


def five_measures(verdict: RunVerdict) -> Table:
    """Return a row for each strategy: tokens and cost saved, cache hit rate, compression, LRU-K hit rate, quality.

    Of more than MOST_ROWS strategies those that break something are only named, under the table, unless they would do
    otherwise, or have a measure that no other has.
    """
    results, points, model = verdict.results, verdict.points, verdict.model
    summary = results.summary
    shown = in_order(verdict)
    if len(shown) > MOST_ROWS:
        sound = [name for name in shown if name not in verdict.broken or name in verdict.crossed]
        measured = _rarely_measured(summary, sound)
        shown = [name for name in shown if name in sound or _rarely_measured(summary, [name]) - measured]
    names = short_names(shown, _NAME)
    bills = {str(row.strategy): row for row in results.totals.itertuples() if row.model == model}
    rows = [
        {
            **summary.strategies[name],
            "strategy": name,
            "cost_saved": bills[name].saved_against_none if name in bills else nan,
            "hit_rate": bills[name].hit_rate if name in bills else nan,
            "quality": verdict.values[name],
            "gain": verdict.gain(name, WHOLE).shown if name in points and WHOLE in points and name != WHOLE else None,
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
    notes = ["Saved and points are against the whole history, which is cached as well. – means nothing to measure."]
    if verdict.broken:
        notes.append(f"{CROSS} never recommended. Broken calls: {_what_breaks(verdict)}.")
    return table_of(title, columns, rows, [*notes, *results.sampling_notes], page=True)


def _rarely_measured(summary: RunSummary, names: Sequence[str]) -> set[str]:
    """Return those measures of only some strategies that one of these has."""
    of = [summary.strategies[name] for name in names]
    return {metric for metric in _OF_SOME if any(not isinstance(values[metric], Missing) for values in of)}


def _what_breaks(verdict: RunVerdict) -> str:
    """Return the names of the broken strategies by what they break, and in how many calls."""
    names = short_names(verdict.broken, _NAME)
    by_reason: dict[str, list[str]] = {}
    for name, breaks in verdict.broken.items():
        reason, _, number = _worst(breaks).partition(": ")
        by_reason.setdefault(reason, []).append(f"{names[name]} {number}".rstrip())
    return "; ".join(f"{reason}: {', '.join(broken)}" for reason, broken in by_reason.items())


def less(change: Difference) -> str:
    """Return a relative change as what is saved, with its interval: 76.7 % (65.0 to 83.4 %)."""
    if isinstance(change.value, Missing):
        return f"({change.value.why})"
    ends = "" if isinstance(change.shown, Missing) else f" ({shares(-change.shown.high, -change.shown.low)})"
    return f"{percent(-change.value)}{ends}"


def points_of(change: Difference) -> str:
    """Return a difference of shares in points, with its interval."""
    if isinstance(change.value, Missing):
        return f"({change.value.why})"
    ends = "" if isinstance(change.shown, Missing) else f" ({_points(change.shown)})"
    return f"{_signed(change.value)} points{ends}"


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
    for row in rows:
        name, trap = row["strategy"], row["conversation"]
        is_failed = trap in results.run.failures.get(name, {})
        broken = ["failed"] if is_failed else list(faults(row, usual.get(trap, {}), " ".join(results.models)))
        if results.summary.unrepeatable.get(name) == trap:
            broken.insert(0, "sends something else when it is replayed again")
        if broken:
            by_strategy[name][trap.removeprefix(PREFIX)] = broken
    return by_strategy


def trap_table(results: Results) -> Table:
    """Return a row for each strategy: how many traps it falls into, which, and what it breaks there."""
    by_strategy = trap_faults(results)
    names = short_names(list(by_strategy), 40)
    columns = (
        Column("strategy", lambda entry: names[entry[0]]),
        Column("broken", lambda entry: len(entry[1])),
        Column(
            "by",
            lambda entry: "; ".join(f"{trap} ({_worst(what).partition(': ')[0]})" for trap, what in entry[1].items()),
        ),
    )
    safe, traps = sum(not broken for broken in by_strategy.values()), count(results.summary.conversations, "trap")
    title = f"Which of {traps} break a strategy? {safe} of {len(by_strategy)} strategies pass them all"
    note = "Broken is what the whole history does not break. Savings on traps mean nothing and are not shown."
    rows = sorted(by_strategy.items(), key=lambda entry: len(entry[1]))
    return table_of(title, columns, rows, [note], prose=True)

"""Say in words and in one table what the verdict on a run is: what to ship, how sure that is, the five measures."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from math import isnan

from ctxbench.harness.answers.store import USUAL
from ctxbench.harness.folder.names import short_names
from ctxbench.harness.graders.profiles import Profiles
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.frontier import DRAWS
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.value import Missing

from .calibration import interval
from .render import (
    CROSS,
    Table,
    count,
    dollars,
    figure,
    figure_of_few,
    library_column,
    percent,
    reasons,
    sample,
    shares,
)
from .results import RunSummary
from .verdict import FEWEST, SURE, WHOLE, RunVerdict, in_order


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
        yield "why", _why_nothing(verdict)
        fit = {name: share for name, share in verdict.keeps.items() if name not in verdict.broken and not isnan(share)}
        if fit and (nearest := max(fit, key=lambda name: fit[name])) and fit[nearest]:
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
    kept, drawn = _kept(verdict.keeps[name]), sample(verdict.conversations, verdict.units)
    words = f"cheaper, and at most {accepted_points(verdict)} worse, in {kept} of {DRAWS:,} resamples of {drawn}"
    if verdict.keeps[name] < SURE or verdict.is_cheaper(name):
        return words
    return f"{words}, but few of these decide that: it saves {less(verdict.cost_change(name))}"


def _kept(share: float) -> str:
    """Return a share of the resamples, with a digit more where it would read as enough and is not."""
    text = percent(share)
    return f"{100 * share:.2f} %" if share < SURE and text == percent(SURE) else text


def _why_nothing(verdict: RunVerdict) -> str:
    if verdict.units < FEWEST:
        return too_few(verdict)
    accepted = accepted_points(verdict)
    return f"no strategy without broken calls is {100 * SURE:.0f} % sure to cost less and to lose at most {accepted}"


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
    if len(calls) == 1:
        names = list(calls)
    else:
        names = [f"{name} ({percent(number / whole)})" for name, number in list(calls.items())[:_MODELS_NAMED]]
    others = [f"{len(calls) - _MODELS_NAMED} more"] if len(calls) > _MODELS_NAMED else []
    if verdict.model not in calls:
        return f"with {', '.join((*names, *others))}; billed under {verdict.model}"
    factors = verdict.results.billed.factors[verdict.model]
    recorded = factors.family is None and factors.prompt != 1
    count_as = f"; {verdict.model} counted {factors.prompt:.2f} tokens for each of ours" if recorded else ""
    return f"with {', '.join((*names, *others))}{count_as}"


_MODELS_NAMED = 3


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


MOST_ROWS = 12
"""Strategies of a table up to which those that break something have a row of figures as well."""
_NAME = 32


def five_measures(verdict: RunVerdict) -> Table:
    """Return a row for each strategy: tokens and cost saved, cache hit rate, compression, LRU-K hit rate, quality.

    Of more than MOST_ROWS strategies those that break something are only named, under the table, unless they would do
    otherwise, or have a measure that no other has.
    """
    results, points, model = verdict.results, verdict.points, verdict.model
    bills = results.totals[results.totals.model == model].set_index("strategy") if len(results.totals) else None
    rows = []
    shown = in_order(verdict)
    if len(shown) > MOST_ROWS:
        sound = [name for name in shown if name not in verdict.broken or name in verdict.crossed]
        measured = _rarely_measured(results.summary, sound)
        shown = [name for name in shown if name in sound or _rarely_measured(results.summary, [name]) - measured]
    names = short_names(shown, _NAME)
    brought = library_column(results.summary.manifest.libraries(), shown)
    for name, library in zip(shown, brought.cells, strict=True):
        values = results.summary.strategies[name]
        billed = ["–", "–"]
        if bills is not None and name in bills.index:
            billed = [_share(bills.saved_against_none[name]), _share(bills.hit_rate[name])]
        compared = name in points and WHOLE in points and name != WHOLE
        rows.append(
            (
                f"{CROSS} {names[name]}" if name in verdict.broken else names[name],
                *library,
                figure("net_saving", values["net_saving"]),
                *billed,
                *(figure_of_few(metric, values[metric]) for metric in ("compression_ratio", "lru_k_hit_rate")),
                percent(verdict.values[name]),
                _interval(verdict.gain(name, WHOLE)) if compared else "–",
            )
        )
    columns = ("net_saving", "compression_ratio", "lru_k_hit_rate")
    saved, compression, lru_k = (METRICS[column].name for column in columns)
    heads = (
        *("strategy", *brought.head, saved, "cost saved", "cache hit rate", compression, lru_k),
        *(verdict.quality.name, "points more, 95 %"),
    )
    title = (
        f"{sample(results.summary.conversations, results.summary.units)}, {_of_subagents(results.summary.subagents)}"
        f"{count(results.summary.messages, 'message')}, "
        f"{count(results.summary.calls, 'model call')}, billed under {model}"
    )
    notes = list(_five_notes(verdict))
    if any("(fixed)" in row for row in rows):
        notes[0] += " (fixed): the same by construction."
    return Table(title, heads, tuple(rows), tuple(notes), page=True)


def _of_subagents(number: int) -> str:
    """Return how many of the conversations are a subagent's, before what follows; empty if none is."""
    return f"{number:,} of them of subagents, " if number else ""


def _rarely_measured(summary: RunSummary, names: Sequence[str]) -> set[str]:
    """Return those measures of only some strategies that one of these has."""
    return {
        metric
        for metric in ("compression_ratio", "lru_k_hit_rate")
        if any(not isinstance(summary.strategies[name][metric], Missing) for name in names)
    }


def _five_notes(verdict: RunVerdict) -> Iterator[str]:
    yield "Saved and points are against the whole history, which is cached as well. – means nothing to measure."
    if verdict.broken:
        yield f"{CROSS} never recommended. Broken calls: {_what_breaks(verdict)}."
    yield from verdict.results.sampling_notes


def _what_breaks(verdict: RunVerdict) -> str:
    """Return the names of the broken strategies by what they break, and in how many calls."""
    names = short_names(verdict.broken, _NAME)
    by_reason: dict[str, list[str]] = {}
    for name, breaks in verdict.broken.items():
        # A message that is missing says more than who would reject the request for it; the report has all.
        worst = min(breaks, key=lambda text: text.startswith("rejected"))
        reason, _, number = worst.partition(": ")
        by_reason.setdefault(reason, []).append(f"{names[name]} {number}".rstrip())
    return "; ".join(f"{reason}: {', '.join(broken)}" for reason, broken in by_reason.items())


def _share(value: float) -> str:
    return "–" if isnan(value) else percent(value)


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
    ends = "" if isinstance(change.shown, Missing) else f" ({_interval(change)})"
    return f"{_signed(change.value)} points{ends}"


def _interval(change: Difference) -> str:
    if isinstance(change.shown, Missing):
        return f"({change.shown.why})"
    return f"{_signed(change.shown.low)} to {_signed(change.shown.high)}"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")

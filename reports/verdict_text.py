"""Say in words and in tables what the verdict on a run is: the decision, what happened here, what to expect elsewhere.

A run of the embedded traps has another table in its place. A trap is a small conversation that breaks context libraries
for one reason: what a strategy saves on it means nothing.
"""

from __future__ import annotations

import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from importlib.metadata import entry_points
from math import floor, isnan, nan
from typing import Any

from ctxbench.harness.answers.figures import BOUNDS, WHOLE, StrategyAnswers
from ctxbench.harness.answers.store import USUAL, grades_itself
from ctxbench.harness.bill import OWN_MODELS
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.compare.figures import measured
from ctxbench.harness.engine.plan import family as family_of
from ctxbench.harness.folder.schema import SHORT, short_names, with_recipe_names, without_digest
from ctxbench.harness.graders.profiles import Profiles
from ctxbench.harness.models.local import NAME
from ctxbench.harness.probes import FLOOR
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.statistics.intervals import FEWEST, FEWEST_OF_RATIOS, HEAVIEST, Ends
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import RECORDED
from ctxbench.scenarios.spec import calls as stages_of

from . import report_options
from .bill import without_cache
from .calibration import interval
from .compare import WIDEST, some
from .render import (
    CROSS,
    LINE,
    Column,
    Table,
    about,
    count,
    dollars,
    in_full,
    independent,
    library_column,
    metric_column,
    percent,
    reasons,
    sample,
    shares,
    table_of,
    tokens,
)
from .results import Results, RunSummary
from .verdict import MODELS_NAMED, ROUNDING, RunVerdict, faults, guess, in_order

PREFIX = "traps/"  # start of the ids of the traps
_BROKEN_NAMED = FAILURES_NAMED = 2


def first_screen(verdict: RunVerdict, more: str = "") -> list[Table]:
    """Return the verdict on a run: the decision, the five measures of each strategy, and the choice for each loss."""
    choices = [choices_table(verdict)] if verdict.is_comparable else []
    return [answer(verdict, more), five_measures(verdict), *choices]


def answer(verdict: RunVerdict, more: str = "") -> Table:
    """Return the decision with what happened here, in at most 12 lines: its price, who dominates, what to expect.

    The last line says how to see `more`: by default the command.
    """
    results = verdict.results
    options = report_options(results.named, results.lose)
    more = more or shlex.join(["ctxbench", "report", results.run.name, "--all", *options])
    lines = _answer(verdict) if verdict.is_comparable else ()
    text = recorded_with(verdict)
    if guessed := guess(verdict):  # the headline says it, where there is one
        text = "; ".join(filter(None, (text, "" if verdict.is_comparable else guessed)))
        text = f"{text or 'no recording names one'}; to bill under another: -m MODEL"
    recorded = [("model", text)] if text else []
    if uncached := without_cache(results.billed, Scheme(verdict.model)):
        recorded.append(("" if text else "model", uncached))
    last = ("next", f"everything else: {more}")
    body = (*_failed(results.summary), *lines, *_measured_by(verdict), *recorded, last)
    told = tuple((label, with_recipe_names(text)) for label, text in body)
    return Table(with_recipe_names(headline(verdict)), ("", ""), told, prose=True)


def _failed(summary: RunSummary) -> Iterator[tuple[str, str]]:
    """Yield each strategy and reason of a failure, in how many conversations it was that, and in which first."""
    failed = [row for row in summary.failed if row["strategy"] != RECORDED]
    first = {(row["strategy"], row["detail"]): row["conversation"] for row in reversed(failed)}
    whole = count(summary.conversations, "conversation")
    times_by_reason = Counter((row["strategy"], row["detail"]) for row in failed)
    for (name, why), times in [*times_by_reason.items()][:FAILURES_NAMED]:
        yield "failed", f"{without_digest(name)} in {times:,} of {whole}, first {first[name, why]}: {why}"


def headline(verdict: RunVerdict) -> str:
    """Return the decision in one sentence, with what it saved here."""
    if not verdict.is_comparable:
        return f"No verdict: {_why_no_verdict(verdict)}"
    billed = f"; {guess(verdict)}" * bool(guess(verdict))
    if verdict.units < FEWEST:
        return f"No recommendation: {too_few(verdict)}{billed}"
    if (name := verdict.shipped) is not None:
        condition = f"; {live}" if (live := if_live(verdict, name)) else ""
        use = f"Use {name}" if verdict.is_sure else f"Try {name}{' live first' * bool(condition)}"
        return f"{use}: {here(verdict, name)}{condition}{billed}"
    why = about("verdict_keep", points=points_in_words(verdict.results.lose))
    if doubtful := verdict.but_for(verdict.doubts):
        why = f"{doubtful[0]} costs less here, {_doubt_words(verdict, doubtful[0])}"
    return f"Keep {'the whole history' if verdict.base == WHOLE else verdict.base}: {why}{billed}"


def here(verdict: RunVerdict, name: str) -> str:
    """Return what a strategy cost here and in how many conversations it got cheaper: what happened, exactly."""
    cost, base = verdict.points[name].cost, verdict.points[verdict.base].cost
    change = f" ({'+' * (cost > base)}{percent(cost / base - 1)})" if base else ""
    cheaper, whole = verdict.cheaper_in(name), count(verdict.conversations, "conversation")
    return f"{dollars(cost)} instead of {dollars(base)} here{change}, cheaper in {cheaper:,} of {whole}"


def why_nearest(verdict: RunVerdict, name: str) -> str:
    """Return in what a strategy that is not used comes nearest: it loses least, or little; or why it is doubted."""
    if verdict.points[verdict.base].quality - verdict.points[name].quality > verdict.accepted:
        return "of what is cheaper and breaks no call it loses least"
    if name in verdict.doubts:
        return _doubt_words(verdict, name)
    return f"the cheapest that breaks no call and loses at most {points_in_words(verdict.results.lose)}"


def _answer(verdict: RunVerdict) -> Iterator[tuple[str, str]]:
    """Yield lines of a label and a text."""
    doubtful = verdict.but_for(verdict.doubts) if verdict.units >= FEWEST else []
    name = verdict.shipped or verdict.nearest
    if name is None and verdict.units < FEWEST:
        yield "nearest", "nothing that cost less here keeps every call working and any of the answers"
    if name is not None and name != verdict.shipped and name not in doubtful:
        yield "nearest", f"{name}: {here(verdict, name)}; {why_nearest(verdict, name)}"
    for other in doubtful[:2]:
        yield "doubtful", f"{other}: {_doubt(verdict, other)}"
    if name is not None:
        yield from _quality(verdict, name)
    unit, share = verdict.heaviest
    if share > HEAVIEST and verdict.units > 1:
        is_told = name is None or (name in doubtful and verdict.doubts[name].unit == unit)
        left = "" if is_told else f"; without it {name} costs {_without(verdict, str(name), unit)}"
        yield "largest", f"{unit_words(verdict, unit)}: {percent(share)} of the bill{left}"
    # Without a ceiling at the smallest loss for which there is another choice.
    choices = [verdict.choice(points) for points in verdict.losses if points < verdict.results.lose]
    choices = [verdict.careful] if verdict.quality.found else choices
    careful = next((other for other in choices if other not in (verdict.base, name)), None)
    if verdict.shipped is not None and careful is not None:
        found = _found(verdict, careful) or f"{_signed(_gain(verdict, careful))} points"
        first = "; try it live first" if verdict.overspent_live(careful) else ""
        yield "more careful", f"{careful}: {here(verdict, careful)}; {found}{first}"
    if name is not None:
        yield "elsewhere", how_sure(verdict, name)
        if verdict.base == WHOLE and (live := live_runs(verdict, name)):
            yield "live runs", live
            figures = verdict.results.summary.strategies[name]
            kept, reasked = (figures.get(key, Missing("undefined")) for key in ("kept_values", "reasked_dropped"))
            if not isinstance(kept, Missing):
                asked = "" if isinstance(reasked, Missing) else about("live_reasked", share=percent(reasked))
                yield "in view", about("live_kept", share=percent(kept)) + asked
    if crossed := verdict.but_for(verdict.broken):
        broken = "; ".join(f"{other} ({_worst(verdict.broken[other])})" for other in crossed[:_BROKEN_NAMED])
        more = f"; {len(crossed) - _BROKEN_NAMED:,} more" * (len(crossed) > _BROKEN_NAMED)
        yield "broken", f"cheaper here, but breaks calls: {broken}{more}"
    if idle := _idle(verdict):
        yield "short", idle
    if verdict.shipped is not None and (have := how_to_have(verdict.shipped)):
        yield "what it is", have


def _quality(verdict: RunVerdict, name: str) -> Iterator[tuple[str, str]]:
    """Yield what a strategy costs in quality: what can be found in what it sends, and what was answered from it."""
    quality, base = verdict.quality, verdict.base
    whole = "the whole history" if base == WHOLE else base
    asked = quality.graded and quality.graded.of(name) if base == WHOLE else None
    sentences = [f"{found} in what it sends."] if (found := _found(verdict, name)) else []
    if quality.graded and asked:
        right, before = (f"{100 * verdict.points[of].quality:.0f}" for of in (name, base))
        who = answerer_in_words(quality.graded.answerer).replace("a ", "A ", 1)
        sentences.append(f"{who} answered {right} % right from it, {before} % from {whole}.")
    elif quality.metric != "answer_in_context":
        before, after = (percent(verdict.points[of].quality) for of in (base, name))
        gain = f" instead of {before}: {_signed(_gain(verdict, name))} points" if before != after else f", as {whole}"
        sentences.append(f"{quality.name} {after}{gain}")
    reader = quality.reader and quality.reader.of(name)
    if not asked and reader and base == WHOLE and not isinstance(reader.of_whole, Missing):
        sentences.append(about("verdict_word_search", right=f"{100 * reader.of_whole:.0f}"))
    yield "quality", " ".join(sentences)
    if quality.graded and asked:
        both = f"{asked.paired:,} of {quality.graded.answerable:,} questions, which it answered from both"
        times = Counter[tuple[str, str]]()
        for of in filter(None, (quality.graded.of(WHOLE), asked)):
            for why, number in of.left_out:
                # What exactly rules cannot tell stands beside each answer.
                reason = why.partition(": ")[0] if why.startswith("rules cannot tell") else why
                times[f"under {of.strategy}" if of is not asked else f"more under {name}", reason] += number
        left = "; ".join(f"{number:,} {under} ({reason})" for (under, reason), number in times.items())
        yield "compared on", both + f"; left out: {left}" * bool(left)


def _found(verdict: RunVerdict, name: str) -> str:
    """Return the share of the answers that can still be found where a strategy is used; empty where unknown."""
    share = verdict.quality.found.get(name, Missing("undefined"))
    return "" if isinstance(share, Missing) else f"{100 * share:.0f} % of the answers can still be found"


def answerer_in_words(answerer: str) -> str:
    """Return who answered, as people are told."""
    return "a 1.5B model" if answerer == NAME else answerer


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
    unit = verdict.doubts[name].unit
    others = f": the others cost {_without(verdict, name, unit)}" if unit else ""
    return f"{here(verdict, name)}; {_doubt_words(verdict, name)}{others}"


def _doubt_words(verdict: RunVerdict, name: str) -> str:
    """Return in a clause what makes a strategy doubtful: but that rests on one conversation."""
    words, unit = verdict.doubts[name]
    return f"{words} {unit_words(verdict, unit)}" if unit else words


def why_placed(verdict: RunVerdict, name: str) -> str:
    """Return why a strategy has its place: what it breaks, why it is doubted, or what beats it; else empty."""
    match verdict.places[name]:
        case "broken":
            return _worst(verdict.broken[name])
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
    have = tomllib.loads(resources.files(__package__).joinpath("have.toml").read_text("utf-8"))
    # A notebook's own are in no list.
    listed = [stage for stage in stages if entry_points(group="ctxbench.strategies", name=stage)]
    return ". ".join(f"{stage}: {have.get(stage, f'see ctxbench list strategies {stage}')}" for stage in listed)


def choices_table(verdict: RunVerdict) -> Table:
    """Return the strategy to choose for each loss of quality that a reader may accept, and what it saved here."""
    base = verdict.points[verdict.base]
    choices = dict.fromkeys(verdict.choice(points) for points in verdict.losses)
    short = short_names([*choices], SHORT)

    def row(points: float) -> tuple[str, ...]:
        name = verdict.choice(points)
        cost, mark = verdict.points[name].cost, " (--lose)" * (points == verdict.results.lose)
        saved = percent(1 - cost / base.cost) if base.cost else "–"
        label = points_in_words(points) if points else "nothing"
        return label + mark, short[name], dollars(cost), saved, f"{_signed(_gain(verdict, name))} points"

    few = verdict.units < FEWEST
    notes = [_why_base(verdict)] if verdict.base in choices else []
    overspent = {name: verdict.overspent_live(name) for name in choices}
    notes += [about("verdict_live", name=short[name], gone=gone) for name, gone in overspent.items() if gone]
    heads = ("if you accept to lose", "cheapest" if few else "choose", "cost", "saves", "quality")
    title = "What was cheapest here, and what it saved" if few else "What to choose, and what it saves"
    return Table(title, heads, tuple(map(row, verdict.losses)), tuple(notes), names=2, spare=("cost",), widest=LINE)


def _why_base(verdict: RunVerdict) -> str:
    """Return why the base is the choice where it is: what is wrong with each cheaper strategy."""
    base = verdict.points[verdict.base]
    cheaper = {name: of for name, of in verdict.points.items() if of.cost < base.cost}
    if not cheaper:
        return f"Why {verdict.base}: no other strategy costs less."
    by_name = short_names(sorted(cheaper), SHORT)
    most = max(points for points in verdict.losses if verdict.choice(points) == verdict.base) / 100 + ROUNDING
    losing = {name for name in cheaper.keys() - verdict.broken.keys() if base.quality - cheaper[name].quality > most}
    doubted = verdict.doubts.keys() - losing
    broken, doubtful = ([by_name[name] for name in sorted(cheaper) if name in of] for of in (verdict.broken, doubted))
    parts = [f"{some(broken)} would make calls fail"] * bool(broken)
    parts += [f"{some(doubtful)} may do worse elsewhere"] * bool(doubtful)
    if losing:
        least = max(losing, key=lambda name: (cheaper[name].quality, name))
        loss = _signed(base.quality - cheaper[least].quality).removeprefix("+")
        same = sum(cheaper[name].quality == cheaper[least].quality for name in losing)
        how = "as much" if same == len(losing) else "still more" if same == 1 else "as much or more"
        others = f", and {count(len(losing) - 1, 'other')} {how}" * (len(losing) > 1)
        parts.append(f"{by_name[least]} loses more ({loss} points){others}")
    return f"Why {verdict.base}: of what costs less, {'; '.join(parts)}."


def _idle(verdict: RunVerdict) -> str:
    """Return which strategies had nothing to do in any conversation, but for `recorded` and marks for the cache."""
    summary = verdict.results.summary
    whole = summary.strategies.get(WHOLE, {}).get("tokens_sent", 0)
    others = [name for name in summary.strategies if name not in (WHOLE, RECORDED, *BOUNDS)]
    idle = [name for name in others if summary.strategies[name]["tokens_sent"] == whole]
    idle = [name for name in idle if family_of(name) != "caching"]
    if isinstance(whole, Missing) or not whole or not idle:
        return ""
    names = some([*map(without_digest, idle)])
    return about("verdict_idle", names=names, of=count(summary.compared, "conversation"))


def points_in_words(points: float) -> str:
    """Return a number of points of quality: 1 point, 2.5 points."""
    return f"{points:g} {'point' if points == 1 else 'points'}"


def how_sure(verdict: RunVerdict, name: str) -> str:
    """Return what to expect of other conversations: intervals, or where there is none the range over units."""
    change, gain = verdict.cost_change(name), verdict.gain(name, verdict.base)
    drawn = sample(verdict.conversations, verdict.units)
    more = "" if verdict.surely_keeps(name) else f"; more than {points_in_words(verdict.results.lose)} may be lost"
    if isinstance(change.shown, Missing):
        few = change.shown.why == "few" and verdict.units < FEWEST_OF_RATIOS
        why = change.shown.detail + f" (it takes {FEWEST_OF_RATIOS})" * few
        cost = f"{in_words(change.across)} cost" if isinstance(change.across, Ends) else "any cost"
        quality = f" and {in_points(gain.across)} points" if isinstance(gain.across, Ends) else ""
        return about("verdict_range", why=why, cost=cost, quality=quality) + more
    points = f" and {in_points(gain.shown)} points of quality" if isinstance(gain.shown, Ends) else ""
    if isinstance(gain.shown, Missing) and gain.shown.why == "few" and isinstance(gain.across, Ends):
        more = f"; {in_points(gain.across)} points in single conversations here: {gain.shown.detail}"
    return about("verdict_expect", cost=in_words(change.shown), points=points, drawn=drawn, more=more)


def _times(calls: float) -> str:
    """Return a break-even: 1.20 ×; one that is close to 1 never reads as no saving at all."""
    return f"{calls:.2f} ×" if calls >= 1.005 else "< 1.01 ×"


def live_runs(verdict: RunVerdict, name: str) -> str:
    """Return how many more calls use up what a strategy saved here, and what published live runs of its family took.

    Empty where it saved nothing. Replay shows no call that a live agent would make besides those of the recording.
    """
    times = verdict.break_even(name)
    if isnan(times):
        return ""
    gone = about("live_break_even", times=_times(times))
    family = family_of(name)
    if family == "caching":
        return gone + about("live_caching")
    calls, success = (verdict.live(figure, name) for figure in ("calls", "success"))
    if calls is None:
        what = f"{family} where the whole history outgrows the window" if verdict.is_cut_off and family else family
        return gone + about("live_unpublished", what=f"with {what or 'such a strategy'}")
    arms = [f"{count(of.arms, 'run')} of {count(of.studies, 'study', 'studies')}" for of in (calls, success) if of]
    points = "" if success is None else about("live_success", solved=success, arms=arms[-1]).replace("-", "−")
    first = about("live_first") if verdict.overspent_live(name) else ""
    return gone + about("live_published", family=family, calls=calls, arms=arms[0]) + points + first


def if_live(verdict: RunVerdict, name: str) -> str:
    """Return what must be true of a live agent for a strategy to save anything; empty where no published run objects.

    It reads: cheaper only while live it makes at most 20 % more calls; published runs with archive made 3 to 30 % more,
    1 of 3 more than that.
    """
    calls, gone = verdict.live("calls", name), verdict.overspent_live(name)
    if calls is None or gone is None:
        return ""
    more = floor(100 * (verdict.break_even(name) - 1) + ROUNDING)
    within = f"at most {more} %" if more else "less than 1 %"
    low, high = (f"{100 * abs(times - 1):.0f} %" for times in (calls.low, calls.high))
    made = f"{low} fewer to {high}" if calls.low < 1 else f"{low.removesuffix(' %')} to {high}"
    return about("live_if", within=within, family=family_of(name), made=made, gone=gone)


def in_words(ends: Ends) -> str:
    """Return a range of relative changes as more or less: 46.0 to 68.0 % less, 5.0 % less to 31.0 % more, the same."""
    low, high = ends
    if low < 0 < high:
        return f"{percent(-low)} less to {percent(high)} more"
    size = shares(*sorted(map(abs, ends)))
    return "the same" if size == percent(0) else f"{size} {'less' if low < 0 else 'more'}"


def too_few(verdict: RunVerdict) -> str:
    """Return why so few conversations say too little of others."""
    conversations, units = verdict.conversations, verdict.units
    of = "" if units == conversations else f" ({count(units, 'independent unit')})"
    are = "is" if conversations == 1 else "are"
    takes = f"it takes {FEWEST} to recommend a strategy, and {FEWEST_OF_RATIOS} to say what others would cost"
    return f"{count(conversations, 'conversation')}{of} {are} too few: {takes}"


def _why_no_verdict(verdict: RunVerdict) -> str:
    results, lost = verdict.results, verdict.results.summary.failed_conversations
    if not results.summary.calls:
        return "no model call is recorded; each recording ends before its first answer"
    if all(number == results.summary.conversations for number in lost.values()):
        return "no strategy finished a conversation"
    if WHOLE not in results.strategies:
        return f"the whole history was not run: add --strategy {WHOLE}"
    if len(results.strategies) < 2:
        return "there is one strategy: add others with --strategy"
    if list(verdict.points) == [verdict.base]:
        return "no other strategy can be compared with the whole history"
    if why := reasons(value for value in verdict.values.values() if isinstance(value, Missing)):
        return f"{verdict.quality.name} is not known. {why}"
    return f"the bill under {verdict.model} is not known"


def recorded_with(verdict: RunVerdict) -> str:
    """Return which models were recorded, with their shares of all calls, and which one is billed; empty without any."""
    summary, model = verdict.results.summary, verdict.model
    # An answer that was stopped names its model, and is no call that is replayed.
    calls, whole = summary.recorded, max(summary.calls, sum(summary.recorded.values()))
    if not calls:
        return ""
    rest = list(calls.values())[MODELS_NAMED:]
    shown = [*list(calls.items())[:MODELS_NAMED], (f"{len(rest)} more", sum(rest))]
    shown, nameless = [row for row in shown if row[1]], whole - sum(calls.values())
    is_alone = len(shown) == 1 and not nameless
    named = ", ".join(name + f" ({percent(number / whole)})" * (not is_alone) for name, number in shown)
    named += f"; {percent(nameless / whole)} of the calls name no model" * bool(nameless)
    if model == OWN_MODELS:
        return f"recorded with {named}; each conversation is billed under its own model"
    if model not in calls:
        return f"recorded with {named}; billed under {model}"
    also = "and" if is_alone else f"{named}; all"
    factors = verdict.results.billed.factors[model]
    is_ours = factors.family is not None or factors.prompt == 1
    text = f"recorded with {also} billed under {model}"
    return text if is_ours else f"{text}, which counted {factors.prompt:.2f} tokens for each of ours"


def _measured_by(verdict: RunVerdict) -> Iterator[tuple[str, str]]:
    """Yield what quality is, who answered and who graded, and how far that agrees with people."""
    quality = verdict.quality
    if quality.graded is None:
        answers = verdict.results.summary.answers
        is_asked = answers is not None and any(of.answerer != USUAL[0] for of in answers.figures)
        yield "measured by", f"{quality.name}: {quality.about}{'' if is_asked else '; no model was asked'}"
    else:
        graded = quality.graded
        profiles = (quote.profile for quote in Profiles().of(graded.grader)[:2])
        kappas = ", ".join(f"{interval(profile.quoted.kappa)} on {profile.set}" for profile in profiles)
        agreement = (
            f"kappa with people {kappas}" if kappas else "not calibrated: its agreement with people is not known"
        )
        itself = ", the model itself" * grades_itself(graded.answerer, graded.grader)
        yield "answered by", f"{graded.answerer}; graded by {graded.grader}{itself}: {agreement}"
    questions, units = verdict.measured_in if verdict.is_comparable else (0, FEWEST)
    if units < FEWEST <= verdict.units:
        of = count(questions, "value" if quality.metric == "grounding" else "question")
        yield "", about("verdict_few", of=of, units=count(units, "independent unit"), fewest=FEWEST)
    if quality.failed:
        yield "", f"{', '.join(quality.failed)}: none of its answers counts (--all shows why)"


def five_measures(verdict: RunVerdict) -> Table:
    """Return a row for each strategy: savings, cache hits, compression, LRU-K hits, quality, and what it breaks."""
    results, model, summary, quality = verdict.results, verdict.model, verdict.results.summary, verdict.quality
    shown = in_order(verdict)
    names = short_names(shown, SHORT)
    marks = {"broken": f"{CROSS} {{}}", "bound": "{} (bound)"}
    marked = {name: marks.get(verdict.places[name], "{}").format(short) for name, short in names.items()}
    bills = {str(row.strategy): row for row in results.totals.itertuples() if row.model == model}
    rows: list[dict[str, Any]] = [
        {
            **summary.strategies[name],
            "strategy": name,
            "cost_saved": bills[name].saved_against_none if name in bills else nan,
            "break_even_calls": verdict.break_even(name),
            "hit_rate": bills[name].hit_rate if name in bills else nan,
            "tokens": quality.tokens.get(name, nan),
            "found": quality.found.get(name, nan),
            "reader": (of := quality.reader and quality.reader.of(name)) and of.of_whole,
            "right": quality.graded and quality.graded.of(name),
            "quality": verdict.values[name],
            "breaks": _worst(verdict.broken[name]) if name in verdict.broken else "",
        }
        for name in shown
    ]

    def share(value: Value | None) -> str:
        if value is None or (not isinstance(value, Missing) and isnan(value)):
            return "–"
        return percent(value) if isinstance(value, Missing) else f"{100 * value + 0.0:.0f} %".replace("-", "−")

    of_answers = [
        Column(
            "tokens", "tokens", lambda value: "–" if isinstance(value, Missing) or isnan(value) else tokens(value), 1
        ),
        Column("found", "found", share),
        *[Column("reader", "reader", share, 2)] * (quality.reader is not None),
        *[Column("right answers", "right", _right)] * (quality.graded is not None),
    ]
    columns = (
        Column("strategy", "strategy", marked.__getitem__),
        *library_column(summary.manifest.libraries(), shown),
        Column("net saved", "net_saving", share),
        Column("cost saved", "cost_saved", share),
        Column("break-even", "break_even_calls", lambda times: "–" if isnan(times) else _times(times), 7),
        Column("cache hit", "hit_rate", share, 6),
        Column("in view", "kept_values", share, 3),
        metric_column("compression_ratio", spare=5),
        Column("LRU-K hit", "lru_k_hit_rate", lambda value: "–" if isinstance(value, Missing) else share(value), 4),
        *(of_answers if quality.found else []),
        *[Column(quality.name, "quality", percent)] * (quality.metric not in ("answer_quality", "answer_in_context")),
        *[Column("breaks", "breaks")] * bool(verdict.broken),
    )
    subagents = f" ({summary.subagents:,} of subagents or forks)" if summary.subagents else ""
    title = (
        f"{count(summary.conversations, 'conversation')}{subagents}"
        f"{independent(summary.conversations, summary.units)}, {count(summary.messages, 'message')}, "
        f"{count(summary.calls, 'model call')}, billed under {'their own models' if model == OWN_MODELS else model}"
    )
    values = {column.head: [column.value(row) for row in rows] for column in columns}
    unknown = [of.head for of in columns if {"(undefined)"} == set(map(of.show, values[of.head]))]
    table = table_of(title, [_or_dash(of) for of in columns if of.head not in unknown], rows, least=1, widest=WIDEST)
    notes = [about("verdict_measures"), about("verdict_nothing") * any("–" in row for row in table.rows)]
    notes = [" ".join(filter(None, (*notes, about("verdict_broken") * bool(verdict.broken))))]
    notes += [about("verdict_absent", heads=", ".join(table.empty))] * (len(shown) == 1 and bool(table.empty))
    why = reasons(value for head in unknown for value in values[head])
    notes += [about("verdict_unknown", heads=", ".join(unknown), why=why)] * bool(unknown)
    notes += [about("verdict_compared", summary=summary)] * (0 < summary.compared < summary.conversations)
    if quality.found:
        notes += [about("verdict_found", chance=share(quality.found.get(FLOOR)))] * ("found" in table.heads)
        notes += [about("verdict_reader")] * ("reader" in table.heads)
        if (probes := summary.probes) is not None and probes.failed:
            lost = {"probes": count(len(probes.failed), "probe"), "left": probes.conversations - probes.compared}
            notes.append(about("verdict_lost", **lost, whole=count(probes.conversations, "conversation")))
    if quality.graded is not None:
        few = [of for of in quality.graded.strategies if of.strategy in shown and of.paired and not of.in_pairs]
        right = about("verdict_right", who=answerer_in_words(quality.graded.answerer))
        notes.append(" ".join([right, *(about("verdict_unpaired", of=of) for of in few[:1])]))
    return replace(table, notes=(*notes, *in_full(shown), *table.notes, *results.sampling_notes))


def _or_dash(column: Column) -> Column:
    """Return a column that has a dash where the strategy failed: the last column says so."""
    show = column.show
    return column._replace(show=lambda value: "–" if getattr(value, "why", "") == "failed" else show(value))


def _right(of: StrategyAnswers | None) -> str:
    """Return the share of right answers with its interval: 31 % (23–40); in how few pairs, where it is not compared."""
    if of is None or isinstance(of.correct, Missing):
        return "not recorded"
    share, ends = f"{100 * of.correct:.0f} %", of.correct_interval
    if not of.in_pairs:
        return f"{share} of {of.paired:,}"
    return share if isinstance(ends, Missing) else f"{share} ({100 * ends.low:.0f}–{100 * ends.high:.0f})"


def gain_range(gain: Difference) -> str:
    """Return the interval of a gain in points; where it has none, the range over units in brackets."""
    if isinstance(gain.shown, Missing) and isinstance(gain.across, Ends):
        return _signed(0) if gain.shown.why == "fixed" else f"[{in_points(gain.across)}]"
    return in_points(gain.shown)


def tags(verdict: RunVerdict) -> dict[str, str]:
    """Return the verdict as tags of a tracker, and the place of each strategy as `place/STRATEGY`; none of traps."""
    if is_traps(verdict.results):
        return {}
    of_run = {
        "verdict": with_recipe_names(headline(verdict)),
        "accepted_loss": points_in_words(verdict.results.lose),
        **({"choice": verdict.shipped} if verdict.shipped else {}),
        "quality": verdict.quality.metric,
    }
    return of_run | {f"place/{name}": place for name, place in verdict.places.items()}


def points_of(change: Difference) -> str:
    """Return a difference of shares in points, as it was here."""
    return f"({change.value.why})" if isinstance(change.value, Missing) else f"{_signed(change.value)} points"


def in_points(ends: Ends | Missing) -> str:
    """Return a range of shares in points: +1.0, −26.5 to 0.0."""
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
    """Map each strategy to the traps that break it, each with its faults in words, without the faults of `none`.

    Requests that a provider rejects count for the providers of all billed models.
    """
    figures, models = measured(results.run, named=METRICS), " ".join(results.models)
    by_strategy: dict[str, dict[str, list[str]]] = {name: {} for name in results.strategies}
    for at, trap in enumerate(figures.digests):
        # Faults are totals: the upper sum is their number, and NaN where the strategy failed.
        counts = {
            name: dict.fromkeys(METRICS, 0.0) | {key: float(of[at, 0]) for key, of in sums.items() if of[at, 0] > 0}
            for name, sums in figures.sums.items()
        }
        for name, traps in by_strategy.items():
            is_failed = trap in results.run.failures.get(name, {})
            broken = ["failed"] if is_failed else list(faults(counts[name], counts.get(WHOLE, {}), models))
            if results.summary.unrepeatable.get(name) == trap:
                broken.insert(0, "sends something else when it is replayed again")
            if broken:
                traps[trap.removeprefix(PREFIX)] = broken
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

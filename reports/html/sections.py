"""The sections of the report, in their order. One more is a file with a function, and a line here.

A function gets the results of a run, and gives None where the run has no data for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache as once
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...harness.answers.figures import BOUNDS, AnswerFigures
from ...harness.claims.registry import read
from ...harness.graders.profiles import Profiles
from ...metrics.value import Missing
from .. import actions, claims, probes, strategy_tables
from ..answers import Answers, run_tables
from ..bill import HOW, against, assumptions, bill_of, broken, causes
from ..calibration import corrected_of, corrected_table, profile_tables
from ..figures.bill import against_none, by_gap, cached_share, parts
from ..figures.curves import decisions, found_by_tier, grounding, growth, miss_ratios, survival
from ..figures.frontier import IntervalMark, between
from ..measures import Pair, measures, pairs, table
from ..render import Table, count, figure
from ..results import Results
from ..strategy_tables import lacking, main_table
from ..tables import counter_table, failed_table, problems_table
from ..tier_actions import TIERS, TierActions, tier_action_tables
from . import verdict
from .section import InlineFigure, ReportSection

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def answers_section(results: Results) -> ReportSection | None:
    """None where nothing was answered."""
    found = results.summary.answers
    if found is None:
        return None
    figure = _figure(found.found[0]) if found.found else None
    orders = [table(_alike(results, found))] if found.found else []
    return ReportSection(
        "answers",
        "Answers",
        "The recordings' questions, answered from what each strategy would send for them. What a context lacks cannot "
        "be answered; what it has may still not be found.",
        (*((figure,) if figure else ()), *run_tables(found, by_kind=True), *orders),
        {"answers": _frame(found.found)} if found.found else {},
    )


def _alike(results: Results, found: Answers) -> list[Pair]:
    uneven = results.summary.uneven
    return pairs(measures(results.run, found, uneven))


def _figure(found: AnswerFigures) -> InlineFigure | None:
    """None where nothing is graded."""
    marks, bounds = [], {}
    for each in found.strategies:
        if isinstance(each.correct, Missing) or not each.in_pairs:
            continue
        if each.strategy in BOUNDS:
            bounds[("floor", "ceiling")[BOUNDS.index(each.strategy)]] = each.correct
        else:
            none = (each.correct, each.correct)
            ends = none if isinstance(each.correct_interval, Missing) else each.correct_interval
            marks.append(IntervalMark(each.strategy, each.correct, *ends))
    if not marks:
        return None
    return InlineFigure(
        "answers",
        "Correct, between the floor and the ceiling",
        f"A mark a strategy: of the questions with an answer, the share answered right by {found.answerer}, graded by "
        f"{found.grader}; bars are 95 % intervals over conversations. The lines are the bounds: the last turn alone, "
        "and the evidence alone.",
        lambda: between(marks, bounds),
    )


def _frame(found: tuple[AnswerFigures, ...]) -> pd.DataFrame:
    names = (
        "correct",
        "given",
        "unknown",
        "abstained",
        "normalised_gain",
        "missing",
        "ungraded",
        "paired",
        "input_tokens",
    )
    return pd.DataFrame(
        [
            {"answerer": of.answerer, "grader": of.grader, "strategy": each.strategy}
            | {name: getattr(each, name) for name in names}
            | {f"correct {kind or '(no kind)'}": value for kind, value in each.by_category.items()}
            for of in found
            for each in of.strategies
        ]
    )


def bill_section(results: Results) -> ReportSection | None:
    """None where there was no conversation that every strategy finished, or no call."""
    found = results.totals
    if found.empty:
        return None
    figure = InlineFigure(
        "bill",
        "What the bill is made of",
        "A panel a model, a bar a strategy, in US dollars: prompt tokens read from the cache, written to it and "
        "neither, the recorded output, storage, and the strategy's own model calls.",
        lambda: parts(found),
    )
    bills = [
        bill_of(f"The bill under {model}", rows) for model, rows in found.groupby("model", observed=True, sort=False)
    ]
    saved = [against(found)] if "none" in results.strategies else []
    notes = assumptions(results.billed, results.billed.schemes)
    notes[:0] = results.sampled
    lead = (
        "Fewer tokens are not always cheaper: a context whose start changes is written to the prompt cache again, and "
        "what is read from it costs a tenth or so. Prices and cache rules are each provider's own."
    )
    how = Table("How it was billed", (), (), (HOW, *notes))
    return ReportSection("bill", "Bill", lead, (figure, *saved, *bills, how), {"bill": found})


def cache_section(results: Results) -> ReportSection | None:
    """None where nothing was billed."""
    found = results.totals
    if found.empty:
        return None

    @once
    def calls() -> Mapping[str, pd.DataFrame]:
        return {scheme.model: results.billed.calls(scheme) for scheme in results.billed.schemes}

    def drawing(draw: Callable[[Mapping[str, pd.DataFrame]], Figure]) -> Callable[[], Figure]:
        return lambda: draw(calls())

    share = InlineFigure(
        "cached_share",
        "Share of the prompt read from the cache, by step",
        "A panel a strategy, a line a model: of the prompt tokens of the calls at that place in their conversations, "
        "the share that the provider would read from its cache.",
        drawing(cached_share),
    )
    gap = InlineFigure(
        "hit_rate_by_gap",
        "Hit rate by the pause before the call",
        "For the whole history (none), a line a model: the share of prompt tokens read from the cache, by how long the "
        "conversation was silent. A cache forgets after minutes.",
        drawing(by_gap),
    )
    even = InlineFigure(
        "break_even",
        "Cost so far against none, by turn",
        "A panel a strategy, a line a model: what the strategy has cost up to a turn, by what none has; the median of "
        "the conversations that are as long. Under 1 it has paid off.",
        drawing(against_none),
    )
    figures = [share, gap, even] if "none" in set(results.billed.cells.steps.strategy) else [share]
    table = broken(results.breaks, list(found.strategy.unique()), int(found.calls.max()))
    lead = (
        "A provider reads from its cache what is the same, from the start on, as in a call before. These are its "
        "rules, simulated."
    )
    lead = " ".join((lead, *results.sampled))
    return ReportSection("cache", "Prompt cache", lead, (*figures, table), {"prefix_breaks": causes(results.breaks)})


def calibration_section(results: Results) -> ReportSection | None:
    """None where nothing was graded."""
    found = results.summary.answers
    if found is None or not found.found:
        return None
    profiles = Profiles()
    best = found.found[0]
    corrected = corrected_of(best, profiles.of(best.grader))
    known = {grader: profiles.of(grader) for grader in dict.fromkeys(each.grader for each in found.found)}
    rows = [
        {"strategy": each.strategy, "set": name, "seen": each.seen, "corrected": value.value}
        for each in corrected
        for name, value in each.by.items()
    ]
    return ReportSection(
        "calibration",
        "How far the grader can be believed",
        "Graders err. These were put over answers that people had labelled (`ctxbench calibrate`): the outcome.",
        (*profile_tables(known), corrected_table(corrected)),
        {"corrected": pd.DataFrame(rows)} if rows else {},
    )


def claims_section(results: Results) -> ReportSection | None:
    """None where they were not measured."""
    stored = read(results.run)
    if stored is None:
        return None
    rows = [
        {"id": each.id, "claim": each.claim, "timed": row.timed, **claims.flat(row)}
        for each in stored.findings
        for row in each.rows
    ]
    lead = "Each claim by its protocol: on this run, on scenarios and traces made for it, or by today's prices."
    if stored.quick:
        lead += " Measured with --quick: what takes most of a minute is left out, and says so."
    if stored.recordings:
        lead += f" With the recordings {', '.join(stored.recordings)}."
    frames = {"claims": pd.DataFrame(rows)} if rows else {}
    return ReportSection(
        "claims",
        "Do the design documents' claims hold?",
        lead,
        tuple(claims.tables(stored.findings, every=True)),
        frames,
    )


MOST = 200
"""Conversations that are in the page; all are in the CSV file."""


def conversations_section(results: Results) -> ReportSection:
    """Every run has it."""
    table = results.run.table("conversations")
    lowest = _lowest(results.common)
    rows = tuple(
        (
            row.conversation,
            f"{row.calls:,}",
            f"{row.messages:,}",
            f"{row.tokens:,}",
            f"{row.probes:,}",
            *_worst(lowest, row),
        )
        for row in _rows(table.head(MOST))
    )
    heads = ("conversation", "model calls", "messages", "tokens", "probes", "least grounded", "share")
    notes = ["Least grounded: the strategy whose contexts lacked the most of what the recorded model used next."]
    if len(table) > MOST:
        notes.append(f"The first {MOST} of {count(len(table), 'conversation')}: all are in tables/cells.csv.")
    shown = Table("Conversations", heads, rows, tuple(notes))
    lead = "A conversation's name opens it in the inspector below."
    return ReportSection(
        "conversations", "Conversations", lead, (shown,), {"cells": _cells(results)}, "conversations.html"
    )


def _lowest(steps: pd.DataFrame) -> dict[str, tuple[str, float]]:
    """By conversation, the strategy with the lowest share, and the share, where any is under 1."""
    sums = steps.groupby(["conversation", "strategy"], observed=True)[["demands_kept", "demands"]].sum().reset_index()
    sums = sums[sums.demands > 0].assign(share=lambda rows: rows.demands_kept / rows.demands)
    sums = sums[sums.share < 1].sort_values("share", kind="stable").drop_duplicates("conversation")
    return {
        str(name): (str(strategy), share)
        for name, strategy, share in zip(sums.conversation, sums.strategy, sums.share, strict=True)
    }


def _worst(lowest: dict[str, tuple[str, float]], row: Any) -> tuple[str, str]:
    from ..render import percent

    strategy, share = lowest.get(row.conversation, ("", 1.0))
    return (strategy, percent(share)) if strategy else ("–", "–")


def _rows(frame: pd.DataFrame) -> Any:
    return frame.itertuples()


def _cells(results: Results) -> pd.DataFrame:
    """A row a conversation and strategy: what became of it, its sums, and its bill under each model."""
    keys = ["conversation", "strategy"]
    columns = ["tokens_full", "tokens_sent", "own_tokens", "demands", "demands_kept"]
    sums = results.steps.groupby(keys, observed=True)[columns].sum().reset_index()
    found = results.run.table("results")[[*keys, "status", "detail", "steps"]]
    found = found.astype({"strategy": str}).merge(sums.astype(dict.fromkeys(keys, str)), "left", keys)
    for model, rows in results.bills.groupby("model", observed=True, sort=False):
        bill = rows[keys].astype(str).assign(**{f"cost {model}": (rows.cost + rows.cost_own).to_numpy()})
        found = found.merge(bill, "left", keys)
    return found


def latency_section(results: Results) -> ReportSection | None:
    """None without steps."""
    times: dict[str, tuple[float, float]] = {}
    for name, values in results.summary.strategies.items():
        median, slowest = values["latency_p50"], values["latency_p99"]
        if not isinstance(median, Missing) and not isinstance(slowest, Missing):
            times[name] = (max(median, 1e-3), max(slowest, 1e-3))
    if not times:
        return None
    drawn = InlineFigure(
        "decisions",
        "Time to decide",
        "The median and the 99th percentile of the time that each strategy itself took at a step, without waiting for "
        "models, on the machine that made the run. The scale is logarithmic.",
        lambda: decisions(times),
    )
    rows = tuple(
        (name, *(figure(column, results.summary.strategies[name][column]) for column in ("latency_p50", "latency_p99")))
        for name in times
    )
    table = Table("Time to decide", ("strategy", "median", "99th percentile"), rows)
    return ReportSection(
        "decisions", "Decision time", "What a strategy adds to the latency of each call.", (drawn, table)
    )


def actions_section(results: Results) -> ReportSection | None:
    """None where strategies reported nothing, and nothing failed."""
    summary = results.summary
    parts = [table for table in (actions.added(summary), actions.did(summary)) if table]
    if summary.why:
        parts.append(actions.why(summary))
    if summary.failed:
        parts.append(failed_table(summary))
    if summary.manifest["problems"]:
        parts.append(problems_table(summary))
    frames = {"why": summary.why, "failed": summary.failed, "left_out": summary.manifest["problems"]}
    lead = "Their own model calls are charged to them. What could not be had is here, with what they did instead."
    return (
        ReportSection(
            "deeds",
            "Deeds and failures",
            lead,
            tuple(parts),
            {name: pd.DataFrame(rows) for name, rows in frames.items() if rows},
        )
        if parts
        else None
    )


def evidence_section(results: Results) -> ReportSection | None:
    """None where the recordings have no questions with known answers."""
    found = results.summary.probes
    if found is None:
        return None
    rows = [{"strategy": name, **figures.values} for name, figures in (found.strategies | found.bounds).items()]
    lead = "The recordings have questions whose answers are known, and the messages that they rest on. Are these sent?"
    parts = tuple(probes.tables(found, by_kind=True))
    return ReportSection("evidence", "Evidence and retrieval", lead, parts, {"evidence": pd.DataFrame(rows)})


def grounding_section(results: Results) -> ReportSection | None:
    """None where no recorded call or answer uses a value that was said before."""
    summary = results.summary
    if not any(summary.grounding.values()):
        return None
    taking_part = [name for name, kinds in summary.grounding.items() if kinds]
    figure = InlineFigure(
        "grounding",
        "Values still in the context, by turn",
        "A panel a strategy: of the values that the recorded model used next in its tool calls and final answers, and "
        "that a user or a tool had said, the share that the context still has. Bins of turns with at least 20 values.",
        lambda: grounding(results.common, taking_part),
    )
    rows = [
        {"strategy": name, "kind": kind, "values": values, "kept": kept}
        for name, kinds in summary.grounding.items()
        for kind, (values, kept) in kinds.items()
    ]
    lead = "A context that lacks what the model is about to use cannot be answered from. It needs no grader, no labels."
    parts = (figure, strategy_tables.grounding(summary))
    return ReportSection("grounding", "Retention and grounding", lead, parts, {"grounding": pd.DataFrame(rows)})


def growth_section(results: Results) -> ReportSection | None:
    """None without steps."""
    summary = results.summary
    if summary.growth.empty:
        return None
    taking_part = [name for name in results.strategies if (summary.growth.strategy == name).any()]
    figure = InlineFigure(
        "growth",
        "Tokens of a call by turn",
        "A panel a strategy. The dashed line is the whole history, the other what the strategy sends: mean tokens of a "
        "model call over the conversations that get so far, which are fewer at each turn. Both scales are logarithmic.",
        lambda: growth(summary.growth, taking_part),
    )
    lead = "A strategy is worth most where conversations are long. Where the lines part is from when on it saves."
    return ReportSection(
        "growth", "Growth", lead, (figure, strategy_tables.growth(summary)), {"growth": summary.growth}
    )


ASKED = ("names", "form", "turns", "seed", "encoding", "model", "summariser", "embedder")


def method_section(results: Results) -> ReportSection:
    """Every run has it."""
    manifest = results.run.manifest
    rows = tuple(_rows_method(manifest))
    parts = [Table("The run", ("what", "value"), rows, names=2, prose=True)]
    frames = {}
    if results.summary.counter:
        parts.insert(0, counter_table(results.summary))
        frames["counter"] = pd.DataFrame(results.summary.counter)
    lead = "The same recordings, strategies and versions give the same figures, those of time aside."
    return ReportSection("method", "How it was made", lead, tuple(parts), frames)


def _rows_method(manifest: dict[str, object]) -> Iterator[tuple[str, str]]:
    plan = manifest["plan"]
    assert isinstance(plan, dict)
    for name in ASKED:
        value = plan.get(name)
        if value not in (None, ""):
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    versions = manifest["versions"]
    assert isinstance(versions, dict)
    yield from ((f"version: {name}", str(version)) for name, version in versions.items())
    yield "digest of the recordings", str(manifest["digest"])
    yield "run folder format", str(manifest["format"])


def strategies_section(results: Results) -> ReportSection:
    """Every run has it."""
    summary = results.summary
    frame = pd.DataFrame([{"strategy": name, **figures} for name, figures in summary.strategies.items()])
    return ReportSection(
        "strategies",
        "Strategies",
        "What each strategy saves against sending the whole history at every call, and what that costs in other ways.",
        tuple(filter(None, (main_table(summary), lacking(summary)))),
        {"strategies": frame},
    )


def structure_section(results: Results) -> ReportSection:
    """Every run has it: none is a finding too."""
    lead = "A request with a result whose call was cut off, or with no user message, is refused, whatever it saves."
    return ReportSection("structure", "Structural faults", lead, (strategy_tables.faults(results.summary),))


def survival_section(results: Results) -> ReportSection | None:
    """None where no strategy summarises."""
    found = {name: rows for name, rows in results.summary.survival.items() if rows}
    if not found:
        return None
    figure = InlineFigure(
        "survival",
        "Facts that outlive rounds of summarising",
        "A panel a strategy: of the facts that were followed so far, the share that the summary still has. Facts "
        "followed longer are fewer, and no sample of those before: a line may rise. The rule is at one half.",
        lambda: survival(found),
    )
    frame = pd.DataFrame([{"strategy": name, **row._asdict()} for name, rows in found.items() for row in rows])
    parts = (figure, actions.survival(results.summary), actions.first_round(results.summary))
    lead = (
        "A summary of a summary keeps less each time: numbers, dates, names, decisions and constraints, followed one "
        "by one."
    )
    return ReportSection("survival", "Survival in summaries", lead, parts, {"survival": frame})


def tiers_section(results: Results) -> ReportSection | None:
    """None where no strategy has tiers, and nothing is gone back to."""
    found, curves = results.summary.tiers, results.miss_ratios
    looked = {name: deeds for name, deeds in found.items() if deeds.found.total() and deeds.has_quotas}
    parts: list[InlineFigure | Table] = []
    if looked:
        parts.append(
            InlineFigure(
                "tiers",
                "Which tier had what was looked up",
                "A bar a strategy: the shares of Focus, Working, Archive and RAG among the messages that it looked up.",
                lambda: found_by_tier(looked),
            )
        )
    parts += tier_action_tables(found)
    if not curves.empty:
        parts.append(_curves(curves))
    lead = "Memories go down to slower tiers as they age, and up when they are asked for."
    return ReportSection("tiers", "Tiers", lead, tuple(parts), _frames(found, curves)) if parts else None


def _curves(curves: pd.DataFrame) -> InlineFigure:
    look_ups, conversations = int(curves.look_ups.iloc[0]), int(curves.conversations.iloc[0])
    about = (
        "What the recordings go back to (quotations, identifiers, evidence of questions): "
        f"{count(look_ups, 'look-up')} in {count(conversations, 'conversation')}. The share that a cache of messages "
        "misses, by its size, under three policies; belady knows the future. Into the grey no policy comes."
    )
    return InlineFigure("miss_ratios", "How large Working would have to be", about, lambda: miss_ratios(curves))


def _frames(found: dict[str, TierActions], curves: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Exact figures, those that have any."""
    looked = [(name, tier, deeds.found[tier]) for name, deeds in found.items() if deeds.has_quotas for tier in TIERS]
    moved = [
        (
            name,
            source,
            to or "out",
            edge.times,
            edge.messages,
            edge.tokens if deeds.has_quotas else None,
            edge.queue_time,
        )
        for name, deeds in found.items()
        for (source, to), edge in sorted(deeds.moves.items())
    ]
    crossed = [
        (name, *limit, times) for name, deeds in found.items() for limit, times in sorted(deeds.limits_reached.items())
    ]
    made = {
        "tier_hits": pd.DataFrame(looked, columns=["strategy", "tier", "messages"]),
        "migrations": pd.DataFrame(
            moved, columns=["strategy", "from", "to", "times", "messages", "tokens", "waited_seconds"]
        ),
        "miss_ratios": curves,
        "limits": pd.DataFrame(crossed, columns=["strategy", "tier", "limit", "times"]),
    }
    return {name: frame for name, frame in made.items() if not frame.empty}


SECTIONS: tuple[Callable[[Results], ReportSection | None], ...] = (
    verdict.overview_section,
    strategies_section,
    growth_section,
    bill_section,
    cache_section,
    grounding_section,
    evidence_section,
    answers_section,
    calibration_section,
    survival_section,
    tiers_section,
    structure_section,
    latency_section,
    actions_section,
    conversations_section,
    claims_section,
    method_section,
)


def sections(results: Results) -> Iterator[ReportSection]:
    """Those that the run has data for."""
    yield from (found for make in SECTIONS if (found := make(results)) is not None)

"""The sections of the report, in their order. One more is a function that returns it, and a line in `SECTIONS`.

A function takes the results of a run and returns None where the run has no data for it. Titles, leads and captions
stand in `templates/texts.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd

from ctxbench.harness.answers.figures import BOUNDS, AnswerFigures
from ctxbench.harness.claims.registry import read
from ctxbench.harness.graders.profiles import Profiles
from ctxbench.metrics.value import Missing

from .. import claims, probes
from ..answers import agreement_table, measures, pairs, run_tables
from ..bill import HOW, against, assumptions, bill_of, broken, causes
from ..calibration import corrected_of, corrected_table, profile_tables
from ..figures import bill as bill_figures
from ..figures import curves, frames
from ..figures.frames import IntervalMark
from ..figures.frontier import between
from ..render import Table, count, figure, percent
from ..results import Results
from ..steps import SUMMED
from ..tables import (
    actions_table,
    added_table,
    counter_table,
    faults_table,
    first_summary_table,
    grounding_table,
    growth_table,
    incomplete,
    lacking,
    lacking_table,
    main_table,
    reasons_table,
    survival_table,
)
from ..tier_actions import TIERS, TierActions, tier_action_tables
from ..traps import is_traps
from . import overview
from .charts import Chart
from .page import ReportSection, chart_of, left_out, section_of, texts

if TYPE_CHECKING:
    from ctxbench.harness.folder.schema import Manifest

# Conversations that are in the page; all are in the CSV file.
_MOST_CONVERSATIONS = 200
_PLAN_FIELDS = ("names", "form", "turns", "seed", "encoding", "window", "summariser", "embedder")


def answers_section(results: Results) -> ReportSection | None:
    """Return the answers to the probes, or None where nothing was answered."""
    answers = results.summary.answers
    if answers is None:
        return None
    chart = _answers_chart(answers.figures[0]) if answers.figures else None
    agreement = (
        [agreement_table(pairs(measures(results.run, answers, results.summary.uneven), results.run.units))]
        if answers.figures
        else []
    )
    return section_of(
        "answers",
        (chart or left_out("answers"), *run_tables(answers, by_kind=True), *agreement),
        {"answers": _answers_frame(answers.figures)} if answers.figures else {},
    )


def _answers_chart(answers: AnswerFigures) -> Chart | None:
    """Return the share correct of each strategy with its interval, or None where nothing is graded."""
    marks, bounds = [], {}
    for strategy in answers.strategies:
        if isinstance(strategy.correct, Missing) or not strategy.in_pairs:
            continue
        if strategy.strategy in BOUNDS:
            bounds[("floor", "ceiling")[BOUNDS.index(strategy.strategy)]] = strategy.correct
        else:
            point = (strategy.correct, strategy.correct)
            ends = point if isinstance(strategy.correct_interval, Missing) else strategy.correct_interval
            marks.append(IntervalMark(strategy.strategy, strategy.correct, *ends))
    if not marks:
        return None
    values = {"answerer": answers.answerer, "grader": answers.grader}
    return chart_of("answers", frames.shares(marks), partial(between, bounds=bounds), **values)


def _answers_frame(answers: Sequence[AnswerFigures]) -> pd.DataFrame:
    names = ("correct", "given", "unknown", "abstained", "normalised_gain", "missing", "ungraded", "paired")
    return pd.DataFrame(
        [
            {"answerer": figures.answerer, "grader": figures.grader, "strategy": strategy.strategy}
            | {name: getattr(strategy, name) for name in (*names, "input_tokens")}
            | {
                f"correct {kind or '(no kind)'}": share if isinstance(share, Missing) else share.mean
                for kind, share in figures.by_category[strategy.strategy].items()
            }
            for figures in answers
            for strategy in figures.strategies
        ]
    )


def bill_section(results: Results) -> ReportSection | None:
    """Return the bills, or None where no conversation was finished by every strategy, or no model was called."""
    totals = results.totals
    if totals.empty:
        return None
    without_newest = lacking(results.summary)
    bills = [
        bill_of(f"What does it cost under {model}?", rows, without_newest)
        for model, rows in totals.groupby("model", observed=True, sort=False)
    ]
    saved = [against(totals, without_newest)] if "none" in results.strategies else []
    notes = [*results.sampling_notes, *assumptions(results.billed, results.billed.schemes)]
    how = Table("How was it billed?", (), (), (*HOW, *notes))
    chart = chart_of("bill", frames.bill(totals), bill_figures.parts)
    return section_of("bill", (chart, *saved, *bills, how), {"bill": totals})


def cache_section(results: Results) -> ReportSection | None:
    """Return what the prompt caches read, or None where nothing was billed."""
    totals = results.totals
    if totals.empty:
        return None

    calls = {scheme.model: results.billed.calls(scheme, frames.OF_CALLS) for scheme in results.billed.schemes}
    charts = (
        chart_of("cached_share", frames.cached_share(calls), bill_figures.cached_share),
        chart_of("hit_rate_by_gap", frames.by_gap(calls), bill_figures.by_gap),
        chart_of("break_even", frames.break_even(calls), bill_figures.break_even),
    )
    table = broken(results.breaks, list(totals.strategy.unique()), int(totals.calls.max()))
    lead = " ".join((texts()["sections"]["cache"]["lead"], *results.sampling_notes))
    return section_of("cache", (*charts, table), {"prefix_breaks": causes(results.breaks)}, lead=lead)


def calibration_section(results: Results) -> ReportSection | None:
    """Return how far the graders agree with people, or None where nothing was graded."""
    answers = results.summary.answers
    if answers is None or not answers.figures:
        return None
    profiles = Profiles()
    best = answers.figures[0]
    corrected = corrected_of(best, profiles.of(best.grader))
    by_grader = {
        grader: profiles.of(grader)
        for grader in dict.fromkeys(corrected_answers.grader for corrected_answers in answers.figures)
    }
    rows = [
        {"strategy": corrected_answers.strategy, "set": name, "seen": corrected_answers.seen, "corrected": value.value}
        for corrected_answers in corrected
        for name, value in corrected_answers.by.items()
    ]
    kappas = [
        (f"{quote.profile.grader} on {quote.profile.set}", kappa.value, *kappa.interval)
        for quotes in by_grader.values()
        for quote in quotes
        if not isinstance((kappa := quote.profile.quoted.kappa).value, Missing)
        and not isinstance(kappa.interval, Missing)
    ]
    shown: list[Chart | Table] = [_kappa_chart(kappas) if kappas else left_out("kappa")]
    shown += [*profile_tables(by_grader), corrected_table(corrected)]
    return section_of("calibration", shown, {"corrected": pd.DataFrame(rows)} if rows else {})


def _kappa_chart(kappas: Sequence[tuple[str, float, float, float]]) -> Chart:
    rows = frames.shares([IntervalMark(*kappa) for kappa in kappas])
    return chart_of("kappa", rows, partial(between, bounds={}, along="Cohen's kappa with people", share=False))


def claims_section(results: Results) -> ReportSection | None:
    """Return the verdicts on the claims, or None where they were not measured."""
    stored = read(results.run)
    if stored is None:
        return None
    rows = [
        {"id": finding.id, "claim": finding.claim, "timed": row.timed, **claims.flat(row)}
        for finding in stored.findings
        for row in finding.rows
    ]
    words = texts()["sections"]["claims"]
    lead = words["lead"] + words["lead_quick"] * stored.quick
    if stored.recordings:
        lead += words["lead_recordings"].format(recordings=", ".join(stored.recordings))
    frames = {"claims": pd.DataFrame(rows)} if rows else {}
    return section_of("claims", claims.tables(stored.findings, every=True), frames, lead=lead)


def conversations_section(results: Results) -> ReportSection:
    """Return the conversations, each with the strategy that has the lowest grounding recall in it."""
    table = results.run.table("conversations")
    lowest = _lowest_grounding(results.common)
    rows = tuple(
        (
            row.conversation,
            f"{row.calls:,}",
            f"{row.messages:,}",
            f"{row.tokens:,}",
            f"{row.probes:,}",
            *lowest.get(row.conversation, ("–", "–")),
        )
        for row in _rows(table.head(_MOST_CONVERSATIONS))
    )
    heads = ("conversation", "model calls", "messages", "tokens", "probes", "lowest grounding recall", "share")
    notes = ["Lowest grounding recall: the strategy whose contexts lacked most of what the recorded model used next."]
    if len(table) > _MOST_CONVERSATIONS:
        total = count(len(table), "conversation")
        notes.append(f"The first {_MOST_CONVERSATIONS} of {total}: all are in tables/results.csv.")
    shown = Table("Which conversations were replayed?", heads, rows, tuple(notes))
    return section_of("conversations", (shown,), {"results": _results_frame(results)})


def _lowest_grounding(sums: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Map each conversation to the strategy with the lowest share and the share, where any is below 1."""
    sums = sums[sums.demands > 0].assign(share=lambda rows: rows.demands_kept / rows.demands)
    sums = sums[sums.share < 1].sort_values("share", kind="stable").drop_duplicates("conversation")
    return {
        str(name): (str(strategy), percent(share))
        for name, strategy, share in zip(sums.conversation, sums.strategy, sums.share, strict=True)
    }


def _rows(frame: pd.DataFrame) -> Any:
    return frame.itertuples()


def _results_frame(results: Results) -> pd.DataFrame:
    """Return a row for each conversation and strategy: its status, its sums, and its bill under each model."""
    keys = ["conversation", "strategy"]
    sums = results.sums[[*keys, *SUMMED]]
    frame = results.run.table("results")[[*keys, "status", "detail", "steps"]]
    if not results.text:
        frame = frame.drop(columns="detail")
    frame = frame.astype({"strategy": str}).merge(sums.astype(dict.fromkeys(keys, str)), "left", keys)
    for model, rows in results.bills.groupby("model", observed=True, sort=False):
        bill = rows[keys].astype(str).assign(**{f"cost {model}": (rows.cost + rows.cost_own).to_numpy()})
        frame = frame.merge(bill, "left", keys)
    return frame


def latency_section(results: Results) -> ReportSection | None:
    """Return the latency of the strategies, or None without steps."""
    times: dict[str, tuple[float, float]] = {}
    for name, values in results.summary.strategies.items():
        median, slowest = values["latency_p50"], values["latency_p99"]
        if not isinstance(median, Missing) and not isinstance(slowest, Missing):
            times[name] = (max(median, 1e-3), max(slowest, 1e-3))
    if not times:
        return None
    columns = ("latency_p50", "latency_p99")
    rows = tuple(
        (name, *(figure(column, results.summary.strategies[name][column]) for column in columns)) for name in times
    )
    table = Table("How long does a call wait for the strategy?", ("strategy", "latency p50", "latency p99"), rows)
    return section_of("decisions", (chart_of("decisions", frames.latency(times), curves.latency), table))


def actions_section(results: Results) -> ReportSection | None:
    """Return what strategies did, or None where they reported nothing and nothing failed."""
    summary = results.summary
    tables = [table for table in (added_table(summary), actions_table(summary)) if table]
    if summary.reasons:
        tables.append(reasons_table(summary))
    tables += incomplete(summary)
    if not tables:
        return None
    frames = {
        "reasons": summary.reasons,
        "failed": summary.failed,
        "left_out": msgspec.to_builtins(summary.manifest.problems),
    }
    return section_of("actions", tables, {name: pd.DataFrame(rows) for name, rows in frames.items() if rows})


def evidence_section(results: Results) -> ReportSection | None:
    """Return what was sent for the probes, or None where the recordings have no questions with known answers."""
    summary = results.summary.probes
    if summary is None:
        return None
    rows = [{"strategy": name, **figures.values} for name, figures in (summary.strategies | summary.bounds).items()]
    return section_of("evidence", tuple(probes.tables(summary, by_kind=True)), {"evidence": pd.DataFrame(rows)})


def grounding_section(results: Results) -> ReportSection | None:
    """Return grounding recall, or None where no recorded call or answer uses a value that was given before."""
    summary = results.summary
    if not any(summary.grounding.values()):
        return None
    taking_part = [name for name, kinds in summary.grounding.items() if kinds]
    rows = [
        {"strategy": name, "kind": kind, "values": values, "kept": kept}
        for name, kinds in summary.grounding.items()
        for kind, (values, kept) in kinds.items()
    ]
    chart = chart_of("grounding", frames.grounding(summary.steps.by_turn, taking_part), curves.grounding)
    return section_of("grounding", (chart, grounding_table(summary)), {"grounding": pd.DataFrame(rows)})


def growth_section(results: Results) -> ReportSection | None:
    """Return the tokens of a call by turn, or None without steps."""
    summary = results.summary
    if summary.steps.growth.empty:
        return None
    taking_part = [name for name in results.strategies if (summary.steps.growth.strategy == name).any()]
    chart = chart_of("growth", frames.growth(summary.steps.growth, taking_part), curves.growth)
    return section_of("growth", (chart, growth_table(summary)), {"growth": summary.steps.growth})


def method_section(results: Results) -> ReportSection:
    """Return how the run was made: its plan, versions and digest, and how far off its token counts are."""
    tables = [Table("What was run?", ("what", "value"), tuple(_method_rows(results.run.manifest)), names=2, prose=True)]
    frames = {}
    if results.summary.steps.counter:
        tables.insert(0, counter_table(results.summary))
        frames["counter"] = pd.DataFrame(results.summary.steps.counter)
    return section_of("method", tables, frames)


def _method_rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for name in _PLAN_FIELDS:
        value = getattr(manifest.plan, name)
        if value not in (None, ""):
            yield name, ", ".join(value) if isinstance(value, tuple) else str(value)
    yield from ((f"version: {name}", version) for name, version in manifest.versions.items())
    yield "digest of the recordings", manifest.digest
    yield "run folder format", str(manifest.format)


def strategies_section(results: Results) -> ReportSection | None:
    """Return the main table; None of traps, on which savings mean nothing."""
    if is_traps(results):
        return None
    summary = results.summary
    frame = pd.DataFrame([{"strategy": name, **figures} for name, figures in summary.strategies.items()])
    tables = tuple(filter(None, (main_table(summary), lacking_table(summary))))
    return section_of("strategies", tables, {"strategies": frame})


def structure_section(results: Results) -> ReportSection:
    """Return the structural faults; that there are none is a result too."""
    return section_of("structure", (faults_table(results.summary),))


def survival_section(results: Results) -> ReportSection | None:
    """Return the facts that survive summarising, or None where no strategy summarises."""
    facts = {name: rows for name, rows in results.summary.survival.items() if rows}
    if not facts:
        return None
    frame = pd.DataFrame([{"strategy": name, **row._asdict()} for name, rows in facts.items() for row in rows])
    chart = chart_of("survival", frames.survival(facts), curves.survival)
    tables = (survival_table(results.summary), first_summary_table(results.summary))
    return section_of("survival", (chart, *tables), {"survival": frame})


def tiers_section(results: Results) -> ReportSection | None:
    """Return what memory tiers did, or None where no strategy has tiers and the recordings go back to nothing."""
    tiers, ratios = results.summary.tiers, results.miss_ratios
    with_hits = {name: actions for name, actions in tiers.items() if actions.hits.total() and actions.has_quotas}
    if not tiers and ratios.empty:
        return None
    shown: list[Chart | Table] = [
        chart_of("tiers", frames.tier_hits(with_hits), curves.found_by_tier) if with_hits else left_out("tiers")
    ]
    shown += tier_action_tables(tiers)
    if ratios.empty:
        shown.append(left_out("miss_ratios"))
    else:
        look_ups = count(int(ratios.look_ups.iloc[0]), "look-up")
        conversations = count(int(ratios.conversations.iloc[0]), "conversation")
        values = {"look_ups": look_ups, "conversations": conversations}
        shown.append(chart_of("miss_ratios", frames.miss_ratios(ratios), curves.miss_ratios, **values))
    return section_of("tiers", shown, _tier_frames(tiers, ratios))


def _tier_frames(tiers: dict[str, TierActions], ratios: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the exact figures of the tiers, without empty tables."""
    hits = [(name, tier, actions.hits[tier]) for name, actions in tiers.items() if actions.has_quotas for tier in TIERS]
    moves = [
        (
            name,
            source,
            to or "out",
            edge.times,
            edge.messages,
            edge.tokens if actions.has_quotas else None,
            edge.queue_time,
        )
        for name, actions in tiers.items()
        for (source, to), edge in sorted(actions.moves.items())
    ]
    limits = [
        (name, *limit, times)
        for name, actions in tiers.items()
        for limit, times in sorted(actions.limits_reached.items())
    ]
    move_columns = ["strategy", "from", "to", "times", "messages", "tokens", "queue_seconds"]
    frames = {
        "tier_hits": pd.DataFrame(hits, columns=["strategy", "tier", "messages"]),
        "migrations": pd.DataFrame(moves, columns=move_columns),
        "miss_ratios": ratios,
        "limits": pd.DataFrame(limits, columns=["strategy", "tier", "limit", "times"]),
    }
    return {name: frame for name, frame in frames.items() if not frame.empty}


SECTIONS: tuple[Callable[[Results], ReportSection | None], ...] = (
    overview.overview_section,
    strategies_section,
    bill_section,
    growth_section,
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
    """Yield the sections that the run has data for."""
    yield from (section for make in SECTIONS if (section := make(results)) is not None)

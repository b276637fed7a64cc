"""The sections of the report, in their order. One more is a function that returns it, and a line in `SECTIONS`.

A function takes the results of a run and returns None where the run has no data for it. Titles, leads and captions
stand in `templates/texts.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache as once
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd

from ...harness.answers.figures import BOUNDS, AnswerFigures
from ...harness.claims.registry import read
from ...harness.graders.profiles import Profiles
from ...metrics.value import Missing
from .. import claims, probes
from ..answers import agreement_table, measures, pairs, run_tables
from ..bill import HOW, against, assumptions, bill_of, broken, causes
from ..calibration import corrected_of, corrected_table, profile_tables
from ..figures.bill import against_none, by_gap, cached_share, parts
from ..figures.curves import found_by_tier, grounding, growth, latency, miss_ratios, survival
from ..figures.frontier import IntervalMark, between
from ..render import Table, count, figure, percent
from ..results import Results
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
from . import overview
from .page import InlineFigure, ReportSection, figure_of, section_of, texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...harness.folder.schema import Manifest

# Conversations that are in the page; all are in the CSV file.
_MOST_CONVERSATIONS = 200
_PLAN_FIELDS = ("names", "form", "turns", "seed", "encoding", "model", "summariser", "embedder")


def answers_section(results: Results) -> ReportSection | None:
    """Return the answers to the probes, or None where nothing was answered."""
    answers = results.summary.answers
    if answers is None:
        return None
    marks = [drawn for drawn in (_answers_figure(answers.figures[0]),) if drawn] if answers.figures else []
    agreement = (
        [agreement_table(pairs(measures(results.run, answers, results.summary.uneven)))] if answers.figures else []
    )
    return section_of(
        "answers",
        (*marks, *run_tables(answers, by_kind=True), *agreement),
        {"answers": _answers_frame(answers.figures)} if answers.figures else {},
    )


def _answers_figure(answers: AnswerFigures) -> InlineFigure | None:
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
    return figure_of("answers", lambda: between(marks, bounds), answerer=answers.answerer, grader=answers.grader)


def _answers_frame(answers: Sequence[AnswerFigures]) -> pd.DataFrame:
    names = ("correct", "given", "unknown", "abstained", "normalised_gain", "missing", "ungraded", "paired")
    return pd.DataFrame(
        [
            {"answerer": figures.answerer, "grader": figures.grader, "strategy": strategy.strategy}
            | {name: getattr(strategy, name) for name in (*names, "input_tokens")}
            | {f"correct {kind or '(no kind)'}": value for kind, value in strategy.by_category.items()}
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
        bill_of(f"The bill under {model}", rows, without_newest)
        for model, rows in totals.groupby("model", observed=True, sort=False)
    ]
    saved = [against(totals, without_newest)] if "none" in results.strategies else []
    notes = [*results.sampling_notes, *assumptions(results.billed, results.billed.schemes)]
    how = Table("How was it billed?", (), (), (*HOW, *notes))
    return section_of("bill", (figure_of("bill", lambda: parts(totals)), *saved, *bills, how), {"bill": totals})


def cache_section(results: Results) -> ReportSection | None:
    """Return what the prompt caches read, or None where nothing was billed."""
    totals = results.totals
    if totals.empty:
        return None

    @once
    def calls() -> Mapping[str, pd.DataFrame]:
        return {scheme.model: results.billed.calls(scheme) for scheme in results.billed.schemes}

    def drawing(draw: Callable[[Mapping[str, pd.DataFrame]], Figure]) -> Callable[[], Figure]:
        return lambda: draw(calls())

    figures = [figure_of("cached_share", drawing(cached_share))]
    if "none" in set(results.billed.requests.steps.strategy):
        figures += [figure_of("hit_rate_by_gap", drawing(by_gap)), figure_of("break_even", drawing(against_none))]
    table = broken(results.breaks, list(totals.strategy.unique()), int(totals.calls.max()))
    lead = " ".join((texts()["sections"]["cache"]["lead"], *results.sampling_notes))
    return section_of("cache", (*figures, table), {"prefix_breaks": causes(results.breaks)}, lead=lead)


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
    tables = (*profile_tables(by_grader), corrected_table(corrected))
    return section_of("calibration", tables, {"corrected": pd.DataFrame(rows)} if rows else {})


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
    shown = Table("Conversations", heads, rows, tuple(notes))
    return section_of("conversations", (shown,), {"results": _results_frame(results)}, template="conversations.html")


def _lowest_grounding(steps: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Map each conversation to the strategy with the lowest share and the share, where any is below 1."""
    sums = steps.groupby(["conversation", "strategy"], observed=True)[["demands_kept", "demands"]].sum().reset_index()
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
    columns = ["tokens_full", "tokens_sent", "own_tokens", "demands", "demands_kept"]
    sums = results.steps.groupby(keys, observed=True)[columns].sum().reset_index()
    frame = results.run.table("results")[[*keys, "status", "detail", "steps"]]
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
    table = Table("Latency", ("strategy", "latency p50", "latency p99"), rows)
    return section_of("decisions", (figure_of("decisions", lambda: latency(times)), table))


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
    curves = figure_of("grounding", lambda: grounding(results.common, taking_part))
    return section_of("grounding", (curves, grounding_table(summary)), {"grounding": pd.DataFrame(rows)})


def growth_section(results: Results) -> ReportSection | None:
    """Return the tokens of a call by turn, or None without steps."""
    summary = results.summary
    if summary.growth.empty:
        return None
    taking_part = [name for name in results.strategies if (summary.growth.strategy == name).any()]
    curves = figure_of("growth", lambda: growth(summary.growth, taking_part))
    return section_of("growth", (curves, growth_table(summary)), {"growth": summary.growth})


def method_section(results: Results) -> ReportSection:
    """Return how the run was made: its plan, versions and digest, and how far off its token counts are."""
    tables = [Table("The run", ("what", "value"), tuple(_method_rows(results.run.manifest)), names=2, prose=True)]
    frames = {}
    if results.summary.counter:
        tables.insert(0, counter_table(results.summary))
        frames["counter"] = pd.DataFrame(results.summary.counter)
    return section_of("method", tables, frames)


def _method_rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for name in _PLAN_FIELDS:
        value = getattr(manifest.plan, name)
        if value not in (None, ""):
            yield name, ", ".join(value) if isinstance(value, tuple) else str(value)
    yield from ((f"version: {name}", version) for name, version in manifest.versions.items())
    yield "digest of the recordings", manifest.digest
    yield "run folder format", str(manifest.format)


def strategies_section(results: Results) -> ReportSection:
    """Return the main table."""
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
    curves = figure_of("survival", lambda: survival(facts))
    tables = (survival_table(results.summary), first_summary_table(results.summary))
    return section_of("survival", (curves, *tables), {"survival": frame})


def tiers_section(results: Results) -> ReportSection | None:
    """Return what memory tiers did, or None where no strategy has tiers and the recordings go back to nothing."""
    tiers, curves = results.summary.tiers, results.miss_ratios
    with_hits = {name: actions for name, actions in tiers.items() if actions.hits.total() and actions.has_quotas}
    shown: list[InlineFigure | Table] = []
    if with_hits:
        shown.append(figure_of("tiers", lambda: found_by_tier(with_hits)))
    shown += tier_action_tables(tiers)
    if not curves.empty:
        look_ups = count(int(curves.look_ups.iloc[0]), "look-up")
        conversations = count(int(curves.conversations.iloc[0]), "conversation")
        values = {"look_ups": look_ups, "conversations": conversations}
        shown.append(figure_of("miss_ratios", lambda: miss_ratios(curves), **values))
    return section_of("tiers", shown, _tier_frames(tiers, curves)) if shown else None


def _tier_frames(tiers: dict[str, TierActions], curves: pd.DataFrame) -> dict[str, pd.DataFrame]:
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
        "miss_ratios": curves,
        "limits": pd.DataFrame(limits, columns=["strategy", "tier", "limit", "times"]),
    }
    return {name: frame for name, frame in frames.items() if not frame.empty}


SECTIONS: tuple[Callable[[Results], ReportSection | None], ...] = (
    overview.overview_section,
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
    """Yield the sections that the run has data for."""
    yield from (section for make in SECTIONS if (section := make(results)) is not None)

"""The sections of the report, in their order. One more is a function that returns it, and a line in `SECTIONS`.

A function takes the results of a run and returns None where the run has no data for it. Titles, leads and captions
stand in `templates/texts.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import pandas as pd

from ctxbench.harness.answers.figures import BOUNDS, AnswerFigures
from ctxbench.harness.claims.registry import read
from ctxbench.harness.folder.run import KEYS
from ctxbench.harness.graders.profiles import Profiles
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing

from .. import claims, probes
from ..answers import agreement_table, measures, pairs, run_tables
from ..bill import against, assumptions, bill_of, broken, causes, how
from ..calibration import corrected_of, corrected_table, profile_tables
from ..figures import charts
from ..figures.frontier import between, shares
from ..render import STRATEGY, Column, Table, about, count, integer, metric_column, percent, table_of
from ..results import Results
from ..steps import SUMMED
from ..tables import (
    action_tables,
    counter_table,
    faults_table,
    grounding_table,
    growth_table,
    incomplete,
    lacking,
    lacking_table,
    main_table,
    reasons_table,
    rows_of,
    survival_tables,
)
from ..tier_actions import TIERS, tier_action_tables
from ..verdict_text import is_traps
from . import overview
from .page import Chart, ReportSection, chart_of, left_out, section_of, texts

# Conversations that are in the page; all are in the CSV file.
_MOST_CONVERSATIONS = 200
_SIZES = {"look_ups": "look-up", "conversations": "conversation"}
_PLAN_FIELDS = ("names", "form", "encoding", "window", "summariser", "embedder")


def answers_section(results: Results) -> ReportSection | None:
    """Return the answers to the probes, or None where nothing was answered."""
    answers = results.summary.answers
    if answers is None:
        return None
    tables = run_tables(answers, by_kind=True)
    if not answers.figures:
        return section_of("answers", (left_out("answers"), *tables))
    agreement = pairs(measures(results.run, answers, results.summary.uneven), results.run.units)
    names = ("correct", "given", "unknown", "abstained", "normalised_gain", "missing", "ungraded", "paired")
    rows = [
        {"answerer": figures.answerer, "grader": figures.grader, "strategy": of.strategy}
        | {name: getattr(of, name) for name in (*names, "input_tokens")}
        | {
            f"correct {kind or '(no kind)'}": share.mean if isinstance(share, Interval) else share
            for kind, share in figures.by_category[of.strategy].items()
        }
        for figures in answers.figures
        for of in figures.strategies
    ]
    parts: tuple[Table | Chart, ...] = (_answers_chart(answers.figures[0]), *tables, agreement_table(agreement))
    return section_of("answers", parts, {"answers": pd.DataFrame(rows)})


def _answers_chart(answers: AnswerFigures) -> Chart:
    """Return the share correct of each strategy with its interval."""
    marks, bounds = [], {}
    for of in answers.strategies:
        share, ends = of.correct, of.correct_interval
        if isinstance(share, Missing) or not of.in_pairs:
            continue
        if of.strategy in BOUNDS:
            bounds[("floor", "ceiling")[BOUNDS.index(of.strategy)]] = share
        else:
            marks.append((of.strategy, share, *((share, share) if isinstance(ends, Missing) else ends)))
    drawing = partial(between, bounds=bounds)
    return chart_of("answers", shares(marks), drawing, answerer=answers.answerer, grader=answers.grader)


def bill_section(results: Results) -> ReportSection | None:
    """Return the bills, or None where no conversation was finished by every strategy, or no model was called."""
    totals, without_newest = results.totals, lacking(results.summary)
    if totals.empty:
        return None
    bills = [
        bill_of(f"What does it cost under {model}?", rows, without_newest)
        for model, rows in totals.groupby("model", observed=True, sort=False)
    ]
    saved = [against(totals, without_newest)] if "none" in results.strategies else []
    notes = (*how(), *results.sampling_notes, *assumptions(results.billed, results.billed.schemes))
    chart = chart_of("bill", charts.bill_rows(totals), charts.bill)
    return section_of("bill", (chart, *saved, *bills, Table("How was it billed?", (), (), notes)), {"bill": totals})


def cache_section(results: Results) -> ReportSection | None:
    """Return what the prompt caches read, or None where nothing was billed."""
    totals = results.totals
    if totals.empty:
        return None
    calls = {scheme.model: results.billed.calls(scheme, charts.OF_CALLS) for scheme in results.billed.schemes}
    parts: tuple[Table | Chart, ...] = (
        chart_of("cached_share", charts.cached_share_rows(calls), charts.cached_share),
        chart_of("hit_rate_by_gap", charts.gap_rows(calls), charts.hit_rate_by_gap),
        chart_of("break_even", charts.break_even_rows(calls), charts.break_even),
    )
    table = broken(results.breaks, list(totals.strategy.unique()), int(totals.calls.max()))
    lead = " ".join((texts()["sections"]["cache"]["lead"], *results.sampling_notes))
    return section_of("cache", (*parts, table), {"prefix_breaks": causes(results.breaks)}, lead)


def calibration_section(results: Results) -> ReportSection | None:
    """Return how far the graders agree with people, or None where nothing was graded."""
    answers = results.summary.answers
    if answers is None or not answers.figures:
        return None
    profiles = Profiles()
    best = answers.figures[0]
    corrected = corrected_of(best, profiles.of(best.grader))
    by_grader = {name: profiles.of(name) for name in dict.fromkeys(figures.grader for figures in answers.figures)}
    rows = [
        {"strategy": of.strategy, "set": name, "seen": of.seen, "corrected": value.value}
        for of in corrected
        for name, value in of.by.items()
    ]
    kappas = [
        (f"{quote.profile.grader} on {quote.profile.set}", kappa.value, *kappa.interval)
        for quotes in by_grader.values()
        for quote in quotes
        if not isinstance((kappa := quote.profile.quoted.kappa).value, Missing)
        and not isinstance(kappa.interval, Missing)
    ]
    drawing = partial(between, bounds={}, along="Cohen's kappa with people", in_percent=False)
    chart = chart_of("kappa", shares(kappas), drawing)
    parts: list[Table | Chart] = [chart, *profile_tables(by_grader), corrected_table(corrected)]
    return section_of("calibration", parts, {"corrected": pd.DataFrame(rows)})


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
    of_recordings = words["lead_recordings"].format(recordings=", ".join(stored.recordings))
    lead = words["lead"] + words["lead_quick"] * stored.quick + of_recordings * bool(stored.recordings)
    return section_of("claims", claims.tables(stored.findings, every=True), {"claims": pd.DataFrame(rows)}, lead)


def conversations_section(results: Results) -> ReportSection:
    """Return the conversations, each with the strategy that has the lowest grounding recall in it."""
    table, sums = results.run.table("conversations"), results.common
    sums = sums[sums.demands > 0].assign(share=lambda rows: rows.demands_kept / rows.demands)
    lowest = sums[sums.share < 1].sort_values("share", kind="stable").drop_duplicates("conversation")
    columns = (
        Column("conversation", "conversation"),
        Column("model calls", "calls", integer),
        *(Column(key, key, integer) for key in ("messages", "tokens", "probes")),
        Column("lowest grounding recall", "strategy", lambda name: "–" if pd.isna(name) else name),
        Column("share", "share", lambda share: "–" if pd.isna(share) else percent(share)),
    )
    first = table.head(_MOST_CONVERSATIONS).astype({"conversation": str})
    rows = first.merge(lowest[[*KEYS, "share"]].astype(dict.fromkeys(KEYS, str)), "left", "conversation")
    notes, most = [about("conversations")], _MOST_CONVERSATIONS
    if len(table) > most:
        notes.append(f"The first {most} of {count(len(table), 'conversation')}: all are in tables/results.csv.")
    shown = table_of("Which conversations were replayed?", columns, rows.to_dict(orient="records"), notes)
    return section_of("conversations", (shown,), {"results": _results_frame(results)})


def _results_frame(results: Results) -> pd.DataFrame:
    """Return a row for each conversation and strategy: its status, its sums, and its bill under each model."""
    columns = [*KEYS, "status", *["detail"] * results.text, "steps"]
    frame = results.run.table("results")[columns].astype({"strategy": str})
    frame = frame.merge(results.sums[[*KEYS, *SUMMED]].astype(dict.fromkeys(KEYS, str)), "left", KEYS)
    for model, rows in results.bills.groupby("model", observed=True, sort=False):
        bill = rows[KEYS].astype(str).assign(**{f"cost {model}": (rows.cost + rows.cost_own).to_numpy()})
        frame = frame.merge(bill, "left", KEYS)
    return frame


def latency_section(results: Results) -> ReportSection | None:
    """Return the latency of the strategies, or None without steps."""
    keys = ("latency_p50", "latency_p99")
    rows = [row for row in rows_of(results.summary) if not any(isinstance(row[key], Missing) for key in keys)]
    if not rows:
        return None
    columns = (STRATEGY, *(metric_column(key) for key in keys))
    chart = chart_of("decisions", charts.latency_rows(rows), charts.latency)
    return section_of("decisions", (chart, table_of("How long does a call wait for the strategy?", columns, rows)))


def actions_section(results: Results) -> ReportSection | None:
    """Return what strategies did, or None where they reported nothing and nothing failed."""
    summary = results.summary
    reasons = [reasons_table(summary)] * bool(summary.reasons)
    if not (tables := [*action_tables(summary), *reasons, *incomplete(summary)]):
        return None
    left = msgspec.to_builtins(summary.manifest.problems)
    frames = {"reasons": summary.reasons, "failed": summary.failed, "left_out": left}
    return section_of("actions", tables, {name: pd.DataFrame(rows) for name, rows in frames.items()})


def evidence_section(results: Results) -> ReportSection | None:
    """Return what was sent for the probes, or None where the recordings have no questions with known answers."""
    summary = results.summary.probes
    if summary is None:
        return None
    rows = [{"strategy": name, **figures} for name, figures in (summary.strategies | summary.bounds).items()]
    return section_of("evidence", probes.tables(summary, by_kind=True), {"evidence": pd.DataFrame(rows)})


def grounding_section(results: Results) -> ReportSection | None:
    """Return grounding recall, or None where no recorded call or answer uses a value that was given before."""
    summary = results.summary
    by_kind = [(name, kind, of) for name, kinds in summary.grounding.items() for kind, of in kinds.items()]
    if not by_kind:
        return None
    rows = pd.DataFrame([{"strategy": name, "kind": kind, **of._asdict()} for name, kind, of in by_kind])
    chart = chart_of("grounding", charts.grounding_rows(summary.steps.by_turn), charts.grounding)
    return section_of("grounding", (chart, grounding_table(summary)), {"grounding": rows})


def growth_section(results: Results) -> ReportSection | None:
    """Return the tokens of a call by turn, or None without steps."""
    curve = results.summary.steps.growth
    if curve.empty:
        return None
    chart = chart_of("growth", charts.growth_rows(curve), charts.growth)
    return section_of("growth", (chart, growth_table(results.summary)), {"growth": curve})


def method_section(results: Results) -> ReportSection:
    """Return how the run was made: its plan, versions and digest, and how far off its token counts are."""
    manifest, counter = results.run.manifest, results.summary.steps.counter
    plan = {name: getattr(manifest.plan, name) for name in _PLAN_FIELDS}
    rows = {
        **{name: ", ".join(value) if isinstance(value, tuple) else str(value) for name, value in plan.items()},
        **{f"version: {name}": version for name, version in manifest.versions.items()},
        "digest of the recordings": manifest.digest,
        "run folder format": str(manifest.format),
    }
    shown = tuple((name, value) for name, value in rows.items() if value not in ("None", ""))
    run = Table("What was run?", ("what", "value"), shown, names=2, prose=True)
    tables = [counter_table(results.summary)] if counter else []
    return section_of("method", (*tables, run), {"counter": pd.DataFrame(counter)})


def strategies_section(results: Results) -> ReportSection | None:
    """Return the main table; None of traps, on which savings mean nothing."""
    if is_traps(results):
        return None
    summary = results.summary
    tables = (main_table(summary), *lacking_table(summary))
    return section_of("strategies", tables, {"strategies": pd.DataFrame(rows_of(summary))})


def structure_section(results: Results) -> ReportSection:
    """Return the structural faults; that there are none is a result too."""
    return section_of("structure", (faults_table(results.summary),))


def survival_section(results: Results) -> ReportSection | None:
    """Return the facts that survive summarising, or None where no strategy summarises."""
    facts = {name: rows for name, rows in results.summary.survival.items() if rows}
    if not facts:
        return None
    frame = pd.DataFrame([{"strategy": name, **row._asdict()} for name, rows in facts.items() for row in rows])
    chart = chart_of("survival", charts.survival_rows(facts), charts.survival)
    return section_of("survival", (chart, *survival_tables(results.summary)), {"survival": frame})


def tiers_section(results: Results) -> ReportSection | None:
    """Return what memory tiers did, or None where no strategy has tiers and the recordings go back to nothing."""
    tiers, ratios = results.summary.tiers, results.miss_ratios
    if not tiers and ratios.empty:
        return None
    with_quotas = {name: actions for name, actions in tiers.items() if actions.has_quotas}
    with_hits = {name: actions for name, actions in with_quotas.items() if actions.hits.total()}
    words = {key: "" if ratios.empty else count(int(ratios[key].iloc[0]), one) for key, one in _SIZES.items()}
    parts: tuple[Table | Chart, ...] = (
        chart_of("tiers", charts.tier_rows(with_hits), charts.tiers),
        *tier_action_tables(tiers),
        chart_of("miss_ratios", charts.miss_rows(ratios), charts.miss_ratios, **words),
    )
    hits = [(name, tier, actions.hits[tier]) for name, actions in with_quotas.items() for tier in TIERS]
    moves = [
        {
            "strategy": name,
            "from": source,
            "to": to or "out",
            "times": edge.times,
            "messages": edge.messages,
            "tokens": edge.tokens if actions.has_quotas else None,
            "queue_seconds": edge.queue_time,
        }
        for name, actions in tiers.items()
        for (source, to), edge in sorted(actions.moves.items())
    ]
    limits = [(name, *limit, times) for name, of in tiers.items() for limit, times in sorted(of.limits_reached.items())]
    frames = {
        "tier_hits": pd.DataFrame(hits, columns=["strategy", "tier", "messages"]),
        "migrations": pd.DataFrame(moves),
        "limits": pd.DataFrame(limits, columns=["strategy", "tier", "limit", "times"]),
        "miss_ratios": ratios,
    }
    return section_of("tiers", parts, frames)


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
    yield from filter(None, (make(results) for make in SECTIONS))

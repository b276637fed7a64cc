"""The sections of the report, in their order. One more is a function that returns it, and a line in `SECTIONS`.

A function takes the results of a run and returns None where the run has no data for it. Titles, leads and captions
stand in `templates/texts.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any

import msgspec
import pandas as pd

from ctxbench.harness.answers.figures import BOUNDS as ANSWER_BOUNDS
from ctxbench.harness.answers.figures import WHOLE, AnswerFigures
from ctxbench.harness.bill.bill import OF_CALLS
from ctxbench.harness.claims.registry import read
from ctxbench.harness.folder.run import KEYS
from ctxbench.harness.graders.profiles import Profiles
from ctxbench.harness.live import stored_live
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing

from .. import claims, probes, tables
from ..answers import run_tables
from ..bill import against, assumptions, bill_of, broken, causes, how
from ..calibration import corrected_of, corrected_table, profile_table
from ..figures import charts
from ..figures.frontier import PLACES, between, frontier, shares
from ..live import live_tables
from ..render import STRATEGY, Column, Table, about, count, dollars, integer, metric_column, percent, table_of
from ..results import Results
from ..reuse import reuse_table
from ..steps import SUMMED
from ..tier_actions import tier_action_tables, tier_actions_json
from ..verdict import RunVerdict, in_order, verdict
from ..verdict_text import answer, choices_table, gain_range, is_traps, points_in_words, trap_table, why_placed
from .page import Chart, ReportSection, chart_of, left_out, section_of, texts

# Conversations that are in the page; all are in the CSV file.
_MOST_CONVERSATIONS = 200
_SIZES = {"look_ups": "look-up", "conversations": "conversation"}
_PLAN_FIELDS = ("names", "form", "encoding", "window", "summariser", "embedder")


def overview_section(results: Results) -> ReportSection:
    """Return the first screen: the verdict, or for a run of traps which traps break which strategy."""
    if is_traps(results):
        return section_of("traps", (trap_table(results),))
    first = verdict(results)
    by_model = [replace(first, model=model) for model in results.models]
    section, *others = (_overview(places, by_model, at) for at, places in enumerate(by_model, start=1))
    return replace(section, under=dict(zip(results.models[1:], others, strict=True)))


def _overview(places: RunVerdict, by_model: Sequence[RunVerdict], number: int) -> ReportSection:
    """Return the first screen under one model, by its number."""
    order = in_order(places)
    rows = _overview_rows(places, order)
    columns = (
        STRATEGY,
        Column("verdict", "verdict"),
        Column("why", "why", lambda text: text or "–"),
        Column(places.quality.name, "quality", percent),
        Column("bill", "bill", dollars),
        Column("points, 95 %", "gain", lambda gain: "–" if gain is None else gain_range(gain)),
    )
    summary, notes = places.results.summary, [about("frontier_bill", model=places.model)]
    if places.results.is_sampled:
        covers = f"{places.quality.name.capitalize()} covers the same conversations."
        notes += [*places.results.sampling_notes, covers]
    notes += [about("verdict_compared", summary=summary)] * (0 < summary.compared < summary.conversations)
    table = table_of("What is the verdict on each strategy?", columns, rows, notes, names=3)
    # The decision, its table of losses and prices, the picture; then what is behind it.
    decision = answer(places)
    decision = replace(decision, rows=decision.rows[:-1])  # whose last line leads to this page
    tables_of_answer = [replace(decision, heads=(), rows=()), *map(choices_table, [places] * places.is_comparable)]
    chart = _frontier_chart(places, rows, number) if places.points else left_out("frontier")
    parts: list[Table | Chart] = [*tables_of_answer, replace(decision, title="What is behind it?"), chart, table]
    if places.points and len(by_model) > 1:
        of_models = [Column("strategy", str)]
        for of in by_model:
            of_models.append(Column(of.model, of.cost, dollars))
            of_models.append(Column("verdict", of.places.__getitem__, lambda place: PLACES[place].words))
        shown = [name for name in order if any(name in of.points for of in by_model)]
        parts.append(table_of("Is it the same under other models?", of_models, shown))
    frame = pd.DataFrame(rows)[["strategy", "place", "on_frontier", "no_better_than", "quality"]]
    frame = frame.rename(columns={"quality": places.quality.metric})
    for model, costs in places.costs.items():
        frame[f"cost {model}"] = [costs.get(name, nan) for name in order]
    frame["breaks"] = ["; ".join(places.broken.get(name, ())) for name in order]
    words = texts()["sections"]["overview"]
    lead = words["lead" if places.points else "lead_empty"].format(
        model=places.model,
        quality=places.quality.name,
        about=places.quality.about,
        points=points_in_words(places.results.lose),
    )
    return section_of("overview", parts, {"frontier": frame}, lead)


def _overview_rows(places: RunVerdict, order: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is said of each strategy, in the order given."""
    compared = places.points if places.is_comparable else {}
    return [
        {
            "strategy": name,
            "place": places.places[name],
            "verdict": PLACES[places.places[name]].words,
            "why": why_placed(places, name),
            "quality": places.values[name],
            "bill": places.cost(name),
            "gain": places.gain(name, WHOLE) if name in compared and name != WHOLE else None,
            "on_frontier": name in places.best,
            "no_better_than": places.beaten_by.get(name, ""),
        }
        for name in order
    ]


def _frontier_chart(places: RunVerdict, rows: Sequence[dict[str, Any]], number: int) -> Chart:
    """Return the frontier. Intervals are those of the differences from the whole history."""
    quality, base, marks = places.quality, places.points.get(WHOLE), []
    for row in rows:
        if (name := row["strategy"]) not in places.points:
            continue
        mark = {"strategy": name, "place": row["place"], **places.points[name]._asdict()}
        mark |= {"on_frontier": row["on_frontier"], **dict.fromkeys(("low", "high", "cost_low", "cost_high"), nan)}
        if row["gain"] is not None and base is not None:
            gain, change = row["gain"].shown, places.cost_change(name).shown
            if not isinstance(gain, Missing):
                mark |= {"low": max(0.0, base.quality + gain.low), "high": min(1.0, base.quality + gain.high)}
            if not isinstance(change, Missing):
                mark |= {"cost_low": base.cost * (1 + change.low), "cost_high": base.cost * (1 + change.high)}
        marks.append(mark)
    up, along = f"{quality.name} (higher is better)", f"bill under {places.model}, US dollars (lower is better)"
    bounds = {name: value for name, value in quality.bounds.items() if not isinstance(value, Missing)}
    drawing = partial(frontier, up=up, along=along, bounds=bounds)
    chart = chart_of("frontier", pd.DataFrame(marks), drawing, about=quality.about)
    chart = replace(chart, narrow=partial(drawing, along=f"bill under {places.model}", width=3.2, columns=2))
    return chart if number == 1 else replace(chart, name=f"frontier-{number}")


def answers_section(results: Results) -> ReportSection | None:
    """Return the answers to the probes, or None where nothing was answered."""
    answers = results.summary.answers
    if answers is None:
        return None
    shown = run_tables(answers)
    if not answers.figures:
        return section_of("answers", (left_out("answers"), *shown))
    names = ("correct", "given", "unknown", "abstained", "base", "of_whole", "missing", "ungraded", "paired")
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
    parts: tuple[Table | Chart, ...] = (_answers_chart(answers.best), *shown)
    return section_of("answers", parts, {"answers": pd.DataFrame(rows)})


def _answers_chart(answers: AnswerFigures) -> Chart:
    """Return the share correct of each strategy with its interval."""
    marks, bounds = [], {}
    for of in answers.strategies:
        share, ends = of.correct, of.correct_interval
        if isinstance(share, Missing) or not of.in_pairs:
            continue
        if of.strategy in ANSWER_BOUNDS:
            bounds[of.strategy] = share
        else:
            marks.append((of.strategy, share, *((share, share) if isinstance(ends, Missing) else ends)))
    drawing = partial(between, bounds=bounds)
    return chart_of("answers", shares(marks), drawing, answerer=answers.answerer, grader=answers.grader)


def bill_section(results: Results) -> ReportSection | None:
    """Return the bills, or None where no conversation was finished by every strategy, or no model was called."""
    totals, without_newest = results.totals, tables.lacking(results.summary)
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
    calls = {scheme.model: results.billed.calls(scheme, OF_CALLS) for scheme in results.billed.schemes}
    parts: tuple[Table | Chart, ...] = (
        chart_of("cached_share", charts.cached_share_rows(calls), charts.cached_share),
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
    best = answers.best
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
    parts: list[Table | Chart] = [chart, profile_table(by_grader), corrected_table(corrected)]
    return section_of("calibration", parts, {"corrected": pd.DataFrame(rows)})


def live_section(results: Results) -> ReportSection | None:
    """Return live runs without and with a strategy, or None where none were compared."""
    live = stored_live(results.run)
    return None if live is None else section_of("live", live_tables(live))


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
    # A row for each conversation and strategy: its status, its sums, and its bill under each model.
    keys = [*KEYS, "status", *["detail"] * results.text, "steps"]
    frame = results.run.table("results")[keys].astype({"strategy": str})
    frame = frame.merge(results.sums[[*KEYS, *SUMMED]].astype(dict.fromkeys(KEYS, str)), "left", KEYS)
    for model, bills in results.bills.groupby("model", observed=True, sort=False):
        bill = bills[KEYS].astype(str).assign(**{f"cost {model}": (bills.cost + bills.cost_own).to_numpy()})
        frame = frame.merge(bill, "left", KEYS)
    return section_of("conversations", (shown,), {"results": frame})


def latency_section(results: Results) -> ReportSection | None:
    """Return the latency of the strategies, or None without steps."""
    keys = charts.LATENCIES
    rows = [row for row in tables.rows_of(results.summary) if not any(isinstance(row[key], Missing) for key in keys)]
    if not rows:
        return None
    columns = (STRATEGY, *map(metric_column, keys))
    chart = chart_of("decisions", pd.DataFrame(rows)[["strategy", *keys]], charts.latency)
    return section_of("decisions", (chart, table_of("How long does a call wait for the strategy?", columns, rows)))


def actions_section(results: Results) -> ReportSection | None:
    """Return what strategies did, or None where they reported nothing and nothing failed."""
    summary = results.summary
    reasons = [tables.reasons_table(summary)] * bool(summary.reasons)
    if not (shown := [*tables.action_tables(summary), *reasons, *tables.incomplete(summary)]):
        return None
    left = msgspec.to_builtins(summary.manifest.problems)
    frames = {"reasons": summary.reasons, "failed": summary.failed, "left_out": left}
    return section_of("actions", shown, {name: pd.DataFrame(rows) for name, rows in frames.items()})


def evidence_section(results: Results) -> ReportSection | None:
    """Return what was sent for the probes, or None where the recordings have no questions with known answers."""
    summary = results.summary.probes
    if summary is None:
        return None
    rows = [{"strategy": name, **figures} for name, figures in (summary.strategies | summary.bounds).items()]
    return section_of("evidence", probes.tables(summary), {"evidence": pd.DataFrame(rows)})


def grounding_section(results: Results) -> ReportSection | None:
    """Return grounding recall, or None where no recorded call or answer uses a value that was given before."""
    summary = results.summary
    by_kind = [(name, kind, of) for name, kinds in summary.grounding.items() for kind, of in kinds.items()]
    if not by_kind:
        return None
    rows = pd.DataFrame([{"strategy": name, "kind": kind, **of._asdict()} for name, kind, of in by_kind])
    chart: Table | Chart = chart_of("grounding", charts.grounding_rows(summary.steps.by_turn), charts.grounding)
    parts, frames = [chart, tables.grounding_table(summary)], {"grounding": rows}
    if not (ages := results.reuse).empty:
        parts += [chart_of("reuse", ages, charts.reuse), reuse_table(ages)]
        frames["reuse"] = ages
    return section_of("grounding", parts, frames)


def growth_section(results: Results) -> ReportSection | None:
    """Return the tokens of a call by turn, or None without steps."""
    curve = results.summary.steps.growth
    if curve.empty:
        return None
    # A call before the first turn has no place on a logarithmic axis.
    chart = chart_of("growth", curve[curve.turn > 0], charts.growth)
    return section_of("growth", (chart, tables.growth_table(results.summary)), {"growth": curve})


def method_section(results: Results) -> ReportSection:
    """Return how the run was made: its plan, versions and digest, and how far off its token counts are."""
    manifest, counter = results.run.manifest, results.summary.steps.counter
    plan = {name: getattr(manifest.plan, name) for name in _PLAN_FIELDS}
    rows = {
        **{name: ", ".join(value) if isinstance(value, tuple) else str(value) for name, value in plan.items()},
        **{f"version: {name}": version for name, version in manifest.versions.items()},
        **{f"definition: {name}": of.source or f"@{of.digest}" for name, of in (manifest.sources or {}).items()},
        "digest of the recordings": manifest.digest,
        "run folder format": str(manifest.format),
    }
    shown = tuple((name, value) for name, value in rows.items() if value not in ("None", ""))
    run = Table("What was run?", ("what", "value"), shown, names=2, prose=True)
    shown_counter = [tables.counter_table(results.summary)] * bool(counter)
    return section_of("method", (*shown_counter, run), {"counter": pd.DataFrame(counter)})


def strategies_section(results: Results) -> ReportSection | None:
    """Return the main table; None of traps, on which savings mean nothing."""
    if is_traps(results):
        return None
    summary = results.summary
    own = results.own
    shown = (tables.main_table(summary), *tables.lacking_table(summary), *tables.own_table(own))
    frames = {"strategies": tables.rows_of(summary), "own_metrics": [{"strategy": name, **own[name]} for name in own]}
    return section_of("strategies", shown, {name: pd.DataFrame(rows) for name, rows in frames.items()})


def structure_section(results: Results) -> ReportSection:
    """Return the structural faults; to have none is a result too."""
    return section_of("structure", (tables.faults_table(results.summary),))


def survival_section(results: Results) -> ReportSection | None:
    """Return the facts that survive summarising, or None where no strategy summarises."""
    facts = {name: rows for name, rows in results.summary.survival.items() if rows}
    if not facts:
        return None
    frame = pd.DataFrame([{"strategy": name, **row._asdict()} for name, rows in facts.items() for row in rows])
    chart = chart_of("survival", charts.survival_rows(facts), charts.survival)
    return section_of("survival", (chart, *tables.survival_tables(results.summary)), {"survival": frame})


def tiers_section(results: Results) -> ReportSection | None:
    """Return what memory tiers did, or None where no strategy has tiers and the recordings go back to nothing."""
    tiers, ratios = results.summary.tiers, results.miss_ratios
    if not tiers and ratios.empty:
        return None
    with_quotas = {name: actions for name, actions in tiers.items() if actions.has_quotas}
    with_hits = {name: actions for name, actions in with_quotas.items() if actions.found.total()}
    words = {key: "" if ratios.empty else count(int(ratios[key].iloc[0]), one) for key, one in _SIZES.items()}
    parts: tuple[Table | Chart, ...] = (
        chart_of("tiers", charts.tier_rows(with_hits), charts.tiers),
        *tier_action_tables(tiers),
        chart_of("miss_ratios", ratios, charts.miss_ratios, **words),
    )
    exact = tier_actions_json(tiers)
    hits = [(name, tier, messages) for name in with_quotas for tier, messages in exact[name]["found"].items()]
    frames = {"tier_hits": pd.DataFrame(hits, columns=["strategy", "tier", "messages"]), "miss_ratios": ratios}
    for name, key in {"migrations": "moves", "limits": "limit_reached"}.items():
        frames[name] = pd.DataFrame([{"strategy": of, **row} for of, actions in exact.items() for row in actions[key]])
    return section_of("tiers", parts, frames)


SECTIONS: tuple[Callable[[Results], ReportSection | None], ...] = (
    overview_section,
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
    live_section,
    claims_section,
    method_section,
)


def sections(results: Results) -> Iterator[ReportSection]:
    """Yield the sections that the run has data for."""
    yield from filter(None, (make(results) for make in SECTIONS))

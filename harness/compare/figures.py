"""Measure a stored run: every figure by conversation and strategy, as the sums that comparisons add up.

    measured(load("runs/standard"), ["claude-sonnet-5"])

The figures are those of `metrics.figures.METRICS`, whatever table of a run they are of, and those of the bill
(`metrics.figures.BILLED`) under some models, as `cost(MODEL)`.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ctxbench.metrics.figures import BILLED, METRICS, OF_ANSWERS, OWN, Metric
from ctxbench.metrics.prices import Prices
from ctxbench.metrics.value import Form, Missing, Ratio, Summed, Value, value
from ctxbench.scenarios.errors import RunError, UserError

from ..answers.store import answered
from ..answers.tally import run_tallies
from ..bill import OWN_MODELS, usual_prices
from ..bill.bill import conversation_bills
from ..bill.requests import own_models
from ..bill.simulation import Scheme
from ..folder.run import Columns, Floats, Run, recorded_models, step_columns, steps_of, uneven

ANSWERS = "answers"  # the table of the figures that exist once per answer model and grader
CONTEXTS = "contexts"  # what was sent at each call, for metrics of the user's own
CLOCK = "us"  # the unit of wall-clock figures: another machine measures others


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The description of a figure. Figures of different versions do not compare."""

    unit: str
    better: Literal["lower", "higher", ""]
    form: Form
    version: str


@dataclass(frozen=True)
class MeasuredRun:
    """The figures of a run, or of a baseline."""

    source: str  # folder or file that they come from
    encoding: str
    digests: Mapping[str, str]  # digest of each conversation
    metrics: Mapping[str, About]
    sums: Mapping[str, Mapping[str, Floats]]
    """By strategy and metric: a row per conversation, in the order of `digests`, with the two sums
    (`metrics/value.py`). NaN where there is no number: the strategy failed, or a price is not known. A ratio that a
    strategy has nowhere is left out."""
    failed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By strategy: the conversations in which it failed, and why."""
    units: Mapping[str, str] = field(default_factory=dict)
    """The independent unit of each conversation. A baseline has none: those of the run that it is compared with count,
    as paired conversations have the same content."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """By strategy of another package: that package and its version. A baseline has none."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """By strategy that goes by another name: its text, with its settings and digests of files."""
    missing: Mapping[str, Missing] = field(default_factory=dict)
    """By metric of the user's own that raised, or has no value in any conversation: why. It has no sums."""
    live: frozenset[str] = frozenset()
    """Strategies that live models summarised for, and metrics of their answers: figures that have noise."""


class SumGrid:
    """The places of strategies and conversations in a table of sums."""

    def __init__(self, conversations: Sequence[str], strategies: Sequence[str]) -> None:
        self.conversations = {name: at for at, name in enumerate(conversations)}
        self.strategies = {name: at for at, name in enumerate(strategies)}
        self.shape = (len(strategies), len(conversations), 2)
        self.raised = dict[str, str]()  # by metric of the user's own: where it raised, and what
        self.missing = dict[str, str]()  # by metric: why its first missing value is missing

    def sums_of(self, name: str, metric: Metric, rows: Any, strategy: str, conversation: str) -> tuple[float, float]:
        """Return the two sums of a figure of one conversation, which counts in no mean where it is missing.

        A metric that raises once has no figure anywhere: a mean over the rest would be of other conversations.
        """
        if name in self.raised:
            return np.nan, np.nan
        try:
            value = metric.of(rows)
        except UserError as error:
            self.raised[name] = f"{error}, in {conversation} under {strategy}"
            return np.nan, np.nan
        if isinstance(value, Missing):
            self.missing.setdefault(name, value.detail)
            return 0.0, 0.0
        return float(value), 1.0

    def sums(self, metrics: Mapping[str, Metric], rows: pd.DataFrame | Columns) -> dict[str, Floats]:
        """Return both sums of some figures, by strategy and conversation. Rows of bounds (not run) are left out.

        A figure that no two sums make has its value, and 1 as the lower sum where there is one.
        """
        if isinstance(rows, pd.DataFrame) and not (is_run := rows.strategy.isin(self.strategies.keys())).all():
            rows = rows[is_run]
        size, (strategies, conversations) = self.shape[1], (rows[name].astype("category").cat for name in _PLACED)
        # One number for a place in a strategies × conversations table, so that one pass of `bincount` adds all rows up:
        # by category, of which there are few, while the tables have a row for every model call.
        strategy = np.array([self.strategies.get(str(name), 0) for name in strategies.categories], np.int64)
        conversation = np.array([self.conversations.get(str(name), 0) for name in conversations.categories], np.int64)
        at = strategy[strategies.codes] * size + conversation[conversations.codes]
        tables: dict[str, Floats] = {}
        for name, metric in metrics.items():
            if isinstance(metric.of, get_args(Summed)):
                sums = [np.bincount(at, column, len(self.strategies) * size) for column in metric.of.parts(rows)]
                tables[name] = np.stack(sums, axis=-1).reshape(self.shape).astype(np.float64)
                continue
            tables[name] = np.zeros(self.shape)
            for key, rows_of_result in pd.DataFrame(rows, copy=False).groupby(_PLACED, observed=True, sort=False):
                place = self.strategies[str(key[0])], self.conversations[str(key[1])]
                tables[name][place] = self.sums_of(name, metric, rows_of_result, *map(str, key))
        return tables


_PLACED = ["strategy", "conversation"]
_TOLD = dict[Any, Any]()  # what was said of metrics that raise, so that it is said once


def measured(
    run: Run, models: Sequence[str] = (), clock: bool = False, prices: Prices | None = None, named: Collection[str] = ()
) -> MeasuredRun:
    """Measure every figure of a run, of the clock only with `clock`. Raises RunError for a model without a price."""
    conversations = run.table("conversations")
    names = [str(name) for name in conversations.conversation]
    grid = SumGrid(names, list(run.manifest.plan.strategies))
    failed = run.failures
    # Where some are named, no other metric of the user's own is measured: it may fail.
    keys = {name.partition("(")[0] for name in named or OWN}
    every = {**METRICS, **{key: metric for key, metric in OWN.items() if key in keys}}
    wanted = {
        name: metric for name, metric in every.items() if metric.table != ANSWERS and (clock or metric.unit != CLOCK)
    }
    tables = {name: np.zeros(grid.shape) for name in wanted}
    of_contexts = {name: metric for name, metric in wanted.items() if metric.table == CONTEXTS}
    for conversation in run.conversations() if of_contexts else ():
        for strategy, at in grid.strategies.items():
            if conversation.id not in failed.get(strategy, ()):
                sent = list(run.contexts(conversation, strategy))
                for name, metric in of_contexts.items():
                    sums_here = grid.sums_of(name, metric, sent, strategy, conversation.id)
                    tables[name][at, grid.conversations[conversation.id]] = sums_here
    for piece in run.pieces():
        for kind in dict.fromkeys(metric.table for metric in wanted.values() if metric.table != CONTEXTS):
            of_kind = {name: metric for name, metric in wanted.items() if metric.table == kind}
            rows = step_columns(piece) if kind == "steps" else piece.table(kind)
            if isinstance(rows, Columns):
                del rows["latency_ns"]  # other times each time: no metric of the user's own may rest on them
            for name, of_piece in grid.sums(of_kind, rows).items():
                tables[name] += of_piece  # 0 but for the conversations of the piece
    about = dict[str, About]()
    for name, metric in wanted.items():
        version = str(metric.version)
        if name == "overflows":  # under another window the same contexts overflow elsewhere
            is_recorded = not run.manifest.plan.window and recorded_models(run)
            version += f", window {'recorded' if is_recorded else run.manifest.window}"
        form: Form = metric.of.form if isinstance(metric.of, get_args(Summed)) else "ratio"
        about[name] = About(metric.unit, metric.better, form, version)
    answered_metrics = {name: metric for name, metric in every.items() if metric.table == ANSWERS}
    for name, metric in answered_metrics.items():
        if name in OWN and not answered(run).whole:  # it is missing with a reason
            tables[name], about[name] = np.zeros(grid.shape), About(metric.unit, metric.better, "ratio", "")
    for answers in answered(run).whole:
        sums_of_answers = grid.sums(answered_metrics, answers.rows)
        for name, metric in answered_metrics.items():
            # Figures of other answer models and graders, or versions, do not compare.
            version = f"{metric.version}, answered by {answers.identity}, graded by {answers.grader}"
            tables[answers.metric(name)] = sums_of_answers[name]
            about[answers.metric(name)] = About(metric.unit, metric.better, "ratio", version)
    for name, (table, description) in _bills(run, models, grid, prices or usual_prices()).items():
        tables[name], about[name] = table, description
    for strategy, conversations_failed in failed.items():
        # NaN, not 0: a failed strategy has no figure of the conversation, and 0 tokens would look cheap.
        columns = [grid.conversations[conversation] for conversation in conversations_failed]
        for table in tables.values():
            table[grid.strategies[strategy], columns] = np.nan
    missing = dict[str, Missing]()
    for name, table in tables.items():
        if (key := name.partition("(")[0]) in grid.raised:
            missing[name] = Missing("failed", grid.raised[key])
        elif key in OWN and not np.nansum(table[..., 1]):
            none = f"the run has no {OWN[key].table} to measure it by"
            why = f"no value in any conversation: {grid.missing[key]}" if key in grid.missing else none
            missing[name] = Missing("undefined", why)
    for key, why in grid.raised.items():
        code = OWN[key].of.args[0].__code__  # type: ignore[attr-defined]
        warnings.warn_explicit(why, UserWarning, code.co_filename, code.co_firstlineno, registry=_TOLD)
    sums = {
        strategy: {
            name: table[at] for name, table in tables.items() if name not in missing and np.nansum(table[at][:, 1])
        }
        for strategy, at in grid.strategies.items()
    }
    digests = dict(zip(names, map(str, conversations.digest), strict=True))
    known = frozenset(missing).union(*sums.values())
    described = {name: description for name, description in about.items() if name in known}
    about_run = (str(run.folder), run.manifest.plan.encoding, digests, described, sums, failed, run.units)
    return MeasuredRun(*about_run, run.manifest.libraries(), missing=missing)


def measured_by_name(
    run: Run, models: Sequence[str] = (), clock: bool = False, named: Sequence[str] = ()
) -> MeasuredRun:
    """Measure a run, its strategies by name. Raises RunError where answers are damaged: a guard must not miss them."""
    stored = answered(run)
    if stored.left_out:
        raise RunError(f"{run.folder}: {' '.join(stored.left_out)}")
    measures, of = measured(run, models, clock, named=named), run.manifest.name_of
    by_name: dict[str, Any] = {
        key: {of(text): item for text, item in getattr(measures, key).items()}
        for key in ("sums", "failed", "libraries")
    }
    live = {of(tally.strategy) for tally in run_tallies(run) if tally.role == "summariser"}
    of_answers = [name for name, metric in {**METRICS, **OWN}.items() if metric.table == ANSWERS]
    live |= {answers.metric(name) for answers in stored.whole if not answers.is_usual for name in of_answers}
    texts = {text: run.manifest.settings_of(text) for text in measures.sums}
    settings = {of(text): settings for text, settings in texts.items() if of(text) != settings}
    return replace(measures, **by_name, settings=settings, live=frozenset(live))


def _bills(run: Run, models: Sequence[str], grid: SumGrid, prices: Prices) -> dict[str, tuple[Floats, About]]:
    """Return the figures of the bill under each model (`metrics.figures.BILLED`), with their descriptions.

    Prices are part of the version of what is in money, the cache rules of the rest are not: they follow the recording.
    """
    if not models:
        return {}
    bills = conversation_bills(run, [Scheme(model) for model in dict.fromkeys(models)], prices)
    tables: dict[str, tuple[Floats, About]] = {}
    for model, rows in bills.groupby("model", sort=False):
        billed = sorted(set(own_models(run, prices).values())) if model == OWN_MODELS else [str(model)]
        tariffs = [prices.tariff(name) for name in billed]
        tariff = hashlib.sha256(repr(tariffs if len(tariffs) > 1 else tariffs[0]).encode()).hexdigest()[:8]
        billed_sums = grid.sums(BILLED, rows)
        for name, metric in BILLED.items():
            assert isinstance(metric.of, get_args(Summed))
            version = f"{metric.version}, prices {tariff}" if not name.startswith("cache") else str(metric.version)
            about = About(metric.unit, metric.better, metric.of.form, version)
            tables[f"{name}({model})"] = billed_sums[name], about
    return tables


def billed_model(name: str) -> str | None:
    """Return the model that a figure is billed under, as in `cache_hit_rate(gpt-4o)`; None where it is of no bill."""
    metric, _, model = name.partition("(")
    return model.removesuffix(")") if metric in BILLED and model else None


def worst_step(run: Run, figure: str, conversation: str, strategy: str) -> int | None:
    """Return the step of a run that weighs most against a figure, or None where the figure is not of a step."""
    metric = METRICS.get(figure)
    if metric is None or metric.table == ANSWERS:
        return None
    run = run.confined_to((conversation,))
    rows = steps_of(run) if metric.table == "steps" else run.table(metric.table)
    return worst_of(rows[rows.strategy == strategy], metric)


def worst_of(rows: pd.DataFrame, metric: Metric) -> int | None:
    """Return the step that weighs most against a metric, of the rows of one conversation under one strategy."""
    if "step" not in rows or rows.empty or not isinstance(metric.of, get_args(Summed)):
        return None
    top, bottom = (np.asarray(part, np.float64) for part in metric.of.parts(rows))
    lacking = isinstance(metric.of, Ratio) and metric.of.form == "ratio" and metric.better == "higher"
    step = rows.step.iloc[int(np.argmax(bottom - top if lacking else top))]
    return None if pd.isna(step) else int(step)


def overall(run: MeasuredRun) -> dict[str, dict[str, Value]]:
    """Return every figure of each strategy: of the sums that comparisons add up, added in the same order."""
    left_out = uneven(run.failed, len(run.digests))
    common = np.array([name not in left_out for name in run.digests], bool)
    always = (name for name in (*METRICS, *OWN) if name not in OF_ANSWERS)
    names = dict.fromkeys((*run.metrics, *always))
    return {strategy: {name: _figure(run, strategy, name, common) for name in names} for strategy in run.sums}


def _figure(run: MeasuredRun, strategy: str, metric: str, common: NDArray[np.bool_]) -> Value:
    if len(run.failed.get(strategy, ())) == len(common):
        return Missing("failed", "in every conversation")
    if not common.any():
        return Missing("undefined", "no conversation that every strategy finished")
    if metric in run.missing:
        return run.missing[metric]
    sums = run.sums[strategy].get(metric)
    if sums is None:
        return Missing("undefined", "nothing to measure")
    form = run.metrics[metric].form
    top, bottom = (float(total) for total in sums[common].sum(axis=0))
    if np.isnan(top) or np.isnan(bottom):
        return Missing("unsupported", "a conversation has no number")
    if form != "total" and not bottom:
        return Missing("undefined", "nothing to measure")
    return value(form, top, bottom)

"""Every figure of a stored run by conversation and strategy, as the sums that it is made of: what comparisons need.

    measured(load("runs/standard"), rows_of, ["claude-sonnet-5"])

The figures are those of `metrics.figures.METRICS`, whatever table of a run they are of, and the bill under some models
as `cost(MODEL)`, with the strategy's own model calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...metrics import figures
from ...metrics.figures import METRICS, OF_ANSWERS, Metric
from ...metrics.value import Form, Missing, Ratio, Summed, Value, value
from ..answers.store import Answered, answered
from ..bill.bill import bill
from ..bill.simulation import Scheme
from ..folder.run import Run

Floats = NDArray[np.float64]
Rows = Callable[[Run, str], pd.DataFrame]
"""The rows of a run's table, with the columns that the figures need."""

ANSWERS = "answers"
"""The table of the figures that there are for each who answered and graded."""
CLOCK = "us"
"""The unit of what is measured by the clock on the wall: another machine has other figures."""
COST_VERSION = 2
KEYS = ["conversation", "strategy"]


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a figure is. Figures of different versions do not compare."""

    unit: str
    better: Literal["lower", "higher", ""]
    form: Form
    version: str


@dataclass(frozen=True)
class MeasuredRun:
    """The figures of a run, or of a baseline."""

    source: str
    """Where they are from: a folder or a file."""
    encoding: str
    digests: Mapping[str, str]
    """Of each conversation."""
    metrics: Mapping[str, About]
    sums: Mapping[str, Mapping[str, Floats]]
    """By strategy and metric: a row a conversation, in the order of `digests`, with the two sums (`metrics/value.py`).
    NaN where there is no number: the strategy failed there, or a price is not known. A ratio that a strategy has
    nowhere is left out."""
    failed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By strategy: the conversations in which it failed, and why."""


def measured(run: Run, rows: Rows, models: Sequence[str] = (), clock: bool = False) -> MeasuredRun:
    """Every figure of a run; those of the clock only if asked for. Raises RunError for a model without a price."""
    conversations = run.table("conversations")
    names = [str(name) for name in conversations.conversation]
    cells = _Cells(names, list(run.manifest["plan"]["strategies"]))
    failed = _failed(run)
    made: dict[str, Floats] = {}
    about: dict[str, About] = {}
    frames: dict[str, pd.DataFrame] = {}
    for name, metric in METRICS.items():
        if metric.table != ANSWERS and (clock or metric.unit != CLOCK):
            if metric.table not in frames:
                frames[metric.table] = rows(run, metric.table)
            made[name] = cells.sums(metric, frames[metric.table])
            about[name] = _about(name, metric, run)
    for each in answered(run).whole:
        for name in OF_ANSWERS:
            made[each.metric(name)] = cells.sums(METRICS[name], each.rows)
            about[each.metric(name)] = _about_answers(name, each)
    for model, (costs, version) in _costs(run, models, cells).items():
        made[f"cost({model})"], about[f"cost({model})"] = costs, About("usd", "lower", "total", version)
    for strategy, those in failed.items():
        for table in made.values():
            table[cells.strategy(strategy), [cells.conversation(each) for each in those]] = np.nan
    sums = {
        strategy: {name: table[at] for name, table in made.items() if _is_anywhere(table[at])}
        for at, strategy in enumerate(cells.strategies)
    }
    digests = dict(zip(names, map(str, conversations.digest), strict=True))
    there = {name for those in sums.values() for name in those}
    known = {name: each for name, each in about.items() if name in there}
    return MeasuredRun(str(run.folder), run.manifest["plan"]["encoding"], digests, known, sums, failed)


class _Cells:
    """The numbers of conversations and of strategies."""

    def __init__(self, conversations: Sequence[str], strategies: Sequence[str]) -> None:
        self.strategies = strategies
        self._conversations = {name: at for at, name in enumerate(conversations)}
        self._strategies = {name: at for at, name in enumerate(strategies)}
        self._shape = (len(strategies), len(conversations))

    def strategy(self, name: str) -> int:
        return self._strategies[name]

    def conversation(self, name: str) -> int:
        return self._conversations[name]

    def sums(self, metric: Metric, rows: pd.DataFrame) -> Floats:
        """Both sums of a figure, by strategy and conversation. Rows of what was not run (bounds) are left out."""
        rows = rows[rows.strategy.isin(self._strategies.keys())]
        if isinstance(metric.of, get_args(Summed)):
            return self._summed(rows, *metric.of.parts(rows))
        made = np.zeros((*self._shape, 2))
        for (name, strategy), these in rows.groupby(KEYS, observed=True, sort=False):
            value = metric.of(these)
            if isinstance(value, (int, float)):
                made[self._strategies[str(strategy)], self._conversations[str(name)]] = value, 1
        return made

    def table(self, rows: pd.DataFrame, values: Sequence[float]) -> Floats:
        """A sum of some values, by strategy and conversation."""
        return self._summed(rows, np.asarray(values), np.ones(len(rows)))

    def _summed(self, rows: pd.DataFrame, *columns: NDArray[np.float64]) -> Floats:
        strategies, conversations = self._shape
        at = _numbers(rows.strategy, self._strategies) * conversations + _numbers(
            rows.conversation, self._conversations
        )
        sums = [np.bincount(at, column.astype(np.float64), strategies * conversations) for column in columns]
        made: Floats = np.stack(sums, axis=-1).reshape(strategies, conversations, 2).astype(np.float64)
        return made


def _numbers(names: pd.Series[str], known: Mapping[str, int]) -> NDArray[np.int64]:
    categories = names.astype("category").cat.remove_unused_categories().cat
    numbers = np.array([known[str(each)] for each in categories.categories], np.int64)
    made: NDArray[np.int64] = numbers[categories.codes.to_numpy()]
    return made


def _about(name: str, metric: Metric, run: Run) -> About:
    form: Form = metric.of.form if isinstance(metric.of, get_args(Summed)) else "ratio"
    version = str(metric.version)
    if name == "overflows":
        version += f", window {run.manifest['window']}"
    return About(metric.unit, metric.better, form, version)


def _about_answers(name: str, of: Answered) -> About:
    """Other answerers and graders, and other versions of them, have figures that do not compare."""
    metric = METRICS[name]
    version = f"{metric.version}, answered by {of.identity}, graded by {of.grader}"
    return About(metric.unit, metric.better, "ratio", version)


def _is_anywhere(sums: Floats) -> bool:
    """Whether a figure is there in any conversation."""
    return bool((sums[:, 1] != 0).any())


def _costs(run: Run, models: Sequence[str], cells: _Cells) -> dict[str, tuple[Floats, str]]:
    """The bill under each model, and the version: prices are part of it."""
    if not models:
        return {}
    schemes = [Scheme(model) for model in dict.fromkeys(models)]
    billed = bill(run, schemes)
    rows = billed.conversations()
    found: dict[str, tuple[Floats, str]] = {}
    for model, these in rows.groupby("model", sort=False):
        prices = hashlib.sha256(repr(billed.prices.tariff(str(model))).encode()).hexdigest()[:8]
        costs = cells.table(these, (these.cost + these.cost_own).tolist())
        found[str(model)] = costs, f"{COST_VERSION}, prices {prices}"
    return found


def _failed(run: Run) -> dict[str, dict[str, str]]:
    cells = run.table("results")
    found: dict[str, dict[str, str]] = {}
    for row in cells[cells.status == "failed"].itertuples():
        found.setdefault(str(row.strategy), {})[str(row.conversation)] = str(row.detail)
    return found


def worst_step(rows: pd.DataFrame, metric: Metric, conversation: str, strategy: str) -> int | None:
    """The step of a cell that weighs most against a figure; None where that is not of a step."""
    if "step" not in rows or not isinstance(metric.of, get_args(Summed)):
        return None
    these = rows[(rows.conversation == conversation) & (rows.strategy == strategy)]
    if these.empty:
        return None
    top, bottom = metric.of.parts(these)
    lacking = isinstance(metric.of, Ratio) and metric.of.form == "ratio" and metric.better == "higher"
    step = these.step.iloc[int(np.argmax(bottom - top if lacking else top))]
    return None if pd.isna(step) else int(step)


def overall(found: MeasuredRun) -> dict[str, dict[str, Value]]:
    """Every figure of each strategy: of the sums that comparisons add up, added up in the same order."""
    apart = uneven(found.failed, len(found.digests))
    common = np.array([name not in apart for name in found.digests], bool)
    there = (name for name in figures.METRICS if name not in figures.OF_ANSWERS)
    names = dict.fromkeys((*found.metrics, *there))
    return {strategy: {name: _figure(found, strategy, name, common) for name in names} for strategy in found.sums}


def uneven(failed: Mapping[str, Any], conversations: int) -> frozenset[str]:
    """Conversations that some strategies finished and some did not. `failed`: by strategy, where it did; one that did
    everywhere does not count."""
    return frozenset(name for each in failed.values() if len(each) < conversations for name in each)


def _figure(found: MeasuredRun, strategy: str, metric: str, common: Any) -> Value:
    if len(found.failed.get(strategy, ())) == len(common):
        return Missing("failed", "in every conversation")
    if not common.any():
        return Missing("undefined", "no conversation that every strategy finished")
    sums = found.sums[strategy].get(metric)
    if sums is None:
        return Missing("undefined", "nothing to measure")
    form = found.metrics[metric].form
    top, bottom = (float(each) for each in sums[common].sum(axis=0))
    if np.isnan(top) or np.isnan(bottom):
        return Missing("unsupported", "a conversation has no number")
    if form != "total" and not bottom:
        return Missing("undefined", "nothing to measure")
    return value(form, top, bottom)

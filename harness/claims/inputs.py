"""Provide what claims are measured on: a stored run, strategies run beside it, scenarios, recordings and traces.

Everything is made once, when the first claim needs it. Strategies that a claim needs and the run lacks are run on the
run's own conversations, into a folder that is removed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ctxbench.metrics.figures import fixed
from ctxbench.metrics.statistics.comparison import Pairs, difference, in_both
from ctxbench.metrics.statistics.intervals import (
    Ends,
    Floats,
    Interval,
    Statistic,
    by_unit,
    mean_of,
    of_share,
    resampled,
)
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Form, Missing
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, independent_units
from ctxbench.scenarios.source import Problems

from ..bill.conversations import conversation_bills
from ..bill.simulation import Scheme
from ..compare.figures import MeasuredRun, measured
from ..engine.plan import Plan, RunInputs, execute
from ..folder.run import Run, load
from ..folder.steps import Rows
from ..models import Settings
from .claim import Claimed, ClaimRow, Measurement, Unit, exact

T = TypeVar("T")

MODELS = ("gpt-5.6", "claude-sonnet-5", "deepseek/deepseek-chat")
"""The billed models: one of each provider that design document 000 names."""
SEEDS, QUICK_SEEDS = 5, 3
"""Samples of generated loads."""


@dataclass
class ClaimInputs:
    """Everything that a claim may be measured on."""

    open: Callable[[], Run]
    """Opens the run, or makes it, when the first claim needs it."""
    read_rows: Rows
    """Reads the rows of a run's table, with the columns that figures need."""
    folder: Path
    """Where runs made for claims go."""
    strategies: tuple[str, ...] = ()
    """Strategies that claims need: the ones that the run lacks are run beside it."""
    recordings: tuple[str, ...] = ()
    """Files and folders of recordings, for the claims that can use them."""
    quick: bool = False
    slow: bool = False
    """Whether to measure what takes many minutes as well."""
    models: Settings = Settings()  # noqa: RUF009
    """The embedder of the search for evidence, and what it may cost."""
    jobs: int = 1
    """Worker processes of the runs that are made for claims."""
    notes: list[str] = field(default_factory=list)
    """Parts of the recordings that could not be read."""
    failures: list[str] = field(default_factory=list)
    """Models that gave no usable reply where a claim cannot be measured without."""
    _made: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def run(self) -> Run:
        """The run that most claims are measured on."""
        return self.open()

    @property
    def seeds(self) -> int:
        """Number of samples of generated loads."""
        return QUICK_SEEDS if self.quick else SEEDS

    @cached_property
    def figures(self) -> MeasuredRun:
        """Every figure of the run by conversation and strategy."""
        return measured(self.run)

    @property
    def units(self) -> Mapping[str, str]:
        """The independent unit of each conversation of the run."""
        return self.run.units

    @cached_property
    def extra_run(self) -> Run | None:
        """A run of the missing strategies on the run's own conversations, or None if none is missing."""
        strategies_run = set(self.run.manifest.plan.strategies)
        missing = [strategy for strategy in _specs(self.strategies) if strategy not in strategies_run]
        # One run for all claims: each run reads the conversations and counts their tokens anew.
        if not missing:
            return None
        if (self.folder / "beside" / "manifest.json").is_file():  # by the process that started this one
            return load(self.folder / "beside")
        return self.run_strategies("beside", tuple(missing), self.conversations)

    def rows(self, run: Run, table: str) -> pd.DataFrame:
        """Return the rows of a run's table, read once: figures, growth and limits are all of the same steps."""
        return self.once(f"rows {run.folder} {table}", lambda: self.read_rows(run, table))

    @cached_property
    def extra_figures(self) -> MeasuredRun | None:
        """The figures of the extra run."""
        return None if self.extra_run is None else measured(self.extra_run)

    def run_of(self, strategy: str) -> Run:
        """Return the run that has a strategy. Raises RunError if no claim names the strategy."""
        (name,) = _specs((strategy,))
        for run in (self.run, self.extra_run):
            if run is not None and name in run.manifest.plan.strategies:
                return run
        raise RunError(f"{strategy} was not run for the claims")

    @cached_property
    def conversations(self) -> list[Conversation]:
        """The conversations of the run."""
        return list(self.run.conversations())

    @cached_property
    def recorded(self) -> list[Conversation]:
        """The conversations of the given recordings, empty if none were given. Raises RunError if none can be read."""
        if not self.recordings:
            return []
        problems = Problems()
        conversations = list(RunInputs(self.recordings).open(problems).conversations())
        if not conversations:
            why = problems.errors[0] if problems.errors else "nothing there is a recording"
            raise RunError(str(why))
        self.notes += [f"left out: {problem}" for problem in problems.errors]
        return conversations

    @cached_property
    def counter(self) -> TokenCounter:
        """A token counter in the run's encoding."""
        return TokenCounter(self.run.manifest.plan.encoding)

    def bills(self, strategy: str) -> pd.DataFrame:
        """Return the bills of a strategy under MODELS: a row per conversation and model (`Billed.conversations`)."""
        run = self.run_of(strategy)
        bills = self.once(f"bills {run.folder}", lambda: conversation_bills(run, [Scheme(model) for model in MODELS]))
        return bills[bills.strategy.astype(str) == strategy]

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what several claims share, made by the first of them."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]  # type: ignore[no-any-return]

    @property
    def of(self) -> str:
        """The sample that the run's intervals are over."""
        size, units = len(self.figures.digests), len(set(units_in(self.figures)))
        independent = "" if units == size else f", {units:,} independent unit{'s' if units != 1 else ''}"
        return f"{size:,} conversation{'s' if size != 1 else ''}{independent}"

    def run_strategies(
        self, name: str, strategies: tuple[str, ...], conversations: Sequence[Conversation], *, answers: bool = False
    ) -> Run:
        """Run strategies on conversations now, into a folder of their own."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{name}.jsonl"
        file.write_bytes(b"".join(conversation.to_json() + b"\n" for conversation in conversations))
        plan = Plan(RunInputs((str(file),), form="ctxbench"), strategies, self.counter.encoding, answers=answers)
        # Results do not depend on the number of workers, and no claim reads a latency of such a run.
        execute(plan, self.folder / name, jobs=self.jobs)
        return load(self.folder / name)


def units_among(conversations: Sequence[Conversation]) -> list[str]:
    """Return the independent unit of each of some conversations."""
    units = independent_units({conversation.id: conversation.meta for conversation in conversations})
    return [units[conversation.id] for conversation in conversations]


def _specs(strategies: Sequence[str]) -> list[str]:
    """Return strategies as a run names them, without repetition."""
    from ctxbench.strategies.chain import parse, spec

    return list(dict.fromkeys(spec(parse(strategy)) for strategy in strategies))


def of_sums(sums: Floats, form: Form, units: Sequence[str] | None = None) -> Interval | Missing:
    """Return a figure with its interval over independent units, from what each conversation (a row) adds to its sums.

    Without `units` each is its own, as the samples of a load that a claim describes.

    Conversations in which there is nothing to measure are left out.
    """
    if form == "total":
        raise ValueError("a total has no interval over conversations")
    has_any = np.isfinite(sums).all(axis=1) & (sums[:, 1] != 0)
    if not has_any.any():
        return Missing("undefined", "there is nothing to measure")
    measurable = sums[has_any]
    if units is not None:
        measurable = by_unit(measurable, [unit for unit, here in zip(units, has_any, strict=True) if here])

    def statistic(totals: Floats) -> Floats:
        mean = mean_of(totals)
        return 1 - mean if form == "saving" else mean

    return over_conversations(measurable, statistic, *_possible(measurable, form))


def over_conversations(
    table: Floats, statistic: Statistic, least: float = -np.inf, most: float = np.inf
) -> Interval | Missing:
    """Return a statistic of column sums with its interval over units (rows), cut off at what is possible.

    A share of 0 or 1 is so in every unit: its interval is Wilson's for as many trials (`of_share`).
    """
    value = float(statistic(table.sum(axis=0)))
    # Student's interval, the wider one of few conversations, may reach past what is possible.
    resamples = resampled(table, statistic)
    if isinstance(resamples, Missing):
        return Interval(value, resamples, resamples)
    ends = resamples.interval(least=least if most == np.inf else -np.inf)
    if (least, most) == (0.0, 1.0):
        share = of_share(value, ends, len(table))
        return Interval(value, *(share if isinstance(share, Ends) else (share, share)))
    return Interval(value, max(least, ends.low), min(most, ends.high))


def _possible(sums: Floats, form: Form) -> tuple[float, float]:
    """Return the range that the figure must lie in: a share is never over 1, a time never below 0."""
    if (sums < 0).any():  # an error, which has two directions
        return -np.inf, np.inf
    # Both sums are counts or times: if the upper is never over the
    # lower one, it is a share of it. 1 - x turns the ends over.
    low, high = 0.0, 1.0 if (sums[:, 0] <= sums[:, 1]).all() else np.inf
    return (1 - high, 1 - low) if form == "saving" else (low, high)


def sums_of(inputs: ClaimInputs, strategy: str, metric: str) -> tuple[MeasuredRun, Floats] | Missing:
    """Return the two sums of a figure by conversation, and the run's figures that they belong to."""
    figures = inputs.figures if strategy in inputs.figures.sums else inputs.extra_figures
    if figures is None or strategy not in figures.sums:
        return Missing("unsupported", f"{strategy} was not run")
    if metric not in figures.sums[strategy]:
        return Missing("undefined", f"there is no {metric} under {strategy}")
    return figures, figures.sums[strategy][metric]


def of_metric(inputs: ClaimInputs, strategy: str, metric: str) -> Interval | Missing:
    """Return one of the run's own figures (`metrics.figures.METRICS`)."""
    figures_and_sums = sums_of(inputs, strategy, metric)
    if isinstance(figures_and_sums, Missing):
        return figures_and_sums
    figures, sums = figures_and_sums
    interval = of_sums(sums, figures.metrics[metric].form, units_in(figures))
    if not isinstance(interval, Missing) and interval.mean == fixed(metric, strategy):
        return exact(interval.mean)
    return interval


def against(inputs: ClaimInputs, strategy: str, base: str, metric: str) -> Interval | Missing:
    """Return how much more a strategy has of a figure than another, in pairs of conversations."""
    one, other = sums_of(inputs, strategy, metric), sums_of(inputs, base, metric)
    if isinstance(one, Missing):
        return one
    if isinstance(other, Missing):
        return other
    return paired(other[1], one[1], one[0].metrics[metric].form, units_in(one[0]))


def units_in(figures: MeasuredRun) -> list[str]:
    """Return the independent unit of each conversation, in the order of the run."""
    return [figures.units.get(name, name) for name in figures.digests]


def paired(before: Floats, after: Floats, form: Form, units: Sequence[str]) -> Interval | Missing:
    """Return after less before, over the conversations that both sides have."""
    both = in_both(before, after)
    units = [unit for unit, here in zip(units, both, strict=True) if here]
    moved = difference(Pairs(form, before[both], after[both], units))
    if isinstance(moved.value, Missing):
        return moved.value
    if moved.nothing:
        still = Missing("undefined", "in no conversation did anything move")
        return Interval(0.0, still, still)
    if isinstance(moved.shown, Missing):
        return Interval(float(moved.value), moved.shown, moved.shown)
    return Interval(float(moved.value), *moved.shown)


def row(
    inputs: ClaimInputs,
    strategy: str,
    metric: str,
    figure: str,
    claimed: Claimed | None,
    *,
    unit: Unit = "share",
    decides: bool = True,
) -> ClaimRow:
    """Return a figure of a strategy as a row."""
    value = of_metric(inputs, strategy, metric)
    return ClaimRow(
        setting=strategy, figure=figure, unit=unit, found=value, claimed=claimed, of=inputs.of, decides=decides
    )


def by_kind(inputs: ClaimInputs, strategy: str, metric: str, figure: str, claimed: Claimed | None) -> list[ClaimRow]:
    """Return the figure by kind of scenario: the part of a conversation's name before the slash. None decides."""
    figures_and_sums = sums_of(inputs, strategy, metric)
    if isinstance(figures_and_sums, Missing):
        return []
    figures, sums = figures_and_sums
    kinds = [name.partition("/")[0] if "/" in name else "" for name in figures.digests]
    form, units = figures.metrics[metric].form, units_in(figures)
    rows = []
    for kind in dict.fromkeys(kind for kind in kinds if kind):
        which = np.array([name == kind for name in kinds])
        rows.append(
            ClaimRow(
                setting=f"{strategy} · {kind}",
                figure=figure,
                found=of_sums(sums[which], form, [unit for unit, here in zip(units, which, strict=True) if here]),
                claimed=claimed,
                of=f"{int(which.sum())} conversations",
                decides=False,
            )
        )
    return rows


def of_groups(
    values: Sequence[tuple[float, float]], form: Form = "ratio", units: Sequence[str] | None = None
) -> Interval | Missing:
    """Return a ratio of sums from one (upper, lower) pair per conversation (`of_sums`)."""
    return of_sums(np.array(values, np.float64).reshape(-1, 2), form, units)


def never_or_always(found: Interval | Missing) -> Interval | Missing:
    """Return the figure of a claim of "never" or "always" as exact, unless it has no interval.

    Such a claim is of all that was measured: one exception refutes it, and no number of units would prove it.
    """
    if isinstance(found, Missing) or isinstance(found.low, Missing):
        return found
    return exact(found.mean)


Measures = Mapping[str, tuple[Callable[[ClaimInputs], Measurement], tuple[str, ...]]]
"""By a claim's number: what measures it, and the strategies that must have been run on the run's own conversations."""

"""Provide what claims are measured on: a stored run, strategies run beside it, other sets, scenarios and recordings.

Everything is made once, when the first claim needs it. Strategies that a claim needs and the run lacks are run on the
run's own conversations, into a folder that is removed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pandas as pd

from ctxbench.metrics.prices import BUNDLED
from ctxbench.metrics.statistics.intervals import Floats, Interval, by_unit, mean_of, over_units
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Form, Missing
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, independent_units
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.chain import parse, spec

from ..bill.bill import conversation_bills
from ..bill.simulation import Scheme
from ..compare.figures import MeasuredRun, measured
from ..engine.plan import Plan, RunInputs, execute
from ..folder.run import Run, load, steps_of
from ..models import Settings

T = TypeVar("T")
MODELS = ("gpt-5.6", "claude-sonnet-5", "deepseek/deepseek-chat")
"""The billed models: one of each provider that design document 000 names."""


class ClaimSettings(msgspec.Struct, frozen=True):
    """Settings of a measurement of claims, as a worker gets them."""

    folder: str
    """Where runs made for claims go."""
    run: str = ""
    """The folder of the run; empty = a run of `standard` made for the claims."""
    strategies: tuple[str, ...] = ()
    """Strategies that claims need: the ones that the run lacks are run beside it."""
    recordings: tuple[str, ...] = ()
    """Files and folders of recordings, for the claims that can use them."""
    quick: bool = False
    slow: bool = False
    """Whether to measure what takes many minutes as well."""
    models: Settings = Settings()
    """The embedder of the search for evidence, and what it may cost."""
    jobs: int = 1
    """Worker processes of the runs that are made for claims. Results do not depend on it."""


class ClaimInputs:
    """Everything that a claim may be measured on."""

    def __init__(self, settings: ClaimSettings) -> None:
        self.settings = settings
        self.notes: list[str] = []
        """Parts of the recordings that could not be read."""
        self.failures: list[str] = []
        """Models that gave no usable reply where a claim cannot be measured without."""
        self._made: dict[str, Any] = {}

    @property
    def seeds(self) -> int:
        """Number of samples of generated loads."""
        return 3 if self.settings.quick else 5

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what several claims share, made by the first of them."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]  # type: ignore[no-any-return]

    @cached_property
    def run(self) -> Run:
        """The run that most claims are measured on."""
        if self.settings.run:
            return load(Path(self.settings.run))
        strategies, folder = self.settings.strategies or ("none",), Path(self.settings.folder) / "standard"
        execute(Plan(RunInputs(("standard",)), strategies), folder, jobs=self.settings.jobs)
        return load(folder)

    @cached_property
    def extra_run(self) -> Run | None:
        """A run of the missing strategies on the run's own conversations, or None if none is missing."""
        strategies = dict.fromkeys(spec(parse(strategy)) for strategy in self.settings.strategies)
        # One run for all claims: each run reads the conversations and counts their tokens anew.
        missing = [strategy for strategy in strategies if strategy not in self.run.manifest.plan.strategies]
        if not missing:
            return None
        folder = Path(self.settings.folder) / "beside"
        if (folder / "manifest.json").is_file():  # by the process that started this one
            return load(folder)
        return self.run_strategies(folder.name, missing, self.conversations)

    @cached_property
    def figures(self) -> MeasuredRun:
        """Every figure of the run by conversation and strategy."""
        return measured(self.run)

    @cached_property
    def extra_figures(self) -> MeasuredRun | None:
        """The figures of the extra run."""
        return None if self.extra_run is None else measured(self.extra_run)

    def run_of(self, strategy: str) -> Run:
        """Return the run that has a strategy. Raises RunError if no claim names the strategy."""
        for run in (self.run, self.extra_run):
            if run is not None and spec(parse(strategy)) in run.manifest.plan.strategies:
                return run
        raise RunError(f"{strategy} was not run for the claims")

    def steps(self, strategy: str, run: Run | None = None) -> pd.DataFrame:
        """Return the steps of a strategy, in the run that has it if none is given, with the columns of figures."""
        run = run or self.run_of(strategy)
        rows = self.once(f"steps {run.folder}", lambda: steps_of(run))
        return rows[rows.strategy.astype(str) == strategy]

    def bills(self, strategy: str, model: str) -> pd.DataFrame:
        """Return the bills of a strategy under one of MODELS: a row per conversation (`Billed.conversations`)."""
        run = self.run_of(strategy)
        bills = self.once(f"bills {run.folder}", lambda: conversation_bills(run, list(map(Scheme, MODELS)), BUNDLED))
        return bills[(bills.strategy.astype(str) == strategy) & (bills.model == model)]

    @cached_property
    def conversations(self) -> list[Conversation]:
        """The conversations of the run."""
        return list(self.run.conversations())

    @cached_property
    def recorded(self) -> list[Conversation]:
        """The conversations of the given recordings, empty if none were given. Raises RunError if none can be read."""
        if not self.settings.recordings:
            return []
        problems = Problems()
        conversations = list(RunInputs(self.settings.recordings).open(problems).conversations())
        if not conversations:
            raise RunError(str(problems.errors[0] if problems.errors else "nothing there is a recording"))
        self.notes += [f"left out: {problem}" for problem in problems.errors]
        return conversations

    @cached_property
    def counter(self) -> TokenCounter:
        """A token counter in the run's encoding."""
        return TokenCounter(self.run.manifest.plan.encoding)

    @property
    def of(self) -> str:
        """The sample that the run's intervals are over."""
        size, units = len(self.figures.digests), len(set(units_in(self.figures)))
        independent = "" if units == size else f", {units:,} independent unit{'s' if units != 1 else ''}"
        return f"{size:,} conversation{'s' if size != 1 else ''}{independent}"

    def run_strategies(
        self, name: str, strategies: Sequence[str], conversations: Iterable[Conversation], *, answers: bool = False
    ) -> Run:
        """Run strategies on conversations now, into a folder of their own."""
        folder = Path(self.settings.folder) / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = folder.with_suffix(".jsonl")
        file.write_bytes(b"".join(conversation.to_json() + b"\n" for conversation in conversations))
        plan = Plan(RunInputs((str(file),), form="ctxbench"), tuple(strategies), self.counter.encoding, answers=answers)
        execute(plan, folder, jobs=self.settings.jobs)
        return load(folder)


def units_among(conversations: Sequence[Conversation]) -> list[str]:
    """Return the independent unit of each of some conversations."""
    units = independent_units({conversation.id: conversation.meta for conversation in conversations})
    return [units[conversation.id] for conversation in conversations]


def units_in(figures: MeasuredRun) -> list[str]:
    """Return the independent unit of each conversation, in the order of the run."""
    return [figures.units.get(name, name) for name in figures.digests]


def of_sums(
    sums: Floats | Sequence[tuple[float, float]], form: Form = "ratio", units: Sequence[Hashable] | None = None
) -> Interval | Missing:
    """Return a figure with its interval over independent units, from what each conversation (a row) adds to its sums.

    Without `units` each conversation is its own, as the samples of a load that a claim describes. Conversations in
    which there is nothing to measure are left out.
    """
    sums = np.asarray(sums, np.float64).reshape(-1, 2)
    has_any = np.isfinite(sums).all(axis=1) & (sums[:, 1] != 0)
    if not has_any.any():
        return Missing("undefined", "there is nothing to measure")
    measurable = sums[has_any]
    if units is not None:
        measurable = by_unit(measurable, [unit for unit, here in zip(units, has_any, strict=True) if here])

    def statistic(totals: Floats) -> Floats:
        return 1 - mean_of(totals) if form == "saving" else mean_of(totals)

    if (measurable < 0).any():  # an error, which has two directions
        return over_units(measurable, statistic)
    # Both sums are counts or times: if the upper is never over the lower one, it is a share of it, and at most 1; a
    # time is never below 0. 1 - x turns the ends over.
    most = 1.0 if (measurable[:, 0] <= measurable[:, 1]).all() else np.inf
    return over_units(measurable, statistic, *((1 - most, 1.0) if form == "saving" else (0.0, most)))

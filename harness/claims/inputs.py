"""Provide what claims are measured on: a stored run, strategies run beside it, other sets, scenarios and recordings.

Everything is made once, when the first claim needs it. Strategies that a claim needs and the run lacks are run on the
run's own conversations, into a folder that is removed again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import pandas as pd

from ctxbench.metrics.prices import BUNDLED
from ctxbench.metrics.statistics.intervals import Floats, Interval, by_unit, mean_of, over_units
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Form, Missing
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Message, ToolCall, independent_units
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.chain import parse, spec

from ..bill.bill import conversation_bills
from ..bill.simulation import Scheme
from ..compare.figures import MeasuredRun, measured
from ..engine.plan import Plan, RunInputs, execute, written_to
from ..folder.run import Run, load, steps_of
from ..models import Settings

T = TypeVar("T")
MODELS = ("gpt-5.6", "claude-sonnet-5", "deepseek/deepseek-chat")
"""The billed models: one of each provider that design document 000 names."""


class ClaimSettings(msgspec.Struct, frozen=True):
    """Settings of a measurement of claims, as a worker gets them."""

    folder: str  # where runs made for claims go
    run: str = ""  # the folder of the run; empty = a run of `standard` made for the claims
    strategies: tuple[str, ...] = ()  # strategies that claims need: the ones that the run lacks are run beside it
    recordings: tuple[str, ...] = ()  # files and folders of recordings, for the claims that can use them
    quick: bool = False
    slow: bool = False  # whether to measure what takes many minutes as well
    models: Settings = Settings()  # the embedder of the search for evidence, and what it may cost
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
        folder = Path(self.settings.folder) / "standard"
        execute(Plan(RunInputs(("standard",)), self.settings.strategies or ("none",)), folder, jobs=self.settings.jobs)
        return load(folder)

    @cached_property
    def extra_run(self) -> Run | None:
        """A run of the missing strategies on the run's own conversations, or None if none is missing."""
        # One run for all claims: each run reads the conversations and counts their tokens anew.
        strategies = dict.fromkeys(spec(parse(strategy)) for strategy in self.settings.strategies)
        missing = [strategy for strategy in strategies if strategy not in self.run.manifest.plan.strategies]
        return self._run_beside("beside", missing, self.conversations) if missing else None

    def run_of(self, strategy: str, on: str = "run") -> Run:
        """Return the run that has a strategy, on the run's conversations or one of SETS. Raises RunError."""
        if on != "run":
            _, strategies, answers, _ = SETS[on]
            conversations = self.conversations_of(on)
            return self.once(f"run on {on}", lambda: self._run_beside(on, strategies, conversations, answers))
        for run in (self.run, self.extra_run):
            if run is not None and spec(parse(strategy)) in run.manifest.plan.strategies:
                return run
        raise RunError(f"{strategy} was not run for the claims")

    def figures_of(self, strategy: str, on: str = "run") -> MeasuredRun:
        """Return every figure of the run that has a strategy, by conversation."""
        run = self.run_of(strategy, on)
        return self.once(f"figures of {run.folder}", lambda: measured(run))

    def steps(self, strategy: str, on: str = "run") -> pd.DataFrame:
        """Return the steps of a strategy with the columns of figures."""
        run = self.run_of(strategy, on)
        rows = self.once(f"steps of {run.folder}", lambda: steps_of(run))
        return rows[rows.strategy.astype(str) == spec(parse(strategy))]

    def costs(self, strategy: str, model: str, base: str = "cost") -> dict[str, float]:
        """Return the cost by conversation under one of MODELS, own model calls too; `uncached`: without a cache."""
        run = self.run_of(strategy)
        bills = self.once(f"bills of {run.folder}", lambda: conversation_bills(run, list(map(Scheme, MODELS)), BUNDLED))
        bills = bills[(bills.strategy.astype(str) == spec(parse(strategy))) & (bills.model == model)]
        amounts = bills[base] + bills.cost_own
        return dict(zip(bills.conversation.astype(str), amounts.astype(float), strict=True))

    @cached_property
    def conversations(self) -> list[Conversation]:
        """The conversations of the run."""
        return list(self.run.conversations())

    def conversations_of(self, on: str) -> Sequence[Conversation]:
        """Return the conversations of one of SETS."""
        return self.once(f"conversations of {on}", lambda: SETS[on].make(self))

    @cached_property
    def recorded(self) -> list[Conversation]:
        """The conversations of the given recordings, empty if none were given. Raises RunError if none can be read."""
        if not self.settings.recordings:
            return []
        problems = Problems()
        conversations = RunInputs(self.settings.recordings).conversations(problems)
        self.notes += [f"left out: {problem}" for problem in problems.errors]
        return conversations

    @cached_property
    def counter(self) -> TokenCounter:
        """A token counter in the run's encoding."""
        return TokenCounter(self.run.manifest.plan.encoding)

    @cached_property
    def names(self) -> list[str]:
        """The names of the run's conversations."""
        return list(map(str, self.run.table("conversations").conversation))

    def units(self, names: Iterable[str], on: str = "run") -> list[str]:
        """Return the independent unit of each conversation of the run, or of one of SETS: a sample is its own."""
        if on != "run" and SETS[on].is_sample:
            return list(names)
        units = (self.run if on == "run" else self.run_of("none", on)).units
        return [units.get(name, name) for name in names]

    @property
    def of(self) -> str:
        """The sample that the run's intervals are over."""
        size, units = len(self.names), len(set(self.units(self.names)))
        independent = "" if units == size else f", {units:,} independent unit{'s' if units != 1 else ''}"
        return f"{size:,} conversation{'s' if size != 1 else ''}{independent}"

    def _run_beside(
        self, name: str, strategies: Sequence[str], conversations: Iterable[Conversation], answers: bool = False
    ) -> Run:
        folder = Path(self.settings.folder) / name
        if not (folder / "manifest.json").is_file():  # else it was made by the process that started this one
            inputs = written_to(folder.with_suffix(".jsonl"), conversations)
            plan = Plan(inputs, tuple(strategies), self.counter.encoding, answers=answers)
            execute(plan, folder, jobs=self.settings.jobs)
        return load(folder)


class ConversationSet(NamedTuple):
    """Conversations beside the run's, and what is run on them."""

    make: Callable[[ClaimInputs], Sequence[Conversation]]
    strategies: tuple[str, ...]
    answers: bool = False
    is_sample: bool = True
    """Whether the conversations are samples of a load that the claim describes, each a unit of its own."""


TURNS, CHARACTERS = 10, 50_000  # the load of 001 §5: ten turns, each with a tool result of 50,000 characters


def loads(seeds: int) -> Iterator[Conversation]:
    """Yield the load of 001 §5 by seeds: texts of the documentation scenario in Chinese, cut to the document's size."""
    chinese = [conversation for conversation in scenario("docs_qa") if conversation.language == "zh"]
    results = (message for conversation in chinese for message in conversation.messages if message.role == "tool")
    pages = "".join(message.text for message in results)
    for seed in range(seeds):
        start = seed * len(pages) // seeds
        stream = (pages[start:] + pages[:start]) * math.ceil(TURNS * CHARACTERS / len(pages))
        messages: list[Message] = [Message("s", "system", "你是文档助手。")]
        for turn in range(TURNS):
            text = stream[turn * CHARACTERS : (turn + 1) * CHARACTERS]
            call = ToolCall(f"c{turn}", "search_docs", json.dumps({"query": f"第{turn + 1}个问题"}, ensure_ascii=False))
            messages += [
                Message(f"u{turn}", "user", f"请查第{turn + 1}个问题。"),
                Message(f"a{turn}", "assistant", "", calls=(call,)),
                Message(f"t{turn}", "tool", text, answers=call.id, name="search_docs"),
                Message(f"r{turn}", "assistant", "已查到,见上。"),
            ]
        yield Conversation(f"archive_load/{seed}", tuple(messages))


LONG = 10_000  # characters from which a result is archived (001 §3.4)


def has_long_result(conversation: Conversation) -> bool:
    """Return whether a conversation has a tool result that is long enough to be archived."""
    return any(message.role == "tool" and len(message.text) > LONG for message in conversation.messages)


SETS: Mapping[str, ConversationSet] = {
    "mem_001": ConversationSet(lambda _: list(scenario("mem_001")), ("none", "focus", "tiered"), answers=True),
    "archive_load": ConversationSet(lambda inputs: list(loads(inputs.seeds)), ("none", "archive")),
    "recorded": ConversationSet(
        lambda inputs: list(filter(has_long_result, inputs.recorded)), ("none", "archive"), is_sample=False
    ),
}


def units_among(conversations: Sequence[Conversation]) -> list[str]:
    """Return the independent unit of each of some conversations."""
    units = independent_units({conversation.id: conversation.meta for conversation in conversations})
    return [units[conversation.id] for conversation in conversations]


def of_sums(
    sums: Floats | Sequence[tuple[float, float]],
    form: Form = "ratio",
    units: Sequence[Hashable] | None = None,
    nothing: str = "there is nothing to measure",
) -> Interval | Missing:
    """Return a figure with its interval over independent units, from what each conversation (a row) adds to its sums.

    Without `units` each conversation is its own, as the samples of a load that a claim describes. Conversations in
    which there is nothing to measure are left out; `nothing` is the reason where that is so in all.
    """
    sums = np.asarray(sums, np.float64).reshape(-1, 2)
    has_any = np.isfinite(sums).all(axis=1) & (sums[:, 1] != 0)
    if not has_any.any():
        return Missing("undefined", nothing)
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

"""Measure the rows of `claims.toml`: a figure of a strategy or cache policy on a set, alone or against another.

They are measured on a stored run, strategies run beside it, other sets, scenarios and recordings. Everything is made
once, when the first claim needs it. Strategies that a claim needs and the run lacks are run on the run's own
conversations, into a folder that is removed again.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
import pandas as pd
from msgspec.structs import replace

from ctxbench.metrics.figures import fixed
from ctxbench.metrics.models import prices_version
from ctxbench.metrics.prices import BUNDLED
from ctxbench.metrics.probes import recall
from ctxbench.metrics.statistics.comparison import Pairs, difference, in_both
from ctxbench.metrics.statistics.intervals import Floats, Interval, by_unit, mean_of, of_seeds, over_units
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Form, Missing, Value
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Message, ToolCall, independent_units
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.chain import parse, spec
from ctxbench.strategies.tiers.tiered.tiers import WORKING_TOKENS
from ctxbench.strategies.tiers.working.traces import TRACES

from .. import cache
from ..answers.store import USUAL, answered
from ..bill.bill import conversation_bills
from ..bill.simulation import Scheme
from ..compare.figures import MeasuredRun, measured
from ..engine.plan import Plan, RunInputs, execute, written_to
from ..folder.files import file_digests
from ..folder.run import Run, load, steps_of
from ..folder.store import ANSWERS
from ..models import Settings
from ..probes import FLOOR
from ..tier_bench.working import Bounds, Load, bounds, policy_row
from .claim import Measured, exact, exactly

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
        """Return a result that several claims share; the first claim computes it."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]  # type: ignore[no-any-return]

    def load(self, name: str, accesses: int = 0) -> Load:
        """Return the samples of a generated load, of so many accesses, or of its own number."""
        make = partial(TRACES[name], length=accesses) if accesses else TRACES[name]
        return self.once(f"load {name} {accesses}", lambda: Load(name, [make(seed) for seed in range(self.seeds)]))

    def bounds(self, name: str, accesses: int = 0, capacity: int = WORKING_TOKENS) -> Bounds:
        """Return the bounds on every policy on a generated load."""
        of = self.load(name, accesses)
        return self.once(f"bounds of {name} of {accesses}, {capacity}", lambda: bounds(of, capacity))

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
        # Where the run has the floor as a strategy this one has it too: then both ask the same bounds, once.
        floor = [FLOOR] if FLOOR in self.run.manifest.plan.strategies else []
        return self._run_beside("beside", [*floor, *missing], self.conversations) if missing else None

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
        """Return all figures by conversation, of the run that contains a strategy."""
        run = self.run_of(strategy, on)
        return self.once(f"figures of {run.folder}", lambda: measured(run))

    def steps(self, strategy: str, on: str = "run") -> pd.DataFrame:
        """Return the steps of a strategy, with the columns that figures need."""
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

    @cached_property
    def basis(self) -> str:
        """The digest of what figures without a clock rest on; empty where that is not known by content."""
        settings = self.settings
        if settings.recordings or settings.models.embedder != "offline" or not (settings.run or settings.strategies):
            return ""
        folder = self.run.folder
        paths = (path for table in ANSWERS for path in (folder / table).rglob("*.parquet"))
        answers = file_digests(folder, sorted(path.relative_to(folder).as_posix() for path in paths))
        return cache.basis("claims", self.run.manifest.blake2b, f"{answers} {settings.quick}", prices_version())

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
    """Return whether a conversation has a tool result long enough to archive."""
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


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One setting of a claim, as `claims.toml` has it."""

    figure: str  # the key of its figure among those of the claim
    strategy: str = ""  # a strategy as a run names it, or a recipe's name
    metric: str = ""  # a key of METRICS
    against: str = ""  # a strategy, or cache policy, to take the difference to, in pairs of conversations or seeds
    on: str = "run"  # the run, or one of SETS
    per: Literal["", "call", "conversation", "turn"] = ""
    """Count the metric as a share of calls, or of the conversations that have any of it; count turns, not calls."""
    setting: str = ""  # the setting in words, where they are not its strategies
    exactly: bool = False
    """Whether one exception refutes it, as in "never": then the figure is exact, if there are units enough."""
    by_kind: bool = False  # whether to show the figure of each kind of conversation beside it
    optional: bool = False  # whether to leave the row out where the run has no such figure
    unless: str = ""  # a metric in whose place this row stands: it is left out where the run has that one
    under: int = 0  # count the calls, or the turns with all their calls, of fewer tokens than this
    over: int = 0  # count those of more
    event: str = ""  # count those at which this happened
    turn: int = 0  # compare the tokens of the calls of this turn with those of the whole history
    model: str = ""  # bill the strategy under this model, with its own model calls, or under `each` of MODELS
    uncached: bool = False  # whether the strategy is billed without a cache, too
    base: Literal["cost", "uncached"] = "uncached"
    """Base of a bill: the bill of `against`, or of the same requests without a cache."""
    recalled: int = 0  # take the share of the evidence among the first so many facts that were injected for a probe
    loaded: Literal["", "f1", "precision", "recall"] = ""
    """Take a figure of the archived results that were loaded for a probe; the strategy may be `model`."""
    policy: str = ""  # take the hit rate of this cache policy on `load`
    load: str = ""  # a generated trace, of `accesses` (its own number, if 0) in a cache of `capacity` tokens
    accesses: int = 0
    capacity: int = WORKING_TOKENS
    seconds: bool = False  # whether to take the time of the policy over that of the other, not its hit rate


class Sample(NamedTuple):
    """The summands of a figure: what each conversation adds to its two sums."""

    sums: Floats | Missing
    form: Form
    of: str
    names: Sequence[str] = ()  # the conversations, a row each


def measure_row(row: Row, inputs: ClaimInputs) -> list[Measured]:
    """Measure a row, with its kinds of conversations; return nothing where it is left out."""
    if row.policy:
        return [_of_policy(row, inputs)]
    if row.on != "run" and not inputs.conversations_of(row.on):
        return []
    if row.model == "each":
        every = (replace(row, model=model, setting=f"{model}, {row.setting}") for model in MODELS)
        return [found for each in every for found in measure_row(each, inputs)]
    setting = row.setting or (f"{row.strategy} − {row.against}" if row.against else row.strategy)
    if row.unless and not isinstance(_of_metric(row, row.strategy, inputs, row.unless).sums, Missing):
        return []
    ways: dict[Callable[[Row, str, ClaimInputs], Sample], object] = {
        _of_bill: row.model,
        _at_turn: row.turn,
        _of_calls: row.under or row.over or row.event,
        _of_recalled: row.recalled,
        _of_loads: row.loaded,
    }
    measure = next((way for way, asked in ways.items() if asked), _of_metric)
    sums, form, of, names = measure(row, row.strategy, inputs)
    if isinstance(sums, Missing):
        return [] if row.optional else [Measured(row.figure, setting, sums, of)]
    units = inputs.units(names, row.on)
    if row.against and not row.model:
        other = measure(row, row.against, inputs).sums
        paired = other if isinstance(other, Missing) else _paired(other, sums, form, units)
        return [Measured(row.figure, setting, paired, of)]
    found = of_sums(sums, form, units)
    if row.metric and not row.per and isinstance(found, Interval) and found.mean == fixed(row.metric, row.strategy):
        found = exact(found.mean)
    rows = [Measured(row.figure, setting, exactly(found) if row.exactly else found, of)]
    kinds = [name.partition("/")[0] for name in names if row.by_kind and "/" in name]
    for kind in dict.fromkeys(kinds):
        places = [place for place, name in enumerate(names) if name.startswith(f"{kind}/")]
        found = of_sums(sums[places], form, [units[place] for place in places])
        rows.append(Measured(row.figure, f"{setting} · {kind}", found, f"{len(places)} conversations"))
    return rows


def _paired(before: Floats, after: Floats, form: Form, units: Sequence[str]) -> Interval | Missing:
    """Return after less before, over the conversations that both sides have."""
    both = in_both(before, after)
    units = [unit for unit, here in zip(units, both, strict=True) if here]
    moved = difference(Pairs(form, before[both], after[both], units))
    if isinstance(moved.value, Missing):
        return moved.value
    if moved.nothing:
        still = Missing("undefined", "in no conversation did anything move")
        return Interval(0.0, still, still)
    ends = (moved.shown, moved.shown) if isinstance(moved.shown, Missing) else moved.shown
    return Interval(float(moved.value), *ends)


def _of_metric(row: Row, strategy: str, inputs: ClaimInputs, metric: str = "") -> Sample:
    """Return the sums of a metric."""
    metric, figures = metric or row.metric, inputs.figures_of(strategy, row.on)
    sums_by_metric = figures.sums[strategy]
    if metric not in sums_by_metric:
        return Sample(Missing("undefined", f"there is no {metric} under {strategy}"), "ratio", inputs.of)
    sums, form = sums_by_metric[metric], figures.metrics[metric].form
    if row.per == "call":
        sums, form = np.column_stack([sums[:, 0], sums_by_metric["steps"][:, 0]]), "ratio"
    elif row.per:
        sums, form = np.column_stack([sums[:, 0] > 0, np.ones(len(sums))]), "ratio"
    return Sample(sums, form, inputs.of if row.on == "run" else f"{len(sums)} conversations", list(figures.digests))


def _of_calls(row: Row, strategy: str, inputs: ClaimInputs) -> Sample:
    """Count calls, or turns with all their calls, of all."""
    steps = inputs.steps(strategy, row.on)
    if steps.empty:
        return Sample(Missing("failed", f"{strategy} finished no conversation"), "ratio", "")
    by = ["conversation", "turn" if row.per == "turn" else "step"]
    calls = steps.groupby(by, observed=True).tokens_sent.sum().reset_index()
    counts: Any
    if row.event:
        events = inputs.run_of(strategy, row.on).table("events")
        events = events[(events.kind == row.event) & (events.strategy.astype(str) == strategy)]
        tables = (events, calls)
        happened, called = (pd.MultiIndex.from_frame(rows[by].astype({"conversation": str})) for rows in tables)
        counts = called.isin(happened)
    else:
        counts = calls.tokens_sent > row.over if row.over else calls.tokens_sent < row.under
    sums = calls.assign(counts=counts).groupby("conversation", observed=True).counts.agg(["sum", "count"])
    of = f"{len(steps):,} calls of {len(sums)} conversations"
    return Sample(sums.to_numpy(float), "ratio", of, list(map(str, sums.index)))


def _at_turn(row: Row, strategy: str, inputs: ClaimInputs) -> Sample:
    """Compare the tokens of a turn's calls, with the strategy's own, with those of the whole history.

    It takes a mean of each conversation's calls: a turn of many calls would otherwise count for more than one of few.
    """
    steps = inputs.steps(strategy)
    steps = steps[steps.turn == row.turn].assign(spent=lambda rows: rows.tokens_sent + rows.own_tokens)
    means = steps.groupby("conversation", observed=True)[["spent", "tokens_full"]].mean()
    return Sample(means.to_numpy(float), "saving", f"{len(means)} conversations", list(map(str, means.index)))


def _of_bill(row: Row, strategy: str, inputs: ClaimInputs) -> Sample:
    """Return the cost of a strategy, and the bill that it saves of."""
    base = inputs.costs(row.against or strategy, row.model, row.base)
    costs = inputs.costs(strategy, row.model, "uncached" if row.uncached else "cost")
    pairs = {name: (cost, base[name]) for name, cost in costs.items() if name in base}
    return Sample(np.array(list(pairs.values())).reshape(-1, 2), "saving", inputs.of, list(pairs))


def _of_recalled(row: Row, strategy: str, inputs: ClaimInputs) -> Sample:
    """Sum, by conversation, the shares of evidence that the first facts injected for a probe were taken from."""
    sums = dict.fromkeys(inputs.names, (0.0, 0.0))
    rows = inputs.run_of(strategy).probes(strategy)
    for conversation, evidence, recalled in zip(map(str, rows.conversation), rows.evidence, rows.recalled, strict=True):
        share = recall([] if recalled is None else list(recalled), list(evidence), row.recalled)
        if not isinstance(share, Missing):
            total, probes = sums[conversation]
            sums[conversation] = total + share, probes + 1
    return Sample(np.array(list(sums.values())).reshape(-1, 2), "ratio", inputs.of, list(sums))


def _of_loads(row: Row, strategy: str, inputs: ClaimInputs) -> Sample:
    """Sum what a trigger, or `model`, loaded for the probes of each conversation.

    Precision is the share of what is loaded that is evidence, recall the share of archived evidence that is loaded, F1
    their harmonic mean. A trigger loads without a model, `model` with the tool.
    """
    is_model, run = strategy == "model", inputs.run if strategy == "model" else inputs.run_of(strategy)
    strategy = "archive" if is_model else strategy
    probes, events = run.probes(strategy), run.table("events")
    loaded = defaultdict[tuple[str, int], list[str]](list)
    for table in [of.answers for of in answered(run).whole if of.answerer != USUAL[0]] if is_model else [probes]:
        rows = table[table.strategy.astype(str) == strategy]
        for conversation, number, reported in zip(rows.conversation, rows.number, rows.events, strict=True):
            read = map(json.loads, () if reported is None else reported)
            loaded[str(conversation), number] += [event["uuid"] for event in read if event["event"] == "loaded"]
    if is_model and not any(loaded.values()):
        why = "no model that calls tools has answered the probes of this run"
        return Sample(Missing("unsupported", why), "ratio", inputs.of)
    archived = defaultdict[str, list[tuple[int, str, str]]](list)
    events = events[(events.kind == "archived") & (events.strategy.astype(str) == strategy)]
    for conversation, step, stored in zip(events.conversation, events.step, events.event, strict=True):
        event = json.loads(stored)
        archived[str(conversation)].append((int(step), event["uuid"], event["message"]))
    sums = dict.fromkeys(inputs.names, np.zeros(3))
    answerable: list[Any] = list(probes[probes.failed.fillna("") == ""].itertuples())
    for probe in answerable:
        name = str(probe.conversation)
        # The step is NaN before the first call: nothing is archived then.
        messages = {uuid: message for step, uuid, message in archived[name] if step <= probe.step}
        # Evidence that is sent whole cannot be loaded, and loading it would not be right: only what is archived counts.
        evidence = set(probe.evidence) & set(messages.values())
        found = {messages[uuid] for uuid in loaded[name, probe.number] if uuid in messages}
        sums[name] = sums[name] + (len(found & evidence), len(found), len(evidence))
    right, loads, wanted = np.array(list(sums.values())).reshape(-1, 3).T
    both = {"f1": (2 * right, loads + wanted), "precision": (right, loads), "recall": (right, wanted)}
    number = int((loads + wanted > 0).sum())
    of = f"{number} conversations with archived evidence or loads"
    return Sample(np.column_stack(both[row.loaded]), "ratio", of, list(sums))


def _of_policy(row: Row, inputs: ClaimInputs) -> Measured:
    """Return hit rate or time of a cache policy over the seeds of a load, alone or against another policy."""
    load = inputs.load(row.load, row.accesses)

    def replayed(policy: str) -> tuple[list[Value], list[float]]:
        """Return the hit rate of each seed, and its seconds."""
        rates, seconds = list[Value](), list[float]()
        for trace in load.samples:
            began = perf_counter()
            hits = policy_row(Load(row.load, [trace]), row.capacity, policy).hit_rate
            seconds.append(perf_counter() - began)
            rates.append(hits if isinstance(hits, Missing) else hits.mean)
        return rates, seconds

    def once(policy: str) -> tuple[list[Value], list[float]]:
        return inputs.once(f"{policy} on {row.load} of {row.accesses}, {row.capacity}", lambda: replayed(policy))

    of, (rates, seconds) = f"{inputs.seeds} seeds", once(row.policy)
    if not row.against:
        bound = inputs.bounds(row.load, row.accesses, row.capacity)
        return Measured(row.figure, f"{row.policy}, {row.load}", of_seeds(rates), of, bound.hit_rate)
    base_rates, base_seconds = once(row.against)
    if row.seconds:
        ratios = [one / other for one, other in zip(seconds, base_seconds, strict=True)]
        return Measured(row.figure, f"{row.policy} over {row.against}, {row.load}", of_seeds(ratios), of)
    found = differences(rates, base_rates)
    return Measured(row.figure, f"{row.policy} − {row.against}, {row.load}", found, of)


def differences(ours: Sequence[Value], base: Sequence[Value]) -> Interval | Missing:
    """Return the difference by seed, with its interval over seeds."""
    return of_seeds(
        one if isinstance(one, Missing) else other if isinstance(other, Missing) else one - other
        for one, other in zip(ours, base, strict=True)
    )

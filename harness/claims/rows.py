"""Measure the rows of `claims.toml`: a figure of a strategy or cache policy on a set, alone or against another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from ctxbench.metrics.figures import fixed
from ctxbench.metrics.statistics.comparison import Pairs, difference, in_both
from ctxbench.metrics.statistics.intervals import Floats, Interval, of_seeds
from ctxbench.metrics.value import Form, Missing, Value
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.chain import RECIPES
from ctxbench.strategies.tiers.tiered.tiers import WORKING_TOKENS
from ctxbench.strategies.tiers.working.traces import TRACES

from ..compare.figures import MeasuredRun, measured
from ..folder.run import Run
from ..tier_bench.working import Load, bounds, policy_row
from .claim import Measured, exact, exactly
from .inputs import ClaimInputs, of_sums, units_in
from .search import recalls
from .storage import loads, of_loads, with_long_results


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One setting of a claim, as `claims.toml` has it."""

    figure: str
    """The key of its figure among those of the claim."""
    strategy: str = ""
    """A strategy as a run names it, or a recipe's name."""
    metric: str = ""
    """A key of METRICS."""
    against: str = ""
    """A strategy, or cache policy, to take the difference to, in pairs of conversations or seeds."""
    on: str = "run"
    """The run, or one of SETS."""
    per: Literal["", "call", "conversation"] = ""
    """Count the metric as a share of calls, or of the conversations that have any of it."""
    setting: str = ""
    """The setting in words, where they are not its strategies."""
    exactly: bool = False
    """Whether one exception refutes it, as in "never": then the figure is exact, if there are units enough."""
    by_kind: bool = False
    """Whether to show the figure of each kind of conversation beside it."""
    optional: bool = False
    """Whether to leave the row out where the run has no such figure."""
    unless: str = ""
    """A metric in whose place this row stands: it is left out where the run has that one."""
    turns_under: int = 0
    """Count the turns whose calls take fewer tokens than this."""
    calls_with: Literal["", "tokens_under", "tokens_over", "event"] = ""
    """Count the calls of fewer or more tokens than `tokens`, or at which `event` happened."""
    tokens: int = 0
    event: str = ""
    turn: int = 0
    """Compare the tokens of the calls of this turn with those of the whole history."""
    model: str = ""
    """Bill the strategy under this model, with its own model calls."""
    base: Literal["cost", "uncached"] = "uncached"
    """Base of a bill: the bill of `against`, or of the same requests without a cache."""
    recalled: int = 0
    """Take the share of the evidence among the first so many facts that were injected for a probe."""
    loaded: Literal["", "f1", "precision", "recall"] = ""
    """Take a figure of the archived results that were loaded for a probe; the strategy may be `model`."""
    policy: str = ""
    """Take the hit rate of this cache policy on `load`."""
    load: str = ""
    """A generated trace, of `accesses` (its own number, if 0) in a cache of `capacity` tokens."""
    accesses: int = 0
    capacity: int = WORKING_TOKENS
    seconds: bool = False
    """Whether to take the time of the policy over that of the other, not its hit rate."""


class ConversationSet(NamedTuple):
    """Conversations beside the run's, and what is run on them."""

    make: Callable[[ClaimInputs], Sequence[Conversation]]
    strategies: tuple[str, ...]
    answers: bool = False
    is_sample: bool = True
    """Whether the conversations are samples of a load that the claim describes, each a unit of its own."""


SETS: Mapping[str, ConversationSet] = {
    "mem_001": ConversationSet(lambda _: list(scenario("mem_001")), ("none", "focus", "tiered"), answers=True),
    "archive_load": ConversationSet(lambda inputs: list(loads(inputs.seeds)), ("none", "archive")),
    "recorded": ConversationSet(with_long_results, ("none", "archive"), is_sample=False),
}


class Sample(NamedTuple):
    """What each conversation adds to the two sums of a figure."""

    sums: Floats | Missing
    form: Form = "ratio"
    of: str = ""
    names: Sequence[str] = ()
    """The conversations, a row each."""
    units: Sequence[str] | None = None
    """The independent unit of each; None = each is its own."""


def strategy_of(name: str) -> str:
    """Return a strategy as a run names it: a recipe's chain for the recipe's name."""
    return RECIPES[name].chain if name in RECIPES else name


def measure_row(row: Row, inputs: ClaimInputs) -> list[Measured]:
    """Measure a row, with its kinds of conversations; return nothing where it is left out."""
    if row.policy:
        return [_of_policy(row, inputs)]
    if row.on != "run" and not _conversations(row.on, inputs):
        return []
    setting = row.setting or (f"{row.strategy} − {row.against}" if row.against else row.strategy)
    if row.loaded:
        found, of = of_loads(inputs, row.strategy, row.against, row.loaded)
        if found is None:
            found = Missing("unsupported", "no model that calls tools has answered the probes of this run")
            return [] if row.optional else [Measured(row.figure, setting, found, of)]
        return [Measured(row.figure, setting, found, of)]
    if row.unless and not isinstance(_of_metric(row, row.strategy, inputs, row.unless).sums, Missing):
        return []
    measure: Callable[[Row, str, ClaimInputs], Sample] = _of_metric
    if row.model:
        measure = _of_bill
    elif row.turn:
        measure = _at_turn
    elif row.calls_with or row.turns_under:
        measure = _of_calls
    sums, form, of, names, units = measure(row, row.strategy, inputs)
    if isinstance(sums, Missing):
        return [] if row.optional else [Measured(row.figure, setting, sums, of)]
    if row.against and not row.model:
        other = measure(row, row.against, inputs).sums
        found = other if isinstance(other, Missing) else paired(other, sums, form, units or names)
        return [Measured(row.figure, setting, found, of)]
    found = of_sums(sums, form, units)
    if row.metric and not row.per and isinstance(found, Interval) and found.mean == fixed(row.metric, row.strategy):
        found = exact(found.mean)
    rows = [Measured(row.figure, setting, exactly(found) if row.exactly else found, of)]
    kinds = [name.partition("/")[0] for name in names if row.by_kind and "/" in name]
    for kind in dict.fromkeys(kinds):
        places = [place for place, name in enumerate(names) if name.startswith(f"{kind}/")]
        found = of_sums(sums[places], form, units and [units[place] for place in places])
        rows.append(Measured(row.figure, f"{setting} · {kind}", found, f"{len(places)} conversations"))
    return rows


def _of_metric(row: Row, strategy: str, inputs: ClaimInputs, metric: str = "") -> Sample:
    """Return the sums of a metric, or of the evidence recall of injected facts."""
    metric = metric or row.metric
    if row.on != "run":
        figures: MeasuredRun | None = inputs.once(f"figures on {row.on}", lambda: measured(_run_on(row.on, inputs)))
    else:
        figures = inputs.figures if row.recalled or strategy in inputs.figures.sums else inputs.extra_figures
    if figures is None or not (row.recalled or strategy in figures.sums):
        return Sample(Missing("unsupported", f"{strategy} was not run"), of=inputs.of)
    names, units = list(figures.digests), units_in(figures)
    if row.recalled:
        return Sample(recalls(inputs, strategy, row.recalled), "ratio", inputs.of, names, units)
    if metric not in figures.sums[strategy]:
        return Sample(Missing("undefined", f"there is no {metric} under {strategy}"), of=inputs.of)
    sums, form = figures.sums[strategy][metric], figures.metrics[metric].form
    if row.per == "call":
        sums, form = np.column_stack([sums[:, 0], figures.sums[strategy]["steps"][:, 0]]), "ratio"
    elif row.per:
        sums, form = np.column_stack([sums[:, 0] > 0, np.ones(len(sums))]), "ratio"
    if row.on == "run":
        return Sample(sums, form, inputs.of, names, units)
    return Sample(sums, form, f"{len(sums)} conversations", names, None if SETS[row.on].is_sample else units)


def _conversations(on: str, inputs: ClaimInputs) -> Sequence[Conversation]:
    return inputs.once(f"conversations of {on}", lambda: SETS[on].make(inputs))


def _run_on(on: str, inputs: ClaimInputs) -> Run:
    conversations = _conversations(on, inputs)
    _, strategies, answers, _ = SETS[on]
    return inputs.once(f"run on {on}", lambda: inputs.run_strategies(on, strategies, conversations, answers=answers))


def _units(names: Sequence[str], inputs: ClaimInputs) -> list[str]:
    return [inputs.run.units.get(name, name) for name in names]


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
    ends = (moved.shown, moved.shown) if isinstance(moved.shown, Missing) else moved.shown
    return Interval(float(moved.value), *ends)


def _of_calls(row: Row, strategy: str, inputs: ClaimInputs) -> Sample:
    """Count calls, or turns with all their calls, of all."""
    run = inputs.run_of(strategy) if row.on == "run" else _run_on(row.on, inputs)
    steps = inputs.steps(strategy, run)
    if steps.empty:
        return Sample(Missing("failed", f"{strategy} finished no conversation"))
    by = ["conversation", "turn" if row.turns_under else "step"]
    calls = steps.groupby(by, observed=True).tokens_sent.sum().reset_index()
    counts: Any
    if row.calls_with == "event":
        events = run.table("events")
        events = events[(events.kind == row.event) & (events.strategy.astype(str) == strategy)]
        happened = pd.MultiIndex.from_frame(events[by].astype({"conversation": str}))
        counts = pd.MultiIndex.from_frame(calls[by].astype({"conversation": str})).isin(happened)
    elif row.calls_with == "tokens_over":
        counts = calls.tokens_sent > row.tokens
    else:
        counts = calls.tokens_sent < (row.turns_under or row.tokens)
    sums = calls.assign(counts=counts).groupby("conversation", observed=True).counts.agg(["sum", "count"])
    names, of = list(map(str, sums.index)), f"{len(steps):,} calls of {len(sums)} conversations"
    return Sample(sums.to_numpy(float), "ratio", of, names, _units(names, inputs))


def _at_turn(row: Row, strategy: str, inputs: ClaimInputs) -> Sample:
    """Compare the tokens of a turn's calls, with the strategy's own, with those of the whole history.

    It takes a mean of each conversation's calls: a turn of many calls would otherwise count for more than one of few.
    """
    steps = inputs.steps(strategy_of(strategy))
    steps = steps[steps.turn == row.turn].assign(spent=lambda rows: rows.tokens_sent + rows.own_tokens)
    means = steps.groupby("conversation", observed=True)[["spent", "tokens_full"]].mean()
    names = list(map(str, means.index))
    return Sample(means.to_numpy(float), "saving", f"{len(means)} conversations", names, _units(names, inputs))


def costs(inputs: ClaimInputs, strategy: str, model: str, base: str = "cost") -> dict[str, float]:
    """Return by conversation the cost of a strategy with its own model calls, or of its requests without a cache."""
    bills = inputs.bills(strategy, model)
    amounts = bills.uncached if base == "uncached" else bills.cost + bills.cost_own
    return dict(zip(bills.conversation.astype(str), amounts.astype(float), strict=True))


def _of_bill(row: Row, strategy: str, inputs: ClaimInputs) -> Sample:
    """Return the cost of a strategy, and the bill that it saves of."""
    ours = costs(inputs, strategy_of(strategy), row.model)
    base = costs(inputs, strategy_of(row.against or strategy), row.model, row.base)
    pairs = {name: (cost, base[name]) for name, cost in ours.items() if name in base}
    table = np.array(list(pairs.values())).reshape(-1, 2)
    return Sample(table, "saving", inputs.of, list(pairs), _units(list(pairs), inputs))


def _of_policy(row: Row, inputs: ClaimInputs) -> Measured:
    """Return hit rate or time of a cache policy over the seeds of a load, alone or against another policy."""
    make = partial(TRACES[row.load], length=row.accesses) if row.accesses else TRACES[row.load]
    load = inputs.once(
        f"load {row.load} {row.accesses}", lambda: Load(row.load, [make(seed) for seed in range(inputs.seeds)])
    )

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
    if row.seconds:
        ratios = [one / other for one, other in zip(seconds, once(row.against)[1], strict=True)]
        return Measured(row.figure, f"{row.policy} over {row.against}, {row.load}", of_seeds(ratios), of)
    if row.against:
        found = differences(rates, once(row.against)[0])
        return Measured(row.figure, f"{row.policy} − {row.against}, {row.load}", found, of)
    bound = inputs.once(f"bounds of {row.load}", lambda: bounds(load, row.capacity))
    return Measured(row.figure, f"{row.policy}, {row.load}", of_seeds(rates), of, bound.hit_rate)


def differences(ours: Sequence[Value], base: Sequence[Value]) -> Interval | Missing:
    """Return the difference by seed, with its interval over seeds."""
    for value in (*ours, *base):
        if isinstance(value, Missing):
            return value
    return of_seeds([one - other for one, other in zip(ours, base, strict=True)])  # type: ignore[operator]

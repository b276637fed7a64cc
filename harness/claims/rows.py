"""Measure the rows of `claims.toml` over `compare`: a metric, tokens of calls, or a bill of a strategy on a set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from ctxbench.metrics.figures import fixed, units_of
from ctxbench.metrics.statistics.comparison import Pairs, difference, in_both
from ctxbench.metrics.statistics.intervals import Floats, Interval
from ctxbench.metrics.value import Form, Missing
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.chain import RECIPES

from ..compare.figures import MeasuredRun, measured
from ..folder.run import Run
from .claim import Measured, exact, exactly
from .inputs import ClaimInputs, of_sums, units_in
from .storage import loads, with_long_results


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One setting of a claim, as `claims.toml` has it."""

    figure: str
    """The key of its figure among those of the claim."""
    strategy: str
    """A strategy as a run names it, or a recipe's name."""
    metric: str = ""
    """A key of METRICS."""
    against: str = ""
    """A strategy to take the difference to, in pairs of conversations."""
    on: str = "run"
    """The run, or one of SETS."""
    per: Literal["", "call", "conversation"] = ""
    """Count the metric as a share of calls, or of the conversations that have any of it."""
    setting: str = ""
    """The setting in words; the strategy, if it is empty."""
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


def strategy_of(name: str) -> str:
    """Return a strategy as a run names it: a recipe's chain for the recipe's name."""
    return RECIPES[name].chain if name in RECIPES else name


def measure_row(row: Row, inputs: ClaimInputs) -> list[Measured]:
    """Measure a row, with its kinds of conversations; return nothing where it is left out."""
    if row.on != "run" and not _conversations(row.on, inputs):
        return []
    setting = row.setting or (f"{row.strategy} − {row.against}" if row.against else row.strategy)
    if row.model:
        return [Measured(row.figure, setting, _of_bill(row, inputs), inputs.of)]
    if row.turn:
        return [_at_turn(row, setting, inputs)]
    if row.calls_with or row.turns_under:
        return [_of_calls(row, setting, inputs)]
    return _of_metric(row, setting, inputs)


def _of_metric(row: Row, setting: str, inputs: ClaimInputs) -> list[Measured]:
    figures = _figures(row.on, row.strategy, inputs)
    if row.unless and not isinstance(_sums(figures, row.strategy, row.unless), Missing):
        return []
    sums = _sums(figures, row.strategy, row.metric)
    if isinstance(sums, Missing):
        return [] if row.optional else [Measured(row.figure, setting, sums, inputs.of)]
    assert figures is not None
    form, units = figures.metrics[row.metric].form, units_in(figures)
    of = inputs.of if row.on == "run" else f"{len(sums)} conversations"
    if row.per == "call":
        sums, form = np.column_stack([sums[:, 0], figures.sums[row.strategy]["steps"][:, 0]]), "ratio"
    elif row.per:
        sums, form = np.column_stack([sums[:, 0] > 0, np.ones(len(sums))]), "ratio"
    if row.against:
        other = _sums(_figures(row.on, row.against, inputs), row.against, row.metric)
        found = other if isinstance(other, Missing) else paired(other, sums, form, units)
        return [Measured(row.figure, setting, found, of)]
    found = of_sums(sums, form, None if row.on in SETS and SETS[row.on].is_sample else units)
    if not row.per and isinstance(found, Interval) and found.mean == fixed(row.metric, row.strategy):
        found = exact(found.mean)
    measured_rows = [Measured(row.figure, setting, exactly(found) if row.exactly else found, of)]
    kinds = [name.partition("/")[0] for name in figures.digests if row.by_kind and "/" in name]
    for kind in dict.fromkeys(kinds):
        places = [place for place, name in enumerate(figures.digests) if name.startswith(f"{kind}/")]
        found = of_sums(sums[places], form, [units[place] for place in places])
        measured_rows.append(Measured(row.figure, f"{setting} · {kind}", found, f"{len(places)} conversations"))
    return measured_rows


def _figures(on: str, strategy: str, inputs: ClaimInputs) -> MeasuredRun | None:
    if on == "run":
        return inputs.figures if strategy in inputs.figures.sums else inputs.extra_figures
    return inputs.once(f"figures on {on}", lambda: measured(_run_on(on, inputs)))


def _conversations(on: str, inputs: ClaimInputs) -> Sequence[Conversation]:
    return inputs.once(f"conversations of {on}", lambda: SETS[on].make(inputs))


def _run_on(on: str, inputs: ClaimInputs) -> Run:
    conversations = _conversations(on, inputs)
    _, strategies, answers, _ = SETS[on]
    return inputs.once(f"run on {on}", lambda: inputs.run_strategies(on, strategies, conversations, answers=answers))


def _sums(figures: MeasuredRun | None, strategy: str, metric: str) -> Floats | Missing:
    if figures is None or strategy not in figures.sums:
        return Missing("unsupported", f"{strategy} was not run")
    if metric not in figures.sums[strategy]:
        return Missing("undefined", f"there is no {metric} under {strategy}")
    return figures.sums[strategy][metric]


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


def _of_calls(row: Row, setting: str, inputs: ClaimInputs) -> Measured:
    """Measure a share of calls, or of turns with all their calls."""
    run = inputs.run_of(row.strategy) if row.on == "run" else _run_on(row.on, inputs)
    steps = inputs.steps(row.strategy, run)
    if steps.empty:
        return Measured(row.figure, setting, Missing("failed", f"{row.strategy} finished no conversation"))
    by = ["conversation", "turn" if row.turns_under else "step"]
    calls = steps.groupby(by, observed=True).tokens_sent.sum().reset_index()
    counts: Any
    if row.calls_with == "event":
        events = run.table("events")
        events = events[(events.kind == row.event) & (events.strategy.astype(str) == row.strategy)]
        happened = pd.MultiIndex.from_frame(events[by].astype({"conversation": str}))
        counts = pd.MultiIndex.from_frame(calls[by].astype({"conversation": str})).isin(happened)
    elif row.calls_with == "tokens_over":
        counts = calls.tokens_sent > row.tokens
    else:
        counts = calls.tokens_sent < (row.turns_under or row.tokens)
    sums = calls.assign(counts=counts).groupby("conversation", observed=True).counts.agg(["sum", "count"])
    found = of_sums(sums.to_numpy(float), "ratio", units_of(sums.reset_index(), inputs.run.units))
    of = f"{len(steps):,} calls of {len(sums)} conversations"
    return Measured(row.figure, setting, exactly(found) if row.exactly else found, of)


def _at_turn(row: Row, setting: str, inputs: ClaimInputs) -> Measured:
    """Compare the tokens of a turn's calls, with the strategy's own, with those of the whole history.

    It takes a mean of each conversation's calls: a turn of many calls would otherwise count for more than one of few.
    """
    steps = inputs.steps(strategy_of(row.strategy))
    steps = steps[steps.turn == row.turn].assign(spent=lambda rows: rows.tokens_sent + rows.own_tokens)
    means = steps.groupby("conversation", observed=True)[["spent", "tokens_full"]].mean().reset_index()
    units = units_of(means, inputs.run.units)
    found = of_sums(means[["spent", "tokens_full"]].to_numpy(float), "saving", units)
    return Measured(row.figure, setting, found, f"{len(means)} conversations")


def costs(inputs: ClaimInputs, strategy: str, model: str, base: str = "cost") -> dict[str, float]:
    """Return by conversation the cost of a strategy with its own model calls, or of its requests without a cache."""
    bills = inputs.bills(strategy, model)
    amounts = bills.uncached if base == "uncached" else bills.cost + bills.cost_own
    return dict(zip(bills.conversation.astype(str), amounts.astype(float), strict=True))


def _of_bill(row: Row, inputs: ClaimInputs) -> Interval | Missing:
    """Return the share that a strategy saves of a bill."""
    ours = costs(inputs, strategy_of(row.strategy), row.model)
    base = costs(inputs, strategy_of(row.against or row.strategy), row.model, row.base)
    pairs = {name: (cost, base[name]) for name, cost in ours.items() if name in base}
    units = [inputs.run.units.get(name, name) for name in pairs]
    return of_sums(np.array(list(pairs.values())).reshape(-1, 2), "saving", units)

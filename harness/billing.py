"""A stored run billed under the cache rules and prices of any models: nothing is run again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import pandas as pd

from ..metrics.cache.bill import Charge, Placement, Step, charged, placed, requests
from ..metrics.cache.explicit import MOST_MARKS, Explicit
from ..metrics.cache.rules import rule_for
from ..metrics.models import model_map
from ..metrics.prices import Price, price_of
from ..scenarios.errors import RunError
from ..scenarios.spec import nearest
from .load import Run

PAUSE = 10.0
"""Seconds between calls of a recording that has no times: an assumption, which is printed."""

_STEP = (
    *("conversation", "strategy", "step", "at", "kept", "added_from", "added_to"),
    *("marks", "tools_added", "tokens_sent"),
)


class _Role(msgspec.Struct):
    """Of a message as JSON, who says it."""

    role: str


class Bill(NamedTuple):
    """The bill of one conversation under one strategy and model; sums over its calls."""

    conversation: str
    strategy: str
    model: str
    calls: int
    hits: int
    """Calls that read anything."""
    read: int
    written: int
    fresh: int
    output: int
    cost: float
    """US dollars."""
    uncached: float
    """What the same requests would cost without a cache."""


def bills(run: Run, models: Sequence[str], placement: Placement = "automatic", latest: bool = False) -> list[Bill]:
    """Every cell of a run under every model, under the rules of the recording's date or the `latest`.

    Raises RunError for a model whose price is not known: it is not free.
    """
    for model in models:
        if price_of(model) is None:
            known = nearest(model, model_map()) or "; write it as litellm does"
            raise RunError(f"the price of {model} is not known{known}")
    return [bill for cell in _cells(run) for bill in _bills(cell, models, placement, latest)]


def untimed(run: Run) -> int:
    """Conversations without any recorded time: their calls are taken to be `PAUSE` seconds apart."""
    return int(run.table("messages").groupby("conversation", observed=True).time.count().eq(0).sum())


def overmarked(run: Run) -> int:
    """Calls with more marks than a provider takes."""
    return int((run.table("steps").marks.map(len) > MOST_MARKS).sum())


def unruled(models: Sequence[str]) -> list[str]:
    """The models for which there is no cache rule, at any date."""
    return [model for model in models if rule_for(model, None) is None]


def own_costs(run: Run) -> dict[tuple[str, str], float | None]:
    """What the strategy's own model calls cost, by conversation and strategy; None where a price is not known."""
    calls = run.table("events").dropna(subset=["input_tokens"])
    found: dict[tuple[str, str], float | None] = {}
    for name, strategy, cost in zip(calls.conversation, calls.strategy, calls.cost, strict=True):
        before = found.get((str(name), str(strategy)), 0.0)
        known = None if before is None or cost != cost else before + float(cost)
        found[str(name), str(strategy)] = known
    return found


class _Cell(NamedTuple):
    """One conversation under one strategy, as its log has it."""

    conversation: str
    strategy: str
    steps: list[Step]
    sizes: list[int]
    """Tokens of every message, by its number in the log."""
    roles: list[str]
    timed: bool


def _bills(cell: _Cell, models: Sequence[str], placement: Placement, latest: bool) -> list[Bill]:
    when = None if latest or not cell.timed else cell.steps[0].started
    rules = [rule_for(model, when) for model in models]
    caches = [rule.cache() if rule is not None else None for rule in rules]
    made: list[list[Charge]] = [[] for _ in models]
    for step, request in zip(cell.steps, requests(cell.steps, cell.sizes, cell.roles), strict=True):
        with_marks = placed(request, placement)
        for model, cache, charges in zip(models, caches, made, strict=True):
            asked = with_marks if isinstance(cache, Explicit) else request
            charges.append(charged(asked, step.output, cache, _price(model, request.tokens)))
    return [_sum(cell, model, charges) for model, charges in zip(models, made, strict=True)]


def _sum(cell: _Cell, model: str, made: Sequence[Charge]) -> Bill:
    return Bill(
        cell.conversation,
        cell.strategy,
        model,
        len(made),
        sum(each.used.read > 0 for each in made),
        sum(each.used.read for each in made),
        sum(each.used.written + each.used.written_1h for each in made),
        sum(each.used.fresh for each in made),
        sum(each.output for each in made),
        math.fsum(each.cost for each in made),
        math.fsum(each.uncached for each in made),
    )


def _price(model: str, tokens: int) -> Price:
    price = price_of(model, tokens)
    assert price is not None  # `bills` has asked
    return price


def _cells(run: Run) -> Iterator[_Cell]:
    """The cells of a run, from its tables alone."""
    recorded = {str(name): rows for name, rows in run.table("messages").groupby("conversation", observed=True)}
    written = _written(run)
    for (name, strategy), rows in run.table("steps")[list(_STEP)].groupby(
        ["conversation", "strategy"], observed=True, sort=False
    ):
        messages = recorded[str(name)]
        more = written.get((str(name), str(strategy)), [])
        sizes = [*messages.tokens.tolist(), *(tokens for tokens, _ in more)]
        roles = [*messages.role.astype(str), *(role for _, role in more)]
        times = messages.time.tolist()
        timed = any(time == time for time in times)
        yield _Cell(
            str(name),
            str(strategy),
            list(_steps(rows, sizes, times, timed)),
            sizes,
            roles,
            timed,
        )


def _steps(rows: pd.DataFrame, sizes: list[int], times: list[float], timed: bool) -> Iterator[Step]:
    """A call begins when the message before it was there, or where that has no time when it was answered."""
    held: list[int] = []
    clock = 0.0
    for _, _, number, at, kept, starts, stops, marks, tools, tokens in rows.itertuples(index=False):
        added = list(zip(starts.tolist(), stops.tolist(), strict=True))
        del held[kept:]
        held += [sizes[each] for start, stop in added for each in range(start, stop)]
        if timed:
            known = [time for time in (times[at - 1], times[at]) if time == time]
            clock = max(clock, known[0] if known else clock)
            answered = max(clock, known[-1] if known else clock)
        else:
            clock = answered = PAUSE * number
        yield Step(kept, added, tuple(tools), tokens - sum(held), tuple(marks.tolist()), clock, answered, at, sizes[at])


def _written(run: Run) -> dict[tuple[str, str], list[tuple[int, str]]]:
    """Of the messages that strategies wrote, tokens and role, by their numbers."""
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    decode = msgspec.json.Decoder(_Role).decode
    table = run.table("contexts")
    for name, strategy, tokens, message in zip(
        table.conversation, table.strategy, table.tokens, table.message, strict=True
    ):
        found.setdefault((str(name), str(strategy)), []).append((int(tokens), decode(message).role))
    return found

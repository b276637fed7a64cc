"""The bill of a run, as tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..harness.billing import Bill
from ..metrics.value import Missing, Value
from .render import Table
from .words import percent, tokens

HEADS = ("strategy", "cost", "own calls", "against none", "against uncached", "hit rate", "read", "written", "fresh")


class Total(NamedTuple):
    """The bill of one strategy under one model, over the conversations that every strategy finished."""

    strategy: str
    model: str
    calls: int
    hits: int
    read: int
    written: int
    fresh: int
    output: int
    cost: float
    uncached: float
    own: float | None
    """What the strategy's own model calls cost; None where a price is not known."""

    @property
    def hit_rate(self) -> Value:
        """Of the input tokens, those read from the cache."""
        whole = self.read + self.written + self.fresh
        return self.read / whole if whole else Missing("undefined", "no calls")


def totals(bills: Iterable[Bill], own: dict[tuple[str, str], float | None]) -> list[Total]:
    """Sums over the conversations that all strategies have, by model, then in the order of the strategies.

    `own`: by conversation and strategy, what the strategy's own model calls cost.
    """
    rows = list(bills)
    strategies = list(dict.fromkeys(row.strategy for row in rows))
    having: dict[str, set[str]] = {}
    for row in rows:
        having.setdefault(row.conversation, set()).add(row.strategy)
    common = {name for name, done in having.items() if len(done) == len(strategies)}
    groups: dict[tuple[str, str], list[Bill]] = {}
    for row in rows:
        if row.conversation in common:
            groups.setdefault((row.model, row.strategy), []).append(row)
    models = dict.fromkeys(row.model for row in rows)
    return [
        _total(groups[model, strategy], own)
        for model in models
        for strategy in strategies
        if (model, strategy) in groups
    ]


def _total(rows: Sequence[Bill], own: dict[tuple[str, str], float | None]) -> Total:
    costs = [own.get((row.conversation, row.strategy), 0.0) for row in rows]
    return Total(
        rows[0].strategy,
        rows[0].model,
        sum(row.calls for row in rows),
        sum(row.hits for row in rows),
        sum(row.read for row in rows),
        sum(row.written for row in rows),
        sum(row.fresh for row in rows),
        sum(row.output for row in rows),
        math.fsum(row.cost for row in rows),
        math.fsum(row.uncached for row in rows),
        None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )


def tables(found: Sequence[Total], notes: Sequence[str]) -> list[Table]:
    """One table a model."""
    made = []
    for model in dict.fromkeys(row.model for row in found):
        rows = [row for row in found if row.model == model]
        none = next((row.cost for row in rows if row.strategy == "none"), None)
        cells = tuple(
            (
                row.strategy,
                _dollars(row.cost),
                _dollars(row.own),
                "–" if none is None else percent(_change(row, none)),
                percent(_change(row, row.uncached)),
                percent(row.hit_rate),
                tokens(row.read),
                tokens(row.written),
                tokens(row.fresh),
            )
            for row in rows
        )
        made.append(Table(f"The bill under {model}", HEADS, cells, (), spare=("fresh", "written", "read", "own calls")))
    if made:
        how = (
            "Cost: input and recorded output of all calls, each conversation with a cache of its own. Against none: "
            "what is saved of the bill of the whole history, cached as well. Against uncached: of the same requests "
            "without a cache. Both with the strategy's own model calls. Hit rate: input tokens read from the cache."
        )
        made.append(Table("How it was billed", (), (), (how, *notes)))
    return made


def as_json(found: Sequence[Total], notes: Sequence[str]) -> dict[str, Any]:
    """The same with exact figures."""
    nones = {row.model: row.cost for row in found if row.strategy == "none"}
    return {
        "bills": [
            {
                **row._asdict(),
                "hit_rate": _plain(row.hit_rate),
                "saved_against_none": _plain(_change(row, nones[row.model])) if row.model in nones else None,
                "saved_against_uncached": _plain(_change(row, row.uncached)),
            }
            for row in found
        ],
        "assumed": list(notes),
    }


def _change(row: Total, before: float) -> Value:
    if row.own is None:
        return Missing("undefined", "the price of the strategy's own model calls is not known")
    return 1 - (row.cost + row.own) / before if before else Missing("undefined", "nothing to pay")


def _dollars(value: float | None) -> str:
    if value is None:
        return "(unknown)"
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.4f}"


def _plain(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)

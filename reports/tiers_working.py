"""Cache policies on traces, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..harness.working import Bounds, Load, Row
from ..metrics.statistics.interval import Interval
from ..metrics.value import Missing, Value
from .render import Table
from .words import count, percent, tokens

HEADS = ("policy", "hit rate", "±", "token hit rate", "±", "evictions", "loaded", "preloaded")
WANTED = 0.9
"""The hit rate that design document 004 asks for."""
HOW = (
    "Hit rate: of the look-ups, those of items that were held. Token hit rate: of their tokens. ±: the 95 % t-interval "
    "over the samples. Evictions, loaded (tokens of misses), preloaded (tokens that were predicted): a sample, on "
    "average.",
    "Bound: no policy that loads only what is asked for has more, whatever it knows; preload may. Popularity known: "
    "what to expect of a cache that knows how popular every item is, but not what comes next. Belady knows the future: "
    "it is optimal for items of one size, and no bound for tokens.",
)


def tables(loads: Sequence[Load], rows: Sequence[Row], found: Sequence[Bounds]) -> list[Table]:
    """One table a load and size, then how to read them."""
    made = [_table(load, bound, rows) for load in loads for bound in found if bound.load == load.name]
    return [*made, Table("How to read it", (), (), HOW)]


def _table(load: Load, bound: Bounds, rows: Sequence[Row]) -> Table:
    chosen = [row for row in rows if (row.load, row.size) == (bound.load, bound.size)]
    width = len(HEADS) - (not any(row.preload for row in chosen))
    cells = [_cells(row) for row in chosen]
    limit = "bound" if bound.is_fluid else "bound (loose)"
    cells.append((limit, percent(bound.hits), "", percent(bound.tokens), *[""] * 4))
    if not isinstance(bound.expected, Missing):
        cells.append(("popularity known", percent(bound.expected), *[""] * 6))
    each = f"{load.accesses:,.0f} look-ups and {tokens(load.tokens)} tokens each"
    title = f"{load.name}, cache of {bound.size:,} tokens: {count(len(load.samples), load.of)}, {each}"
    body = tuple(row[:width] for row in cells)
    return Table(title, HEADS[:width], body, tuple(_said(load, bound)), spare=("evictions", "loaded"))


def _cells(row: Row) -> tuple[str, ...]:
    name = f"{row.policy} + preload" if row.preload else row.policy
    preloaded = tokens(row.preloaded) if row.preload else "–"
    return (name, *_share(row.hits), *_share(row.tokens), f"{row.evictions:,.0f}", tokens(row.loaded), preloaded)


def _share(found: Interval | Missing) -> tuple[str, str]:
    if isinstance(found, Missing):
        return percent(found), ""
    reach = "–" if isinstance(found.high, Missing) else f"{(found.high - found.mean) * 100:.1f}"
    return percent(found.mean), reach


def _said(load: Load, bound: Bounds) -> list[str]:
    """Whether what the document asks for can be had at all."""
    said, wanted = [], percent(WANTED)
    if load.largest <= bound.size:
        said.append("Everything fits: nothing is ever evicted, and no policy differs from another.")
    if not isinstance(bound.compulsory, Missing) and bound.compulsory:
        said.append(f"{percent(bound.compulsory)} of the look-ups are the first of their item: no cache hits them.")
    if not isinstance(bound.hits, Missing) and bound.hits < WANTED:
        said.append(f"A hit rate over {wanted} is impossible here: no policy can have more than {percent(bound.hits)}.")
    elif not isinstance(bound.expected, Missing) and bound.expected < WANTED:
        said.append(
            f"A hit rate over {wanted} is out of reach here without seeing the future: with all popularities known, "
            f"{percent(bound.expected)} can be expected."
        )
    return said


def as_json(loads: Sequence[Load], rows: Sequence[Row], found: Sequence[Bounds]) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "loads": [_load(each) for each in loads],
        "rows": [_row(each) for each in rows],
        "bounds": [_bound(each) for each in found],
    }


def _load(load: Load) -> dict[str, Any]:
    return {
        "load": load.name,
        "samples": len(load.samples),
        "of": load.of,
        "look_ups": load.accesses,
        "tokens": load.tokens,
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "load": row.load,
        "size": row.size,
        "policy": row.policy,
        "preload": row.preload,
        "hit_rate": _interval(row.hits),
        "token_hit_rate": _interval(row.tokens),
        "evictions": row.evictions,
        "loaded": row.loaded,
        "preloaded": row.preloaded,
    }


def _bound(bound: Bounds) -> dict[str, Any]:
    return {
        "load": bound.load,
        "size": bound.size,
        "hit_rate": _value(bound.hits),
        "token_hit_rate": _value(bound.tokens),
        "kind": "linear program" if bound.is_fluid else "PFOO",
        "compulsory": _value(bound.compulsory),
        "popularity_known": _value(bound.expected),
    }


def _interval(found: Interval | Missing) -> dict[str, float | None] | None:
    if isinstance(found, Missing):
        return None
    return {"mean": found.mean, "low": _value(found.low), "high": _value(found.high)}


def _value(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)

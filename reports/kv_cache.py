"""Savings of the KV cache of your own server, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ctxbench.harness.bill.kv_cache import Assumed, ServerRow
from ctxbench.metrics.serving.serve import DECODE, PAUSE, PREFILL, Served
from ctxbench.metrics.value import Missing, Value

from .render import Table, count, number, percent, tokens

_HEADS = ("strategy", "cache hit rate", "computed", "saved", "evicted", "queued", "sent back", "too large")


class ServerTotal(NamedTuple):
    """Sums over the calls of one strategy with a cache of one size. Tokens are those of the calls that were served."""

    strategy: str
    memory: int | None
    """Size in tokens; None is unlimited."""
    calls: int
    tokens: int
    """Tokens of the prompts."""
    read: int
    computed: int
    """Prompt tokens that were not read, and those computed again."""
    evicted: int
    waited: int
    sent_back: int
    refused: int
    saved: Value | None
    """Share of the tokens that `none` computes with the same cache, over the calls that are served under both. None if
    `none` was not run."""

    @property
    def hit_rate(self) -> Value:
        """Share of the prompts' tokens that was read from the cache."""
        return self.read / self.tokens if self.tokens else Missing("undefined", "no call is served")


def totals(rows: Iterable[ServerRow]) -> list[ServerTotal]:
    """Return the sums by memory size in order of appearance, the unlimited one last, then by strategy."""
    every = list(rows)
    nones = {row.memory: row.calls for row in every if row.strategy == "none"}
    sizes = sorted(dict.fromkeys(row.memory for row in every), key=lambda size: size is None)
    return [_total(row, nones.get(size)) for size in sizes for row in every if row.memory == size]


def _total(row: ServerRow, none: Sequence[Served] | None) -> ServerTotal:
    served = [call for call in row.calls if not call.refused]
    return ServerTotal(
        row.strategy,
        row.memory,
        len(row.calls),
        sum(call.tokens for call in served),
        sum(call.read for call in served),
        sum(call.computed for call in served),
        row.evicted,
        sum(call.waited for call in served),
        sum(call.preempted for call in served),
        len(row.calls) - len(served),
        _saved(row.calls, none),
    )


def _saved(calls: Sequence[Served], none: Sequence[Served] | None) -> Value | None:
    if none is None:
        return None
    both = [(one, other) for one, other in zip(calls, none, strict=True) if not one.refused and not other.refused]
    computed = sum(other.computed for _, other in both)
    return 1 - sum(one.computed for one, _ in both) / computed if computed else Missing("undefined", "no calls")


def tables(engine: str, sums: Sequence[ServerTotal], notes: Sequence[str]) -> list[Table]:
    """Return one table for each memory size."""
    shown = []
    for memory in dict.fromkeys(row.memory for row in sums):
        size = "unlimited KV cache" if memory is None else f"KV cache of {memory:,} tokens"
        cells = tuple(
            (
                row.strategy,
                percent(row.hit_rate),
                tokens(row.computed),
                "–" if row.saved is None else percent(row.saved),
                tokens(row.evicted),
                *(f"{calls:,}" for calls in (row.waited, row.sent_back, row.refused)),
            )
            for row in sums
            if row.memory == memory
        )
        shown.append(Table(f"{engine}, {size}", _HEADS, cells, (), spare=("queued", "sent back", "evicted")))
    how = (
        "Cache hit rate: the share of prompt tokens read from the cache; computed: the other prompt tokens, again "
        "where a call was sent back. Saved: the share of what none computes, over the calls served in both.",
        "Queued and sent back: calls that did not fit beside those running, when they began and when they were "
        "answered. Too large: calls that do not fit even alone; they count nowhere else.",
    )
    return [*shown, Table("How was it computed?", (), (), (*how, *notes))]


def as_json(engine: str, sums: Sequence[ServerTotal], notes: Sequence[str]) -> dict[str, Any]:
    """Return the exact figures."""
    return {
        "engine": engine,
        "rows": [{**row._asdict(), "hit_rate": number(row.hit_rate), "saved": number(row.saved)} for row in sums],
        "assumed": list(notes),
    }


def notes(assumed: Assumed, failed: int, concurrency: int | None, longest: float | None) -> list[str]:
    """Return how the conversations ran side by side, and what had to be assumed."""
    sentences = [
        "Conversations begin as they were recorded."
        if concurrency is None
        else f"{count(concurrency, 'conversation')} at a time; as one ends the next begins."
    ]
    if longest is not None:
        sentences.append(f"Pauses are cut to {longest:g} s.")
    if assumed.no_pause:
        sentences.append(
            f"Assumed: {count(assumed.no_pause, 'call')} of {assumed.calls:,} without times come {PAUSE:g} s "
            "after the answer before."
        )
    if assumed.no_time:
        sentences.append(
            f"Assumed: {count(assumed.no_time, 'call')} of {assumed.calls:,} without times take as long as computing "
            f"{PREFILL:,.0f} tokens a second and answering {DECODE:g}."
        )
    if concurrency is None and assumed.no_start:
        sentences.append(f"Assumed: {count(assumed.no_start, 'conversation')} without times begin with the first one.")
    if failed:
        sentences.append(f"Left out: {count(failed, 'conversation')} that not every strategy finished.")
    return sentences

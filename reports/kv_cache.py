"""What an own server's KV cache saves, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..harness.bill.kv_cache import Assumed, ServerRow
from ..metrics.serving.serve import DECODE, PAUSE, PREFILL, Served
from ..metrics.value import Missing, Value
from .render import Table, count, percent, tokens

HEADS = ("strategy", "hit rate", "computed", "saved", "evicted", "waited", "sent back", "refused")


class ServerTotal(NamedTuple):
    """One strategy with a cache of one size: sums over its calls. Tokens are those of the calls that were served."""

    strategy: str
    memory: int | None
    """Tokens; None = all that ever came."""
    calls: int
    tokens: int
    """Of the prompts."""
    read: int
    computed: int
    """The rest, and what was computed again."""
    evicted: int
    waited: int
    sent_back: int
    refused: int
    saved: Value | None
    """Of the tokens that `none` has to compute with the same cache, over the calls that are served under both.
    None if it was not run."""

    @property
    def hit_rate(self) -> Value:
        """Of the prompts' tokens, those read."""
        return self.read / self.tokens if self.tokens else Missing("undefined", "no call is served")


def totals(rows: Iterable[ServerRow]) -> list[ServerTotal]:
    """By memory size as they come, the unlimited one last, then in the order of the strategies."""
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


def tables(engine: str, found: Sequence[ServerTotal], notes: Sequence[str]) -> list[Table]:
    """One table a memory size."""
    made = []
    for memory in dict.fromkeys(row.memory for row in found):
        size = "unlimited KV cache" if memory is None else f"KV cache of {memory:,} tokens"
        cells = tuple(
            (
                row.strategy,
                percent(row.hit_rate),
                tokens(row.computed),
                "–" if row.saved is None else percent(row.saved),
                tokens(row.evicted),
                *(f"{each:,}" for each in (row.waited, row.sent_back, row.refused)),
            )
            for row in found
            if row.memory == memory
        )
        made.append(Table(f"{engine}, {size}", HEADS, cells, (), spare=("waited", "sent back", "evicted")))
    how = (
        "Hit rate: prompt tokens read from the cache. Computed: prompt tokens that the server computes, again "
        "where a call was sent back. Saved: of what `none` has to compute with the same cache, over the calls that "
        "both get served. Evicted: tokens. Waited, sent back: calls that did not fit beside those running, when they "
        "began and when they were answered. Refused: calls that do not fit even alone; they are in no other figure."
    )
    return [*made, Table("How it was reckoned", (), (), (how, *notes))]


def as_json(engine: str, found: Sequence[ServerTotal], notes: Sequence[str]) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "engine": engine,
        "rows": [{**row._asdict(), "hit_rate": _plain(row.hit_rate), "saved": _plain(row.saved)} for row in found],
        "assumed": list(notes),
    }


def notes(assumed: Assumed, failed: int, concurrency: int | None, longest: float | None) -> list[str]:
    """How the conversations were laid side by side, and what had to be assumed."""
    said = [
        "Conversations begin as they were recorded."
        if concurrency is None
        else f"{count(concurrency, 'conversation')} at a time; as one ends the next begins."
    ]
    if longest is not None:
        said.append(f"Pauses are cut to {longest:g} s.")
    if assumed.no_pause:
        said.append(
            f"Assumed: {count(assumed.no_pause, 'call')} of {assumed.calls:,} without times come {PAUSE:g} s "
            "after the answer before."
        )
    if assumed.no_time:
        said.append(
            f"Assumed: {count(assumed.no_time, 'call')} of {assumed.calls:,} without times take as long as computing "
            f"{PREFILL:,.0f} tokens a second and answering {DECODE:g}."
        )
    if concurrency is None and assumed.no_start:
        said.append(f"Assumed: {count(assumed.no_start, 'conversation')} without times begin with the first one.")
    if failed:
        said.append(f"Left out: {count(failed, 'conversation')} that not every strategy finished.")
    return said


def _plain(value: Value | None) -> float | None:
    return None if value is None or isinstance(value, Missing) else float(value)

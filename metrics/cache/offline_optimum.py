"""Offline optimum: the lowest bill that any placement of cache marks could reach, knowing all requests in advance.

Each block is optimised by itself. At each request `ExplicitCache` allows to read it, if it was written or read less
than a lifetime ago (that renews it for the longest lifetime, since a mark of an hour on what is read is not billed); to
write it for one of the lifetimes, so that requests from the answer on can read it; or neither.

The bound assumes any number of marks and a look-back without end. Real placements have four marks, and the parts that
they read, write for an hour and write for five minutes must follow each other in this order: so none has a lower bill.
A placement with marks of one lifetime reaches the bound if four marks and the look-back are enough, each request is
answered before the next begins, all have the same prices, and these rise in the order read, plain, write.

Since a block that can be read is read, only one choice remains: where it is first written after each pause that is too
long for any lifetime. Three things are more than a sum over blocks:

    least size   blocks before the end of the shortest prefix that can be cached are read and written with what is
                 behind them up to that end, or not at all
    overlaps     where other requests began before the answer to the one that writes, one of them may have renewed
                 the entry: the cheapest lifetime is then assumed to last. Below the reachable bill, never above
    odd prices   where writing is cheaper than plain input, or plain input cheaper than reading, the cheaper is taken

Blocks used by the same requests are merged: a step costs what it changes, a span some operations over its requests.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..prices import Price
from .mechanisms import HOUR, ExplicitRules
from .prefixes import CacheRequest, common

LIFETIMES = (300.0, HOUR)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


class Bound(NamedTuple):
    """Lowest bill of all requests of a result."""

    cost: float  # US dollars of their input
    read: int  # tokens; read, written, written_1h and fresh add up to all of the input
    written: int  # tokens written for less than an hour
    written_1h: int
    fresh: int


def lowest(
    requests: Iterable[tuple[CacheRequest, Price]], rules: ExplicitRules, lifetimes: Sequence[float] = LIFETIMES
) -> Bound:
    """Return the bound for the requests of one result, in the order they started, each with its price.

    `lifetimes` are the seconds that a mark may last. Only prefixes, ends, tokens and times of a request are read, and
    none of its lists is kept. Equal prefixes are assumed to have equal ends.
    """
    tree = _Tree()
    rows, plain, whole = list[tuple[float, ...]](), list[float](), 0
    for step, (request, price) in enumerate(requests):
        tree.add(step, request.prefixes, request.ends)
        writes = [price.write_1h if lifetime >= HOUR else price.write for lifetime in lifetimes]
        unread = min(price.input, *writes)  # the lowest price of a token that is not read
        rows.append((request.started, request.answered, unread, price.read, *writes))
        # What is behind the last block (the priming of the reply) can never be cached, nor a prompt that is too short:
        # both cost the input price, also where writing would be cheaper.
        cached = tree.tokens if tree.tokens >= rules.least else 0
        plain.append(cached * unread + (request.tokens - cached) * price.input)
        whole += request.tokens
    started, answered, least, reads, *columns = np.array(rows, np.float64).reshape(-1, 4 + len(lifetimes)).T
    extra = [(lifetime, prices - least) for lifetime, prices in zip(lifetimes, columns, strict=True)]
    steps = _Steps(started, answered, np.maximum(least - reads, 0.0), extra, max(lifetimes))
    blocks = [(tokens, _written(steps, asking)) for tokens, asking in tree.spans(rules.least)]
    read, written, hour = (sum(tokens * times[at] for tokens, (_, times) in blocks) for at in range(3))
    cost = math.fsum(plain) - math.fsum(tokens * gain for tokens, (gain, _) in blocks)
    return Bound(cost, read, written, hour, whole - read - written - hour)


class _Steps(NamedTuple):
    """Times and prices of all requests; prices are dollars per token."""

    started: Floats
    answered: Floats
    saved: Floats  # dollars saved by reading a token instead of paying the plain price
    writes: Sequence[tuple[float, Floats]]  # for each lifetime, the extra cost of writing a token over the plain price
    longest: float  # the longest lifetime


def _written(steps: _Steps, asking: Ints) -> tuple[float, tuple[int, int, int]]:
    """Optimise a block used by these requests, written at most once between two pauses of the longest lifetime or more.

    All requests from the first that can read to the next such pause read. Return the dollars gained per token, compared
    with paying the plain price every time, and how often it is read, written, and written for an hour.
    """
    size = len(asking)
    if size < 2:
        return 0.0, (0, 0, 0)
    # All arrays have one entry per request that uses the block, in order of start. Started at 0, 100, 5,000 and 5,100,
    # each answered after 10 s, with an hour as the longest lifetime: sessions 0 0 1 1, stop 2 2 4 4, reader 1 2 3 4,
    # age 100, 4,900, 100, 0. The first and third have a reader before their stop, so only writing there can gain.
    started, after = steps.started[asking], np.arange(1, size + 1)
    begins = np.flatnonzero(np.diff(started, prepend=-np.inf) >= steps.longest)
    session = np.repeat(np.arange(len(begins)), np.diff(begins, append=size))
    stop = np.append(begins[1:], size)[session]
    # The first request that may read what this one writes: begun when the answer was there, and never itself.
    reader = np.maximum(np.searchsorted(started, steps.answered[asking]), after)
    # With other requests between, one of them may have renewed the entry: an age of 0 lets any lifetime last.
    age = np.where(reader == after, started[np.minimum(reader, size - 1)] - started, 0.0)
    # The extra cost of writing for the cheapest lifetime over this age, and whether it is an hour.
    extra, hours = np.full(size, np.inf), np.zeros(size, dtype=np.bool_)
    for lifetime, prices in steps.writes:
        price = prices[asking]
        better = (age < lifetime) & (price < extra)
        extra[better], hours[better] = price[better], lifetime >= HOUR
    saved = np.append(0.0, np.cumsum(steps.saved[asking]))
    gain = np.where(reader < stop, saved[stop] - saved[reader] - extra, 0.0)
    best = np.flatnonzero((gain > 0) & (gain == np.maximum.reduceat(gain, begins)[session]))
    best = best[np.diff(session[best], prepend=-1) > 0]  # of several that are as good, the first
    hour = int(hours[best].sum())
    return float(gain[best].sum()), (int((stop - reader)[best].sum()), len(best) - hour, hour)


@dataclass(slots=True)
class _Span:
    """Consecutive blocks used by the same requests."""

    first: int  # place of the first block
    before: int  # tokens before it
    blocks: array[int]  # prefixes, by their numbers
    ends: array[int]
    steps: list[int] = field(default_factory=list)  # requests that end with the last block of the span
    next: list[_Span] = field(default_factory=list)  # spans that follow the last block in other requests

    @property
    def stop(self) -> int:
        return self.first + len(self.blocks)


class _Tree:
    """Tree of the prefixes of all requests. Adding one costs the blocks that it does not share with the one before."""

    def __init__(self) -> None:
        self._all: list[_Span] = []
        self._known: dict[int, _Span] = {}  # by their first prefix
        self._open: list[_Span] = []  # spans along the path of the last request
        self._path: list[int] = []
        self.tokens = 0
        """Tokens of the blocks of the last request."""

    def add(self, step: int, path: Sequence[int], ends: Sequence[int]) -> None:
        opened, at = self._open, common(self._path, path)
        self._path[at:] = path[at:]
        # Spans that begin behind what both requests share are left. The one in which they part is cut there, so that
        # each span is used whole or not at all.
        while opened and opened[-1].first >= at:
            opened.pop()
        if opened and opened[-1].stop > at:
            self._split(opened[-1], at)
        while at < len(path):
            span = self._known.get(path[at])
            if span is None:
                span = self._add(_Span(at, ends[at - 1] if at else 0, array("q", path[at:]), array("q", ends[at:])))
                if opened:
                    opened[-1].next.append(span)
            elif (shared := common(span.blocks, path[at : span.stop])) < len(span.blocks):
                self._split(span, at + shared)
            opened.append(span)
            at = span.stop
        self.tokens = ends[-1] if ends else 0
        if opened:
            opened[-1].steps.append(step)

    def _add(self, span: _Span) -> _Span:
        self._all.append(span)
        self._known[span.blocks[0]] = span
        return span

    def _split(self, span: _Span, at: int) -> None:
        """Make the blocks from this place on a span of their own."""
        cut = at - span.first
        behind = _Span(at, span.ends[cut - 1], span.blocks[cut:], span.ends[cut:], span.steps, span.next)
        del span.blocks[cut:], span.ends[cut:]
        span.steps, span.next = [], [self._add(behind)]

    def spans(self, least: int) -> Iterator[tuple[int, Ints]]:
        """Yield the tokens of every span with the requests that use it.

        Blocks before the end of the shortest prefix that can be cached count to the span in which it ends."""
        asking: dict[int, npt.NDArray[Any]] = {}
        # A span begins behind the one that it follows, so every span comes after those that go on from it, which have
        # left their requests in `asking`. Each list of them is taken by one span, and sorting sorted runs is merging.
        for span in sorted(self._all, key=lambda span: span.first, reverse=True):
            parts = [np.array(span.steps, dtype=np.intp), *(asking.pop(behind.blocks[0]) for behind in span.next)]
            steps = asking[span.blocks[0]] = np.sort(np.concatenate(parts), kind="stable")
            if span.ends[-1] >= least:
                # With 1,024 as the least: of spans up to 600 and on to 1,500 the first yields nothing, the second
                # 1,500.
                yield span.ends[-1] - (span.before if span.before >= least else 0), steps

"""The lowest bill that cache marks could have reached, known in hindsight: a bound on every placement of them.

It asks of each block by itself what `Explicit` allows and each request chooses:

    read      if it was written or read less than a lifetime ago; that renews it for the longest lifetime, since a mark
              of an hour on what is read is not billed
    write     for one of the lifetimes, so that requests from the answer on can read it
    plain     neither

As if any number of marks were allowed and the look-back had no end. Real placements have four, and what they read,
write for an hour and write for five minutes must follow each other in this order: so none has a lower bill. One with
marks of one lifetime reaches it, if four marks and the look-back are enough, each request is answered before the next
begins, all have the same prices, and these are in the order read, plain, write.

Since a block that can be read is read, what is to be found is only where it is first written after each pause that is
too long for any lifetime. Three things are more than a sum over blocks:

    least size   blocks before the end of the shortest prefix that can be cached are read and written with what is
                 behind them up to that end, or not at all
    overlaps     where others asked before the answer to the request that writes, one of them may have renewed the
                 entry: the cheapest lifetime is then taken to last. Below what can be reached, never above
    odd prices   where writing is cheaper than plain input, or plain input cheaper than reading, the cheaper is taken

Blocks that the same requests ask for are one (a stretch of the tree of prefixes), so a step costs what it changes, and
each stretch some array operations over the requests that ask for it.
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
from .explicit import HOUR, ExplicitRules
from .prefixes import CacheRequest, common

LIFETIMES = (300.0, HOUR)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class Bound(NamedTuple):
    """All requests of a cell, billed as low as marks can make it."""

    cost: float
    """US dollars of their input."""
    read: int
    """Tokens; read, written, written_1h and fresh are together all of the input."""
    written: int
    """For less than an hour."""
    written_1h: int
    fresh: int


def lowest(
    asked: Iterable[tuple[CacheRequest, Price]], rules: ExplicitRules, lifetimes: Sequence[float] = LIFETIMES
) -> Bound:
    """The bound for the requests of one cell, in the order they started, each with its price.

    `lifetimes`: those that a mark may have, in seconds. Of a request only prefixes, ends, tokens and times are read,
    and nothing of it is kept. Prefixes that are equal are taken to have equal ends.
    """
    tree = _Tree()
    times, prices, plain, whole = list[tuple[float, float]](), list[Price](), list[float](), 0
    for step, (request, price) in enumerate(asked):
        tree.add(step, request.prefixes, request.ends)
        times.append((request.started, request.answered))
        prices.append(price)
        cached = tree.tokens if tree.tokens >= rules.least else 0
        plain.append(cached * _unread(price, lifetimes) + (request.tokens - cached) * price.input)
        whole += request.tokens
    steps = _steps(times, prices, lifetimes)
    gains, read, written, hour = list[float](), 0, 0, 0
    for tokens, asking in tree.stretches(rules.least):
        found = _written(steps, asking)
        gains.append(tokens * found.gain)
        read += tokens * found.read
        written += tokens * found.written
        hour += tokens * found.written_1h
    cost = math.fsum(plain) - math.fsum(gains)
    return Bound(cost, read, written, hour, whole - read - written - hour)


class _Steps(NamedTuple):
    """Times and prices of all requests; prices are dollars per token."""

    started: Floats
    answered: Floats
    saved: Floats
    """By reading a token instead of paying for it plain."""
    writes: tuple[tuple[float, Floats], ...]
    """Of each lifetime, what writing a token costs more than to pay for it plain."""

    @property
    def longest(self) -> float:
        return max((lifetime for lifetime, _ in self.writes), default=0.0)


def _steps(times: Sequence[tuple[float, float]], prices: Sequence[Price], lifetimes: Sequence[float]) -> _Steps:
    started, answered = np.array(times, dtype=np.float64).reshape(-1, 2).T
    plain = np.array([_unread(price, lifetimes) for price in prices])
    read = np.array([price.read for price in prices])
    writes = [(each, np.array([_write(price, each) for price in prices]) - plain) for each in lifetimes]
    return _Steps(started, answered, np.maximum(plain - read, 0.0), tuple(writes))


def _write(price: Price, lifetime: float) -> float:
    return price.write_1h if lifetime >= HOUR else price.write


def _unread(price: Price, lifetimes: Sequence[float]) -> float:
    """The least that is paid for a token that is not read."""
    return min([price.input, *(_write(price, each) for each in lifetimes)])


class _Written(NamedTuple):
    """What becomes of a block where it is written as is best."""

    gain: float = 0.0
    """Dollars a token, against paying for it plain every time."""
    read: int = 0
    """How often; so are the others."""
    written: int = 0
    written_1h: int = 0


def _written(steps: _Steps, asking: Ints) -> _Written:
    """A block that these requests ask for, written at most once between two pauses of the longest lifetime or more.

    All requests from the first that can read to the next such pause read.
    """
    size = len(asking)
    if size < 2:
        return _Written()
    started, after = steps.started[asking], np.arange(1, size + 1)
    begins = np.flatnonzero(np.diff(started, prepend=-np.inf) >= steps.longest)
    session = np.repeat(np.arange(len(begins)), np.diff(begins, append=size))
    stop = np.append(begins[1:], size)[session]
    reader = np.maximum(np.searchsorted(started, steps.answered[asking]), after)
    age = np.where(reader == after, started[np.minimum(reader, size - 1)] - started, 0.0)
    extra, hours = _cheapest(steps, asking, age)
    saved = np.append(0.0, np.cumsum(steps.saved[asking]))
    gain = np.where(reader < stop, saved[stop] - saved[reader] - extra, 0.0)
    best = np.flatnonzero((gain > 0) & (gain == np.maximum.reduceat(gain, begins)[session]))
    best = best[np.diff(session[best], prepend=-1) > 0]  # of several that are as good, the first
    hour = int(hours[best].sum())
    return _Written(float(gain[best].sum()), int((stop - reader)[best].sum()), len(best) - hour, hour)


def _cheapest(steps: _Steps, asking: Ints, age: Floats) -> tuple[Floats, Flags]:
    """What writing costs more than plain input, for the cheapest lifetime over this age, and whether it is an hour."""
    extra, hours = np.full(len(age), np.inf), np.zeros(len(age), dtype=np.bool_)
    for lifetime, prices in steps.writes:
        price = prices[asking]
        better = (age < lifetime) & (price < extra)
        extra[better] = price[better]
        hours[better] = lifetime >= HOUR
    return extra, hours


@dataclass(slots=True)
class _Stretch:
    """Blocks one behind the other that the same requests ask for."""

    first: int
    """The place of the first block."""
    before: int
    """Tokens before it."""
    blocks: array[int]
    """Prefixes, by their numbers."""
    ends: array[int]
    steps: list[int] = field(default_factory=list)
    """Requests that end with the last block."""
    next: list[_Stretch] = field(default_factory=list)
    """What follows the last block in others."""

    @property
    def stop(self) -> int:
        return self.first + len(self.blocks)


class _Tree:
    """The prefixes of all requests. Costs of each what it does not share with the one before."""

    __slots__ = ("_all", "_known", "_open", "_path", "tokens")

    def __init__(self) -> None:
        self._all: list[_Stretch] = []
        self._known: dict[int, _Stretch] = {}
        """Stretches by their first prefix."""
        self._open: list[_Stretch] = []
        """Those that make up the path of the last request."""
        self._path: list[int] = []
        self.tokens = 0
        """Of the blocks of the last request."""

    def add(self, step: int, path: Sequence[int], ends: Sequence[int]) -> None:
        """One request more."""
        opened, at = self._open, common(self._path, path)
        self._path[at:] = path[at:]
        while opened and opened[-1].first >= at:
            opened.pop()
        if opened and opened[-1].stop > at:
            self._split(opened[-1], at)
        while at < len(path):
            found = self._known.get(path[at])
            if found is None:
                found = self._add(_Stretch(at, ends[at - 1] if at else 0, array("q", path[at:]), array("q", ends[at:])))
                if opened:
                    opened[-1].next.append(found)
            elif (shared := common(found.blocks, path[at : found.stop])) < len(found.blocks):
                self._split(found, at + shared)
            opened.append(found)
            at = found.stop
        self.tokens = ends[-1] if ends else 0
        if opened:
            opened[-1].steps.append(step)

    def _add(self, made: _Stretch) -> _Stretch:
        self._all.append(made)
        self._known[made.blocks[0]] = made
        return made

    def _split(self, found: _Stretch, at: int) -> None:
        """What is behind this place becomes a stretch of its own."""
        cut = at - found.first
        behind = _Stretch(at, found.ends[cut - 1], found.blocks[cut:], found.ends[cut:], found.steps, found.next)
        del found.blocks[cut:], found.ends[cut:]
        found.steps, found.next = [], [self._add(behind)]

    def stretches(self, least: int) -> Iterator[tuple[int, Ints]]:
        """The tokens of every stretch with the requests that ask for it. What is shorter than `least` by itself counts
        to the stretch in which prefixes become as long."""
        asking: dict[int, npt.NDArray[Any]] = {}
        for each in sorted(self._all, key=lambda each: each.first, reverse=True):
            parts = [np.array(each.steps, dtype=np.intp), *(asking.pop(behind.blocks[0]) for behind in each.next)]
            steps = asking[each.blocks[0]] = np.sort(np.concatenate(parts), kind="stable")
            if each.ends[-1] >= least:
                yield each.ends[-1] - (each.before if each.before >= least else 0), steps

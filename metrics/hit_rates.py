"""Hit rates of a cache on a trace of accesses, and upper bounds for any cache. Pure functions of arrays.

The token hit rate is the share of the tokens of all accesses that need not be loaded. `compulsory` are first accesses
of an item, which no cache hits. `most_hits` and `most_hits_fluid` bound policies that know the future, `most_expected`
those that know how popular each item is, but not what comes next.

`counted` marks the accesses that count: a trace may begin with some that fill the cache, and arriving messages are no
look-ups. A rate over no accesses is missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .value import Missing, Value

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

NOTHING = Missing("undefined", "no access counts")


class Rates(NamedTuple):
    """Hit rate and token hit rate, over the accesses that count."""

    hits: Value
    tokens: Value


def rates(hits: Flags, tokens: Ints, counted: Flags) -> Rates:
    """Return the hit rate and the token hit rate. `tokens` has the tokens of each access."""
    hit = hits & counted
    return _of_all(int(hit.sum()), int(tokens[hit].sum()), tokens, counted)


def _of_all(hits: float, hit_tokens: float, tokens: Ints, counted: Flags) -> Rates:
    """Return hits, and their tokens, as shares of all that count."""
    accesses = int(counted.sum())
    if not accesses:
        return Rates(NOTHING, NOTHING)
    return Rates(float(hits / accesses), float(hit_tokens / int(tokens[counted].sum())))


def compulsory(ids: Ints, tokens: Ints, counted: Flags) -> Rates:
    """Return the share of accesses, and of their tokens, that are the first of their item."""
    return rates(previous(ids) < 0, tokens, counted)


def most_hits(ids: Ints, tokens: Ints, counted: Flags, capacity: int) -> Rates:
    """Return bounds on the hit rate and the token hit rate of any policy on this trace, for items of any size.

    To hit, an item must lie in the cache from its last access to this one: tokens × time. A cache of c tokens has
    c × time to give away. The cheapest hits are bought first, and the last in part: PFOO-L (Berger, Beckmann and
    Harchol-Balter, "Practical Bounds on Optimal Caching with Variable Object Sizes", SIGMETRICS 2018). It is never
    too low. It does not bound policies that preload items before their first access.
    """
    # A B A B, each of one token, with room for one: the budget is 1 x 3, each hit costs 2, so 1.5 are bought. A cache
    # can have one of them: this bound counts room over all of the time, not at each moment.
    before = previous(ids)
    chosen = counted & (before >= 0) & (tokens <= capacity)
    length, size = (np.arange(len(ids)) - before)[chosen], tokens[chosen]
    budget, values = float(capacity) * max(len(ids) - 1, 0), (np.ones(len(size)), size.astype(np.float64))
    hits, hit_tokens = (_bought(length * size, value, budget) for value in values)
    return _of_all(hits, hit_tokens, tokens, counted)


def _bought(cost: Ints, value: Floats, budget: float) -> float:
    """Return the most value that the budget buys, the last piece in part."""
    worth = np.flatnonzero(value > 0)
    cost, value = cost[worth], value[worth]
    # What gives most for its cost first, the last in part: no choice of whole pieces is worth more.
    order = np.argsort(cost / value, kind="stable")
    spent = np.cumsum(cost[order], dtype=np.float64)
    whole = int(np.searchsorted(spent, budget, side="right"))
    total = float(value[order[:whole]].sum())
    if whole < len(order):
        remaining = budget - (spent[whole - 1] if whole else 0.0)
        total += float(value[order[whole]]) * remaining / float(cost[order[whole]])
    return total


def most_hits_fluid(ids: Ints, tokens: Ints, counted: Flags, capacity: int) -> Rates:
    """Return tighter bounds: at every moment what lies in the cache must fit, though items may be held in part.

    This is the relaxation of the exact problem to fractions (FOO, in the same paper), as a linear program. Of items of
    one size it is the optimum itself. Takes seconds for 20 000 accesses.
    """
    before = previous(ids)
    ends = np.flatnonzero(counted & (before >= 0) & (tokens <= capacity))
    starts, size = before[ends], tokens[ends].astype(np.float64)
    hits, hit_tokens = (_fluid(starts, ends, size, value, float(capacity)) for value in (np.ones(len(ends)), size))
    return _of_all(hits, hit_tokens, tokens, counted)


def _fluid(starts: Ints, ends: Ints, size: Floats, value: Floats, capacity: float) -> float:
    """Return the most value of intervals, taken in part, such that those open after any start fit in the capacity.

    Variables: the part of each interval that is taken, then what lies in the cache after each start.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    if not len(starts):
        return 0.0
    moments = np.unique(starts)
    count, slots = len(starts), len(moments)
    opens, closes = np.searchsorted(moments, starts), np.searchsorted(moments, ends)
    done, load = np.flatnonzero(closes < slots), np.arange(slots)
    # One equation for each start: what lies in the cache is what lay there before, with the parts that begin and
    # without those that have ended. Sums over all open intervals would fill the table; this has a few entries in a row.
    rows = np.concatenate([opens, closes[done], load, load[1:]])
    columns = np.concatenate([np.arange(count), done, count + load, count + load[:-1]])
    entries = np.concatenate([-size, size[done], np.ones(slots), -np.ones(slots - 1)])
    table = coo_array((entries, (rows, columns)), shape=(slots, count + slots)).tocsr()
    limits = np.concatenate([np.ones(count), np.full(slots, capacity)])
    solution = linprog(
        np.concatenate([-value, np.zeros(slots)]),
        A_eq=table,
        b_eq=np.zeros(slots),
        bounds=np.column_stack([np.zeros(count + slots), limits]),
        method="highs-ds",
    )
    return float(-solution.fun)


def most_expected(popularity: Floats, sizes: Ints, capacity: int) -> float:
    """Return the expected hit rate of a cache that holds what is most popular for its size, under independent accesses.

    Of items of one size no policy that cannot see the future does better in the long run (A0: Aho, Denning and Ullman,
    "Principles of Optimal Page Replacement", JACM 1971). Of other sizes the last item is held in part.
    """
    return _bought(sizes, popularity, float(capacity)) / float(popularity.sum())


def previous(ids: Ints) -> Ints:
    """Return, for each access, the place of the access before it to the same item; -1 for a first access."""
    # Accesses to one item stand side by side and in time, since sorting is stable.
    order = np.argsort(ids, kind="stable")
    before = np.full(len(ids), -1, np.int64)
    same = ids[order[1:]] == ids[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before

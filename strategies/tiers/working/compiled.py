"""LRU-K as machine code: `lru_k.py` in arrays, at millions of accesses a second, with the same victims as `LruK`.

It imports numba (the extra `tiers`), so `traces.py` imports it only when it is needed.

Two queues are linked lists, `after` and `before`: items that may be within their correlated period, with item n as both
ends, and items whose HIST(q, K) is empty, with n + 1 as both ends. Both are in order of LAST, so the second needs no
heap (except for ties by arrival, which go into the heap). The heap has entries (HIST(q, K), order, q). A hit outdates
the entry of its item, which is then skipped; outdated entries are removed once they outnumber the others.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

SPARE = 1024
_compiled: Callable[[Any], Any] = njit(cache=True)


@_compiled
def append(after: Any, before: Any, end: int, item: int) -> None:
    """Append an item to a queue."""
    last = before[end]
    before[item], after[item] = last, end
    after[last] = before[end] = item


@_compiled
def take(after: Any, before: Any, item: int) -> None:
    """Remove an item from its queue."""
    after[before[item]], before[after[item]] = after[item], before[item]


@_compiled
def _lru_k(
    ids: Any, tokens: Any, times: Any, n: int, capacity: int, k: int, correlated: float, retained: float, fifo: bool
) -> Any:
    """Return whether each access is a hit, and the victims in order."""
    hits = np.zeros(len(ids), np.bool_)
    # Each eviction ends an admission, and each access admits at most one item: `len(ids)` places are enough.
    victims, evicted = np.empty(len(ids), np.int64), 0
    # `history` is items × K, newest first; -inf is an empty HIST. All other arrays here have one entry an item.
    history, last, order = np.full((n, k), -np.inf), np.full(n, -np.inf), np.zeros(n, np.int64)
    size_of, is_held, is_ranked = np.zeros(n, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    after, before = np.arange(n + 2), np.arange(n + 2)
    heap = [(0.0, 0, 0) for _ in range(0)]  # numba reads its type off the entry
    used, held = 0, 0
    for at in range(len(ids)):
        p, now, needed = ids[at], times[at], tokens[at]
        if is_held[p]:
            hits[at] = True
            if now - last[p] > correlated:
                span = last[p] - history[p, 0]
                for i in range(k - 1, 0, -1):
                    history[p, i] = history[p, i - 1] + span
                history[p, 0] = now
            if is_ranked[p]:
                is_ranked[p] = False
            else:
                take(after, before, p)
            if not fifo:
                order[p] = at
        elif needed > capacity:
            continue
        else:
            while used + needed > capacity:
                # The queue from n is in order of LAST, so the first item within its period ends the search.
                while after[n] != n and now - last[after[n]] > correlated:
                    q = after[n]
                    take(after, before, q)
                    if history[q, k - 1] == -np.inf and not fifo:
                        append(after, before, n + 1, q)
                        continue
                    if len(heap) > 2 * held + SPARE:
                        heap = [
                            e for e in heap if is_ranked[e[2]] and e[1] == order[e[2]] and e[0] == history[e[2], k - 1]
                        ]
                        heapify(heap)
                    heappush(heap, (history[q, k - 1], order[q], q))
                    is_ranked[q] = True
                # An empty queue points at itself, so n + 1 here means that no item has an infinite distance, and the
                # heap decides.
                victim = after[n + 1]
                while len(heap) and victim > n:
                    key, number, q = heappop(heap)
                    if is_ranked[q] and number == order[q] and key == history[q, k - 1]:
                        victim = q
                # The heap had no valid entry: all items are within their period, and the least recently used goes.
                if victim > n:
                    victim = after[n]
                # An item of the heap is in neither linked list: taking it out
                # would link its old neighbours to each other.
                if not is_ranked[victim]:
                    take(after, before, victim)
                is_held[victim] = is_ranked[victim] = False
                used -= size_of[victim]
                held -= 1
                victims[evicted] = victim
                evicted += 1
            # An item never seen has last = -inf, and its history is empty already. With retention for ever nothing
            # exceeds infinity.
            if now - last[p] > retained:
                history[p, :] = -np.inf
            for i in range(k - 1, 0, -1):
                history[p, i] = history[p, i - 1]
            history[p, 0] = now
            is_held[p], size_of[p], order[p] = True, needed, at
            used += needed
            held += 1
        last[p] = now
        append(after, before, n, p)
    return hits, victims[:evicted]


class FastReplay(NamedTuple):
    """Hits and evictions of a trace."""

    hits: NDArray[np.bool_]
    """Whether each access was a hit."""
    victims: Ints
    """Evicted items, in order."""


def lru_k(
    ids: Ints,
    capacity: int,
    tokens: Ints | None = None,
    times: NDArray[np.float64] | None = None,
    k: int = 2,
    correlated: float = 0.0,
    retained: float | None = None,
    ties: Literal["lru", "fifo"] = "lru",
) -> FastReplay:
    """Replay accesses to items numbered from 0 under LRU-K (`lru_k.LruK` explains the parameters).

    Memory is proportional to the highest number. Without `tokens` each item has size 1; without `times` the clock is
    the number of the access, from 0.
    """
    tokens = np.ones(len(ids), np.int64) if tokens is None else np.ascontiguousarray(tokens, np.int64)
    times = np.arange(len(ids), dtype=np.float64) if times is None else np.ascontiguousarray(times, np.float64)
    size, ids = int(ids.max(initial=-1)) + 1, np.ascontiguousarray(ids, np.int64)
    retention = np.inf if retained is None else float(retained)
    return FastReplay(*_lru_k(ids, tokens, times, size, capacity, k, float(correlated), retention, ties == "fifo"))

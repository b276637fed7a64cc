"""LRU-K as design document 004 writes it (§5.2), bugs included: what it would have been to ship that.

    get: on a hit, note the time · put: if it is not held, evict until there is room; note the time
    evict: of all, the one with the largest distance leaves, with its history; the first found of equals
    distance: now minus the K-th last time; infinite if there are fewer ("a period of protection")

How it differs from LRU-K (`lru_k.py`): it evicts exactly what it says it protects; among those, the first that came,
used or not; history dies with the eviction, so a returning item is new; a miss alone is not noted; its clock is in
milliseconds, so times tie, and ties go by who came first; each eviction looks at all items.

Here its size is in tokens, so it evicts until the item fits: nothing else is changed. An access is its get and, on a
miss, its put.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...parts.units import at_least
from .policy import Policy


@dataclass(eq=False)
class LruKDocument(Policy):
    """`now` is in seconds here, as everywhere: its clock has a thousand ticks in each."""

    k: int = 2
    records: dict[str, list[float]] = field(init=False, default_factory=dict)
    """Of each item the last K times in milliseconds, the oldest first; items in the order they came."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, k=self.k)

    def _hit(self, id: str) -> None:
        self._record(id)

    def _miss(self, id: str, tokens: int) -> None:
        self._room(tokens)
        self._enter(id, tokens)
        self._record(id)

    def _record(self, id: str) -> None:
        times = self.records.setdefault(id, [])
        times.append(self._milliseconds)
        del times[: -self.k]

    def _evict(self) -> None:
        victim = max(self.records, key=self._distance)
        self._take(victim)
        self._leave(victim)

    def _distance(self, id: str) -> float:
        times = self.records[id]
        return math.inf if len(times) < self.k else self._milliseconds - times[0]

    @property
    def _milliseconds(self) -> float:
        return math.floor((self.now or 0.0) * 1000)

    def _take(self, id: str) -> None:
        del self.records[id]

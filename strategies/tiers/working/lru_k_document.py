"""LRU-K as design document 004 writes it (§5.2), bugs included: the policy that following it would have shipped.

    get: on a hit, record the time · put: if it is not in the cache, evict until there is room; record the time
    evict: the item with the largest distance, with its history; the first in order of equals
    distance: now minus the K-th last time; infinite if there are fewer ("a period of protection")

It differs from LRU-K (`lru_k.py`): it evicts exactly the items that it says it protects, and of those the oldest, used
or not; history dies with the eviction, so a returning item is new; a miss alone is not recorded; its clock is in
milliseconds, so times tie, and ties go to the oldest; each eviction looks at all items.

The only change is that sizes are tokens, so it evicts until the item fits. An access is a get and, on a miss, a put.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ctxbench.scenarios.spec import PositiveInt

from .policy import Policy


@dataclass(eq=False)
class LruKDocument(Policy):
    """The document's LRU-K. `now` is in seconds, as everywhere; its own clock is in milliseconds."""

    k: PositiveInt = 2
    records: dict[str, list[float]] = field(init=False, default_factory=dict)
    """Last K times of each item in milliseconds, oldest first; items in order of admission."""

    def _hit(self, id: str) -> None:
        times = self.records.setdefault(id, [])
        times.append(self._milliseconds)
        del times[: -self.k]

    # Also for a preload, which is a put without a get: the document's put records the time.
    def _entered(self, id: str, used: bool) -> None:  # noqa: ARG002
        self._hit(id)

    def _evict(self) -> None:
        self._leave(max(self.records, key=self._distance))

    def _distance(self, id: str) -> float:
        times = self.records[id]
        return math.inf if len(times) < self.k else self._milliseconds - times[0]

    @property
    def _milliseconds(self) -> float:
        return math.floor((self.now or 0.0) * 1000)

    def _take(self, id: str) -> None:
        del self.records[id]

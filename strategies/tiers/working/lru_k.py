"""LRU-K (O'Neil, O'Neil and Weikum, SIGMOD 1993; optimality: JACM 1999).

For each item the policy keeps the times of its last K uncorrelated references, HIST(p, 1..K), and of the last
reference of any kind, LAST(p).

    a hit on p at time t
        if t - LAST(p) > correlated:                       a new reference
            span = LAST(p) - HIST(p, 1)                    length of the previous correlated period, which is left out
            HIST(p, i) = HIST(p, i-1) + span  for i = K..2
            HIST(p, 1) = t
        LAST(p) = t
    a miss on p at time t
        until there is room:
            evict the item with the smallest HIST(q, K) among those in the cache with t - LAST(q) > correlated
        HIST(p, i) = HIST(p, i-1)  for i = K..2, if its history is retained; else they are empty
        HIST(p, 1) = LAST(p) = t
    history is retained while an item is in the cache, and for `retained` after its last reference

An empty HIST(q, K) is an infinite distance: such items are evicted first. The paper leaves ties open. Here the least
recently used of equal distances is the victim (its "subsidiary policy"), also if all items are within their correlated
period. Sizes are tokens, so one victim may not be enough. `correlated` and `retained` are in the unit of the caller's
clock: accesses or seconds.

Cost: items wait in a queue, in order of LAST, until they may be evicted, and only then enter a heap; a hit removes
them. So a hit costs O(1), an eviction O(log n).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from math import floor, inf

from ctxbench.scenarios.spec import NonNegativeFloat, PositiveInt

from .policy import Policy, Ranks


@dataclass(eq=False)
class LruK(Policy):
    """LRU-K. Without history after eviction (`retained=0`) every new item is the next victim, and the cache freezes."""

    k: PositiveInt = 2
    correlated: NonNegativeFloat = 0.0
    """References this soon after the last one count as the same reference, and protect the item from eviction."""
    retained: NonNegativeFloat | None = None
    """How long after its last reference the history of an evicted item is retained; None = for ever."""
    history: dict[str, tuple[float, ...]] = field(init=False, default_factory=dict)
    """Times of the last K references, newest first, of items in the cache and of evicted items still remembered."""
    last: dict[str, float] = field(init=False, default_factory=dict)  # LAST of every item with a history
    preloaded: dict[str, float] = field(init=False, default_factory=dict)
    """Time of the preload of items in the cache that were not used since."""
    order: dict[str, int] = field(init=False, default_factory=dict)
    """Number of the last reference to each item in the cache."""
    count: int = field(init=False, default=0)
    recent: OrderedDict[str, None] = field(init=False, default_factory=OrderedDict)
    """Items that may be within their correlated period, in order of LAST or their preload."""
    kept: int = field(init=False, default=0)  # number of histories when outdated ones were last removed
    eligible: Ranks = field(init=False, default_factory=Ranks)
    """Items past their correlated period: those without K references by LAST, then the others by HIST(K)."""

    def _hit(self, id: str) -> None:
        # With k=2, correlated=10 and references at 0, 4, 20: 4 is correlated (LAST=4,
        # HIST=[0]). At 20 the burst 0..4 is left out: span = 4 - 0, so HIST = [20, 0 + 4], as
        # if the first burst were one moment at its end. The distance is 16, not 20. The first
        # use after a preload is the reference of the miss that it saved, however soon it comes.
        if self.preloaded.pop(id, None) is not None:
            self._refer(id, 0)
        elif self._now - self.last[id] > self.correlated:
            self._refer(id, self.last[id] - self.history[id][0])
        self.last[id] = self._now
        self._queue(id)

    def _entered(self, id: str, used: bool) -> None:
        # The demon below runs seldom, so a history may be there after its retention. Whether it still counts must not
        # depend on when the demon ran last.
        if id in self.history and not self._is_remembered(id):
            del self.history[id], self.last[id]
        if used:
            self._refer(id, 0)
            self.last[id] = self._now
        else:  # without a reference a retained history stays as it is
            self.preloaded[id] = self._now
        self._queue(id)
        # The paper's demon forgets histories past their retention. It looks at all: waiting until their number has
        # doubled makes that O(1) an admission on average.
        if len(self.history) > 2 * self.kept + 64:
            for other in [other for other in self.history if other not in self.tokens]:
                if not self._is_remembered(other):
                    del self.history[other], self.last[other]
            self.kept = len(self.history)

    def _evict(self) -> None:
        now = self._now
        # `recent` is in order of LAST, so the first item still in its period ends the search: all behind it are, too.
        # Each item passes from here to the heap once a use, which pays for the loop.
        while self.recent:
            id = next(iter(self.recent))
            if now - (self.preloaded[id] if id in self.preloaded else self.last[id]) <= self.correlated:
                break
            del self.recent[id]
            times = self.history.get(id, ())
            full = len(times) == self.k
            self.eligible.put(id, (1, times[self.k - 1], self.order[id]) if full else (0, self.order[id]))
        # The paper has no victim where all items are correlated. Room is needed nevertheless; LRU is its subsidiary
        # policy.
        self._leave(self.eligible.lowest() if self.eligible.of else next(iter(self.recent)))

    @property
    def _now(self) -> float:
        return self.now if self.now is not None else -inf

    def _refer(self, id: str, span: float) -> None:
        earlier = [time + span for time in self.history.get(id, ())[: self.k - 1]]
        self.history[id] = (self._now, *earlier)

    def _queue(self, id: str) -> None:
        self.count += 1
        self.order[id] = self.count
        # A use begins a new correlated period, so the item leaves the heap and waits at the end of `recent` again.
        self.eligible.of.pop(id, None)
        self.recent.pop(id, None)
        self.recent[id] = None

    def _take(self, id: str) -> None:
        self.eligible.of.pop(id, None)
        self.recent.pop(id, None)
        self.preloaded.pop(id, None)
        # HIST and LAST outlive the eviction.
        del self.order[id]

    def _is_remembered(self, id: str) -> bool:
        return id in self.history and (self.retained is None or self._now - self.last[id] <= self.retained)


@dataclass(eq=False)
class LruKDocument(Policy):
    """LRU-K as design document 004 writes it (§5.2), bugs included: the policy that following it would have shipped.

        get: on a hit, record the time · put: if it is not in the cache, evict until there is room; record the time
        evict: the item with the largest distance, with its history; the first in order of equals
        distance: now minus the K-th last time; infinite if there are fewer ("a period of protection")

    It differs from LRU-K: it evicts exactly the items that it says it protects, and of those the oldest, used or not;
    history dies with the eviction, so a returning item is new; a miss alone is not recorded; its clock is in
    milliseconds, so times tie, and ties go to the oldest; each eviction looks at all items.

    The only change is that sizes are tokens, so it evicts until the item fits. An access is a get and, on a miss, a
    put. `now` is in seconds, as everywhere.
    """

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
        now, records = self._milliseconds, self.records
        self._leave(max(records, key=lambda id: inf if len(records[id]) < self.k else now - records[id][0]))

    @property
    def _milliseconds(self) -> float:
        return floor((self.now or 0.0) * 1000)

    def _take(self, id: str) -> None:
        del self.records[id]

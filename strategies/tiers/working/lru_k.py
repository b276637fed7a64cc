"""LRU-K (O'Neil, O'Neil and Weikum, SIGMOD 1993; optimality: JACM 1999).

Of each item the times of its last K uncorrelated references are kept, HIST(p, 1..K), and of the last one, LAST(p).

    a hit on p at time t
        if t - LAST(p) > correlated:                       a new reference
            span = LAST(p) - HIST(p, 1)                    how long the last one went on: it is taken out
            HIST(p, i) = HIST(p, i-1) + span  for i = K..2
            HIST(p, 1) = t
        LAST(p) = t
    a miss on p at time t
        until there is room:
            of those held with t - LAST(q) > correlated, the one with the smallest HIST(q, K) leaves
        HIST(p, i) = HIST(p, i-1)  for i = K..2, if its history is kept; else they are empty
        HIST(p, 1) = LAST(p) = t
    history is kept while an item is held, and for `retained` after its last reference

An empty HIST(q, K) is the infinite distance: such items leave first. What the paper leaves open is settled here: of
equal distances the least recently used leaves (its "subsidiary policy"), or with `ties="fifo"` who came first; if all
are within their correlated period, the least recently used leaves. Sizes are tokens, and one victim may not be enough.
Time is the caller's: numbers of accesses, or seconds, in which `correlated` and `retained` are then meant.

Cost: items go through a queue, in order of LAST, until they may leave, and only then into a heap; a hit takes them out.
So a hit costs O(1), an eviction O(log n).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from ...parts.units import at_least
from .policy import DERIVED, Policy
from .queues import Ranks

NEVER = float("-inf")


@dataclass(eq=False)
class LruK(Policy):
    """LRU-K. Without history after eviction (`retained=0`) each newcomer is the next victim, and the cache freezes."""

    k: int = 2
    correlated: float = 0.0
    """References within this time of the last one belong to it, and protect from eviction."""
    retained: float | None = None
    """How long after the last reference the history of what left is kept; None = for ever."""
    ties: Literal["lru", "fifo"] = "lru"
    history: dict[str, list[float]] = field(init=False, default_factory=dict)
    """The times of the last references, the newest first, at most K; of what is held or has left and is remembered."""
    last: dict[str, float] = field(init=False, default_factory=dict)
    order: dict[str, int] = field(init=False, default_factory=dict)
    """Of each item held, the number of its last reference; with `ties="fifo"`, of its coming."""
    count: int = field(init=False, default=0)
    recent: dict[str, None] = field(init=False, default_factory=OrderedDict)
    """Those that may be within their correlated period, in order of LAST."""
    kept: int = field(init=False, default=0)
    """How many histories there were when they were last looked through."""
    eligible: Ranks = field(init=False, default_factory=Ranks, metadata=DERIVED)
    """The others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, k=self.k)
        at_least(0, correlated=self.correlated, retained=self.retained)

    def _hit(self, id: str) -> None:
        now, last = self._now, self.last[id]
        if now - last > self.correlated or id not in self.history:
            self._refer(id, last - self.history[id][0] if id in self.history else 0)
        self._used(id)

    def _miss(self, id: str, tokens: int) -> None:
        self._room(tokens)
        self._enter(id, tokens)
        if not self._is_remembered(id):
            self.history.pop(id, None)
        self._refer(id, 0)
        self._arrived(id)

    def _unused(self, id: str, tokens: int) -> None:
        """Its history, if there is one, stays as it is."""
        self._room(tokens)
        self._enter(id, tokens)
        self._arrived(id)

    def _evict(self) -> None:
        now = self._now
        while self.recent:
            id = next(iter(self.recent))
            if now - self.last[id] <= self.correlated:
                break
            del self.recent[id]
            self._rank(id)
        id = self.eligible.pop() if len(self.eligible) else next(iter(self.recent))
        self._take(id)
        self._leave(id)

    @property
    def _now(self) -> float:
        return self.now if self.now is not None else NEVER

    def _refer(self, id: str, span: float) -> None:
        earlier = [time + span for time in self.history.get(id, ())[: self.k - 1]]
        self.history[id] = [self._now, *earlier]

    def _arrived(self, id: str) -> None:
        self.order[id] = self.count
        self._used(id)
        if len(self.history) > 2 * self.kept + 64:
            self._look_through()

    def _used(self, id: str) -> None:
        self.count += 1
        self.last[id] = self._now
        if self.ties == "lru":
            self.order[id] = self.count
        self.eligible.drop(id)
        self.recent.pop(id, None)
        self.recent[id] = None

    def _rank(self, id: str) -> None:
        times = self.history.get(id, ())
        self.eligible.put(id, (times[self.k - 1] if len(times) == self.k else NEVER, self.order[id]))

    def _take(self, id: str) -> None:
        self.eligible.drop(id)
        self.recent.pop(id, None)
        del self.order[id]
        if id not in self.history:
            del self.last[id]

    def _is_remembered(self, id: str) -> bool:
        return id in self.history and (self.retained is None or self._now - self.last[id] <= self.retained)

    def _look_through(self) -> None:
        """Forget the histories that are over their time (the paper's demon)."""
        for id in [id for id in self.history if id not in self.tokens and not self._is_remembered(id)]:
            del self.history[id], self.last[id]
        self.kept = len(self.history)

    def _rebuild(self) -> None:
        for id in self.tokens:
            if id not in self.recent:
                self._rank(id)

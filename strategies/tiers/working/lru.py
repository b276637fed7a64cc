"""LRU: who was not used for the longest time goes first."""

from __future__ import annotations

from dataclasses import dataclass, field

from .policy import DERIVED, Policy
from .queues import Ranks


@dataclass(eq=False)
class Lru(Policy):
    """on a hit: to the end of the queue · evict: the front of the queue."""

    def _hit(self, id: str) -> None:
        self.tokens[id] = self.tokens.pop(id)

    def _evict(self) -> None:
        self._leave(next(iter(self.tokens)))


@dataclass(eq=False)
class Fifo(Policy):
    """on a hit: nothing · evict: the oldest."""

    def _hit(self, id: str) -> None:
        """It keeps its place."""

    def _evict(self) -> None:
        self._leave(next(iter(self.tokens)))


@dataclass(eq=False)
class Lfu(Policy):
    """on a hit: one more · evict: the fewest."""

    counts: dict[str, int] = field(init=False, default_factory=dict)
    since: dict[str, int] = field(init=False, default_factory=dict)
    """At which access it got this count."""
    clock: int = field(init=False, default=0)
    ranks: Ranks = field(init=False, default_factory=Ranks, metadata=DERIVED)

    def _hit(self, id: str) -> None:
        self._count(id, self.counts[id] + 1)

    def _miss(self, id: str, tokens: int) -> None:
        self._room(tokens)
        self._enter(id, tokens)
        self._count(id, 1)

    def _evict(self) -> None:
        id = self.ranks.pop()
        self._take(id)
        self._leave(id)

    def _count(self, id: str, count: int) -> None:
        self.clock += 1
        self.counts[id], self.since[id] = count, self.clock
        self.ranks.put(id, (count, self.clock))

    def _take(self, id: str) -> None:
        self.ranks.drop(id)
        del self.counts[id], self.since[id]

    def _rebuild(self) -> None:
        for id, count in self.counts.items():
            self.ranks.put(id, (count, self.since[id]))

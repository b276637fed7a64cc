"""LRU, FIFO and LFU: the policies that every other one is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field

from .policy import DERIVED, Policy, Ranks


@dataclass(eq=False)
class Lru(Policy):
    """Least recently used. Hit: move to the end of the queue · evict: the front of the queue."""

    def _hit(self, id: str) -> None:
        self.tokens[id] = self.tokens.pop(id)

    def _evict(self) -> None:
        self._leave(next(iter(self.tokens)))


@dataclass(eq=False)
class Fifo(Lru):
    """First in, first out. Hit: nothing · evict: the oldest."""

    def _hit(self, id: str) -> None:
        """Keep the item's place in the queue."""


@dataclass(eq=False)
class Lfu(Policy):
    """Least frequently used. Hit: count one more use · evict: the fewest uses, of equals the one used longest ago."""

    counts: dict[str, int] = field(init=False, default_factory=dict)
    since: dict[str, int] = field(init=False, default_factory=dict)
    """Number of the access at which the item got its count."""
    clock: int = field(init=False, default=0)
    ranks: Ranks = field(init=False, default_factory=Ranks, metadata=DERIVED)

    def _hit(self, id: str) -> None:
        self._count(id, self.counts[id] + 1)

    def _entered(self, id: str, used: bool) -> None:
        self._count(id, int(used))

    def _evict(self) -> None:
        self._leave(self.ranks.pop())

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

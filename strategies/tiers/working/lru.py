"""LRU, FIFO and LFU: the policies that every other one is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field

from .policy import Policy, Ranks


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

    ranks: Ranks = field(init=False, default_factory=Ranks)
    """Count of each item, and the number of the access at which it got that."""
    clock: int = field(init=False, default=0)

    def _hit(self, id: str) -> None:
        self._count(id, self.ranks.of[id][0] + 1)

    def _entered(self, id: str, used: bool) -> None:
        self._count(id, int(used))

    def _evict(self) -> None:
        self._leave(self.ranks.lowest())

    def _count(self, id: str, count: float) -> None:
        self.clock += 1
        self.ranks.put(id, (count, self.clock))

    def _take(self, id: str) -> None:
        del self.ranks.of[id]

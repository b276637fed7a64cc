"""Belady's MIN (IBM Systems Journal 1966): evict the item that is needed again last. It knows the future.

    hit, miss: note when the item is needed again · evict: the item whose next use is farthest; of equals the oldest

With items of one size, no policy that admits every item has more hits. With sizes in tokens it is no bound:
`BeladySize`, which evicts the largest (tokens × distance), is usually better, and neither is optimal (the problem is
NP-hard). The bound for sizes is `metrics.hit_rates.most_hits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .policy import Policy, Ranks

NEVER = float("inf")


@dataclass(eq=False)
class Belady(Policy):
    """The offline optimum for items of one size. `foresee` gives it all accesses before the first."""

    future: dict[str, list[int]] = field(init=False, default_factory=dict)
    """Remaining accesses of each item, the next one at the end."""
    clock: int = field(init=False, default=0)
    came: dict[str, int] = field(init=False, default_factory=dict)
    """Number of each item in the order in which they entered."""
    entries: int = field(init=False, default=0)
    ranks: Ranks = field(init=False, default_factory=Ranks)

    def foresee(self, ids: Sequence[str]) -> None:
        self.future, self.clock = {}, 0
        # Backwards, so that each list ends in the next use: `pop()` takes it in constant time.
        for at in range(len(ids) - 1, -1, -1):
            self.future.setdefault(ids[at], []).append(at)

    def _hit(self, id: str) -> None:
        times = self.future.get(id)
        if not times:
            raise ValueError(f"{id!r} was not foreseen: give all accesses to foresee() first")
        self.clock = times.pop()
        self._rank(id)

    def _entered(self, id: str, used: bool) -> None:
        self.came[id] = self.entries
        self.entries += 1
        (self._hit if used else self._rank)(id)

    def _rank(self, id: str) -> None:
        self.ranks.put(id, (-self._next(id), self.came[id]))

    def _next(self, id: str) -> float:
        times = self.future.get(id)
        return times[-1] if times else NEVER

    def _evict(self) -> None:
        self._leave(self.ranks.lowest())

    def _take(self, id: str) -> None:
        self.ranks.of.pop(id, None)
        del self.came[id]


@dataclass(eq=False)
class BeladySize(Belady):
    """The largest tokens × distance is evicted: a large item needed late frees the most room for the longest time.

    Of equals the one that entered first goes. All items that are never needed again are equal, so they wait in a queue
    (`ranks`); the others are looked at one by one, since their order changes with the clock.
    """

    needed: dict[str, int] = field(init=False, default_factory=dict)
    """Next access of each item that is needed again, in the order in which they entered."""

    def _rank(self, id: str) -> None:
        if times := self.future.get(id):
            self.needed[id] = times[-1]
        else:
            self.needed.pop(id, None)
            self.ranks.put(id, (self.came[id],))

    def _evict(self) -> None:
        # An item that is never needed again is infinitely far away: it goes before every other, whatever their sizes.
        if self.ranks.of:
            id = self.ranks.lowest()
        else:
            needed, tokens, clock = self.needed, self.tokens, self.clock
            # `max` returns the first of equals, and `needed` is in order of entry (a new value keeps a key's place):
            # the oldest goes.
            id = max(needed, key=lambda id: (needed[id] - clock) * tokens[id])
        self._leave(id)

    def _take(self, id: str) -> None:
        super()._take(id)
        self.needed.pop(id, None)

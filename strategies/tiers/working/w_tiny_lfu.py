"""W-TinyLFU (Einziger, Friedman, Manes, ACM Transactions on Storage 2017): a window, then admission to the main cache.

    access: count it; after 10 accesses for each item in the cache, halve all counts
    hit: move to the front of its list; promote from probation to protected, which demotes its last item if it is over
         its share
    miss: enter the window. The item pushed out of the window is a candidate: it enters probation if there is room;
          else it competes with the last of probation (then of protected), and the less frequently used is evicted

Departs from the paper: counts are exact up to 15, and counts of 0 are forgotten, where the paper approximates them with
a sketch and a doorkeeper. So results do not depend on a hash. Sizes are tokens: a candidate competes with as many
victims as it needs room for, and is admitted if it was used more often than all of them together (aggregated victims:
Einziger, Eytan, Friedman and Manes, "Lightweight Robust Size Aware Cache Management", 2021). An item larger than the
window is a candidate at once, so it may be rejected on its first access.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from ctxbench.scenarios.spec import Share, ShareBelowOne

from .policy import Policy

MOST, SAMPLE = 15, 10


@dataclass(eq=False)
class WTinyLfu(Policy):
    """`window` is the window's share of the cache, `protected` the protected list's share of the rest."""

    window: ShareBelowOne = 0.01
    protected: Share = 0.8
    lists: dict[str, OrderedDict[str, int]] = field(init=False, default_factory=dict)
    """Window, probation and protected list, each in LRU order, the last used at the end."""
    held_in: dict[str, str] = field(init=False, default_factory=dict)
    sums: dict[str, int] = field(init=False, default_factory=dict)
    counts: dict[str, int] = field(init=False, default_factory=dict)
    counted: int = field(init=False, default=0)
    is_full: bool = field(init=False, default=False)
    """Whether anything was evicted yet: before that, counts are not halved."""

    def __post_init__(self) -> None:
        super().__post_init__()
        names = ("window", "probation", "protected")
        self.lists = {name: OrderedDict() for name in names}
        self.sums = dict.fromkeys(names, 0)

    def _hit(self, id: str) -> None:
        self._count(id)
        where = self.held_in[id]
        self._move(id, "protected" if where == "probation" else where)
        limit = self._main * self.protected
        while self.sums["protected"] > limit:
            self._move(next(iter(self.lists["protected"])), "probation")

    def _admit(self, id: str, tokens: int, used: bool) -> None:
        if used:
            self._count(id)
        # The item enters before there is room: the cache may be over its capacity until `_compete` has decided who
        # leaves.
        self._store(id, tokens)
        self._put(id, "window")
        while self.sums["window"] > self.capacity - self._main:
            self._compete(next(iter(self.lists["window"])))

    @property
    def _main(self) -> int:
        return self.capacity - max(1, int(self.capacity * self.window))

    def _compete(self, candidate: str) -> None:
        """Admit a candidate to the main cache in the place of its victims, or evict it."""
        tokens = self.tokens[candidate]
        spare = self._main - self.sums["probation"] - self.sums["protected"]
        # Example: a candidate of 300 tokens used 5 times, 100 tokens to spare; victims of 120 tokens (2 uses) and 90 (2
        # uses) are needed. 5 > 2 + 2, so both go and the candidate stays. With 3 + 2 uses it would be the one to go.
        victims, votes = [], 0
        for name in ("probation", "protected"):
            for id, size in self.lists[name].items():
                if spare >= tokens:
                    break
                spare += size
                votes += self.counts.get(id, 0)
                victims.append(id)
        # The candidate loses a tie: admitting it would pay a load for no gain in frequency.
        if spare < tokens or (victims and self.counts.get(candidate, 0) <= votes):
            victims = [candidate]
        for id in victims:
            self._leave(id)
        if candidate in self.tokens:
            self._move(candidate, "probation")

    def _evict(self) -> None:
        self._leave(
            next(iter(next(self.lists[name] for name in ("probation", "protected", "window") if self.lists[name])))
        )

    def _leave(self, id: str) -> None:
        self.is_full = True
        super()._leave(id)

    def _count(self, id: str) -> None:
        self.counts[id] = min(self.counts.get(id, 0) + 1, MOST)
        self.counted += 1
        if self.counted >= SAMPLE * max(len(self.tokens), 1) and self.is_full:
            # A count of 1 becomes 0, which is forgotten: so `counts` stays in proportion to the cache.
            self.counts = {item: count // 2 for item, count in self.counts.items() if count > 1}
            # The halved counts stand for half of the sample (the paper's
            # reset divides the sample's counter with the others).
            self.counted //= 2

    def _put(self, id: str, name: str) -> None:
        self.lists[name][id] = self.tokens[id]
        self.held_in[id] = name
        self.sums[name] += self.tokens[id]

    def _move(self, id: str, name: str) -> None:
        self._take(id)
        self._put(id, name)

    def _take(self, id: str) -> None:
        name = self.held_in.pop(id)
        self.sums[name] -= self.lists[name].pop(id)

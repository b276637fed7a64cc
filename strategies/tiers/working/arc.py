"""ARC (Megiddo and Modha, FAST 2003, figure 4): two LRU lists, of items used once and of items used more often.

    hit: to the front of T2
    miss, in B1: p grows by max(1, |B2| / |B1|); replace; enter T2
    miss, in B2: p shrinks by max(1, |B1| / |B2|); replace; enter T2
    else:        T1 and B1 fill c: the last of B1 is forgotten, replace; if B1 is empty, evict the last of T1, no ghost
                 all four fill 2c: the last of B2 is forgotten, replace
                 enter T1
    replace: evict the last of T1 to B1 if T1 is over p (or at p, and the item is in B2), else the last of T2 to B2

Departs from the paper: sizes are tokens, so p moves by the item's tokens times the ratio, and each step is repeated
until the item fits. libCacheSim takes the ratio as a whole number and moves p by it, whatever the size.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from .policy import Ghosts, Policy


@dataclass(eq=False)
class Arc(Policy):
    """No parameters. `target`, the paper's p, is the size in tokens that T1 should have."""

    target: float = field(init=False, default=0.0)
    t1: OrderedDict[str, int] = field(init=False, default_factory=OrderedDict)
    t2: OrderedDict[str, int] = field(init=False, default_factory=OrderedDict)
    t1_used: int = field(init=False, default=0)
    b1: Ghosts = field(init=False, default_factory=Ghosts)
    b2: Ghosts = field(init=False, default_factory=Ghosts)

    def _hit(self, id: str) -> None:
        self._take(id)
        self.t2[id] = self.tokens[id]

    def _admit(self, id: str, tokens: int, used: bool) -> None:  # noqa: ARG002
        ghosts, others = (self.b1, self.b2) if id in self.b1.left else (self.b2, self.b1)
        if id in ghosts.left:
            # With c = 100, |B1| = 20, |B2| = 60, p = 30 and a B1 item of 10 tokens the ratio is 3 and p grows to 60.
            # The item is still in its ghost list while p is computed, so the divisor is never 0.
            step, is_in_b2 = tokens * max(1.0, others.used / ghosts.used), ghosts is self.b2
            self.target = max(self.target - step, 0) if is_in_b2 else min(self.target + step, self.capacity)
            while self.used + tokens > self.capacity:
                self._replace(is_in_b2)
            ghosts.forget(id)
            self.t2[id] = tokens
        else:
            # The order is the paper's case IV: B1 gives way before anything in the cache does, and B2 last of all,
            # since replacing may have added to it.
            while self.t1_used + self.b1.used + tokens > self.capacity and self.b1.left:
                self.b1.forget(next(iter(self.b1.left)))
            while self.used + tokens > self.capacity:
                if self.t1_used + self.b1.used + tokens > self.capacity and not self.b1.left:
                    self._leave(next(iter(self.t1)))  # without a ghost
                else:
                    self._replace()
            while self.used + self.b1.used + self.b2.used + tokens > 2 * self.capacity and self.b2.left:
                self.b2.forget(next(iter(self.b2.left)))
            self.t1[id] = tokens
            self.t1_used += tokens
        self._store(id, tokens)

    def _replace(self, is_in_b2: bool = False) -> None:
        over = self.t1_used > self.target or (is_in_b2 and self.t1_used == self.target)
        # T1 may be empty while it is at p = 0, and T2 may be empty while T1 is within p: the other list then has the
        # victim.
        items, ghosts = (self.t1, self.b1) if self.t1 and (over or not self.t2) else (self.t2, self.b2)
        id, tokens = next(iter(items.items()))
        self._leave(id)
        # This limit never binds: `_admit` holds all four lists to 2c, which is also the most one ghost list may
        # have.
        ghosts.remember(id, tokens, 2 * self.capacity)

    def _evict(self) -> None:
        self._replace()

    def _take(self, id: str) -> None:
        if id in self.t2:
            del self.t2[id]
        else:
            self.t1_used -= self.t1.pop(id)

"""S3-FIFO (Yang et al., SOSP 2023, algorithm 1): a small FIFO filters, a main FIFO gives second chances.

    hit: one more use, at most 3
    miss: evict until there is room; enter M if it is in G, else S
    evict: from S if it has its share, else from M
    from S: promote the oldest to M if it was used more than once; evict the first other item into the ghost queue G
    from M: reinsert the oldest if it was used, with one use less; evict the first other item

Departs from the paper: sizes are tokens. As in the authors' later code (libCacheSim's S3FIFO), until the first eviction
items that do not fit into S enter M, and M may be over its share until the next eviction.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from ctxbench.scenarios.spec import NonNegativeFloat, Share

from .policy import Ghosts, Policy

MOST_USES = 3


@dataclass(eq=False)
class S3Fifo(Policy):
    """`small` is the share of S, `remembered` the share of G, `uses` the number of uses that promote from S to M."""

    small: Share = 0.1
    remembered: NonNegativeFloat = 0.9
    uses: Annotated[int, msgspec.Meta(ge=1, le=MOST_USES)] = 2
    s: OrderedDict[str, int] = field(init=False, default_factory=OrderedDict)
    m: OrderedDict[str, int] = field(init=False, default_factory=OrderedDict)
    s_used: int = field(init=False, default=0)
    used_again: dict[str, int] = field(init=False, default_factory=dict)
    """Uses of each item since its admission or promotion."""
    ghosts: Ghosts = field(init=False, default_factory=Ghosts)
    has_evicted: bool = field(init=False, default=False)

    def _hit(self, id: str) -> None:
        self.used_again[id] = min(self.used_again[id] + 1, MOST_USES)

    def _admit(self, id: str, tokens: int, used: bool) -> None:
        # Before the room is made, which may push this id out of the ghost queue.
        returns = self.ghosts.forget(id)
        super()._admit(id, tokens, used)
        self.used_again[id] = 0
        if returns or (not self.has_evicted and self.s_used >= self._s_share):
            self.m[id] = tokens
        else:
            self.s[id] = tokens
            self.s_used += tokens

    @property
    def _s_share(self) -> int:
        return int(self.capacity * self.small)

    def _evict(self) -> None:
        self.has_evicted = True
        is_m_over = self.used - self.s_used > self.capacity - self._s_share
        while self.s and not is_m_over:
            id, tokens = next(iter(self.s.items()))
            if self.used_again[id] < self.uses:
                self.ghosts.remember(id, tokens, int(self.capacity * self.remembered))
                self._leave(id)
                return
            self.s_used -= self.s.pop(id)
            self.m[id] = tokens
            self.used_again[id] = 0
        # M is over its share, or every item of S was promoted: M has the victim.
        while True:
            id = next(iter(self.m))
            if not self.used_again[id]:
                self._leave(id)
                return
            # Each round takes one use off, and nothing has more than 3:
            # the loop ends in the fourth round at the latest.
            self.used_again[id] -= 1
            self.m[id] = self.m.pop(id)

    def _take(self, id: str) -> None:
        del self.used_again[id]
        if id in self.m:
            del self.m[id]
        else:
            self.s_used -= self.s.pop(id)

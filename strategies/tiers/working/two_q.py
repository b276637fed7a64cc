"""2Q, the full version (Johnson and Shasha, VLDB 1994): new items enter a FIFO; returning ones enter an LRU.

    hit in Am: to its front · hit in A1in: nothing
    miss, in A1out: make room, enter Am · else: make room, enter A1in
    make room: while A1in is over its share, evict its oldest into the ghost queue A1out; else evict the last of Am

Departs from the paper: sizes are tokens, and shares are of tokens; an item that returns leaves A1out before room is
made for it, so that it cannot push itself out; if Am is empty, A1in is the victim though it is within its share.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from ctxbench.scenarios.spec import NonNegativeFloat, Share

from .policy import Ghosts, Policy


@dataclass(eq=False)
class TwoQ(Policy):
    """`waiting` is Kin and `remembered` is Kout, as shares of the capacity. The defaults are the paper's."""

    waiting: Share = 0.25
    remembered: NonNegativeFloat = 0.5
    a1in: OrderedDict[str, int] = field(init=False, default_factory=OrderedDict)
    am: OrderedDict[str, int] = field(init=False, default_factory=OrderedDict)
    a1in_used: int = field(init=False, default=0)
    a1out: Ghosts = field(init=False, default_factory=Ghosts)

    def _hit(self, id: str) -> None:
        if id in self.am:
            self.am[id] = self.am.pop(id)

    def _admit(self, id: str, tokens: int, used: bool) -> None:
        # Before the room is made: evictions from A1in push old ids out of A1out, and this id could be one of them.
        returns = self.a1out.forget(id)
        super()._admit(id, tokens, used)
        if returns:
            self.am[id] = tokens
        else:
            self.a1in[id] = tokens
            self.a1in_used += tokens

    def _evict(self) -> None:
        if self.a1in_used > int(self.capacity * self.waiting) or not self.am:
            id, tokens = next(iter(self.a1in.items()))
            self.a1out.remember(id, tokens, int(self.capacity * self.remembered))
        else:
            id = next(iter(self.am))
        self._leave(id)

    def _take(self, id: str) -> None:
        if id in self.am:
            del self.am[id]
        else:
            self.a1in_used -= self.a1in.pop(id)

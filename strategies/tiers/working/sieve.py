"""SIEVE (Zhang et al., NSDI 2024, algorithm 1): a FIFO queue in which nothing moves, and a hand that goes round it.

hit: mark the item
miss: evict until there is room; enter at the head, unmarked
evict: while the hand is at a marked item, unmark it and go on towards the head, from the head back to the tail;
       the unmarked item is the victim, and the hand stays before it
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from .policy import Policy

Marks = OrderedDict[str, bool]


@dataclass(eq=False)
class Sieve(Policy):
    """One bit per item. The queue is cut at the hand, so that going on moves an item from one part to the other."""

    ahead: Marks = field(init=False, default_factory=OrderedDict)
    """Whether each item from the hand to the head is marked, the oldest first. Empty only if the cache is."""
    behind: Marks = field(init=False, default_factory=OrderedDict)
    """The items from the tail to the hand."""

    def _hit(self, id: str) -> None:
        self._part(id)[id] = True

    def _entered(self, id: str, used: bool) -> None:  # noqa: ARG002
        self.ahead[id] = False

    def _evict(self) -> None:
        while self.ahead[id := next(iter(self.ahead))]:
            del self.ahead[id]
            self.behind[id] = False
            self._turn()
        self._leave(id)

    def _take(self, id: str) -> None:
        del self._part(id)[id]
        self._turn()

    def _part(self, id: str) -> Marks:
        return self.ahead if id in self.ahead else self.behind

    def _turn(self) -> None:
        """Go on from the head to the tail."""
        if not self.ahead:
            self.ahead, self.behind = self.behind, self.ahead

"""SIEVE (Zhang et al., NSDI 2024, algorithm 1): a FIFO queue in which nothing moves, and a hand that goes round it.

hit: mark the item
miss: evict until there is room; enter at the head, unmarked
evict: while the hand is at a marked item, unmark it and go on towards the head, from the head back to the tail;
       the unmarked item is the victim, and the hand stays before it
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from .policy import DERIVED, Policy

Link = dict[str | None, str | None]


@dataclass(eq=False)
class Sieve(Policy):
    """One bit per item."""

    marked: dict[str, bool] = field(init=False, default_factory=OrderedDict)
    """Whether each item is marked, the oldest (the tail) first."""
    hand: str | None = field(init=False, default=None)  # item at the hand; None = at the tail
    # The two links form a ring through None: `newer[None]` is the tail
    # and `older[None]` the head, so neither end is a special case.
    newer: Link = field(init=False, default_factory=lambda: {None: None}, metadata=DERIVED)
    """Next newer item; for None the tail, for the head None."""
    older: Link = field(init=False, default_factory=lambda: {None: None}, metadata=DERIVED)

    def _hit(self, id: str) -> None:
        self.marked[id] = True

    def _entered(self, id: str, used: bool) -> None:  # noqa: ARG002
        self.marked[id] = False
        self._link(id)

    def _evict(self) -> None:
        id = self.hand if self.hand is not None else self.newer[None]
        assert id is not None
        while self.marked[id]:
            self.marked[id] = False
            id = self.newer[id] or self.newer[None]
            assert id is not None
        # The hand is set on the victim first: `_take` then moves it to the next newer item, or to None, which is the
        # tail again.
        self.hand = id
        self._leave(id)

    def _take(self, id: str) -> None:
        before, after = self.older.pop(id), self.newer.pop(id)
        self.newer[before], self.older[after] = after, before
        del self.marked[id]
        if self.hand == id:
            self.hand = after

    def _link(self, id: str) -> None:
        head = self.older[None]
        self.newer[head] = self.older[None] = id
        self.newer[id], self.older[id] = None, head

    def _rebuild(self) -> None:
        for id in self.marked:
            self._link(id)

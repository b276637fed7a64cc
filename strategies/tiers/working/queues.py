"""Items in order of a rank, the first to go at the front: a heap in which what changed is left behind and skipped."""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush

import msgspec

Rank = tuple[float, int]


class Ranks:
    """At most twice as many entries as items, and a few."""

    __slots__ = ("_heap", "_of")

    def __init__(self) -> None:
        self._heap: list[tuple[Rank, str]] = []
        self._of: dict[str, Rank] = {}

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, id: str) -> bool:
        return id in self._of

    def put(self, id: str, rank: Rank) -> None:
        """Give an item a rank, whether it has one or not. No two items have the same."""
        self._of[id] = rank
        if len(self._heap) > 2 * len(self._of) + 64:
            self._heap = [(each, name) for name, each in self._of.items()]
            heapify(self._heap)
        else:
            heappush(self._heap, (rank, id))

    def drop(self, id: str) -> None:
        """Take an item out, if it is there."""
        self._of.pop(id, None)

    def pop(self) -> str:
        """Take the first item out. There must be one."""
        while True:
            rank, id = heappop(self._heap)
            if self._of.get(id) == rank:
                del self._of[id]
                return id


class Ghosts(msgspec.Struct):
    """A queue of those that left."""

    left: dict[str, int] = msgspec.field(default_factory=OrderedDict)
    """Id and tokens."""
    used: int = 0

    def __post_init__(self) -> None:
        self.left = OrderedDict(self.left)  # its front is cheap to take, that of a dict is not

    def __contains__(self, id: str) -> bool:
        return id in self.left

    def __len__(self) -> int:
        return len(self.left)

    def remember(self, id: str, tokens: int, limit: int) -> None:
        """Note that an item left. The oldest are forgotten where they are over `limit` tokens together."""
        if tokens > limit:
            return
        while self.used + tokens > limit:
            self.forget(next(iter(self.left)))
        self.left[id] = tokens
        self.used += tokens

    def forget(self, id: str) -> bool:
        """Whether it was there; it no longer is."""
        tokens = self.left.pop(id, None)
        self.used -= tokens or 0
        return tokens is not None

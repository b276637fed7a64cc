"""The heat of items, and the policies that choose which of them leave a tier.

The heat of an item is α · recency + β · frequency + γ · relevance, each from 0 to 1 (004 §4.4, §5.1):

    recency    ½ ^ (age of the last use / half-life)
    frequency  n / (n + 1), where each use counts ½ ^ (its age / half-life)
    relevance  to the current context, from the caller; 0 without one

Departs from the document, which adds 1 / (milliseconds + 1), a bare count and a relevance: the first is nothing after a
second, and the second outweighs all else. Its threshold of 0.7 and its decay of hotness need a score that has a maximum
and falls by itself. An item used once has 0.5 + 0.15 at that moment with the default weights; used twice, 0.7.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple, Protocol

HALF_LIFE = 600.0
"""Seconds. Assumed: the length of a person's pause, not of a night."""
COLD = 0.1
"""Heat below which soft pressure and decay evict an item. Assumed.

With the default weights an item used once reaches it after 2.9 half-lives, one used ten times at once after 4.7.
"""


class HeatWeights(NamedTuple):
    """Weights of recency, frequency and relevance. They add up to 1."""

    lru: float = 0.5
    lfu: float = 0.3
    semantic: float = 0.2


class Heat:
    """Last use and decayed number of uses of each item."""

    __slots__ = ("half_life", "relevance", "uses", "weights")

    def __init__(self, half_life: float = HALF_LIFE, relevance: Callable[[str], float] | None = None) -> None:
        if not half_life > 0:
            raise ValueError(f"half_life must be above 0, not {half_life}")
        self.half_life, self.relevance = half_life, relevance
        self.weights = HeatWeights()
        self.uses: dict[str, tuple[float, float]] = {}
        """Time of the last use of each item, and its decayed uses at that time."""

    def use(self, id: str, now: float) -> None:
        """Count a use of an item."""
        # Used at 0 and again a half-life later: 1 · ½ + 1 = 1.5 uses.
        # One number an item is enough, as all uses decay alike.
        last, uses = self.uses.get(id, (now, 0.0))
        self.uses[id] = now, uses * self._decay(now - last) + 1

    def last(self, id: str) -> float:
        """Return the time of an item's last use."""
        return self.uses[id][0] if id in self.uses else float("-inf")

    def forget(self, id: str) -> None:
        """Forget an item."""
        self.uses.pop(id, None)

    def score(self, id: str, now: float) -> float:
        """Return the heat of an item, from 0 to 1. An unused item has its relevance alone."""
        lru, lfu, semantic = self.weights
        last, uses = self.uses.get(id, (now, 0.0))
        decay = self._decay(now - last)
        relevance = semantic * self.relevance(id) if semantic and self.relevance is not None else 0.0
        return (lru * decay if uses else 0.0) + lfu * (uses * decay) / (uses * decay + 1) + relevance

    def _decay(self, age: float) -> float:
        return float(0.5 ** (age / self.half_life))


class Replacement(Protocol):
    """A policy that chooses a tier's victims. It is informed of arrivals, uses and departures."""

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """Take note of an arrival. `used` is False if the item came because its use was predicted."""
        ...

    def use(self, id: str, now: float) -> None:
        """Take note of a use."""
        ...

    def gone(self, id: str) -> None:
        """Take note of a departure."""
        ...

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        """Yield victims in order, each chosen when it is needed.

        A victim that cannot be moved stays, and is yielded again the next time unless it is used. With `cold`, yield
        only items that are not worth their place even if there is room.
        """
        ...

    def state(self) -> Any:
        """Return the state as plain data."""
        ...

    def restore(self, state: Any) -> None:
        """Restore a state. Raises ValueError and changes nothing."""
        ...


class Coldest:
    """The coldest item is the victim; of equals the oldest. All its data is in the heat."""

    __slots__ = ("_heat", "_ids")

    def __init__(self, heat: Heat, ids: Collection[str]) -> None:
        """`ids` are the items of the tier in order of arrival, as they are at any moment."""
        self._heat, self._ids = heat, ids

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """Do nothing: the heat counts uses."""

    def use(self, id: str, now: float) -> None:
        """Do nothing: the heat counts uses."""

    def gone(self, id: str) -> None:
        """Do nothing: the ids come from the tier."""

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        # The order of scores changes while nobody uses anything: recency falls faster than a high frequency. So nothing
        # is stored, and all are scored; the heap then sorts only what is taken.
        scores = [(self._heat.score(id, now), at, id) for at, id in enumerate(self._ids)]
        heapq.heapify(scores)
        while scores and not (cold and scores[0][0] >= COLD):
            yield heapq.heappop(scores)[2]

    def state(self) -> None:
        """Return no state."""

    def restore(self, state: Any) -> None:
        """Restore nothing."""

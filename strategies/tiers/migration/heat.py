"""How hot an item is: α · recency + β · frequency + γ · relevance, each from 0 to 1 (004 §4.4, §5.1).

    recency    ½ ^ (age of the last use / half-life)
    frequency  n / (n + 1), where each use counts ½ ^ (its age / half-life)
    relevance  to the context of now, as the caller says; without one, 0

Departs from the document, which adds 1 / (milliseconds + 1), a bare count and a relevance: the first is nothing after a
second, and the second outweighs all else. Its threshold of 0.7 and its decay of hotness want a score that has a top and
falls by itself. Used once, an item has 0.5 + 0.15 at once with the document's default weights; used twice at once, 0.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

HALF_LIFE = 600.0
"""Seconds. Assumed: a person's pause, not a night's."""


class HeatWeights(NamedTuple):
    """What recency, frequency and relevance count. They are 1 together."""

    lru: float = 0.5
    lfu: float = 0.3
    semantic: float = 0.2


def unrelated(id: str) -> float:  # noqa: ARG001
    """Nothing is relevant to anything."""
    return 0.0


class Heat:
    """When each item was used last, and how often of late."""

    __slots__ = ("_uses", "half_life", "relevance", "weights")

    def __init__(self, half_life: float = HALF_LIFE, relevance: Callable[[str], float] = unrelated) -> None:
        if not half_life > 0:
            raise ValueError(f"half_life must be above 0, not {half_life}")
        self.half_life, self.relevance = half_life, relevance
        self.weights = HeatWeights()
        self._uses: dict[str, tuple[float, float]] = {}
        """Of each item, the last use and the uses, as they counted then."""

    def use(self, id: str, now: float) -> None:
        """An item is used."""
        last, uses = self._uses.get(id, (now, 0.0))
        self._uses[id] = now, uses * self._left(now - last) + 1

    def last(self, id: str) -> float:
        """When an item was used last."""
        return self._uses[id][0] if id in self._uses else float("-inf")

    def forget(self, id: str) -> None:
        """An item is gone."""
        self._uses.pop(id, None)

    def score(self, id: str, now: float) -> float:
        """From 0 to 1. An item that was never used has its relevance alone."""
        lru, lfu, semantic = self.weights
        last, uses = self._uses.get(id, (now, 0.0))
        left = self._left(now - last)
        related = semantic * self.relevance(id) if semantic else 0.0
        return (lru * left if uses else 0.0) + lfu * (uses * left) / (uses * left + 1) + related

    def state(self) -> dict[str, tuple[float, float]]:
        """What it remembers, as plain data."""
        return dict(self._uses)

    def restore(self, state: dict[str, tuple[float, float]]) -> None:
        """Remember that instead."""
        self._uses = {id: (last, uses) for id, (last, uses) in state.items()}

    def _left(self, age: float) -> float:
        return float(0.5 ** (age / self.half_life))

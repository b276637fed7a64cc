"""The hybrid score of design document 004 (§5.1): α · recency + β · frequency + γ · similarity; the lowest is evicted.

    recency    0 for the least, 1 for the most recently used item in the cache, linear in time between
    frequency  uses since admission, as a share of the largest count in the cache
    similarity to the current context, 0 to 1, from `similarity`, which the tier or the benchmark sets; 0 without it

Departs from the document, which gives the weights and no scale: in its other formulas recency is 1 / (age + 1), which
is nothing after some accesses, and frequency is a count, which outweighs all else. Here each part is relative to the
items in the cache, so that the weights mean what they say. The profile `victims` is the document's 0.7 LRU + 0.3 LFU
(§4.4). Of equal scores the oldest item is evicted. Similarity changes with the context: an eviction scores all items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from .policy import TRANSIENT, Policy

Weights = tuple[float, float, float]
Profile = Literal["default", "conversation", "knowledge", "context", "victims"]
PROFILES: dict[Profile, Weights] = {
    "default": (0.5, 0.3, 0.2),
    "conversation": (0.7, 0.2, 0.1),
    "knowledge": (0.3, 0.5, 0.2),
    "context": (0.3, 0.2, 0.5),
    "victims": (0.7, 0.3, 0.0),
}


@dataclass(eq=False)
class Hybrid(Policy):
    """Weights are those of one of the document's profiles, until a tuner replaces `weights`."""

    profile: Profile = "default"
    weights: Weights = field(init=False, default=(0.0, 0.0, 0.0))
    counts: dict[str, int] = field(init=False, default_factory=dict)
    last: dict[str, int] = field(init=False, default_factory=dict)  # number of the last use of each item
    clock: int = field(init=False, default=0)
    similarity: Callable[[str], float] | None = field(init=False, default=None, metadata=TRANSIENT)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weights = PROFILES[self.profile]

    def _hit(self, id: str) -> None:
        self.clock += 1
        self.counts[id] = self.counts.get(id, 0) + 1
        self.last[id] = self.clock

    def _entered(self, id: str, used: bool) -> None:
        # A preloaded item has no use, and is as recent as one that was used now, as under LRU.
        self._hit(id)
        self.counts[id] = int(used)

    def _evict(self) -> None:
        alpha, beta, gamma = self.weights
        # A single item is its own oldest, and preloaded ones have no uses: without the 1 either would be 0 / 0.
        oldest, most = min(self.last.values()), max(1, *self.counts.values())
        span = max(self.clock - oldest, 1)
        similarity = self.similarity

        def score(id: str) -> float:
            # Example: last uses 2, 5, 10 at clock 10 and counts 4, 1, 2 give recency 0,
            # 0.375, 1 and frequency 1, 0.25, 0.5. By default (0.5, 0.3, 0.2, nothing similar)
            # scores are 0.3, 0.2625 and 0.65: the second goes, though the first is older.
            recency, frequency = (self.last[id] - oldest) / span, self.counts[id] / most
            return alpha * recency + beta * frequency + (gamma * similarity(id) if gamma and similarity else 0.0)

        self._leave(min(self.tokens, key=score))

    def _take(self, id: str) -> None:
        del self.counts[id], self.last[id]

"""The hybrid score of design document 004 (§5.1): α · recency + β · frequency + γ · similarity; the lowest leaves.

    recency    0 for who was used longest ago of those held, 1 for who was used last, by time between
    frequency  uses since it came, as a share of the most that any has
    similarity to the context of now, 0 to 1, as `similarity` says; the tier or the benchmark sets it. Without it, 0

Departs from the document, which gives the weights and no scale: in its other formulas recency is 1 / (age + 1), which
is nothing after some accesses, and frequency is a count, which outweighs all else. Here each part is a share of what is
held, so that weights mean what they say. The profile `victims` is the document's 0.7 LRU + 0.3 LFU (§4.4). Of equals,
who came first leaves. As similarity changes with the context, an eviction looks at all items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from .policy import DERIVED, Policy

Weights = tuple[float, float, float]
Profile = Literal["default", "conversation", "knowledge", "context", "victims"]
PROFILES: dict[Profile, Weights] = {
    "default": (0.5, 0.3, 0.2),
    "conversation": (0.7, 0.2, 0.1),
    "knowledge": (0.3, 0.5, 0.2),
    "context": (0.3, 0.2, 0.5),
    "victims": (0.7, 0.3, 0.0),
}


def unrelated(id: str) -> float:  # noqa: ARG001
    """No item is similar to anything."""
    return 0.0


@dataclass(eq=False)
class Hybrid(Policy):
    """Weighted by one of the document's profiles, or by what is put into `weights` later (a tuner may)."""

    profile: Profile = "default"
    weights: Weights = field(init=False, default=(0.0, 0.0, 0.0))
    counts: dict[str, int] = field(init=False, default_factory=dict)
    last: dict[str, int] = field(init=False, default_factory=dict)
    """The number of the last use."""
    clock: int = field(init=False, default=0)
    similarity: Callable[[str], float] = field(init=False, default_factory=lambda: unrelated, metadata=DERIVED)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weights = PROFILES[self.profile]

    def _hit(self, id: str) -> None:
        self.clock += 1
        self.counts[id] = self.counts.get(id, 0) + 1
        self.last[id] = self.clock

    def _miss(self, id: str, tokens: int) -> None:
        self._room(tokens)
        self._enter(id, tokens)
        self._hit(id)

    def _evict(self) -> None:
        alpha, beta, gamma = self.weights
        oldest, most = min(self.last.values()), max(self.counts.values())
        span = max(self.clock - oldest, 1)
        similarity = self.similarity

        def score(id: str) -> float:
            recency, frequency = (self.last[id] - oldest) / span, self.counts[id] / most
            return alpha * recency + beta * frequency + (gamma * similarity(id) if gamma else 0.0)

        victim = min(self.tokens, key=score)
        self._take(victim)
        self._leave(victim)

    def _take(self, id: str) -> None:
        del self.counts[id], self.last[id]

    def restored(self, state: dict[str, Any]) -> Self:
        made = super().restored(state)
        made.similarity = self.similarity
        return made

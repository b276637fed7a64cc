"""The adaptive tuner (004 §6.2), as a pure function: what was set, what was read, what to set.

    hit rate < 0.85             LRU weight + 0.1, to 0.8 at most; LFU − 0.05
    promotion latency > 100 ms  promotion threshold + 0.1, to 0.9 at most
    storage pressure > 0.8      zstd level + 3, to 22 at most

Departs from the document in two things. It begins at the same values at every call, so that its limits are never
reached: here each step goes on from the last. And it lets the weights add up to anything: here they are made 1 again,
and the LRU weight is at most 0.8 after that. Its comment says that the threshold is lowered to have fewer promotions;
its code raises it, which is what has that effect. There is no way back in the document, and none here: once tight, it
stays tight. Decision 20 has what it was worth.
"""

from __future__ import annotations

import msgspec

from ...parts.bounds import at_least
from .alarms import Readings
from .heat import Weights

HIT_RATE, LATENCY, PRESSURE = 0.85, 0.1, 0.8
MOST_LRU, MOST_THRESHOLD, MOST_LEVEL = 0.8, 0.9, 22


class Tuning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What can be tuned."""

    weights: Weights = Weights()
    threshold: float = 0.7
    """What is predicted is promoted only if it is hotter."""
    level: int = 9
    """Of zstd, for the blocks that the Archive writes from now on."""

    def __post_init__(self) -> None:
        at_least(0, at_most=1, threshold=self.threshold, **self.weights._asdict())
        at_least(1, at_most=MOST_LEVEL, level=self.level)
        if abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError(f"the weights must be 1 together, not {sum(self.weights)}: {tuple(self.weights)}")


def tuned(tuning: Tuning, readings: Readings) -> Tuning:
    """One step of the tuner. What was not measured changes nothing."""
    hits, latency, pressure = readings.hit_rate, readings.promotion, readings.storage_pressure
    weights, threshold, level = tuning.weights, tuning.threshold, tuning.level
    if hits is not None and hits < HIT_RATE:
        weights = _recent(weights)
    if latency is not None and latency > LATENCY:
        threshold = max(threshold, min(MOST_THRESHOLD, threshold + 0.1))
    if pressure is not None and pressure > PRESSURE:
        level = min(MOST_LEVEL, level + 3)
    return Tuning(weights, threshold, level)


def _recent(weights: Weights) -> Weights:
    """More by recency, less by frequency; 1 together."""
    lru = min(MOST_LRU, weights.lru + 0.1)
    lfu, semantic = max(0.0, weights.lfu - 0.05), weights.semantic
    if weights.lru >= MOST_LRU or not lfu + semantic:
        return weights
    lru = min(MOST_LRU, lru / (lru + lfu + semantic))
    return Weights(lru, (1 - lru) * lfu / (lfu + semantic), (1 - lru) * semantic / (lfu + semantic))

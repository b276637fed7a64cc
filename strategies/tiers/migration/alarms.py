"""The alarms of the tiers (004 §6.1): six readings, each with a target and a limit beyond which it is an alarm.

    judged(Readings(hit_rate=0.84))  →  (Alarm("working hit rate", 0.84, state="alarm", target=0.9, limit=0.85),)

A reading that was not taken is None and is not judged. On the target itself is not within it: the document says < 90 %.
Seconds and shares; whoever takes a reading says of which clock: recorded seconds and measured ones never mix.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ...parts.units import at_least
from .heat import HeatWeights


class Readings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was measured. Times in seconds, the rest are shares."""

    focus_utilisation: float | None = None
    hit_rate: float | None = None
    """Of the Working tier."""
    compression: float | None = None
    """What the Archive saves."""
    retrieval: float | None = None
    promotion: float | None = None
    demotion: float | None = None
    storage_pressure: float | None = None
    """What is stored, of what may be. For the tuner; no alarm is on it."""


class Gauge(msgspec.Struct, frozen=True):
    """One row of the table."""

    name: str
    reading: str
    target: float
    limit: float
    unit: Literal["share", "s"] = "s"

    @property
    def better(self) -> Literal["lower", "higher"]:
        """Which way the target lies of the limit."""
        return "lower" if self.target < self.limit else "higher"

    def state(self, value: float) -> Literal["good", "off target", "alarm"]:
        """Where a value stands. Raises ValueError for one that is no number."""
        if value != value:
            raise ValueError(f"{self.name} is {value!r}: a number is wanted, or None if it was not measured")
        sign = 1 if self.better == "lower" else -1
        if sign * value > sign * self.limit:
            return "alarm"
        return "good" if sign * value < sign * self.target else "off target"


GAUGES = (
    Gauge("focus utilisation", "focus_utilisation", 0.90, 0.95, "share"),
    Gauge("working hit rate", "hit_rate", 0.90, 0.85, "share"),
    Gauge("archive compression", "compression", 0.90, 0.85, "share"),
    Gauge("retrieval latency", "retrieval", 0.3, 0.5),
    Gauge("promotion latency", "promotion", 0.05, 0.1),
    Gauge("demotion latency", "demotion", 0.1, 0.2),
)


class Alarm(msgspec.Struct, frozen=True):
    """A reading that misses its target."""

    name: str
    value: float
    state: Literal["off target", "alarm"]
    target: float
    limit: float
    unit: Literal["share", "s"] = "s"


def judged(readings: Readings) -> tuple[Alarm, ...]:
    """The readings that miss their target, in the order of the table."""
    found = []
    for gauge in GAUGES:
        value: float | None = getattr(readings, gauge.reading)
        state = "good" if value is None else gauge.state(value)
        if value is not None and state != "good":
            found.append(Alarm(gauge.name, value, state, gauge.target, gauge.limit, gauge.unit))
    return tuple(found)


HIT_RATE, LATENCY, PRESSURE = 0.85, 0.1, 0.8
MOST_LRU, MOST_THRESHOLD, MOST_LEVEL = 0.8, 0.9, 22


class Tuning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What can be tuned."""

    weights: HeatWeights = HeatWeights()
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


def _recent(weights: HeatWeights) -> HeatWeights:
    """More by recency, less by frequency; 1 together."""
    lru = min(MOST_LRU, weights.lru + 0.1)
    lfu, semantic = max(0.0, weights.lfu - 0.05), weights.semantic
    if weights.lru >= MOST_LRU or not lfu + semantic:
        return weights
    lru = min(MOST_LRU, lru / (lru + lfu + semantic))
    return HeatWeights(lru, (1 - lru) * lfu / (lfu + semantic), (1 - lru) * semantic / (lfu + semantic))

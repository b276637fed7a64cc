"""The alarms of the tiers (004 §6.1): six readings, each with a target and a limit beyond which it is an alarm.

    judged(Readings(hit_rate=0.84))  →  (Alarm("working hit rate", 0.84, state="alarm", target=0.9, limit=0.85),)

A reading that was not taken is None and is not judged. On the target itself is not within it: the document says < 90 %.
Seconds and shares; whoever takes a reading says of which clock: recorded seconds and measured ones never mix.
"""

from __future__ import annotations

from typing import Literal

import msgspec


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

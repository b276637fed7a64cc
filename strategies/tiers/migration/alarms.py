"""Readings of the tiers, their alarms (004 §6.1), and the adaptive tuner.

Six readings have a target and a limit, beyond which they are an alarm. A missing reading is None and raises no alarm.
Times are recorded seconds: nothing here is measured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Annotated, NamedTuple

import msgspec

from ctxbench.scenarios.spec import Share

from ...events import Alarmed
from .jobs import PROMOTIONS, Outcome
from .selection import HeatWeights


class Readings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Readings at one moment: times in seconds, all others as shares."""

    focus_utilisation: float | None = None
    hit_rate: float | None = None
    """Hit rate of the Working tier."""
    compression: float | None = None
    """Share of bytes that the Archive saves."""
    retrieval: float | None = None
    """Time until a message that the RAG tier had is in memory: a search itself takes no recorded time."""
    promotion: float | None = None
    demotion: float | None = None
    storage_pressure: float | None = None
    """Share of the Archive's hard limit that is stored. It is for the tuner and has no alarm."""


class Gauge(NamedTuple):
    """Target and limit of one reading."""

    name: str
    reading: str
    target: float
    limit: float

    def is_alarm(self, value: float) -> bool:
        """Return whether a value is beyond the limit, seen from the target."""
        return value > self.limit if self.target < self.limit else value < self.limit


GAUGES = (
    Gauge("focus utilisation", "focus_utilisation", 0.90, 0.95),
    Gauge("working hit rate", "hit_rate", 0.90, 0.85),
    Gauge("archive compression", "compression", 0.90, 0.85),
    Gauge("retrieval latency", "retrieval", 0.3, 0.5),
    Gauge("promotion latency", "promotion", 0.05, 0.1),
    Gauge("demotion latency", "demotion", 0.1, 0.2),
)


HIT_RATE, LATENCY, PRESSURE = 0.85, 0.1, 0.8
MOST_LRU, MOST_THRESHOLD, MOST_LEVEL = 0.8, 0.9, 22


class Tuning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters that the tuner changes."""

    weights: HeatWeights = HeatWeights()
    threshold: Share = 0.7
    """Heat above which a predicted item is promoted."""
    level: Annotated[int, msgspec.Meta(ge=1, le=MOST_LEVEL)] = 9
    """zstd level of the next blocks of the Archive."""

    def __post_init__(self) -> None:
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError(
                f"the weights must be 0 or more, and 1 together, not {sum(self.weights)}: {tuple(self.weights)}"
            )


def tuning_step(tuning: Tuning, readings: Readings) -> Tuning:
    """Return the parameters after one step of the tuner. Missing readings change nothing."""
    hits, latency, pressure = readings.hit_rate, readings.promotion, readings.storage_pressure
    weights, threshold, level = tuning.weights, tuning.threshold, tuning.level
    if hits is not None and hits < HIT_RATE:
        weights = _shift_to_recency(weights)
    if latency is not None and latency > LATENCY:
        # A threshold set above the tuner's maximum stays: a step never lowers it.
        threshold = max(threshold, min(MOST_THRESHOLD, threshold + 0.1))
    if pressure is not None and pressure > PRESSURE:
        level = min(MOST_LEVEL, level + 3)
    return Tuning(weights, threshold, level)


def _shift_to_recency(weights: HeatWeights) -> HeatWeights:
    """Give recency more weight and frequency less; the weights add up to 1."""
    lru = min(MOST_LRU, weights.lru + 0.1)
    lfu, semantic = max(0.0, weights.lfu - 0.05), weights.semantic
    if weights.lru >= MOST_LRU or not lfu + semantic:
        return weights
    # From 0.5, 0.3, 0.2: 0.6, 0.25 and 0.2 make 1.05, so recency is
    # 0.571 and the others share 0.429 as 0.25 to 0.2: 0.238, 0.190.
    lru = min(MOST_LRU, lru / (lru + lfu + semantic))
    return HeatWeights(lru, (1 - lru) * lfu / (lfu + semantic), (1 - lru) * semantic / (lfu + semantic))


WINDOW, LEAST = 100, 20
"""Look-ups of the hit rate, and the fewest for it. The tuner is due after each WINDOW of look-ups."""


class GaugesState(msgspec.Struct, forbid_unknown_fields=True):
    """State of the gauges in a snapshot."""

    hits: list[bool]
    since: int
    alarms: list[str]


class Gauges:
    """Readings of the tiers over time."""

    __slots__ = ("_alarms", "_hits", "_since")

    def __init__(self, state: GaugesState | None = None) -> None:
        self._hits = deque(state.hits if state else (), WINDOW)
        self._since = state.since if state else 0
        self._alarms = set(state.alarms if state else ())

    @property
    def state(self) -> GaugesState:
        """State for a snapshot."""
        return GaugesState(list(self._hits), self._since, sorted(self._alarms))

    def look(self, hit: bool) -> None:
        """Count a look-up below Focus, which was a hit in the Working tier or not."""
        self._hits.append(hit)
        self._since += 1

    def due(self) -> bool:
        """Return whether the tuner is due: True once after each window."""
        if self._since < WINDOW:
            return False
        self._since = 0
        return True

    def read(
        self, now: float, used: float, saved: float | None, pressure: float, outcomes: Iterable[Outcome], lowest: str
    ) -> Readings:
        """Return the readings of a call from the shares of Focus used, of the Archive saved and filled, and moves.

        Promotions out of the tier `lowest` are retrievals as well.
        """
        waits: dict[bool, list[float]] = {True: [], False: []}
        retrievals: list[float] = []
        for outcome in outcomes:
            if outcome.why is None:
                wait, is_promotion = now - outcome.job.asked, outcome.job.trigger in PROMOTIONS
                waits[is_promotion].append(wait)
                if is_promotion and outcome.job.source == lowest:
                    retrievals.append(wait)
        return Readings(
            focus_utilisation=used,
            hit_rate=sum(self._hits) / len(self._hits) if len(self._hits) >= LEAST else None,
            compression=saved,
            retrieval=_mean(retrievals),
            promotion=_mean(waits[True]),
            demotion=_mean(waits[False]),
            storage_pressure=pressure,
        )

    def judge(self, readings: Readings, record: Callable[[Alarmed], None]) -> None:
        """Record each alarm when it begins and when it ends. A missing reading changes nothing."""
        for gauge in GAUGES:
            value: float | None = getattr(readings, gauge.reading)
            if value is None:
                continue
            up = gauge.is_alarm(value)
            if up != (gauge.name in self._alarms):
                record(Alarmed(gauge.name, round(value, 4), gauge.limit, up))
                (self._alarms.add if up else self._alarms.discard)(gauge.name)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None

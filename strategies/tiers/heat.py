"""The heat of items: who leaves a tier, and the readings, alarms and adaptive tuner that follow from it (004 §4.4, §6).

The heat of an item is α · recency + β · frequency + γ · relevance, each from 0 to 1 (004 §4.4, §5.1):

    recency    ½ ^ (age of the last use / half-life)
    frequency  n / (n + 1), where each use counts ½ ^ (its age / half-life)
    relevance  to the current context: 0, as searches are not made for the items of a tier

Departs from the document, which adds 1 / (milliseconds + 1), a bare count and a relevance: the first is nothing after a
second, and the second outweighs all else. Its threshold of 0.7 and its decay of hotness need a score that has a maximum
and falls by itself. An item used once has 0.65 at that moment with the default weights; used twice, 0.7.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import msgspec

from ctxbench.scenarios.spec import Share

from ..events import Alarmed
from .jobs import PROMOTIONS, Outcome

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

    def __init__(self) -> None:
        self.weights = HeatWeights()
        self.uses: dict[str, tuple[float, float]] = {}
        """Time of the last use of each item, and its decayed uses at that time."""

    def use(self, id: str, now: float) -> None:
        # Used at 0 and again a half-life later: 1 · ½ + 1 = 1.5 uses. One number an item is enough, as all uses decay
        # alike.
        last, uses = self.uses.get(id, (now, 0.0))
        self.uses[id] = now, uses * _decay(now - last) + 1

    def score(self, id: str, now: float) -> float:
        """Return the heat of an item, from 0 to 1; 0 for an unused one."""
        lru, lfu, _ = self.weights
        last, uses = self.uses.get(id, (now, 0.0))
        decay = _decay(now - last)
        return (lru * decay if uses else 0.0) + lfu * (uses * decay) / (uses * decay + 1)


def _decay(age: float) -> float:
    return float(0.5 ** (age / HALF_LIFE))


class Replacement:
    """A policy that chooses a tier's victims. It is informed of arrivals, uses and departures, and may ignore them."""

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """Take note of an arrival. `used` is False if the item came because its use was predicted."""

    def use(self, id: str, now: float) -> None:
        """Take note of a use."""

    def gone(self, id: str) -> None:
        """Take note of a departure."""

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        """Yield victims in order, each chosen when it is needed.

        A victim that cannot be moved stays, and is yielded again the next time unless it is used. With `cold`, yield
        only items that are not worth their place even if there is room.
        """
        raise NotImplementedError

    def state(self) -> Any:
        """Return the state as plain data."""

    def restore(self, state: Any) -> None:
        """Continue from the state of another of its kind."""


class Coldest(Replacement):
    """The coldest item is the victim; of equals the oldest. All its data is in the heat."""

    def __init__(self, heat: Heat, ids: Collection[str]) -> None:
        """`ids` are the items of the tier in order of arrival, as they are at any moment."""
        self._heat, self._ids = heat, ids

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        # The order of scores changes while nobody uses anything: recency falls faster than a high frequency. So nothing
        # is stored, and all are scored; the heap then sorts only what is taken.
        scores = [(self._heat.score(id, now), at, id) for at, id in enumerate(self._ids)]
        heapq.heapify(scores)
        while scores and not (cold and scores[0][0] >= COLD):
            yield heapq.heappop(scores)[2]


class Readings(msgspec.Struct, frozen=True):
    """Readings at one moment: times in seconds, all others as shares. None = there is no reading."""

    focus_utilisation: float | None = None
    hit_rate: float | None = None  # hit rate of the Working tier
    compression: float | None = None  # share of bytes that the Archive saves
    retrieval: float | None = None
    """Time until a message that the RAG tier had is in memory: a search itself takes no recorded time."""
    promotion: float | None = None
    demotion: float | None = None
    storage_pressure: float | None = None
    """Share of the Archive's hard limit that is stored. It is for the tuner and has no alarm."""


HIT_RATE, LATENCY, PRESSURE = 0.85, 0.1, 0.8
MOST_LRU, MOST_THRESHOLD, MOST_LEVEL = 0.8, 0.9, 22


class Tuning(msgspec.Struct, frozen=True):
    """Parameters that the tuner changes."""

    weights: HeatWeights = HeatWeights()
    threshold: Share = 0.7  # heat above which a predicted item is promoted
    level: Annotated[int, msgspec.Meta(ge=1, le=MOST_LEVEL)] = 9  # zstd level of the next blocks of the Archive


def tuning_step(tuning: Tuning, readings: Readings) -> Tuning:
    """Return the parameters after one step of the tuner. Missing readings change nothing."""
    hits, latency, pressure = readings.hit_rate, readings.promotion, readings.storage_pressure
    weights, threshold, level = tuning.weights, tuning.threshold, tuning.level
    if hits is not None and hits < HIT_RATE and weights.lru < MOST_LRU:
        # Recency has more weight and frequency less. From 0.5, 0.3, 0.2: 0.6, 0.25 and 0.2 make 1.05, so recency is
        # 0.571 and the others share 0.429 as 0.25 to 0.2: 0.238, 0.190.
        lru, lfu, semantic = min(MOST_LRU, weights.lru + 0.1), max(0.0, weights.lfu - 0.05), weights.semantic
        if others := lfu + semantic:
            lru = min(MOST_LRU, lru / (lru + lfu + semantic))
            weights = HeatWeights(lru, (1 - lru) * lfu / others, (1 - lru) * semantic / others)
    if latency is not None and latency > LATENCY:
        # A threshold set above the tuner's maximum stays: a step never lowers it.
        threshold = max(threshold, min(MOST_THRESHOLD, threshold + 0.1))
    if pressure is not None and pressure > PRESSURE:
        level = min(MOST_LEVEL, level + 3)
    return Tuning(weights, threshold, level)


class Gauge(NamedTuple):
    """Target and limit of one reading (004 §6.1). Beyond its limit it is an alarm."""

    name: str
    reading: str
    target: float
    limit: float


GAUGES = (
    Gauge("focus utilisation", "focus_utilisation", 0.90, 0.95),
    Gauge("working hit rate", "hit_rate", 0.90, 0.85),
    Gauge("archive compression", "compression", 0.90, 0.85),
    Gauge("retrieval latency", "retrieval", 0.3, 0.5),
    Gauge("promotion latency", "promotion", 0.05, 0.1),
    Gauge("demotion latency", "demotion", 0.1, 0.2),
)
WINDOW, LEAST = 100, 20
"""Look-ups of the hit rate, and the fewest for it. The tuner is due after each WINDOW of look-ups."""


@dataclass(slots=True)
class Gauges:
    """Readings of the tiers over time."""

    hits: list[bool] = field(default_factory=list)
    """Whether each of the last WINDOW look-ups was a hit in the Working tier."""
    since: int = 0  # look-ups since the tuner was due
    alarms: list[str] = field(default_factory=list)  # gauges whose alarm has begun and not ended

    def look(self, hit: bool) -> None:
        """Count a look-up below Focus, which was a hit in the Working tier or not."""
        self.hits.append(hit)
        del self.hits[:-WINDOW]
        self.since += 1

    def due(self) -> bool:
        """Return whether the tuner is due: True once after each window."""
        if self.since < WINDOW:
            return False
        self.since = 0
        return True

    def read(
        self, now: float, used: float, saved: float | None, stored: float | None, moves: Iterable[Outcome], lowest: str
    ) -> Readings:
        """Return the readings of a call from the shares of Focus used, of the Archive saved and filled, and its moves.

        Promotions out of the tier `lowest` are retrievals as well.
        """
        jobs = [outcome.job for outcome in moves if outcome.why is None]
        promotions = [job for job in jobs if job.trigger in PROMOTIONS]
        return Readings(
            focus_utilisation=used,
            hit_rate=sum(self.hits) / len(self.hits) if len(self.hits) >= LEAST else None,
            compression=saved,
            retrieval=_mean(now - job.asked for job in promotions if job.source == lowest),
            promotion=_mean(now - job.asked for job in promotions),
            demotion=_mean(now - job.asked for job in jobs if job.trigger not in PROMOTIONS),
            storage_pressure=stored,
        )

    def judge(self, readings: Readings, record: Callable[[Alarmed], None]) -> None:
        """Record each alarm when it begins and when it ends. A missing reading changes nothing."""
        for gauge in GAUGES:
            value: float | None = getattr(readings, gauge.reading)
            if value is None:
                continue
            # Beyond the limit, seen from the target.
            up = value > gauge.limit if gauge.target < gauge.limit else value < gauge.limit
            if up != (gauge.name in self.alarms):
                record(Alarmed(gauge.name, round(value, 4), gauge.limit, up))
                (self.alarms.append if up else self.alarms.remove)(gauge.name)


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None

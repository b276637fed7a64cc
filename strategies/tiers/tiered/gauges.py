"""The readings of the tiers, their alarms, and when the tuner is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from ...events import Alarmed
from ..migration import Outcome, Readings
from ..migration.alarms import GAUGES
from ..migration.jobs import PROMOTIONS

WINDOW, LEAST = 100, 20
"""Look-ups that the hit rate is of, and how many there must be. The tuner is due after so many more."""


class TierState(msgspec.Struct, forbid_unknown_fields=True):
    """What is remembered."""

    hits: list[bool]
    since: int
    alarms: list[str]


class Gauges:
    """What is read of the tiers. Times are recorded seconds: nothing here is measured."""

    __slots__ = ("_alarms", "_hits", "_since")

    def __init__(self, state: TierState | None = None) -> None:
        self._hits = deque(state.hits if state else (), WINDOW)
        self._since = state.since if state else 0
        self._alarms = set(state.alarms if state else ())

    @property
    def state(self) -> TierState:
        """What is remembered."""
        return TierState(list(self._hits), self._since, sorted(self._alarms))

    def look(self, hit: bool) -> None:
        """Something was looked up below Focus, and was in the Working tier or not."""
        self._hits.append(hit)
        self._since += 1

    def due(self) -> bool:
        """Whether the tuner is: asked once after each window."""
        if self._since < WINDOW:
            return False
        self._since = 0
        return True

    def read(
        self, now: float, used: float, saved: float | None, pressure: float, outcomes: Iterable[Outcome]
    ) -> Readings:
        """The readings of a call: what of Focus is used, of the Archive saved and filled, and what was moved."""
        waits: dict[bool, list[float]] = {True: [], False: []}
        for outcome in outcomes:
            if outcome.why is None:
                waits[outcome.job.trigger in PROMOTIONS].append(now - outcome.job.asked)
        return Readings(
            focus_utilisation=used,
            hit_rate=sum(self._hits) / len(self._hits) if len(self._hits) >= LEAST else None,
            compression=saved,
            promotion=_mean(waits[True]),
            demotion=_mean(waits[False]),
            storage_pressure=pressure,
        )

    def judge(self, readings: Readings, record: Callable[[Alarmed], None]) -> None:
        """Record each alarm when it begins, and when it ends. A reading that was not taken changes nothing."""
        for gauge in GAUGES:
            value: float | None = getattr(readings, gauge.reading)
            if value is None:
                continue
            up = gauge.state(value) == "alarm"
            if up != (gauge.name in self._alarms):
                record(Alarmed(gauge.name, round(value, 4), gauge.limit, up))
                (self._alarms.add if up else self._alarms.discard)(gauge.name)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None

"""The adaptive tuner, the alarms, and the heat that both are about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.events import Alarmed
from ctxbench.strategies.tiers.heat import GAUGES, HALF_LIFE, Gauges, Heat, HeatWeights, Readings, Tuning, tuning_step

BAD = Readings(hit_rate=0.84, promotion=0.101, storage_pressure=0.81)
FINE = Readings(hit_rate=0.85, promotion=0.1, storage_pressure=0.8)
SHARES = st.floats(0, 1)


@st.composite
def weights(draw: st.DrawFn) -> HeatWeights:
    lru, lfu, semantic = (draw(st.integers(0, 100)) for _ in range(3))
    total = lru + lfu + semantic
    return HeatWeights(lru / total, lfu / total, semantic / total) if total else HeatWeights()


def test_each_reading_moves_what_the_document_says() -> None:
    """Beyond its limit, not on it; what was not measured moves nothing."""
    start = Tuning()
    assert tuning_step(start, FINE) == tuning_step(start, Readings()) == start
    by_hits = tuning_step(start, Readings(hit_rate=0.84))
    assert by_hits.weights == pytest.approx((0.6 / 1.05, 0.25 / 1.05, 0.2 / 1.05))
    assert (by_hits.threshold, by_hits.level) == (0.7, 9)
    assert tuning_step(start, Readings(promotion=0.101)) == Tuning(threshold=0.7 + 0.1)
    assert tuning_step(start, Readings(storage_pressure=0.81)) == Tuning(level=12)


def test_it_stops_at_its_limits() -> None:
    """Fifty bad readings: LRU 0.8, threshold 0.9, level 22, and the weights are 1."""
    tuning = Tuning()
    for _ in range(50):
        tuning = tuning_step(tuning, BAD)
    assert tuning.weights.lru == 0.8
    assert sum(tuning.weights) == pytest.approx(1)
    assert (tuning.threshold, tuning.level) == (0.9, 22)


@given(weights(), SHARES, st.integers(1, 22), SHARES, SHARES, SHARES)
def test_one_step_stays_in_bounds(
    start: HeatWeights, threshold: float, level: int, hits: float, latency: float, pressure: float
) -> None:
    """From any setting: weights are shares of 1, nothing goes over its limit that was not, nothing goes back."""
    before = Tuning(start, threshold, level)
    after = tuning_step(before, Readings(hit_rate=hits, promotion=latency, storage_pressure=pressure))
    assert sum(after.weights) == pytest.approx(1)
    assert all(0 <= weight <= 1 for weight in after.weights)
    assert before.weights.lru - 1e-12 <= after.weights.lru <= max(0.8, before.weights.lru)
    assert before.threshold <= after.threshold <= max(0.9, before.threshold)
    assert before.level <= after.level <= 22


def test_the_table_of_alarms() -> None:
    """The six rows, as the document has them."""
    assert [(gauge.name, gauge.target, gauge.limit) for gauge in GAUGES] == [
        ("focus utilisation", 0.90, 0.95),
        ("working hit rate", 0.90, 0.85),
        ("archive compression", 0.90, 0.85),
        ("retrieval latency", 0.3, 0.5),
        ("promotion latency", 0.05, 0.1),
        ("demotion latency", 0.1, 0.2),
    ]
    alarms = list[Alarmed]()
    for value in (0.84, 0.85, 0.95, 0.96):
        Gauges().judge(Readings(focus_utilisation=value, hit_rate=value), alarms.append)
    assert [(alarm.reading, alarm.value) for alarm in alarms] == [
        ("working hit rate", 0.84),
        ("focus utilisation", 0.96),
    ]


def test_heat_falls_by_half_each_half_life() -> None:
    """Used once: 0.5 + 0.3 / 2; a half-life later 0.25 + 0.3 / 3. Never used: nothing."""
    heat = Heat()
    heat.use("a", 0)
    assert heat.score("a", 0) == pytest.approx(0.5 + 0.15)
    assert heat.score("a", HALF_LIFE) == pytest.approx(0.25 + 0.1)
    assert heat.score("b", HALF_LIFE) == 0
    heat.use("a", HALF_LIFE)
    assert heat.score("a", HALF_LIFE) == pytest.approx(0.5 + 0.3 * 1.5 / 2.5)

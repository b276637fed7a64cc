"""How well a retriever finds: worked by hand, and against the plain way to draw."""

from __future__ import annotations

import numpy as np
import pytest
from ctxbench.metrics.retrieval import Latency, interval, latency, recall
from ctxbench.metrics.value import Missing


def test_recall() -> None:
    """Of two wanted one is among the first two; a second mention counts no more; nothing wanted is undefined."""
    assert recall(["a", "b", "c"], ["b", "c"], 2) == 0.5
    assert recall(["a", "a"], ["a", "a", "b"], 5) == 0.5
    assert recall([], ["a"], 5) == 0
    assert isinstance(recall(["a"], [], 5), Missing)


def test_interval_draws_whole_conversations() -> None:
    """The same as drawing conversations one by one, and wider than if their questions were independent."""
    values = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.2, 0.3]
    groups = ["a"] * 4 + ["b"] * 4 + ["c"] * 2
    found = interval(values, groups)
    rng = np.random.default_rng(7)
    talks = [values[:4], values[4:8], values[8:]]
    means = [np.mean(np.concatenate([talks[at] for at in rng.integers(0, 3, 3)])) for _ in range(10_000)]
    assert found.mean == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=0.03)
    alone = interval(values, range(10))
    assert found.high - found.low > alone.high - alone.low  # type: ignore[operator]
    assert found == interval(values, groups)


def test_no_interval() -> None:
    """One conversation has a mean and no interval; no values have neither."""
    found = interval([0.0, 1.0], ["a", "a"])
    assert found.mean == 0.5
    assert isinstance(found.low, Missing)
    assert isinstance(interval([], []).mean, Missing)


def test_latency() -> None:
    """Percentiles; of nothing there are none."""
    assert latency(list(range(101))) == Latency(50, 95, 99)
    assert isinstance(latency([]), Missing)

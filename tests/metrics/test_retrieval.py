"""How well a retriever finds: worked by hand."""

from __future__ import annotations

from ctxbench.metrics.probes import Latency, latency, recall
from ctxbench.metrics.value import Missing


def test_recall() -> None:
    """Of two wanted one is among the first two; a second mention counts no more; nothing wanted is undefined."""
    assert recall(["a", "b", "c"], ["b", "c"], 2) == 0.5
    assert recall(["a", "a"], ["a", "a", "b"], 5) == 0.5
    assert recall([], ["a"], 5) == 0
    assert isinstance(recall(["a"], [], 5), Missing)


def test_latency() -> None:
    """Percentiles; of nothing there are none."""
    assert latency(list(range(101))) == Latency(50, 95, 99)
    assert isinstance(latency([]), Missing)

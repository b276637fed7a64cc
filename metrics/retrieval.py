"""How well a retriever finds: recall at k, and percentiles of latencies."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .value import Missing, Value


def recall(found: Sequence[Hashable], wanted: Collection[Hashable], k: int) -> Value:
    """The share of what is wanted that is among the first `k` found, each counted once."""
    each = set(wanted)
    if not each:
        return Missing("undefined", "nothing is wanted")
    return len(each.intersection(found[:k])) / len(each)


class Latency(NamedTuple):
    """Percentiles, in the unit of what was given."""

    p50: float
    p95: float
    p99: float


def latency(times: Sequence[float] | NDArray[np.float64]) -> Latency | Missing:
    """The percentiles of some times."""
    if not len(times):
        return Missing("undefined", "nothing was timed")
    return Latency(*(float(each) for each in np.percentile(np.asarray(times, np.float64), [50, 95, 99])))

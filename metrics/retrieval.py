"""How well a retriever finds: recall at k, percentiles of latencies, and intervals over whole conversations."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .value import Missing, Value

DRAWS = 10_000
LEVEL = 0.95


def recall(found: Sequence[Hashable], wanted: Collection[Hashable], k: int) -> Value:
    """The share of what is wanted that is among the first `k` found, each counted once."""
    each = set(wanted)
    if not each:
        return Missing("undefined", "nothing is wanted")
    return len(each.intersection(found[:k])) / len(each)


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: Value
    low: Value
    high: Value


def interval(values: Sequence[float], groups: Sequence[Hashable], seed: int = 0, draws: int = DRAWS) -> Interval:
    """The mean of values, and its bootstrap interval over groups (percentiles).

    Whole groups are drawn, with replacement: questions of one conversation are not independent. So one group has a
    mean and no interval.
    """
    if not values:
        return Interval(*[Missing("undefined", "no values")] * 3)
    each = np.asarray(values, np.float64)
    _, which = np.unique([str(group) for group in groups], return_inverse=True)
    sizes = np.bincount(which).astype(np.float64)
    if len(sizes) < 2:
        alone = Missing("undefined", "one conversation")
        return Interval(float(each.mean()), alone, alone)
    sums = np.bincount(which, each)
    drawn = np.random.default_rng(seed).multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), draws)
    means = (drawn @ sums) / (drawn @ sizes)
    low, high = np.percentile(means, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Interval(float(each.mean()), float(low), float(high))


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

"""C29: what recordings say of how long calls took, cached and not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...metrics.statistics.bootstrap import Floats, resampled
from ...metrics.statistics.interval import Interval
from ...metrics.value import Missing
from ...scenarios.model import Conversation
from .claim import Claimed, Measured, Row

CACHED, FRESH = 0.5, 0.1
"""Shares of a prompt read from the cache: a call with at least the first is cached, with at most the second is not."""
NONE = Missing("unsupported", "no recording was given that has calls of both kinds, with times and the cache's usage")


def recorded_latencies(said: Sequence[Conversation]) -> Measured:
    """Seconds of a cached call over those of one that is not, and what cannot be compared."""
    sums = np.array([_sums(each) for each in said], np.float64).reshape(-1, 4)
    both = sums[(sums[:, 1] > 0) & (sums[:, 3] > 0)]
    rows = (
        Row(
            setting="recorded calls, by what the provider read from its cache",
            figure="time of a call, cached over not",
            unit="times",
            found=_ratio(both),
            claimed=Claimed(most=1.2 / 2.0),
            of=f"{len(both)} conversations",
        ),
        Row(
            setting="a long dialogue, optimised over not",
            figure="time of a call",
            unit="times",
            found=Missing("unsupported", "the same dialogue is in no recording twice"),
            claimed=Claimed(most=2.5 / 5.0),
        ),
    )
    return Measured(
        rows,
        "Latency is the provider's, and a replay has none; recorded calls differ in more than the cache.",
        "Recordings (--recordings) of the same calls with and without cache and compression.",
    )


def _sums(said: Conversation) -> tuple[float, float, float, float]:
    """Seconds and number of the cached calls, then of those that are not."""
    seconds, calls = [0.0, 0.0], [0, 0]
    for message in said.messages:
        call = message.call
        if call is None or call.started is None or message.time is None or call.usage is None:
            continue
        read, whole = call.usage.cache_read, call.usage.input
        if read is None or not whole or message.time <= call.started:
            continue
        kind = 0 if read >= CACHED * whole else 1 if read <= FRESH * whole else None
        if kind is not None:
            seconds[kind] += message.time - call.started
            calls[kind] += 1
    return seconds[0], calls[0], seconds[1], calls[1]


def _ratio(sums: Floats) -> Interval | Missing:
    if not len(sums):
        return NONE

    def statistic(each: Floats) -> Floats:
        found: Floats = (each[..., 0] / each[..., 1]) / (each[..., 2] / each[..., 3])
        return found

    found = resampled(sums, statistic)
    value = float(statistic(sums.sum(axis=0)))
    if isinstance(found, Missing):
        return Interval(value, found, found)
    ends = found.interval()
    return Interval(value, max(0.0, ends.low), ends.high)

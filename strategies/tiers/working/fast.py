"""LRU-K over a trace of numbered items, at millions of accesses a second, with the same victims as `LruK`.

Needs numba (the extra `tiers`), which is imported when `lru_k` is called.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.errors import MissingExtra

from ...parts.units import at_least

Ints = NDArray[np.int64]


class FastReplay(NamedTuple):
    """Hits and evictions of a trace."""

    hits: NDArray[np.bool_]
    """Whether each access was a hit."""
    victims: Ints
    """Evicted items, in order."""
    reasons: Ints
    """The access for which each victim made room."""


def lru_k(
    ids: Ints,
    capacity: int,
    tokens: Ints | None = None,
    times: NDArray[np.float64] | None = None,
    k: int = 2,
    correlated: float = 0.0,
    retained: float | None = None,
    ties: Literal["lru", "fifo"] = "lru",
) -> FastReplay:
    """Replay accesses to items numbered from 0 under LRU-K (`lru_k.LruK` explains the parameters).

    Memory is proportional to the highest number. Without `tokens` each item has size 1; without `times` the clock is
    the number of the access, from 0. Raises ValueError for impossible values, MissingExtra without numba.
    """
    at_least(1, capacity=capacity, k=k)
    at_least(0, correlated=correlated, retained=retained)
    tokens = np.ones(len(ids), np.int64) if tokens is None else np.ascontiguousarray(tokens, np.int64)
    times = np.arange(len(ids), dtype=np.float64) if times is None else np.ascontiguousarray(times, np.float64)
    if not len(ids) == len(tokens) == len(times):
        raise ValueError(f"ids, tokens and times must have the same length: {len(ids)}, {len(tokens)}, {len(times)}")
    if len(ids) and (ids.min() < 0 or tokens.min() < 1 or (np.diff(times) < 0).any()):
        raise ValueError("items are numbered from 0, take at least 1 token, and come in order of time")
    try:
        from .compiled import lru_k as compiled
    except ModuleNotFoundError:
        raise MissingExtra("numba", "tiers") from None
    size = int(ids.max()) + 1 if len(ids) else 0
    retention = math.inf if retained is None else retained
    ids = np.ascontiguousarray(ids, np.int64)
    return FastReplay(
        *compiled(ids, tokens, times, size, capacity, k, float(correlated), float(retention), ties == "fifo")
    )

"""A trace of accesses, and what a policy does with it.

found = replay(trace, parse("lru_k"), capacity=131_072)
rates(found.hits, trace.tokens, trace.counted)          # metrics.caching
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .belady import Belady
from .hybrid import Hybrid
from .policies import PolicyRecipe
from .preload import Successors

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Likeness = Callable[[int], Sequence[float] | NDArray[np.float64]]

LONG = 50_000
"""Accesses from which LRU-K is compiled, where numba is there: the result is the same."""


@dataclass(frozen=True)
class Trace:
    """Items numbered from 0, as they are accessed one after the other."""

    name: str
    ids: Ints
    """Of each access, its item."""
    sizes: Ints
    """Of each item, its tokens."""
    times: NDArray[np.float64]
    """Of each access, the clock."""
    counted: Flags
    """Of each access, whether it is a look-up; else it fills the cache, or is a message that arrives."""
    likeness: Likeness | None = None
    """How similar every item is to the context at an access, 0 to 1; for the hybrid score."""
    popularity: NDArray[np.float64] | None = None
    """How probable each item is at a look-up, where look-ups are independent of each other."""

    @cached_property
    def tokens(self) -> Ints:
        """Of each access, the tokens of its item."""
        return self.sizes[self.ids]

    @cached_property
    def names(self) -> list[str]:
        """Of each access, its item as an id."""
        texts = [str(item) for item in range(len(self.sizes))]
        return [texts[item] for item in self.ids.tolist()]


@dataclass(frozen=True, slots=True)
class TraceReplay:
    """What a cache did with a trace."""

    hits: Flags
    evictions: int
    loaded: int
    """Tokens brought in on misses that count, those of items that were refused with them."""
    preloaded: int = 0
    """Tokens brought in because they were predicted."""


def replay(trace: Trace, recipe: PolicyRecipe, capacity: int, preload: Successors | None = None) -> TraceReplay:
    """Put all accesses through an empty cache. With `preload`, what it predicts is brought in after each access."""
    if recipe.name == "lru_k" and preload is None and len(trace.ids) >= LONG:
        found = _compiled(trace, recipe, capacity)
        if found is not None:
            return found
    cache = recipe.sized(capacity)
    if isinstance(cache, Belady):
        cache.foresee(trace.names)
    hybrid = cache if isinstance(cache, Hybrid) and cache.weights[2] and trace.likeness else None
    hits = np.zeros(len(trace.ids), np.bool_)
    evictions = preloaded = 0
    accesses = zip(trace.names, trace.tokens.tolist(), trace.times.tolist(), strict=True)
    for at, (id, tokens, now) in enumerate(accesses):
        if hybrid is not None and id not in cache.tokens:
            _look_around(hybrid, trace, at)
        access = cache.access(id, tokens, now)
        hits[at] = access.hit
        evictions += len(access.evicted)
        if preload is None:
            continue
        preload.learn(id)
        for other in preload.after(id):
            if other not in cache.tokens:
                size = int(trace.sizes[int(other)])
                evictions += len(cache.preload(other, size, now).evicted)
                preloaded += size
    return TraceReplay(hits, evictions, _loaded(trace, hits), preloaded)


def _look_around(cache: Hybrid, trace: Trace, at: int) -> None:
    assert trace.likeness is not None
    likeness = trace.likeness(at)
    cache.similarity = lambda id: float(likeness[int(id)])


def _loaded(trace: Trace, hits: Flags) -> int:
    return int(trace.tokens[trace.counted & ~hits].sum())


def _compiled(trace: Trace, recipe: PolicyRecipe, capacity: int) -> TraceReplay | None:
    """The same by machine code; None where numba is not installed."""
    from ....scenarios.errors import MissingExtra
    from .fast import lru_k

    try:
        found = lru_k(trace.ids, capacity, trace.tokens, trace.times, **recipe.parameters)
    except MissingExtra:
        return None
    return TraceReplay(found.hits, len(found.victims), _loaded(trace, found.hits))

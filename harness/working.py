"""Cache policies on traces, beside their bounds: what `ctxbench bench-tier working` shows.

A trace that is made has one sample a seed, recordings have one a conversation. Figures are means over the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..metrics.caching import compulsory, most_expected, most_hits, most_hits_fluid, rates
from ..metrics.statistics.interval import Interval
from ..metrics.statistics.student import of_seeds
from ..metrics.value import Missing, Value
from ..strategies.tiers.working.policies import Recipe
from ..strategies.tiers.working.preload import Successors
from ..strategies.tiers.working.trace import Trace, replay

FLUID = 25_000
"""Accesses up to which the tighter bound is reckoned."""


@dataclass(frozen=True, slots=True)
class Load:
    """One load: its samples, and what they are."""

    name: str
    samples: Sequence[Trace]
    of: str
    """seed, or conversation."""

    @property
    def accesses(self) -> float:
        """Look-ups a sample, on average."""
        return sum(int(trace.counted.sum()) for trace in self.samples) / len(self.samples)

    @property
    def largest(self) -> int:
        """Tokens of all items of the largest sample."""
        return max(int(trace.sizes.sum()) for trace in self.samples)

    @property
    def tokens(self) -> float:
        """Tokens of all items of a sample, on average."""
        return sum(int(trace.sizes.sum()) for trace in self.samples) / len(self.samples)


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one load, in a cache of one size."""

    load: str
    size: int
    policy: str
    preload: bool
    hits: Interval | Missing
    tokens: Interval | Missing
    evictions: float
    """A sample."""
    loaded: float
    """Tokens brought in on misses, a sample."""
    preloaded: float
    """Tokens brought in because they were predicted, a sample."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no policy exceeds on a load, in a cache of one size."""

    load: str
    size: int
    hits: Value
    tokens: Value
    is_fluid: bool
    """Whether the linear program was solved, or the looser bound taken."""
    compulsory: Value
    """The share of look-ups that no cache hits."""
    expected: Value
    """The hit rate of a cache that knows how popular everything is, but not what comes next."""


def measured(
    load: Load, size: int, recipes: Sequence[Recipe], preload: bool = False, done: Callable[[], None] = lambda: None
) -> Iterator[Row]:
    """Every policy in turn; with `preload`, each a second time with it. `done` is called after each."""
    for recipe in recipes:
        for with_preload in (False, True) if preload else (False,):
            yield _row(load, size, recipe, with_preload)
            done()


def _row(load: Load, size: int, recipe: Recipe, preload: bool) -> Row:
    found = [replay(trace, recipe, size, Successors() if preload else None) for trace in load.samples]
    both = [rates(each.hits, trace.tokens, trace.counted) for each, trace in zip(found, load.samples, strict=True)]
    return Row(
        load.name,
        size,
        str(recipe),
        preload,
        of_seeds(each.hits for each in both),
        of_seeds(each.tokens for each in both),
        sum(each.evictions for each in found) / len(found),
        sum(each.loaded for each in found) / len(found),
        sum(each.preloaded for each in found) / len(found),
    )


def bounds(load: Load, size: int) -> Bounds:
    """What bounds every policy on this load."""
    is_fluid = all(len(trace.ids) <= FLUID for trace in load.samples)
    reckoned = most_hits_fluid if is_fluid else most_hits
    most = [reckoned(trace.ids, trace.tokens, trace.counted, size) for trace in load.samples]
    first = [compulsory(trace.ids, trace.tokens, trace.counted).hits for trace in load.samples]
    expected = [
        most_expected(trace.popularity, trace.sizes, size) for trace in load.samples if trace.popularity is not None
    ]
    popular = _mean(expected) if expected else Missing("undefined", "look-ups are not independent of each other")
    hits, tokens = _mean([each.hits for each in most]), _mean([each.tokens for each in most])
    return Bounds(load.name, size, hits, tokens, is_fluid, _mean(first), popular)


def _mean(values: Sequence[Value]) -> Value:
    found = of_seeds(values)
    return found if isinstance(found, Missing) else found.mean

"""Cache policies on traces, beside their bounds: what `ctxbench bench-tier working` shows.

A trace that is made has one sample a seed, recordings have one a conversation. Figures are means over the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from ...metrics.hit_rates import compulsory, most_expected, most_hits, most_hits_fluid, rates
from ...metrics.statistics.intervals import Interval, of_seeds
from ...metrics.value import Missing, Value
from ...scenarios.model import Conversation
from ...strategies.tiers.tiered.stores import POLICY
from ...strategies.tiers.working.policies import PolicyRecipe, parse
from ...strategies.tiers.working.preload import Successors
from ...strategies.tiers.working.trace import Trace, replay
from ...strategies.tiers.working.traces import recorded
from ..folder.run import Run

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
class PolicyRow:
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
    load: Load,
    size: int,
    recipes: Sequence[PolicyRecipe],
    preload: bool = False,
    done: Callable[[], None] = lambda: None,
) -> Iterator[PolicyRow]:
    """Every policy in turn; with `preload`, each a second time with it. `done` is called after each."""
    for recipe in recipes:
        for with_preload in (False, True) if preload else (False,):
            yield _row(load, size, recipe, with_preload)
            done()


def _row(load: Load, size: int, recipe: PolicyRecipe, preload: bool) -> PolicyRow:
    found = [replay(trace, recipe, size, Successors() if preload else None) for trace in load.samples]
    both = [rates(each.hits, trace.tokens, trace.counted) for each, trace in zip(found, load.samples, strict=True)]
    return PolicyRow(
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


SIZES = tuple(1 << power for power in range(11, 18))
"""Tokens: 2K to 128K, the document's."""
POLICIES = (POLICY, "lru", "belady")
"""The tier's own, the usual one, and the one that knows the future."""
BOUND = "bound"
MOST = 3_000
"""Messages whose accesses are looked at: what each refers to takes longest to find."""


def miss_ratios(run: Run) -> pd.DataFrame:
    """A row a policy and size: `policy`, `size` (tokens), `misses` (of `look_ups`), `look_ups`, `conversations`.

    The policy `bound` is what none has less than. Empty where nothing is gone back to.
    """
    traces = [trace for trace in _traces(run) if trace.counted.any()]
    look_ups = sum(int(trace.counted.sum()) for trace in traces)
    rows = [
        (policy, size, sum(_misses(trace, policy, size) for trace in traces) / look_ups, look_ups, len(traces))
        for policy in (*POLICIES, BOUND)
        for size in SIZES
        if look_ups
    ]
    return pd.DataFrame(rows, columns=["policy", "size", "misses", "look_ups", "conversations"])


def _traces(run: Run) -> list[Trace]:
    """Of the first conversations, up to MOST messages; at least of one."""
    messages = run.table("messages")
    made: list[Trace] = []
    read = 0
    for conversation, rows in messages.groupby("conversation", sort=False, observed=True):
        if made and read + len(rows) > MOST:
            break
        made.append(_trace(run.conversation(str(conversation)), dict(zip(rows.id, rows.tokens, strict=True))))
        read += len(rows)
    return made


def _trace(conversation: Conversation, tokens: dict[str, int]) -> Trace:
    return recorded(conversation, lambda message: int(tokens[message.id]))


def _misses(trace: Trace, policy: str, size: int) -> float:
    """Look-ups that miss, counted; of the bound at least so many."""
    look_ups = int(trace.counted.sum())
    if policy == BOUND:
        most = most_hits(trace.ids, trace.tokens, trace.counted, size).hits
        assert not isinstance(most, Missing)
        return look_ups * (1 - most)
    return look_ups - int(replay(trace, parse(policy), size).hits[trace.counted].sum())

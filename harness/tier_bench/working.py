"""Measure cache policies on traces, beside their bounds: `ctxbench lab bench-tier working`.

A generated trace has one sample per seed, recordings have one per conversation. Figures are means over the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from ctxbench.metrics.hit_rates import compulsory, most_expected, most_hits, most_hits_fluid, rates
from ctxbench.metrics.statistics.intervals import Interval, of_seeds
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.tiers.tiered.stores import POLICY
from ctxbench.strategies.tiers.working.policies import PolicyRecipe, parse
from ctxbench.strategies.tiers.working.successors import Successors
from ctxbench.strategies.tiers.working.traces import Trace, recorded, replay

from ..folder.derived import read_derived, write_derived
from ..folder.run import Run

FLUID = 25_000
"""The most accesses for which the tighter bound is computed."""


@dataclass(frozen=True, slots=True)
class Load:
    """One load and its samples."""

    name: str
    samples: Sequence[Trace]
    of: str
    """The kind of a sample: a seed or a conversation."""

    @property
    def accesses(self) -> float:
        """Mean look-ups per sample."""
        return sum(int(trace.counted.sum()) for trace in self.samples) / len(self.samples)

    @property
    def largest(self) -> int:
        """Tokens of all items of the largest sample."""
        return max(int(trace.sizes.sum()) for trace in self.samples)

    @property
    def tokens(self) -> float:
        """Mean tokens of all items per sample."""
        return sum(int(trace.sizes.sum()) for trace in self.samples) / len(self.samples)


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """The figures of one policy on one load, in a cache of one size."""

    load: str
    size: int
    policy: str
    preload: bool
    hits: Interval | Missing
    tokens: Interval | Missing
    evictions: float
    """Per sample."""
    loaded: float
    """Tokens loaded on misses, per sample."""
    preloaded: float
    """Tokens loaded because they were predicted, per sample."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds on every policy's hit rate on a load, in a cache of one size."""

    load: str
    size: int
    hits: Value
    tokens: Value
    is_fluid: bool
    """Whether the linear program was solved; else the looser bound holds."""
    compulsory: Value
    """Share of look-ups that no cache hits."""
    expected: Value
    """Hit rate of a cache that knows the popularity of every item, but not the next access."""


def measured(
    load: Load,
    size: int,
    recipes: Sequence[PolicyRecipe],
    preload: bool = False,
    done: Callable[[], None] = lambda: None,
) -> Iterator[PolicyRow]:
    """Yield the figures of every policy in turn, with `preload` each a second time with it; `done` is called after
    each."""
    for recipe in recipes:
        for with_preload in (False, True) if preload else (False,):
            yield _row(load, size, recipe, with_preload)
            done()


def _row(load: Load, size: int, recipe: PolicyRecipe, preload: bool) -> PolicyRow:
    replays = [replay(trace, recipe, size, Successors() if preload else None) for trace in load.samples]
    both = [rates(rate.hits, trace.tokens, trace.counted) for rate, trace in zip(replays, load.samples, strict=True)]
    return PolicyRow(
        load.name,
        size,
        str(recipe),
        preload,
        of_seeds(rate.hits for rate in both),
        of_seeds(rate.tokens for rate in both),
        sum(result.evictions for result in replays) / len(replays),
        sum(result.loaded for result in replays) / len(replays),
        sum(result.preloaded for result in replays) / len(replays),
    )


def bounds(load: Load, size: int) -> Bounds:
    """Return the bounds on every policy on this load."""
    is_fluid = all(len(trace.ids) <= FLUID for trace in load.samples)
    # One bound for all samples of a load: a mean over two different ones would bound nothing in particular.
    bound_of = most_hits_fluid if is_fluid else most_hits
    most = [bound_of(trace.ids, trace.tokens, trace.counted, size) for trace in load.samples]
    first = [compulsory(trace.ids, trace.tokens, trace.counted).hits for trace in load.samples]
    expected = [
        most_expected(trace.popularity, trace.sizes, size) for trace in load.samples if trace.popularity is not None
    ]
    popular = _mean(expected) if expected else Missing("undefined", "look-ups are not independent of each other")
    hits, tokens = _mean([rate.hits for rate in most]), _mean([rate.tokens for rate in most])
    return Bounds(load.name, size, hits, tokens, is_fluid, _mean(first), popular)


def _mean(values: Sequence[Value]) -> Value:
    mean = of_seeds(values)
    return mean if isinstance(mean, Missing) else mean.mean


SIZES = tuple(1 << power for power in range(11, 18))
"""Cache sizes in tokens, 2K to 128K (design document 004)."""
POLICIES = (POLICY, "lru", "belady")
"""The tier's own policy, the usual one, and the optimum, which knows the future."""
BOUND = "bound"
MOST = 3_000
"""The most messages whose accesses are traced: finding the references of each takes longest."""


def miss_ratios(run: Run) -> pd.DataFrame:
    """Return a row per policy and size: `policy`, `size` (tokens), `misses` (share of `look_ups`), `look_ups`,
    `conversations`.

    No policy has fewer misses than the row `bound`. The frame is empty where no message is referred to again. It is
    stored beside the run.
    """
    if (stored := read_derived(run, _STORED, _COLUMNS)) is not None:
        known: pd.DataFrame = stored.to_pandas()
        return known
    ratios = _miss_ratios(run)
    write_derived(run, _STORED, pa.Table.from_pandas(ratios, preserve_index=False))
    return ratios


_STORED = "miss_ratios"
_COLUMNS = ("policy", "size", "misses", "look_ups", "conversations")


def _miss_ratios(run: Run) -> pd.DataFrame:
    traces = [trace for trace in _traces(run) if trace.counted.any()]
    look_ups = sum(int(trace.counted.sum()) for trace in traces)
    rows = [
        (policy, size, sum(_misses(trace, policy, size) for trace in traces) / look_ups, look_ups, len(traces))
        for policy in (*POLICIES, BOUND)
        for size in SIZES
        if look_ups
    ]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _traces(run: Run) -> list[Trace]:
    """Return the traces of the first conversations, up to MOST messages, and of at least one."""
    tokens = run.table("messages").groupby("conversation", sort=False, observed=True)
    traces: list[Trace] = []
    read = 0
    for conversation in run.conversations():
        rows = tokens.get_group(conversation.id)
        if traces and read + len(rows) > MOST:
            break
        traces.append(_trace(conversation, dict(zip(rows.id, rows.tokens, strict=True))))
        read += len(rows)
    return traces


def _trace(conversation: Conversation, tokens: dict[str, int]) -> Trace:
    return recorded(conversation, lambda message: int(tokens[message.id]))


def _misses(trace: Trace, policy: str, size: int) -> float:
    """Return the look-ups that miss; for the bound the least possible number."""
    look_ups = int(trace.counted.sum())
    if policy == BOUND:
        most = most_hits(trace.ids, trace.tokens, trace.counted, size).hits
        assert not isinstance(most, Missing)
        return look_ups * (1 - most)
    return look_ups - int(replay(trace, parse(policy), size).hits[trace.counted].sum())

"""Measure cache policies on traces, beside their bounds: `ctxbench lab tiers working`.

A generated trace has one sample per seed, recordings have one per conversation. Figures are means over the samples.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa

from ctxbench.metrics.hit_rates import compulsory, most_expected, most_hits, most_hits_fluid, rates
from ctxbench.metrics.statistics.intervals import FEWEST, Interval, of_seeds
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.spec import PositiveInt, nearest
from ctxbench.strategies.tiers.tiered.tiers import POLICY, WORKING_TOKENS
from ctxbench.strategies.tiers.working import policies
from ctxbench.strategies.tiers.working.policies import parse, text_of
from ctxbench.strategies.tiers.working.traces import TRACES, Trace, recorded, replay

from ..folder.run import Run, read_derived, write_derived
from .bench import BenchSetup

FLUID = 25_000  # the most accesses for which the tighter bound is computed


class Load(NamedTuple):
    """One load and its samples."""

    name: str
    samples: Sequence[Trace]
    of: str = "seed"  # the kind of a sample: a seed or a conversation


class PolicyRow(NamedTuple):
    """The figures of one policy on a load. Evictions, and tokens loaded on misses, are per sample."""

    policy: str
    hit_rate: Interval | Missing
    token_hit_rate: Interval | Missing
    evictions: float
    loaded: float


class Bounds(NamedTuple):
    """Upper bounds on every policy's hit rate on a load, in a cache of one size."""

    hit_rate: Value
    token_hit_rate: Value
    is_fluid: bool  # whether the linear program was solved; else the looser bound holds (PFOO)
    compulsory: Value  # share of look-ups that no cache hits
    popularity_known: Value  # hit rate of a cache that knows the popularity of every item, but not the next access


class WorkingMeasurement(NamedTuple):
    """Cache policies and bounds on one load, in one size of cache. Look-ups and tokens are means of the samples."""

    load: str
    of: str
    samples: int
    look_ups: float
    tokens: float
    capacity: int
    all_fits: bool  # whether the cache holds all items of every sample
    rows: Sequence[PolicyRow]
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Working:
    """Put accesses to messages through cache policies of the Working tier."""

    trace: str = "mem_002"  # a generated trace, or recordings: a file, a folder or a scenario
    policies: tuple[str, ...] = tuple(dict.fromkeys(("lru_k", POLICY, *policies.POLICIES)))
    capacity: PositiveInt = WORKING_TOKENS
    seeds: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5

    def measure(self, bench: BenchSetup) -> WorkingMeasurement:
        """Measure every policy on the trace. Accesses of recordings are the earlier messages that are referred to."""
        recipes = [text_of(parse(text)) for text in dict.fromkeys(self.policies)]
        load = self._load(bench)
        rows = list[PolicyRow]()
        with bench.counting(len(recipes), "policies") as done:
            for policy in recipes:
                rows.append(policy_row(load, self.capacity, policy))
                done()
        samples, tokens = len(load.samples), [int(trace.sizes.sum()) for trace in load.samples]
        return WorkingMeasurement(
            load=load.name,
            of=load.of,
            samples=samples,
            look_ups=sum(int(trace.counted.sum()) for trace in load.samples) / samples,
            tokens=sum(tokens) / samples,
            capacity=self.capacity,
            all_fits=max(tokens) <= self.capacity,
            rows=rows,
            bounds=bounds(load, self.capacity),
        )

    def _load(self, bench: BenchSetup) -> Load:
        if self.trace in TRACES:
            return Load(self.trace, [TRACES[self.trace](seed) for seed in range(self.seeds)])
        try:
            conversations = bench.read(self.trace)
        except RunError as error:
            there = os.path.exists(self.trace)
            remedy = "" if there else f"{nearest(self.trace, TRACES)}; traces: {', '.join(TRACES)}"
            raise RunError(f"{error}{remedy}") from None
        counter = TokenCounter()
        traces = [recorded(conversation, counter.message) for conversation in conversations]
        with_look_ups = [trace for trace in traces if trace.counted.any()]
        if not with_look_ups:
            raise RunError(
                f"{self.trace}: no conversation goes back to an earlier message: there is nothing to look up"
            )
        if without := len(traces) - len(with_look_ups):
            bench.problems.notes.append(f"{self.trace}: {without} of {len(traces)} conversations go back to nothing")
        return Load(self.trace, with_look_ups, "conversation")


def policy_row(load: Load, capacity: int, policy: str) -> PolicyRow:
    """Return the figures of a policy on a load. Raises SpecError for an unknown policy."""
    chosen, samples = parse(policy), load.samples
    replays = [replay(trace, chosen, capacity) for trace in samples]
    both = [rates(result.hits, trace.tokens, trace.counted) for result, trace in zip(replays, samples, strict=True)]
    fewest = FEWEST if load.of == "conversation" else 2
    hits, tokens = of_seeds([rate.hits for rate in both], fewest), of_seeds([rate.tokens for rate in both], fewest)
    means = [sum(getattr(result, name) for result in replays) / len(samples) for name in ("evictions", "loaded")]
    return PolicyRow(text_of(chosen), hits, tokens, *means)


def bounds(load: Load, capacity: int) -> Bounds:
    """Return the bounds on every policy on this load."""

    def mean(values: Sequence[Value]) -> Value:
        interval = of_seeds(values)
        return interval if isinstance(interval, Missing) else interval.mean

    samples, is_fluid = load.samples, all(len(trace.ids) <= FLUID for trace in load.samples)
    # One bound for all samples of a load: a mean over two different ones would bound nothing in particular.
    bound_of = most_hits_fluid if is_fluid else most_hits
    most = [bound_of(trace.ids, trace.tokens, trace.counted, capacity) for trace in samples]
    first = [compulsory(trace.ids, trace.tokens, trace.counted).hits for trace in samples]
    known = [(trace.popularity, trace.sizes) for trace in samples if trace.popularity is not None]
    expected = [most_expected(popularity, sizes, capacity) for popularity, sizes in known]
    popular = mean(expected) if expected else Missing("undefined", "look-ups are not independent of each other")
    hits, tokens = mean([rate.hits for rate in most]), mean([rate.tokens for rate in most])
    return Bounds(hits, tokens, is_fluid, mean(first), popular)


SIZES = tuple(1 << power for power in range(11, 18))  # cache sizes in tokens, 2K to 128K (design document 004)
POLICIES = (POLICY, "lru", "belady")  # the tier's own policy, the usual one, and the optimum, which knows the future
BOUND = "bound"
MOST = 3_000  # the most messages whose accesses are traced: finding the references of each takes longest
_STORED, _COLUMNS = "miss_ratios", ("policy", "size", "misses", "look_ups", "conversations")


def miss_ratios(run: Run) -> pd.DataFrame:
    """Return a row per policy and size: `policy`, `size` (tokens), `misses` (share of `look_ups`), `look_ups`,
    `conversations`.

    No policy has fewer misses than the row `bound`. The frame is empty where no message is referred to again. It is
    stored beside the run.
    """
    if (stored := read_derived(run, _STORED, _COLUMNS)) is not None:
        known: pd.DataFrame = stored.to_pandas()
        return known
    # The traces of the first conversations, up to MOST messages, and of at least one.
    sizes, traces, read = run.table("messages").groupby("conversation", sort=False, observed=True), list[Trace](), 0
    for conversation in run.conversations():
        rows_of = sizes.get_group(conversation.id)
        read += len(rows_of)
        if traces and read > MOST:
            break
        tokens = dict(zip(rows_of.id, rows_of.tokens, strict=True))
        traces.append(recorded(conversation, lambda message: int(tokens[message.id])))  # noqa: B023
    traces = [trace for trace in traces if trace.counted.any()]
    look_ups = sum(int(trace.counted.sum()) for trace in traces)

    def misses(trace: Trace, policy: str, size: int) -> float:
        """Return the look-ups that miss; for the bound the least possible number."""
        counted = int(trace.counted.sum())
        if policy != BOUND:
            return counted - int(replay(trace, parse(policy), size).hits[trace.counted].sum())
        most = most_hits(trace.ids, trace.tokens, trace.counted, size).hits
        assert not isinstance(most, Missing)
        return counted * (1 - most)

    rows = [
        (policy, size, sum(misses(trace, policy, size) for trace in traces) / look_ups, look_ups, len(traces))
        for policy in (*POLICIES, BOUND)
        for size in SIZES
        if look_ups
    ]
    ratios = pd.DataFrame(rows, columns=list(_COLUMNS))
    write_derived(run, _STORED, pa.Table.from_pandas(ratios, preserve_index=False))
    return ratios

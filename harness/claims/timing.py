"""Measure the claims that the clock decides: counting tokens, reading an archive, searching, moving between tiers."""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.probes import latency
from ctxbench.metrics.statistics.intervals import Interval, of_seeds
from ctxbench.metrics.tokens import text_counter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.embedded import scenario
from ctxbench.strategies.tiers.archive import ArchivedMessage, Coding
from ctxbench.strategies.tiers.jobs import Trigger
from ctxbench.strategies.tiers.migration import Migration, Tier
from ctxbench.strategies.tiers.quota import Quota
from ctxbench.strategies.tiers.rag.vectors import Graph, Index, Vectors
from ctxbench.strategies.tiers.tiered.tiers import LEVEL, POLICY, WORKING_TOKENS, Blocks, DictStore, memory_archive
from ctxbench.strategies.tiers.working.policies import parse

from ..engine.shard import no_cycles
from ..replay import ConversationIndex
from ..tier_bench.archive import items_of, written
from ..tier_bench.bench import fastest
from .claim import Measured
from .inputs import ClaimInputs, of_sums, units_among
from .measures import CODINGS, Figures, archives, replayed, samples

SIZES = {"a fact: 1 to 200 characters": 200, "201 to 2,000": 2_000, "2,001 to 20,000": 20_000, "over 20,000": 10**12}
"""Sizes of texts that are timed, and the most characters of each."""
TEXTS = 400
"""Texts of each size that are timed."""


def counting(inputs: ClaimInputs) -> Figures:
    """Measure C17: some texts of each conversation by themselves, without the harness's cache of counts."""
    count = text_counter(inputs.counter.encoding)
    most = max(1, TEXTS // max(1, len(inputs.conversations)))
    texts = [
        (unit, dict.fromkeys(message.text for message in conversation.messages if message.text))
        for conversation, unit in zip(inputs.conversations, units_among(inputs.conversations), strict=True)
    ]
    shorter = 0
    for size, longest in SIZES.items():
        sampled = defaultdict[str, list[str]](list)
        for unit, of_conversation in texts:
            sampled[unit] += [text for text in of_conversation if shorter < len(text) <= longest][:most]
        pairs = [
            (sum(1e6 * fastest(lambda: count(text)) for text in group), len(group))  # noqa: B023
            for group in sampled.values()
            if group
        ]
        if pairs:
            yield Measured("time", size, of_sums(pairs), f"{sum(number for _, number in pairs)} texts")
        shorter = longest


def decompression(inputs: ClaimInputs) -> Figures:
    """Measure C25: bytes of contents a second of the wall clock, read from the disk, checked, decompressed."""
    for name in CODINGS:
        of, setting = f"{len(samples(inputs))} archives of 100K tokens", f"the archive, {name}"
        speeds = [speed for _, speed in archives(inputs, name)]
        yield Measured("read", setting, of_seeds(speed.decompress / 1e6 for speed in speeds), of)
        yield Measured("bare", setting, of_seeds(speed.bare / 1e6 for speed in speeds), of)


FEW, MANY = 100_000, 1_000_000
QUERIES, BATCHES = 300, 5
"""Questions, and the batches that they are split into: the interval is over the p95 of each batch."""
DIMENSION, LATENT, SPREAD, EACH = 384, 48, np.float32(1.5), 1000


def search_latency(inputs: ClaimInputs) -> Figures:
    """Measure C27: by default over 100,000 vectors, which say nothing of a million; with `--effort slow` over both."""
    # A search among 100,000 is faster than among a million, so it can never show that the claim holds.
    if not inputs.settings.slow:
        why = Missing("unsupported", "building it takes a quarter of an hour and 4 GiB: --effort slow does")
        yield Measured("million", f"hnsw, {MANY:,} vectors", why)
    yield from _searches(FEW, "hnsw")
    yield from _searches(FEW, "exact")
    if inputs.settings.slow:
        yield from _searches(MANY, "hnsw")


def _searches(size: int, kind: Index) -> Iterator[Measured]:
    """Yield the p95 of a search, the share of the nearest that it finds, and the time to build the index."""
    setting, of, p95 = f"{kind}, {size:,} vectors", f"{QUERIES} questions", "million" if size == MANY else "p95"
    if kind == "hnsw" and find_spec("hnswlib") is None:
        yield Measured(p95, setting, Missing("unsupported", "needs the extra `hnswlib`"), of)
        return
    vectors, queries = np.split(clustered(size + QUERIES), [size])
    index, began = Vectors(DIMENSION, kind, Graph(threads=2)), process_time()
    index.add(np.arange(size), vectors)
    seconds = process_time() - began
    batches = [searched(index, part, nearest(vectors, part)) for part in np.array_split(queries, BATCHES)]
    times = [latency(milliseconds) for _, milliseconds in batches]
    yield Measured(p95, setting, of_seeds(each if isinstance(each, Missing) else each.p95 for each in times), of)
    yield Measured("nearest", setting, of_seeds(recall for recall, _ in batches), of)
    yield Measured("build", setting, of_seeds([1000 * seconds]), of)
    if kind == "hnsw":
        gibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        yield Measured("memory", setting, of_seeds([gibibytes]), of)


def clustered(size: int) -> NDArray[np.float32]:
    """Return unit vectors (a row each) around centres in a space of LATENT dimensions."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((size // EACH, LATENT), dtype=np.float32)[rng.integers(0, size // EACH, size)]
    points += SPREAD * rng.standard_normal(points.shape, dtype=np.float32)
    vectors: NDArray[np.float32] = points @ rng.standard_normal((LATENT, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def nearest(vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int = 10) -> NDArray[np.int64]:
    """Return the exact nearest neighbours of each query (a row)."""
    return np.argpartition(-(queries @ vectors.T), k, axis=1)[:, :k]


def searched(index: Vectors, queries: NDArray[np.float32], exact: NDArray[np.int64]) -> tuple[float, list[float]]:
    """Search for every query by itself. Return the share of the exact neighbours that is found, and milliseconds."""
    milliseconds, hits = list[float](), 0
    for query, neighbours in zip(queries, exact, strict=True):
        began = perf_counter()
        answer = index.search(query, len(neighbours))
        milliseconds.append(1000 * (perf_counter() - began))
        hits += len(np.intersect1d(neighbours, answer.numbers))
    return hits / exact.size, milliseconds


TURNS = 1_500
"""User turns of the scenario mem_002: some 2,800 messages, 500K tokens; a sixth of the turns are questions."""
MOVES = 1_000
REPEATS = 3
TIER_BLOCK = 65_536
APART = 60.0
"""Recorded seconds between moves: longer than the cool-down."""


def tier_latencies(inputs: ClaimInputs) -> Figures:
    """Measure C28: each operation by itself, and Focus as it decided in the run."""
    items = items_of([next(scenario("mem_002", TURNS))], inputs.counter)
    promoted, demoted = zip(*(_moved(items) for _ in range(REPEATS)), strict=True)
    gets = [written(items, Coding(LEVEL))[1].gets for _ in range(REPEATS)]
    # Of each call the fastest round counts. Taken singly, at a load of 7, Focus had a p99 of 25 ms, nearly all of it
    # other processes' time (decision 29).
    times_of: dict[str, NDArray[np.float64]] = {
        "Focus: what `focus` takes to decide at a call of the run's conversations": _focus_latencies(inputs),
        "Working: a look-up": np.min([_looked_up(items) for _ in range(REPEATS)], axis=0),
        "Archive: one message read from the disk": 1000 * np.min(gets, axis=0),
        "promotion, ArchiveTier to Working": np.min(promoted, axis=0),
        "demotion, Working to ArchiveTier": np.min(demoted, axis=0),
    }
    for level in (0.99, 0.5):
        for name, times in times_of.items():
            yield Measured(f"p{100 * level:.0f}", name, percentile(times, level), f"{len(times):,} operations")
    yield {"processors": os.cpu_count() or 1, "load": os.getloadavg()[0]}


def percentile(times: NDArray[np.float64], level: float) -> Interval | Missing:
    """Return a percentile and its 95 % interval by order statistics: no distribution is assumed."""
    size = len(times)
    if not size:
        return Missing("undefined", "nothing was timed")
    ordered, value = np.sort(times), float(np.quantile(times, level))
    # How many of n values are below the true percentile is binomial. Of 1,000 at 99 %: 990 ± 1.96 · 3.15, so the
    # interval is from the 984th to the 998th value in order.
    reach = 1.96 * (size * level * (1 - level)) ** 0.5
    low, high = int(np.floor(size * level - reach)), int(np.ceil(size * level + reach))
    if low < 0 or high >= size:
        few = Missing("undefined", f"{size:,} operations are too few for an interval of this percentile")
        return Interval(value, few, few)
    return Interval(value, float(ordered[low]), float(ordered[high]))


def _focus_latencies(inputs: ClaimInputs) -> NDArray[np.float64]:
    """Return the milliseconds of each call of the run's conversations."""
    times = list[float]()
    for conversation in inputs.conversations:
        index = ConversationIndex(conversation, inputs.counter)
        with no_cycles():  # as in a run
            rounds = [[step.latency_ns / 1e6 for step in replayed("focus", index)[1]] for _ in range(REPEATS)]
        times += np.min(rounds, axis=0).tolist()
    return np.array(times)


def _looked_up(items: Sequence[ArchivedMessage]) -> list[float]:
    """Return the milliseconds of each look-up, including the put after a miss."""
    cache = parse(POLICY).sized(WORKING_TOKENS)
    for now, item in enumerate(items):
        cache.access(item.id, item.tokens, now)
    chosen = [items[at] for at in np.random.default_rng(0).integers(0, len(items), 2 * MOVES).tolist()]
    return [
        1000 * fastest(lambda: cache.access(item.id, item.tokens, now), 1)  # noqa: B023
        for now, item in enumerate(chosen, len(items))
    ]


def _moved(items: Sequence[ArchivedMessage]) -> tuple[list[float], list[float]]:
    """Return the milliseconds of promotions into a Working tier with room, and of demotions out of it."""
    blocks = Blocks(memory_archive(TIER_BLOCK), TIER_BLOCK)
    tiers = Tier("working", DictStore(), Quota(10**9)), Tier("archive", blocks, Quota(10**9))
    migration = Migration(tiers, lambda _: None)
    for item in items:
        migration.put(item.id, item.message, item.tokens, "archive", 0.0)

    def promote(id: str, now: float) -> None:
        migration.promote(id, "working", Trigger.CACHE_MISS, now)
        migration.run(now)

    def demote(now: float) -> None:
        migration.collect("working", 1, now)
        migration.run(now)

    # The cool-down, which APART waits out, is of the recorded clock.
    up = [1000 * fastest(lambda: promote(item.id, APART * at), 1) for at, item in enumerate(items[:MOVES], 1)]  # noqa: B023
    down = list[float]()
    while len(down) < MOVES and migration.ids("working"):
        now = APART * (len(up) + len(down) + 1)
        down.append(1000 * fastest(lambda: demote(now), 1))  # noqa: B023
    return up, down

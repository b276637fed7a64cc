"""C20, C22, C28, C30: what popularity is worth, how long the tiers take, what the adaptive tuner is worth."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import numpy as np

from ctxbench.metrics.statistics.intervals import Interval, of_seeds
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.embedded import scenario
from ctxbench.strategies.chain import parse as parse_strategy
from ctxbench.strategies.tiers.archive import ArchivedMessage, Coding
from ctxbench.strategies.tiers.heat import Readings
from ctxbench.strategies.tiers.jobs import Trigger
from ctxbench.strategies.tiers.migration import Migration, Tier
from ctxbench.strategies.tiers.quota import Quota
from ctxbench.strategies.tiers.tiered.tiers import LEVEL, POLICY, WORKING_TOKENS, Blocks, DictStore, memory_archive
from ctxbench.strategies.tiers.working.policies import parse
from ctxbench.strategies.tiers.working.traces import TRACES

from ..engine.shard import no_cycles
from ..replay import ConversationIndex, RecordedContext, replay
from ..tier_bench.archive import items_of, written
from ..tier_bench.working import Load, bounds
from .claim import Measured, exact
from .inputs import ClaimInputs


def popularity(inputs: ClaimInputs) -> Iterator[dict[str, float | str]]:
    """Yield what a cache that knows how popular every message is can expect on the load of C20."""
    load = Load("mem_002", [TRACES["mem_002"](seed) for seed in range(inputs.seeds)])
    expected = bounds(load, WORKING_TOKENS).popularity_known
    yield {"expected": 0.0 if isinstance(expected, Missing) else 100 * expected}


def as_written(_: ClaimInputs) -> Iterator[Measured]:
    """Measure C22: whether the document's code protects items with few uses."""
    cache, evicted = parse("lru_k_document").sized(2), list[str]()
    for at, id in enumerate("AABC"):
        evicted += cache.access(id, 1, float(at)).evicted
    protected = exact(evicted.count("B"))  # B was used once, and A, which stays, twice
    yield Measured("evicted", "lru_k_document: A A B C with room for two", protected)


TURNS = 1_500
"""User turns of the scenario mem_002: some 2,800 messages, 500K tokens; a sixth of the turns are questions."""
MOVES = 1_000
REPEATS = 3
BLOCK = 65_536
APART = 60.0
"""Recorded seconds between moves: longer than the cool-down."""


def latencies(inputs: ClaimInputs) -> Iterator[Measured | dict[str, float | str]]:
    """Measure C28: each operation by itself, and Focus as it decided in the run."""
    items = items_of([next(scenario("mem_002", TURNS))], inputs.counter)
    promoted, demoted = (fastest(rounds) for rounds in zip(*(_moved(items) for _ in range(REPEATS)), strict=True))
    times_of: dict[str, Sequence[float]] = {
        "Focus: what `focus` takes to decide at a call of the run's conversations": _focus_latencies(inputs),
        "Working: a look-up": fastest([_looked_up(items) for _ in range(REPEATS)]),
        "Archive: one message read from the disk": fastest(
            [[1000 * each for each in written(items, Coding(LEVEL))[1].gets] for _ in range(REPEATS)]
        ),
        "promotion, ArchiveTier to Working": promoted,
        "demotion, Working to ArchiveTier": demoted,
    }
    for level in (0.99, 0.5):
        for name, times in times_of.items():
            yield Measured(f"p{100 * level:.0f}", name, percentile(times, level), f"{len(times):,} operations")
    yield {"processors": os.cpu_count() or 1, "load": os.getloadavg()[0]}


def percentile(times: Sequence[float], level: float) -> Interval | Missing:
    """Return a percentile and its 95 % interval by order statistics: no distribution is assumed."""
    if not len(times):
        return Missing("undefined", "nothing was timed")
    ordered = np.sort(np.asarray(times, np.float64))
    size, value = len(ordered), float(np.quantile(ordered, level))
    # How many of n values are below the true percentile is binomial. Of 1,000 at 99 %: 990 ± 1.96 · 3.15, so the
    # interval is from the 984th to the 998th value in order.
    reach = 1.96 * (size * level * (1 - level)) ** 0.5
    low, high = int(np.floor(size * level - reach)), int(np.ceil(size * level + reach))
    if low < 0 or high >= size:
        few = Missing("undefined", f"{size:,} operations are too few for an interval of this percentile")
        return Interval(value, few, few)
    return Interval(value, float(ordered[low]), float(ordered[high]))


def fastest(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Return the fastest round of each call: a shared machine only ever makes it slower."""
    # Taken singly, at a load of 7, Focus had a p99 of 25 ms, nearly all of it other processes' time (decision 29).
    least: list[float] = np.min(np.asarray(rounds), axis=0).tolist()
    return least


def _focus_latencies(inputs: ClaimInputs) -> list[float]:
    """Return the milliseconds of each call of the run's conversations."""
    times, strategy = list[float](), parse_strategy("focus")
    for conversation in inputs.conversations:
        index = ConversationIndex(conversation, inputs.counter)
        with no_cycles():  # as in a run
            rounds = [
                [step.latency_ns / 1e6 for step in replay(conversation, strategy, RecordedContext(index))]
                for _ in range(REPEATS)
            ]
        times += fastest(rounds)
    return times


def _milliseconds(do: Callable[[], object]) -> float:
    began = perf_counter()
    do()
    return 1000 * (perf_counter() - began)


def _looked_up(items: Sequence[ArchivedMessage]) -> list[float]:
    """Return the milliseconds of each look-up, including the put after a miss."""
    cache = parse(POLICY).sized(WORKING_TOKENS)
    for now, item in enumerate(items):
        cache.access(item.id, item.tokens, now)
    chosen = [items[at] for at in np.random.default_rng(0).integers(0, len(items), 2 * MOVES).tolist()]
    return [
        _milliseconds(lambda: cache.access(item.id, item.tokens, now))  # noqa: B023
        for now, item in enumerate(chosen, len(items))
    ]


def _moved(items: Sequence[ArchivedMessage]) -> tuple[list[float], list[float]]:
    """Return the milliseconds of promotions into a Working tier with room, and of demotions out of it."""
    blocks = Blocks(memory_archive(BLOCK), BLOCK)
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
    up = [_milliseconds(lambda: promote(item.id, APART * at)) for at, item in enumerate(items[:MOVES], 1)]  # noqa: B023
    down = list[float]()
    while len(down) < MOVES and migration.ids("working"):
        now = APART * (len(up) + len(down) + 1)
        down.append(_milliseconds(lambda: demote(now)))  # noqa: B023
    return up, down


ITEMS, TOKENS, ACCESSES, WINDOW = 2_000, 200, 6_000, 200


def tuner(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C30: the same accesses with the tuner and without, seed by seed; the shifting load decides."""
    for load in ("shifting",) if inputs.settings.quick else ("shifting", "80-20"):
        gains = [hit_rate(load, seed, tuned=True) - hit_rate(load, seed) for seed in range(inputs.seeds)]
        of = f"{inputs.seeds} seeds"
        yield Measured("difference", f"with the tuner − without, {load}", of_seeds(gains), of)


def _accesses(load: str, seed: int) -> Iterator[int]:
    """Yield accesses: Zipf 1.2, other items every 1,500; else 80 % to 20 % of the items."""
    chance = np.random.default_rng(seed)
    for at in range(ACCESSES):
        if load == "shifting":
            # Each stretch of 1,500 accesses counts from 500 items further on, so other items are the popular ones.
            yield int(chance.zipf(1.2) - 1 + at // 1_500 * 500) % ITEMS
        else:
            hot = chance.random() < 0.8
            yield int(chance.integers(ITEMS // 5) if hot else chance.integers(ITEMS // 5, ITEMS))


def hit_rate(load: str, seed: int, tuned: bool = False) -> float:
    """Return the hit rate of a Working tier over an Archive that holds everything, an access a second.

    What is missed is promoted for the next time. The tuner reads the hit rate of every 200 accesses.
    """
    rows = [Tier("working", DictStore(), Quota(32_768)), Tier("archive", DictStore(), Quota(10**8))]
    migration, hits = Migration(rows, lambda _: None), list[bool]()
    for item in range(ITEMS):
        migration.put(f"m{item}", item, TOKENS, "archive", 0)
    for now, item in enumerate(_accesses(load, seed), 1):
        id = f"m{item}"
        hits.append(migration.tier(id) == "working")
        migration.get(id, now)
        if not hits[-1]:
            migration.promote(id, "working", Trigger.CACHE_MISS, now)
        migration.run(now)
        if tuned and now % WINDOW == 0:
            migration.tune(Readings(hit_rate=sum(hits[-WINDOW:]) / WINDOW))
    return sum(hits) / len(hits)

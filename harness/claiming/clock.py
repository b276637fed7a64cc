"""C28, C30: how long the tiers take, and what the adaptive tuner is worth (design document 004)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from ...metrics.statistics.interval import Interval
from ...metrics.statistics.student import of_seeds
from ...metrics.value import Missing
from ...scenarios.embedded import scenario
from ...strategies.chain import parse
from ...strategies.tiers.archive import Archive, Coding, Item, Memory
from ...strategies.tiers.joined.stores import Blocks, Held, content_of
from ...strategies.tiers.migration import MemoryJournal, Migration, Tier, Trigger
from ...strategies.tiers.quota import Quota
from ...strategies.tiers.working import CAPACITY, Working
from ...strategies.tiers.working import Item as Held_
from ..archiving.sizes import items_of
from ..archiving.speed import gets
from ..desk import Books, RecordedDesk
from ..replay import replay
from ..work import no_cycles
from .claim import Claim, Claimed, Measured, Row
from .focus import FOCUS
from .inputs import Inputs
from .migrating import followed

TURNS = 1_500
"""User turns of mem_002: some 2,800 messages, 500K tokens; a sixth of the turns are questions."""
MOVES = 1_000
REPEATS = 3
BLOCK = 65_536
LEVEL = 9
APART = 60.0
"""Recorded seconds between moves: beyond the cool-down."""


def latencies(inputs: Inputs) -> Measured:
    """C28. Each operation on its own; Focus as it decided in the run."""
    items = _items(inputs)
    promoted, demoted = (_least(each) for each in zip(*(_moved(items) for _ in range(REPEATS)), strict=True))
    timed: dict[str, tuple[Sequence[float], float]] = {
        "Focus: what `focus` takes to decide at a call of the run's conversations": (_decided(inputs), 1.0),
        "Working: a look-up": (_least([_looked_up(items) for _ in range(REPEATS)]), 10.0),
        "Archive: one message read from the disk": (_least([_read(items) for _ in range(REPEATS)]), 100.0),
        "promotion, Archive to Working": (promoted, 50.0),
        "demotion, Working to Archive": (demoted, 100.0),
    }
    rows = [_row(name, times, 0.99, most) for name, (times, most) in timed.items()]
    return Measured(
        (*rows, *(_row(name, times, 0.5, None) for name, (times, _) in timed.items())),
        f"p99 of the wall clock with its interval over calls, of each call the fastest of {REPEATS}; Focus has no "
        "look-up of its own, so it is what deciding takes. A demotion may write a block of 64K tokens. "
        f"{os.cpu_count()} processors, {os.getloadavg()[0]:.1f} processes on them: where these are more, a p99 is "
        "of the machine as well.",
        "An idle machine.",
    )


def _row(name: str, times: Sequence[float], level: float, most: float | None) -> Row:
    return Row(
        setting=name,
        figure=f"p{level * 100:.0f}",
        unit="ms",
        found=percentile(times, level),
        claimed=None if most is None else Claimed(most=most),
        of=f"{len(times):,} operations",
        decides=most is not None,
        timed=True,
    )


def percentile(times: Sequence[float], level: float) -> Interval | Missing:
    """A percentile and its 95 % interval, by order statistics: no distribution is assumed."""
    if not len(times):
        return Missing("undefined", "nothing was timed")
    each = np.sort(np.asarray(times, np.float64))
    size, value = len(each), float(np.quantile(each, level))
    reach = 1.96 * (size * level * (1 - level)) ** 0.5
    low, high = int(np.floor(size * level - reach)), int(np.ceil(size * level + reach))
    if low < 0 or high >= size:
        few = Missing("undefined", f"{size:,} operations are too few for an interval of this percentile")
        return Interval(value, few, few)
    return Interval(value, float(each[low]), float(each[high]))


def _least(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Call by call, the fastest: a shared machine only ever makes it slower."""
    found: list[float] = np.min(np.asarray(rounds), axis=0).tolist()
    return found


def _decided(inputs: Inputs) -> list[float]:
    """Milliseconds of each call."""
    found, strategy = list[float](), parse(FOCUS)
    for said in inputs.said:
        books = Books(said, inputs.counter)
        with no_cycles():  # as in a run
            rounds = [
                [step.decide_ns / 1e6 for step in replay(said, strategy, RecordedDesk(books))] for _ in range(REPEATS)
            ]
        found += _least(rounds)
    return found


def _items(inputs: Inputs) -> list[Item]:
    return inputs.once("clock", lambda: items_of([next(scenario("mem_002", TURNS))], inputs.counter))


def _looked_up(items: Sequence[Item]) -> list[float]:
    """Milliseconds of each look-up, the put of what was missed with it."""
    working, taken = Working(CAPACITY), list[float]()
    for now, item in enumerate(items):
        working.put(Held_(item.id, item.tokens, item.message), now)
    chosen = np.random.default_rng(0).integers(0, len(items), 2 * MOVES)
    for now, at in enumerate(chosen.tolist(), len(items)):
        item = items[at]
        began = perf_counter()
        if working.get(item.id, now) is None:
            working.put(Held_(item.id, item.tokens, item.message), now)
        taken.append(1000 * (perf_counter() - began))
    return taken


def _read(items: Sequence[Item]) -> list[float]:
    with TemporaryDirectory(prefix="ctxbench-claims-") as folder, Archive(Path(folder), Coding(LEVEL)) as archive:
        archive.put(items)
        archive.seal()
        return [1000 * each for each in gets(archive, items)]


def _moved(items: Sequence[Item]) -> tuple[list[float], list[float]]:
    """Milliseconds of promotions into a Working tier with room, and of demotions out of it."""
    blocks = Blocks(Archive(Memory(), Coding(LEVEL, "none", block_tokens=BLOCK)), BLOCK)
    tiers = [Tier("working", Held(), Quota(10**9), durable=False), Tier("archive", blocks, Quota(10**9), durable=False)]
    migration = Migration(tiers, MemoryJournal(), lambda _: None, 0)
    now = 0.0
    for item in items:
        migration.put(item.id, content_of(item.message), item.tokens, "archive", now)
    up, down = list[float](), list[float]()
    for item in items[:MOVES]:
        now += APART
        began = perf_counter()
        migration.promote(item.id, "working", Trigger.CACHE_MISS, now)
        migration.run(now)
        up.append(1000 * (perf_counter() - began))
    while len(down) < MOVES and migration.ids("working"):
        now += APART
        began = perf_counter()
        migration.collect("working", 1, now)
        migration.run(now)
        down.append(1000 * (perf_counter() - began))
    return up, down


def tuner(inputs: Inputs) -> Measured:
    """C30. The same accesses with the tuner and without, seed by seed; what decides is the load that shifts."""
    rows = []
    for load in ("shifting",) if inputs.quick else ("shifting", "80-20"):
        plain = [followed(load, seed)[0] for seed in range(inputs.seeds)]
        tuned = [followed(load, seed, tuner=True)[0] for seed in range(inputs.seeds)]
        rows.append(
            Row(
                setting=f"with the tuner − without, {load}",
                figure="difference in hit rate",
                unit="points",
                found=of_seeds([one - other for one, other in zip(tuned, plain, strict=True)]),
                claimed=Claimed(least=0.0, above=True),
                of=f"{inputs.seeds} seeds",
                decides=load == "shifting",
            )
        )
    return Measured(
        tuple(rows),
        "The document's rule answers every low hit rate with more recency, and has no way back.",
        "A rule that tries a step, and takes it back if the hit rate falls.",
    )


CLAIMS = (
    Claim(
        "C28",
        "p99: Focus < 1 ms, Working < 10 ms, Archive < 100 ms; promotion < 50 ms, demotion < 100 ms",
        "004 §2, §4",
        "histograms of each operation",
        latencies,
    ),
    Claim(
        "C30",
        "The adaptive tuner improves the hit rate",
        "004 §6.2",
        "with and without, on a load that shifts",
        tuner,
    ),
)

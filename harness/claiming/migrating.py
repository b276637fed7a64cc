"""Loads on the migration of tiers: accesses that are read where they are and promoted, with the tuner and without.

Used by C30 of the claims, and by `make perf`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...strategies.tiers.joined.stores import Held
from ...strategies.tiers.migration import MemoryJournal, Migration, Readings, Tier, Trigger
from ...strategies.tiers.quota import Quota

ITEMS, TOKENS, ACCESSES, WINDOW = 2_000, 200, 6_000, 200


def trace(load: str, seed: int) -> Iterator[int]:
    """80 % of accesses to 20 % of the items; Zipf 1.2, other items every 1,500; every third a scan; a loop over 250."""
    chance = np.random.default_rng(seed)
    for at in range(ACCESSES):
        match load:
            case "80-20":
                hot = chance.random() < 0.8
                yield int(chance.integers(ITEMS // 5) if hot else chance.integers(ITEMS // 5, ITEMS))
            case "shifting":
                yield int(chance.zipf(1.2) - 1 + at // 1_500 * 500) % ITEMS
            case "scan":
                yield at % ITEMS if at % 3 == 0 else int(chance.zipf(1.3) - 1) % ITEMS
            case _:
                yield at % 250


def opened(cooldown: float, items: int, working: int) -> Migration:
    """Working over Archive, everything in Archive."""
    rows = [Tier("working", Held(), Quota(working)), Tier("archive", Held(), Quota(10**8))]
    migration = Migration(rows, MemoryJournal(), lambda _: None, 0, cooldown=cooldown)
    for id in range(items):
        migration.put(f"m{id}", b"content %d" % id, TOKENS, "archive", 0)
    return migration


def access(migration: Migration, id: str, now: float) -> bool:
    """Read an item, and have it in Working for the next time. Whether it was."""
    hit = migration.tier(id) == "working"
    migration.get(id, now)
    if not hit:
        migration.promote(id, "working", Trigger.CACHE_MISS, now)
    migration.run(now)
    return hit


def followed(load: str, seed: int, tuner: bool = False, cooldown: float = 30) -> tuple[float, int]:
    """Hit rate and moves of a trace, an access a second; the tuner reads the hit rate of every 200."""
    migration, hits = opened(cooldown, ITEMS, 32_768), list[bool]()
    for at, item in enumerate(trace(load, seed), 1):
        hits.append(access(migration, f"m{item}", at))
        if tuner and at % WINDOW == 0:
            migration.tune(Readings(hit_rate=sum(hits[-WINDOW:]) / WINDOW))
    return sum(hits) / len(hits), sum(edge.moves for edge in migration.accounts.edges.values())

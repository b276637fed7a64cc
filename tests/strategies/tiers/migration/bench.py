"""Four tiers under a migration, as tests use them."""

from __future__ import annotations

from typing import Any

from ctxbench.strategies.events import LimitReached, Moved
from ctxbench.strategies.tiers.migration import (
    MemoryJournal,
    Migration,
)

from .stores import NAMES, Fragile, Fuse, Memory, tiers

WORDS = b"what was said"


class Bench:
    """Four tiers of 20, 60, 120 and 10,000 tokens, in memory, and what they record."""

    def __init__(self, **more: Any) -> None:
        self.fuse, self.events = Fuse(), list[Moved | LimitReached]()
        self.memories = {name: Memory() for name in NAMES}
        self.journal = MemoryJournal()
        self.open(**more)

    def open(self, now: float = 0.0, **more: Any) -> None:
        stores = [Fragile(store, self.fuse) for store in self.memories.values()]
        self.migration = Migration(tiers(stores), self.journal, self.events.append, now, **more)

    def where(self, id: str) -> list[str]:
        """Return the tiers whose store has a copy of an item."""
        return [name for name, store in self.memories.items() if id in store]

    def moved(self) -> list[tuple[str, str, str]]:
        return [(event.sources[0], event.source, event.to) for event in self.events if isinstance(event, Moved)]

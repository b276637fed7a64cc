"""Four tiers under a migration, as tests use them."""

from typing import Any

from ctxbench.strategies.events import LimitReached, Moved
from ctxbench.strategies.tiers.migration import Migration, Tier
from ctxbench.strategies.tiers.quota import Quota
from ctxbench.strategies.tiers.tiered.tiers import DictStore

WORDS = b"what was said"
NAMES, SIZES = ("focus", "working", "archive", "rag"), (20, 60, 120, 10_000)


class Bench:
    """Four tiers of 20, 60, 120 and 10,000 tokens, and what they record."""

    def __init__(self, **more: Any) -> None:
        self.events: list[Moved | LimitReached] = []
        self.stores = {name: DictStore() for name in NAMES}
        rows = [Tier(name, self.stores[name], Quota(size)) for name, size in zip(NAMES, SIZES, strict=True)]
        self.migration = Migration(rows, self.events.append, **more)

    def where(self, id: str) -> list[str]:
        """Return the tiers whose store has a copy of an item."""
        return [name for name, store in self.stores.items() if id in store.held]

    def moved(self) -> list[tuple[str, str, str]]:
        return [(event.sources[0], event.source, event.to) for event in self.events if isinstance(event, Moved)]

"""Recorded calls beside the cache models and the prices: everything that `ctxbench validate` says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...scenarios.model import Conversation
from ..prices import Prices
from .agreement import CacheAgreement, agreement
from .calibration import Counters
from .comparison import CacheReplay, ComparedCall
from .costs import Costs, recorded_costs


@dataclass(frozen=True, slots=True)
class Validation:
    """What was compared, what it came to, and what stands between."""

    rows: list[ComparedCall]
    agreements: dict[tuple[str, str], CacheAgreement]
    """By model and the day from which its rule is in force."""
    costs: dict[str, Costs]
    """By model, where costs are recorded."""
    replayed: CacheReplay
    counters: Counters
    prices: Prices

    @property
    def empty(self) -> bool:
        """Whether no recorded call reports its usage."""
        replayed = self.replayed
        return not (self.rows or self.costs or replayed.without_rule or replayed.left_out)


def validation(conversations: Iterable[Conversation], counters: Counters, prices: Prices) -> Validation:
    """Every recorded call, through the cache of its model and date and at the prices of its day."""
    replayed = CacheReplay(counters.of, prices)
    rows = list(replayed.compare(conversations))
    return Validation(
        rows, agreement(rows, prices), recorded_costs(replayed.counted, prices), replayed, counters, prices
    )

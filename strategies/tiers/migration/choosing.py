"""Who should leave a tier, where to, and who may not move yet."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from .heat import Heat
from .records import Locations
from .store import Tier


class Choosing:
    """The order of the tiers, from the top, and what follows from it and from the heat of the items."""

    __slots__ = ("_heat", "_ranks", "_tiers", "cooldown", "locations")

    def __init__(self, tiers: Sequence[Tier], locations: Locations, heat: Heat, cooldown: float) -> None:
        self._tiers, self._heat, self.cooldown, self.locations = tiers, heat, cooldown, locations
        self._ranks = {tier.name: at for at, tier in enumerate(tiers)}

    def rises(self, source: str, to: str) -> bool:
        """Whether `to` is above `source`."""
        return self._ranks[to] < self._ranks[source]

    def down(self, tier: str) -> list[str]:
        """The names of a tier and those below it."""
        return [each.name for each in self._tiers[self._ranks[tier] :]]

    def victims(self, tier: Tier, now: float, keep: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
        """Ids and where they would go, the first to leave first. They are looked up as they are asked for."""
        for id in self._coldest(tier.name, now) if tier.victims is None else tuple(tier.victims()):
            place = self.locations.places.get(id)
            if place is not None and place.tier == tier.name and id not in keep:
                to = self._below(tier.name, place.tokens)
                if to is not None:
                    yield id, to

    def cooling(self, id: str, to: str, now: float) -> bool:
        """Whether an item would go back the way it came just now."""
        place = self.locations.places[id]
        if not place.came or now >= place.since + self.cooldown:
            return False
        return self.rises(place.tier, to) != self.rises(place.came, place.tier)

    def _coldest(self, tier: str, now: float) -> Iterator[str]:
        """The items of a tier, the coldest first; of equals, who came first."""
        scores = [(self._heat.score(id, now), at, id) for at, id in enumerate(self.locations.ids(tier))]
        heapq.heapify(scores)
        while scores:
            yield heapq.heappop(scores)[2]

    def _below(self, tier: str, tokens: int) -> str | None:
        """The next tier that so many tokens fit in at all."""
        below = self._tiers[self._ranks[tier] + 1 :]
        return next((each.name for each in below if tokens <= each.quota.hard), None)

"""The order of the tiers: what is above and below, who should leave where to, and who may not move yet."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .heat import Heat
from .journal import Locations
from .store import Replacement, Tier


class Choosing:
    """The tiers from the top, and what follows from that, from where the items are and from who leaves first."""

    __slots__ = ("_coldest", "_ranks", "_tiers", "cooldown", "locations")

    def __init__(self, tiers: Sequence[Tier], locations: Locations, heat: Heat, cooldown: float) -> None:
        self._tiers, self.cooldown, self.locations = tiers, cooldown, locations
        self._ranks = {tier.name: at for at, tier in enumerate(tiers)}
        self._coldest = {tier.name: self._coldest_of(tier.name, heat) for tier in tiers if tier.replacement is None}

    def replacement(self, tier: str) -> Replacement:
        """Who leaves a tier."""
        return self._tiers[self._ranks[tier]].replacement or self._coldest[tier]

    def state(self) -> dict[str, object]:
        """What the replacements remember."""
        return {tier.name: tier.replacement.state() for tier in self._tiers if tier.replacement is not None}

    def restore(self, state: Mapping[str, object]) -> None:
        """Have them remember that instead. Raises ValueError, and those before may have changed."""
        own = {tier.name: tier.replacement for tier in self._tiers if tier.replacement is not None}
        if own.keys() != state.keys():
            raise ValueError(f"it has policies of {sorted(state)}, these tiers have some of {sorted(own)}")
        for name, replacement in own.items():
            replacement.restore(state[name])

    def rises(self, source: str, to: str) -> bool:
        """Whether `to` is above `source`."""
        return self._ranks[to] < self._ranks[source]

    def down(self, tier: str) -> list[str]:
        """The names of a tier and those below it."""
        return [each.name for each in self._tiers[self._ranks[tier] :]]

    def victims(
        self, tier: str, now: float, keep: frozenset[str] = frozenset(), cold: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Ids and where they would go, the first to leave first. They are chosen as they are asked for."""
        for id in self.replacement(tier).leaving(now, cold):
            place = self.locations.places.get(id)
            if place is not None and place.tier == tier and id not in keep:
                to = self._below(tier, place.tokens)
                if to is not None:
                    yield id, to

    def cooling(self, id: str, to: str, now: float) -> bool:
        """Whether an item would go back the way it came just now."""
        place = self.locations.places[id]
        if not place.came or now >= place.since + self.cooldown:
            return False
        return self.rises(place.tier, to) != self.rises(place.came, place.tier)

    def _coldest_of(self, tier: str, heat: Heat) -> Coldest:
        return Coldest(heat, lambda: self.locations.ids(tier))

    def _below(self, tier: str, tokens: int) -> str | None:
        """The next tier that so many tokens fit in at all."""
        below = self._tiers[self._ranks[tier] + 1 :]
        return next((each.name for each in below if tokens <= each.quota.hard), None)


COLD = 0.1
"""Below this score an item leaves under soft pressure, and by decay: unused for two to three half-lives. Assumed."""


class Coldest:
    """The coldest first; of equals, who came first. All that it needs is known already."""

    __slots__ = ("_heat", "_ids")

    def __init__(self, heat: Heat, ids: Callable[[], list[str]]) -> None:
        self._heat, self._ids = heat, ids

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """The heat knows."""

    def use(self, id: str, now: float) -> None:
        """The heat knows."""

    def gone(self, id: str) -> None:
        """The ids are those that are there."""

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        scores = [(self._heat.score(id, now), at, id) for at, id in enumerate(self._ids())]
        heapq.heapify(scores)
        while scores and not (cold and scores[0][0] >= COLD):
            yield heapq.heappop(scores)[2]

    def state(self) -> None:
        """Nothing."""

    def restore(self, state: Any) -> None:
        """There is nothing to remember."""

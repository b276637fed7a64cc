"""Selection of victims: the heat of items, the order of the tiers, and the pressure that sends items down.

The heat of an item is α · recency + β · frequency + γ · relevance, each from 0 to 1 (004 §4.4, §5.1):

    recency    ½ ^ (age of the last use / half-life)
    frequency  n / (n + 1), where each use counts ½ ^ (its age / half-life)
    relevance  to the current context, from the caller; 0 without one

Departs from the document, which adds 1 / (milliseconds + 1), a bare count and a relevance: the first is nothing after a
second, and the second outweighs all else. Its threshold of 0.7 and its decay of hotness need a score that has a maximum
and falls by itself. An item used once has 0.5 + 0.15 at that moment with the default weights; used twice, 0.7.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .jobs import Job, Queue, Trigger
from .journal import Locations
from .store import Replacement, Tier

HALF_LIFE = 600.0
"""Seconds. Assumed: the length of a person's pause, not of a night."""


class HeatWeights(NamedTuple):
    """Weights of recency, frequency and relevance. They add up to 1."""

    lru: float = 0.5
    lfu: float = 0.3
    semantic: float = 0.2


def unrelated(id: str) -> float:  # noqa: ARG001
    """Return 0: without a context no item is relevant to it."""
    return 0.0


class Heat:
    """Last use and decayed number of uses of each item."""

    __slots__ = ("_uses", "half_life", "relevance", "weights")

    def __init__(self, half_life: float = HALF_LIFE, relevance: Callable[[str], float] = unrelated) -> None:
        if not half_life > 0:
            raise ValueError(f"half_life must be above 0, not {half_life}")
        self.half_life, self.relevance = half_life, relevance
        self.weights = HeatWeights()
        self._uses: dict[str, tuple[float, float]] = {}  # time of the last use, and the decayed uses at that time

    def use(self, id: str, now: float) -> None:
        """Count a use of an item."""
        # Used at 0 and again a half-life later: 1 · ½ + 1 = 1.5 uses.
        # One number an item is enough, as all uses decay alike.
        last, uses = self._uses.get(id, (now, 0.0))
        self._uses[id] = now, uses * self._decay(now - last) + 1

    def last(self, id: str) -> float:
        """Return the time of an item's last use."""
        return self._uses[id][0] if id in self._uses else float("-inf")

    def forget(self, id: str) -> None:
        """Forget an item."""
        self._uses.pop(id, None)

    def score(self, id: str, now: float) -> float:
        """Return the heat of an item, from 0 to 1. An unused item has its relevance alone."""
        lru, lfu, semantic = self.weights
        last, uses = self._uses.get(id, (now, 0.0))
        decay = self._decay(now - last)
        relevance = semantic * self.relevance(id) if semantic else 0.0
        return (lru * decay if uses else 0.0) + lfu * (uses * decay) / (uses * decay + 1) + relevance

    def state(self) -> dict[str, tuple[float, float]]:
        """Return the state as plain data."""
        return dict(self._uses)

    def restore(self, state: dict[str, tuple[float, float]]) -> None:
        """Restore a state."""
        self._uses = {id: (last, uses) for id, (last, uses) in state.items()}

    def _decay(self, age: float) -> float:
        return float(0.5 ** (age / self.half_life))


class VictimSelection:
    """The tiers from the top down, and the victims of each with the tier below that takes them."""

    __slots__ = ("_coldest", "_ranks", "_tiers", "cooldown", "locations")

    def __init__(self, tiers: Sequence[Tier], locations: Locations, heat: Heat, cooldown: float) -> None:
        self._tiers, self.cooldown, self.locations = tiers, cooldown, locations
        self._ranks = {tier.name: at for at, tier in enumerate(tiers)}
        self._coldest = {tier.name: self._coldest_of(tier.name, heat) for tier in tiers if tier.replacement is None}

    def replacement(self, tier: str) -> Replacement:
        """Return the policy that chooses a tier's victims."""
        return self._tiers[self._ranks[tier]].replacement or self._coldest[tier]

    def state(self) -> dict[str, object]:
        """Return the states of the policies."""
        return {tier.name: tier.replacement.state() for tier in self._tiers if tier.replacement is not None}

    def restore(self, state: Mapping[str, object]) -> None:
        """Restore the states of the policies. Raises ValueError after which some may have changed."""
        own = {tier.name: tier.replacement for tier in self._tiers if tier.replacement is not None}
        if own.keys() != state.keys():
            raise ValueError(f"it has policies for {sorted(state)}, these tiers for {sorted(own)}")
        for name, replacement in own.items():
            replacement.restore(state[name])

    def rises(self, source: str, to: str) -> bool:
        """Return whether `to` is above `source`."""
        return self._ranks[to] < self._ranks[source]

    def down(self, tier: str) -> list[str]:
        """Return the names of a tier and of the tiers below it."""
        return [lower.name for lower in self._tiers[self._ranks[tier] :]]

    def victims(
        self, tier: str, now: float, keep: frozenset[str] = frozenset(), cold: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Yield victims with the tier that takes them, in order of eviction. Each is chosen when it is needed."""
        for id in self.replacement(tier).leaving(now, cold):
            # A policy may know items that have moved or are kept; it yields them without knowing that.
            place = self.locations.places.get(id)
            if place is not None and place.tier == tier and id not in keep:
                to = self._below(tier, place.tokens)
                if to is not None:
                    yield id, to

    def cooling(self, id: str, to: str, now: float) -> bool:
        """Return whether a move would take an item back where it came from just now."""
        place = self.locations.places[id]
        if not place.came or now >= place.since + self.cooldown:
            return False
        # Came up from Archive and is to go down, or came down and is to go up. On in the same direction is no way back.
        return self.rises(place.tier, to) != self.rises(place.came, place.tier)

    def _coldest_of(self, tier: str, heat: Heat) -> Coldest:
        return Coldest(heat, lambda: self.locations.ids(tier))

    def _below(self, tier: str, tokens: int) -> str | None:
        """Return the next tier below whose hard limit allows so many tokens."""
        below = self._tiers[self._ranks[tier] + 1 :]
        return next((lower.name for lower in below if tokens <= lower.quota.hard), None)


COLD = 0.1
"""Heat below which soft pressure and decay evict an item. Assumed.

With the default weights an item used once reaches it after 2.9 half-lives, one used ten times at once after 4.7.
"""


class Coldest:
    """The coldest item is the victim; of equals the oldest. All its data is in the heat."""

    __slots__ = ("_heat", "_ids")

    def __init__(self, heat: Heat, ids: Callable[[], list[str]]) -> None:
        self._heat, self._ids = heat, ids

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """Do nothing: the heat counts uses."""

    def use(self, id: str, now: float) -> None:
        """Do nothing: the heat counts uses."""

    def gone(self, id: str) -> None:
        """Do nothing: the ids come from the tier."""

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        # The order of scores changes while nobody uses anything: recency falls faster than a high frequency. So nothing
        # is stored, and all are scored; the heap then sorts only what is taken.
        scores = [(self._heat.score(id, now), at, id) for at, id in enumerate(self._ids())]
        heapq.heapify(scores)
        while scores and not (cold and scores[0][0] >= COLD):
            yield heapq.heappop(scores)[2]

    def state(self) -> None:
        """Return no state."""

    def restore(self, state: Any) -> None:
        """Restore nothing."""


AGAIN = 5.0
"""Seconds after which pressure that stays is relieved again."""


class Pressure:
    """Demotions under pressure, and their urgency."""

    __slots__ = ("_selection", "looked")

    def __init__(self, selection: VictimSelection) -> None:
        self._selection = selection
        self.looked: dict[str, tuple[float, int]] = {}
        """Time and level of the last look at each tier's pressure."""

    def hard(self, tier: Tier, tokens: int, now: float, keep: frozenset[str]) -> Iterator[Job]:
        """Yield the jobs that make room for `tokens` in a tier. Each must be done before the next is taken."""
        soft = tier.quota.limits[1][1]
        # Down to the soft limit and not just as far as needed: scoring all items for one victim would cost O(n) an
        # arrival. Freeing 5 % at once makes that some twenty scores each. An item larger than the soft limit asks only
        # for its own room.
        goal = soft - tokens if tokens <= soft else tier.quota.hard - tokens
        victims = self._selection.victims(tier.name, now, keep)
        while self._held(tier) > goal and (victim := next(victims, None)) is not None:
            yield Job.of(victim[0], tier.name, victim[1], Trigger.HARD_PRESSURE, now)

    def relieve(self, tier: Tier, now: float, queue: Queue) -> None:
        """Queue demotions when soft or medium pressure rises, and again after a while if it stays."""
        held = self._held(tier)
        level = min(tier.quota.level(held), 2)
        when, before = self.looked.get(tier.name, (-math.inf, 0))
        if level <= before and now < when + AGAIN:
            return
        self.looked[tier.name] = now, level
        if level:
            trigger = Trigger.MEDIUM_PRESSURE if level == 2 else Trigger.SOFT_PRESSURE
            # The + 1: a level is reached at its limit, so the tier is relieved one token below.
            self.queue_victims(tier, held - tier.quota.limits[0][1] + 1, trigger, now, queue)

    def queue_victims(self, tier: Tier, tokens: float, trigger: Trigger, now: float, queue: Queue) -> int:
        """Queue victims of a tier until they have `tokens` together. Return their tokens."""
        cold = trigger in (Trigger.SOFT_PRESSURE, Trigger.HOTNESS_DECAY)
        victims = self._selection.victims(tier.name, now, cold=cold)
        queued = 0
        while queued < tokens and (victim := next(victims, None)) is not None:
            id, to = victim
            if not self._selection.cooling(id, to, now):
                queue.push(Job.of(id, tier.name, to, trigger, now))
                queued += self._selection.locations.places[id].tokens
        return queued

    def _held(self, tier: Tier) -> int:
        return self._selection.locations.tokens(tier.name)

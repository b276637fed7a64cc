"""Pressure: what has to go down because a tier is full, or nearly.

In the terms of a tier's quota: *soft* from its warning on (80 %): what is cold leaves, down to the warning. *Medium*
from its soft limit on (95 %): the first to leave do, down to the warning. *Hard*: there is no room for what comes: the
first leave at once, to the soft limit, so that not every arrival has to look for a victim. The document names the three
levels and gives no numbers. A quota counts what is in the tier, not the copies left behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .choosing import Choosing
from .jobs import Job, Queue, Trigger
from .store import Tier

AGAIN = 5.0
"""Seconds after which pressure that could not be relieved is looked at again."""


class Pressure:
    """Which items go down, and how urgently."""

    __slots__ = ("_choosing", "looked")

    def __init__(self, choosing: Choosing) -> None:
        self._choosing = choosing
        self.looked: dict[str, tuple[float, int]] = {}
        """When a tier's pressure was looked at last, and how high it was."""

    def hard(self, tier: Tier, tokens: int, now: float, keep: frozenset[str]) -> Iterator[Job]:
        """What must be done so that a tier has room for so many tokens. Each job is to be done before the next is asked
        for.
        """
        soft = tier.quota.limits[1][1]
        goal = soft - tokens if tokens <= soft else tier.quota.hard - tokens
        victims = self._choosing.victims(tier.name, now, keep)
        while self._held(tier) > goal and (victim := next(victims, None)) is not None:
            yield Job.of(victim[0], tier.name, victim[1], Trigger.HARD_PRESSURE, now)

    def relieve(self, tier: Tier, now: float, queue: Queue) -> None:
        """Soft and medium pressure, when it rises, and again after a while if it stays."""
        held = self._held(tier)
        level = min(tier.quota.level(held), 2)
        when, before = self.looked.get(tier.name, (-math.inf, 0))
        if level <= before and now < when + AGAIN:
            return
        self.looked[tier.name] = now, level
        if level:
            trigger = Trigger.MEDIUM_PRESSURE if level == 2 else Trigger.SOFT_PRESSURE
            self.queue_victims(tier, held - tier.quota.limits[0][1] + 1, trigger, now, queue)

    def queue_victims(self, tier: Tier, tokens: float, trigger: Trigger, now: float, queue: Queue) -> int:
        """Queue the first of those that should leave, until they have so many tokens. How many they have."""
        cold = trigger in (Trigger.SOFT_PRESSURE, Trigger.HOTNESS_DECAY)
        victims = self._choosing.victims(tier.name, now, cold=cold)
        queued = 0
        while queued < tokens and (victim := next(victims, None)) is not None:
            id, to = victim
            if not self._choosing.cooling(id, to, now):
                queue.push(Job.of(id, tier.name, to, trigger, now))
                queued += self._choosing.locations.places[id].tokens
        return queued

    def _held(self, tier: Tier) -> int:
        return self._choosing.locations.tokens(tier.name)

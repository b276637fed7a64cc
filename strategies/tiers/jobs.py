"""Moves between tiers, with priorities and deadlines (004 §4.2 to §4.4).

The most urgent job is first; of equals the one with the earlier deadline, then the older one. A job past its deadline
goes before all others, so that none waits for ever. A late prediction is dropped instead, because its use is over. The
document gives latency budgets of promotions, which are the deadlines here. Priorities and the deadlines of demotions
are ours.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec


class Trigger(StrEnum):
    """Cause of a move."""

    FOCUS_REFERENCE = "focus reference"
    EXPLICIT_ACCESS = "explicit access"
    CACHE_MISS = "cache miss"
    PREDICTED_USE = "predicted use"
    HARD_PRESSURE = "hard pressure"
    MEDIUM_PRESSURE = "medium pressure"
    SOFT_PRESSURE = "soft pressure"
    GC_PRESSURE = "gc pressure"
    HOTNESS_DECAY = "hotness decay"


URGENCY = {
    Trigger.FOCUS_REFERENCE: (100, 0.01),
    Trigger.HARD_PRESSURE: (95, 0.1),
    Trigger.EXPLICIT_ACCESS: (90, 0.05),
    Trigger.CACHE_MISS: (80, 0.1),
    Trigger.MEDIUM_PRESSURE: (60, 1.0),
    Trigger.GC_PRESSURE: (50, 1.0),
    Trigger.SOFT_PRESSURE: (30, 5.0),
    Trigger.PREDICTED_USE: (20, 5.0),
    Trigger.HOTNESS_DECAY: (10, 60.0),
}
"""Priority of each trigger's jobs, the highest first, and recorded seconds until their deadline."""
PROMOTIONS = frozenset({Trigger.FOCUS_REFERENCE, Trigger.EXPLICIT_ACCESS, Trigger.CACHE_MISS, Trigger.PREDICTED_USE})
IDLE = frozenset({Trigger.MEDIUM_PRESSURE, Trigger.SOFT_PRESSURE, Trigger.GC_PRESSURE, Trigger.HOTNESS_DECAY})
"""Demotions that are dropped if the item is used meanwhile."""
UNCOOLED = frozenset({Trigger.FOCUS_REFERENCE, Trigger.HARD_PRESSURE})
"""Triggers that ignore the cool-down: content that must be sent, and tiers without room."""


class Job(msgspec.Struct, frozen=True, gc=False):
    """A move of one item from one tier to another."""

    id: str
    source: str
    to: str
    trigger: Trigger
    asked: float

    @property
    def deadline(self) -> float:
        """Recorded time until which it should be done."""
        return self.asked + URGENCY[self.trigger][1]

    @property
    def priority(self) -> int:
        return URGENCY[self.trigger][0]

    def rank(self, now: float) -> tuple[bool, float, float]:
        """Return the sort key: late jobs by deadline, then the others by priority. At its deadline a job is in time."""
        late = self.deadline < now
        return (not late, self.deadline, -self.priority) if late else (not late, -self.priority, self.deadline)


class MoveReason(StrEnum):
    """Reason why an item was not moved and stayed where it was."""

    COLD = "colder than the threshold"
    COOLING = "it came the other way just now"
    TOO_LARGE = "larger than the tier"
    NO_ROOM = "nothing there can leave"
    STALE = "it is not there any more"
    USED = "it was used since it was to leave"
    EXPIRED = "the prediction is too old"


class Outcome(NamedTuple):
    """Result of a job."""

    job: Job
    why: MoveReason | None = None  # reason why it was not done; None = it was done

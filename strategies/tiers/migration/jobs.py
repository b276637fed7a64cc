"""The queue of moves between tiers, with priorities and deadlines (004 §4.2 to §4.4), and the account of each edge.

The most urgent job is first; of equals the one with the earlier deadline, then the older one. A job past its deadline
goes before all others, so that none waits for ever. A late prediction is dropped instead, because its use is over. The
document gives latency budgets of promotions, which are the deadlines here. Priorities and the deadlines of demotions
are ours.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
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


class Urgency(NamedTuple):
    """Priority and deadline of a trigger's jobs."""

    priority: int
    """0 to 100, the highest first."""
    within: float
    """Recorded seconds until the deadline."""


URGENCY = {
    Trigger.FOCUS_REFERENCE: Urgency(100, 0.01),
    Trigger.HARD_PRESSURE: Urgency(95, 0.1),
    Trigger.EXPLICIT_ACCESS: Urgency(90, 0.05),
    Trigger.CACHE_MISS: Urgency(80, 0.1),
    Trigger.MEDIUM_PRESSURE: Urgency(60, 1.0),
    Trigger.GC_PRESSURE: Urgency(50, 1.0),
    Trigger.SOFT_PRESSURE: Urgency(30, 5.0),
    Trigger.PREDICTED_USE: Urgency(20, 5.0),
    Trigger.HOTNESS_DECAY: Urgency(10, 60.0),
}
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
    deadline: float

    @classmethod
    def of(cls, id: str, source: str, to: str, trigger: Trigger, now: float) -> Job:
        """Create a job that is requested now."""
        return cls(id, source, to, trigger, now, now + URGENCY[trigger].within)

    @property
    def priority(self) -> int:
        """Priority, 0 to 100."""
        return URGENCY[self.trigger].priority


class Queue:
    """Jobs, at most one per item: the more urgent one, of equals the older one."""

    __slots__ = ("_count", "_jobs", "_late", "_urgent")

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[int, Job]] = {}
        self._urgent: list[tuple[int, float, int, str]] = []
        # The same jobs by deadline. Entries of both heaps are outdated unless their number is that of the item's job.
        self._late: list[tuple[float, int, int, str]] = []
        self._count = 0

    def jobs(self) -> list[Job]:
        """Return all jobs in the order of their requests."""
        return [job for _, job in sorted(self._jobs.values(), key=lambda numbered: numbered[0])]

    def push(self, job: Job) -> bool:
        """Queue a job. Return False if its item has a job that is as urgent."""
        waiting = self._jobs.get(job.id)
        if waiting is not None and waiting[1].priority >= job.priority:
            return False
        self._count += 1
        self._jobs[job.id] = self._count, job
        # The number is before the id: among equals the older job wins, and no comparison reaches the id.
        heapq.heappush(self._urgent, (-job.priority, job.deadline, self._count, job.id))
        heapq.heappush(self._late, (job.deadline, -job.priority, self._count, job.id))
        return True

    def pop(self, now: float) -> Job | None:
        """Remove and return the next job: the one whose deadline passed first, else the most urgent; None if empty."""
        while self._late and not self._valid(*self._late[0][2:]):
            heapq.heappop(self._late)
        if not self._late:
            # Both heaps hold the same jobs, so what is left in the other one is outdated. It is emptied here, as jobs
            # that are taken late leave their entries there.
            self._urgent.clear()
            return None
        # A job at its deadline is still in time (`late` in the account of its edge is now > deadline, too).
        if self._late[0][0] < now:
            return self._jobs.pop(heapq.heappop(self._late)[3])[1]
        while not self._valid(*self._urgent[0][2:]):
            heapq.heappop(self._urgent)
        return self._jobs.pop(heapq.heappop(self._urgent)[3])[1]

    def _valid(self, number: int, id: str) -> bool:
        return id in self._jobs and self._jobs[id][0] == number


class MoveReason(StrEnum):
    """Reason why an item was not moved and stayed where it was."""

    COLD = "colder than the threshold"
    COOLING = "it came the other way just now"
    TOO_LARGE = "larger than the tier"
    NO_ROOM = "nothing there can leave"
    STALE = "it is not there any more"
    USED = "it was used since it was to leave"
    EXPIRED = "the prediction is too old"


@dataclass(slots=True)
class Edge:
    """Account of the moves from one tier to another."""

    moves: int = 0
    revived: int = 0
    """Moves without copying: an earlier copy was still there."""
    late: int = 0
    """Moves after their deadline."""
    tokens: int = 0
    refused: Counter[MoveReason] = field(default_factory=Counter)


class Outcome(NamedTuple):
    """Result of a job."""

    job: Job
    why: MoveReason | None = None
    """Reason why it was not done; None = it was done."""
    revived: bool = False
    late: bool = False

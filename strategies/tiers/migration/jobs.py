"""What is to be moved, why, how urgently and until when (004 §4.2 to §4.4).

The most urgent is done first; of equals the one with the earlier deadline, then the one asked for first. A job whose
deadline has passed goes before all others, so that none waits for ever; a prediction that is late is dropped instead:
what it was for is over. The document gives latency budgets of promotions, which are the deadlines here, and neither
priorities nor the deadlines of demotions: ours are below.
"""

from __future__ import annotations

import heapq
from enum import StrEnum
from typing import NamedTuple

import msgspec


class Trigger(StrEnum):
    """Why something moves."""

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
    """How a trigger's jobs are queued."""

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
"""What sends an item down only as long as nobody uses it."""
UNCOOLED = frozenset({Trigger.FOCUS_REFERENCE, Trigger.HARD_PRESSURE})
"""What no cool-down holds up: what must be sent, and what there is no room for."""


class Job(msgspec.Struct, frozen=True, gc=False):
    """One item that is to go from one tier to another."""

    id: str
    source: str
    to: str
    trigger: Trigger
    asked: float
    deadline: float

    @classmethod
    def of(cls, id: str, source: str, to: str, trigger: Trigger, now: float) -> Job:
        """A job that is asked for now."""
        return cls(id, source, to, trigger, now, now + URGENCY[trigger].within)

    @property
    def priority(self) -> int:
        """0 to 100."""
        return URGENCY[self.trigger].priority

    @property
    def promotion(self) -> bool:
        """Whether it goes up."""
        return self.trigger in PROMOTIONS


class Queue:
    """Jobs, at most one an item: the more urgent one, of equals the one asked for first."""

    __slots__ = ("_count", "_jobs", "_late", "_urgent")

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[int, Job]] = {}
        self._urgent: list[tuple[int, float, int, str]] = []
        self._late: list[tuple[float, int, int, str]] = []
        """The same jobs in the order of their deadlines. Of both heaps, entries whose number is not the job's are
        void."""
        self._count = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def jobs(self) -> list[Job]:
        """All of them, in the order in which they were asked for."""
        return [job for _, job in sorted(self._jobs.values(), key=lambda each: each[0])]

    def push(self, job: Job) -> bool:
        """Queue a job. False if its item has one already that is as urgent."""
        waiting = self._jobs.get(job.id)
        if waiting is not None and waiting[1].priority >= job.priority:
            return False
        self._count += 1
        self._jobs[job.id] = self._count, job
        heapq.heappush(self._urgent, (-job.priority, job.deadline, self._count, job.id))
        heapq.heappush(self._late, (job.deadline, -job.priority, self._count, job.id))
        return True

    def pop(self, now: float) -> Job | None:
        """The next job: the one whose deadline passed first, or else the most urgent. None if there is none."""
        while self._late and not self._valid(*self._late[0][2:]):
            heapq.heappop(self._late)
        if not self._late:
            self._urgent.clear()
            return None
        if self._late[0][0] < now:
            return self._taken(heapq.heappop(self._late)[3])
        while not self._valid(*self._urgent[0][2:]):
            heapq.heappop(self._urgent)
        return self._taken(heapq.heappop(self._urgent)[3])

    def _valid(self, number: int, id: str) -> bool:
        return id in self._jobs and self._jobs[id][0] == number

    def _taken(self, id: str) -> Job:
        return self._jobs.pop(id)[1]

"""Migration: content moves between tiers on the recorded clock (design document 004 §4, §6).

    migration = Migration(tiers, record, now)

It works without the harness, and sees tiers as stores of bytes. `migration.py` moves content; `selection.py` has the
heat of items and the policies that choose victims, `jobs.py` the queue, `alarms.py` readings, alarms and the tuner.
Decision 20 gives the reasons.
"""

from __future__ import annotations

from .alarms import Readings, Tuning, tuning_step
from .jobs import Edge, Job, MoveReason, Outcome, Trigger
from .migration import ContentStore, Migration, Tier, TierError
from .selection import Heat, HeatWeights, Replacement

__all__ = [
    "ContentStore",
    "Edge",
    "Heat",
    "HeatWeights",
    "Job",
    "Migration",
    "MoveReason",
    "Outcome",
    "Readings",
    "Replacement",
    "Tier",
    "TierError",
    "Trigger",
    "Tuning",
    "tuning_step",
]

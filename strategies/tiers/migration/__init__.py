"""Migration: content moves between tiers on the recorded clock, and no crash loses any (design document 004 §4, §6).

    migration = Migration(tiers, journal, record, now)

It works without the harness, and sees tiers as stores of bytes (`store.py`). `migration.py` is the interface;
`selection.py` chooses victims by heat and pressure, `jobs.py` has the queue and the accounts, `moves.py` moves content,
`journal.py` records where everything is, `alarms.py` has readings, alarms and the tuner. Decision 20 gives the reasons.
"""

from __future__ import annotations

from .alarms import Alarm, Readings, Tuning, find_alarms, tuning_step
from .jobs import Accounts, Edge, Job, MoveReason, Outcome, Trigger
from .journal import FileJournal, Journal, JournalError, MemoryJournal
from .migration import Migration
from .selection import Heat, HeatWeights
from .store import ContentStore, Replacement, Tier, TierError

__all__ = [
    "Accounts",
    "Alarm",
    "ContentStore",
    "Edge",
    "FileJournal",
    "Heat",
    "HeatWeights",
    "Job",
    "Journal",
    "JournalError",
    "MemoryJournal",
    "Migration",
    "MoveReason",
    "Outcome",
    "Readings",
    "Replacement",
    "Tier",
    "TierError",
    "Trigger",
    "Tuning",
    "find_alarms",
    "tuning_step",
]

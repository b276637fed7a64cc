"""Migration: content moves between tiers on the recorded clock, and no crash loses any of it (design document 004 §4,
§6).

    migration = Migration(tiers, journal, record, now)

It needs nothing of the harness, and knows tiers as stores of bytes (`store.py`). `migration.py` says who goes where and
when, `pressure.py` and `replacing.py` who must leave, `jobs.py` in which order, `heat.py` how hot an item is;
`moving.py` and `mover.py` move, `records.py` and `journal.py` have where everything is; `tuning.py` and `alarms.py`
read figures, `accounts.py` keeps them. Decision 20 says why it is like that.
"""

from __future__ import annotations

from .accounts import Accounts, Edge, Why
from .alarms import Alarm, Readings, Tuning, judged, tuned
from .heat import Heat, HeatWeights
from .jobs import Job, Trigger
from .journal import FileJournal, Journal, JournalError, MemoryJournal
from .migration import Migration
from .moves import Outcome
from .store import ContentStore, Replacement, Tier, TierError

__all__ = [
    "Accounts",
    "Alarm",
    "Edge",
    "FileJournal",
    "Heat",
    "Job",
    "Journal",
    "JournalError",
    "MemoryJournal",
    "Migration",
    "Outcome",
    "Readings",
    "Replacement",
    "ContentStore",
    "Tier",
    "TierError",
    "Trigger",
    "Tuning",
    "HeatWeights",
    "Why",
    "judged",
    "tuned",
]

"""Whether what answers rest on is sent, and how well memories are retrieved."""

from __future__ import annotations

import pandas as pd

from ... import probe_tables
from ...results import Results
from ..section import Section


def section(results: Results) -> Section | None:
    """None where the recordings have no questions with known answers."""
    found = results.summary.probes
    if found is None:
        return None
    rows = [{"strategy": name, **figures.values} for name, figures in (found.strategies | found.bounds).items()]
    lead = "The recordings have questions whose answers are known, and the messages that they rest on. Are these sent?"
    parts = tuple(probe_tables.tables(found, by_kind=True))
    return Section("evidence", "Evidence and retrieval", lead, parts, {"evidence": pd.DataFrame(rows)})

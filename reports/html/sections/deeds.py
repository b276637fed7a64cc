"""What strategies did, what they asked models for, and what failed."""

from __future__ import annotations

import pandas as pd

from ... import deed_tables
from ...results import Results
from ...tables import failed_table, problems_table
from ..section import Section


def section(results: Results) -> Section | None:
    """None where strategies reported nothing, and nothing failed."""
    summary = results.summary
    parts = [table for table in (deed_tables.added(summary), deed_tables.did(summary)) if table]
    if summary.why:
        parts.append(deed_tables.why(summary))
    if summary.failed:
        parts.append(failed_table(summary))
    if summary.manifest["problems"]:
        parts.append(problems_table(summary))
    frames = {"why": summary.why, "failed": summary.failed, "left_out": summary.manifest["problems"]}
    lead = "Their own model calls are charged to them. What could not be had is here, with what they did instead."
    return (
        Section(
            "deeds",
            "Deeds and failures",
            lead,
            tuple(parts),
            {name: pd.DataFrame(rows) for name, rows in frames.items() if rows},
        )
        if parts
        else None
    )

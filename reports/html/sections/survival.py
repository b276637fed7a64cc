"""How long facts live when summaries are summarised again."""

from __future__ import annotations

import pandas as pd

from ... import deed_tables
from ...figures.curves import survival
from ...results import Results
from ..section import Drawn, Section


def section(results: Results) -> Section | None:
    """None where no strategy summarises."""
    found = {name: rows for name, rows in results.summary.survival.items() if rows}
    if not found:
        return None
    figure = Drawn(
        "survival",
        "Facts that outlive rounds of summarising",
        "A panel a strategy: of the facts that were followed so far, the share that the summary still has. Facts "
        "followed longer are fewer, and no sample of those before: a line may rise. The rule is at one half.",
        lambda: survival(found),
    )
    frame = pd.DataFrame([{"strategy": name, **row._asdict()} for name, rows in found.items() for row in rows])
    parts = (figure, deed_tables.survival(results.summary), deed_tables.first_round(results.summary))
    lead = (
        "A summary of a summary keeps less each time: numbers, dates, names, decisions and constraints, followed one "
        "by one."
    )
    return Section("survival", "Survival in summaries", lead, parts, {"survival": frame})

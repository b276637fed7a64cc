"""Whether what the recorded model used next was still in the context."""

from __future__ import annotations

import pandas as pd

from ... import context_tables
from ...figures.curves import grounding
from ...results import Results
from ..section import Drawn, Section


def section(results: Results) -> Section | None:
    """None where no recorded call or answer uses a value that was said before."""
    summary = results.summary
    if not any(summary.grounding.values()):
        return None
    taking_part = [name for name, kinds in summary.grounding.items() if kinds]
    figure = Drawn(
        "grounding",
        "Values still in the context, by turn",
        "A panel a strategy: of the values that the recorded model used next in its tool calls and final answers, and "
        "that a user or a tool had said, the share that the context still has. Bins of turns with at least 20 values.",
        lambda: grounding(results.common, taking_part),
    )
    rows = [
        {"strategy": name, "kind": kind, "values": values, "kept": kept}
        for name, kinds in summary.grounding.items()
        for kind, (values, kept) in kinds.items()
    ]
    lead = "A context that lacks what the model is about to use cannot be answered from. It needs no grader, no labels."
    parts = (figure, context_tables.grounding(summary))
    return Section("grounding", "Retention and grounding", lead, parts, {"grounding": pd.DataFrame(rows)})

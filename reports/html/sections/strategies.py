"""The main table: what every strategy saves, keeps and is refused."""

from __future__ import annotations

import pandas as pd

from ...main_table import lacking, main_table
from ...results import Results
from ..section import Section


def section(results: Results) -> Section:
    """Every run has it."""
    summary = results.summary
    frame = pd.DataFrame([{"strategy": name, **figures} for name, figures in summary.strategies.items()])
    return Section(
        "strategies",
        "Strategies",
        "What each strategy saves against sending the whole history at every call, and what that costs in other ways.",
        tuple(filter(None, (main_table(summary), lacking(summary)))),
        {"strategies": frame},
    )

"""The rows that figures by conversation are made of."""

from __future__ import annotations

import pandas as pd

from ..harness.load import Run
from .steps import steps_of


def rows_of(run: Run, table: str) -> pd.DataFrame:
    """A table of a run, with the columns that the figures need (`harness.gating.measured.Rows`)."""
    return steps_of(run) if table == "steps" else run.table(table)

"""The steps of a run with what the figures need joined in."""

from __future__ import annotations

import pandas as pd

from .contexts import sent
from .loading import Run

STEP = ["conversation", "strategy", "step"]
"""What names a step."""
LOG = ["added_from", "added_to", "marks", "tools_added"]
"""Lists, which take ten times the rest as a data frame has them. What is to be known of them is in other columns."""


def steps_of(run: Run) -> pd.DataFrame:
    """The steps of a run without the context log (`LOG`), and with more columns.

    `decide_ns`; the model's `window`; `tokens_added` and `newest` (`contexts.Sent`); `own_tokens` and `own_cost` of the
    strategy's own model calls (NaN where a price is not known); `demands`, and `demands_kept` of them, as the grounding
    table has them for all kinds together.
    """
    table = run.arrow("steps")
    steps: pd.DataFrame = table.drop_columns(LOG).to_pandas()
    steps["decide_ns"] = run.arrow("timings").column("decide_ns").to_numpy()
    steps["window"] = run.manifest["window"]
    steps = steps.join(sent(run, table))
    calls = run.table("events").dropna(subset=["input_tokens"])
    calls["tokens"] = calls.input_tokens + calls.output_tokens
    own = calls.groupby(STEP, observed=True).agg(own_tokens=("tokens", "sum"), own_cost=("cost", _known_sum))
    wanted = (
        run.table("grounding").groupby(STEP, observed=True).agg(demands=("values", "sum"), demands_kept=("kept", "sum"))
    )
    for table in (own, wanted):
        joined = steps[STEP].merge(table.reset_index(), on=STEP, how="left", indicator=True)
        for column in table.columns:
            steps[column] = joined[column].where(joined["_merge"] == "both", 0).to_numpy()
    return steps


def _known_sum(costs: pd.Series[float]) -> float:
    return float(costs.sum(skipna=False))


def rows_of(run: Run, table: str) -> pd.DataFrame:
    """A table of a run, with the columns that the figures need (`gating.measured.Rows`)."""
    return steps_of(run) if table == "steps" else run.table(table)

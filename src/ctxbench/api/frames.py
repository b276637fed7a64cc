"""The figures of a run as data frames, with the names, units and meanings of their columns.

A frame's columns have the keys of the metrics (`ctxbench list metrics`), which code can rely on; `names="display"`
gives them the names that tables and figures use. `frame.attrs` has display names and units by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from ctxbench.harness.compare.figures import measured, overall
from ctxbench.harness.folder.run import Run
from ctxbench.metrics.figures import display_name, metric_of
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import SpecError

Names = Literal["keys", "display"]
"""Names of the columns of a frame: keys, or display names."""

# Columns that are no metric by this key; everything else that is not here is its key with spaces.
_DISPLAY = {
    "at": "message",
    "base": "cost of whole history",
    "break_even": "break-even turn",
    "cost_fresh": "cost of uncached input",
    "cost_output": "cost of output",
    "cost_own": "cost of own calls",
    "cost_read": "cost of cache reads",
    "cost_written": "cost of cache writes",
    "fresh": "tokens not cached",
    "read": "tokens read from cache",
    "written": "tokens written to cache",
}


def _shown(key: str) -> str:
    """Return the name that people read: `cost(gpt-5.6)` is `cost (gpt-5.6)`, `net_saving` is `net saved`."""
    return _DISPLAY.get(key) or (display_name(key) if metric_of(key) else key.replace("_", " "))


def described(frame: pd.DataFrame, names: Names) -> pd.DataFrame:
    """Return the frame with `attrs["names"]` and `attrs["units"]`, its columns renamed if `names` says so.

    Raises SpecError for other `names`.
    """
    if names not in ("keys", "display"):
        raise SpecError(f'names={names!r}: give "keys" or "display"')
    keys = [str(column) for column in frame.columns]
    frame.attrs["names"] = {key: _shown(key) for key in keys}
    frame.attrs["units"] = {key: metric.unit for key in keys if (metric := metric_of(key)) is not None}
    return frame.rename(columns=frame.attrs["names"]) if names == "display" else frame


def summary(run: Run, models: Sequence[str] = ()) -> pd.DataFrame:
    """Return one row per strategy and one column per metric (`metrics.figures.METRICS`), NaN where a value is missing.

    With models there are columns of the bill for each, such as `cost(MODEL)` in US dollars and `cache_hit_rate(MODEL)`.
    As in the report, figures are over the conversations that every strategy finished; they equal those of
    `ctxbench compare` to the last digit.
    """
    values = overall(measured(run, models, clock=True))
    rows = {
        strategy: {name: np.nan if isinstance(value, Missing) else value for name, value in metrics.items()}
        for strategy, metrics in values.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("strategy")

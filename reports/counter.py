"""How far our count of a prompt is from the provider's."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..metrics.tokens import encoding_of
from ..metrics.value import Missing, Value


def counter_error(messages: pd.DataFrame, steps: pd.DataFrame, encoding: str) -> list[dict[str, Value | str]]:
    """Our count of the whole prompt against the one that the provider reported, by recorded model.

    `total` is (counted − reported) / reported over all calls: what is not in a recording (a system prompt, tool
    schemas) is in it. `growth_p10`, `growth_p50`, `growth_p90` are of the growth from one call to the next, in
    which what is constant cancels; calls where the reported prompt shrank are left out of it. So are calls after a
    recorded compaction: what was sent there is not the history.
    """
    known = messages.dropna(subset=["usage_input"])
    known = known[(known.usage_input > 0) & ~known.compacted]
    full = steps[["conversation", "at", "tokens_full"]].drop_duplicates(["conversation", "at"])
    both = known.astype({"conversation": str}).merge(full.astype({"conversation": str}), on=["conversation", "at"])
    rows: list[dict[str, Value | str]] = []
    for model, calls in both.groupby("model", observed=True):
        grown = calls.groupby("conversation", observed=True)[["usage_input", "tokens_full"]].diff()
        grown = grown[grown.usage_input > 0]
        errors = ((grown.tokens_full - grown.usage_input) / grown.usage_input).to_numpy()
        points: list[Value] = [Missing("undefined", "one call only")] * 3
        if len(errors):
            points = [float(point) for point in np.percentile(errors, [10, 50, 90])]
        rows.append(
            {
                "model": str(model),
                "encoding": encoding,
                "published": encoding_of(str(model)) or "none",
                "calls": len(calls),
                "total": float(calls.tokens_full.sum() / calls.usage_input.sum() - 1),
                **{f"growth_p{at}": value for at, value in zip((10, 50, 90), points, strict=True)},
            }
        )
    return rows

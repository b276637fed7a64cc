"""Figures that fall into parts by conversation, and are the same put together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.value import Missing, Ratio, Saving, Total, value

SUMMED = [name for name, each in METRICS.items() if isinstance(each.of, Total | Ratio) and each.table == "steps"]
NUMBERS = ("tokens_full", "tokens_sent", "tokens_kept", "tokens_added", "own_tokens", "own_cost", "demands", "window")
REPLACED = ("tokens_replaced", "tokens_standing_in", "lookups", "archive_content", "archive_stored")
FAULTS = ("orphan_results", "unanswered_calls", "misordered", "blank_messages", "dropped_system", "no_user")
MORE = ("not_user_first", "empty", "over_budget")


def steps(rows: list[list[int]]) -> pd.DataFrame:
    made = pd.DataFrame(rows, columns=[*NUMBERS, *REPLACED, *FAULTS, *MORE])
    made = made.assign(step=range(len(made)), newest=made.demands > 2, demands_kept=made.demands // 2)
    made = made.assign(constraints=made.demands, constraints_kept=made.demands // 3)
    return made.assign(policy="lru_k", lookup_hits=made.lookups // 2)


@given(st.lists(st.lists(st.integers(0, 9), min_size=22, max_size=22), min_size=2, max_size=12), st.data())
def test_parts_add_up(rows: list[list[int]], data: st.DataObject) -> None:
    """Cut anywhere, the sums of the parts make the figure of the whole, of every metric that is made of sums."""
    whole = steps(rows)
    cut = data.draw(st.integers(0, len(rows)))
    for name in SUMMED:
        metric = METRICS[name].of
        assert isinstance(metric, Total | Ratio)
        halves = [[column.sum() for column in metric.parts(part)] for part in (whole[:cut], whole[cut:])]
        top, bottom = np.array(halves, float).sum(axis=0)
        found = metric(whole)
        if isinstance(found, Missing):
            assert bottom == 0
        else:
            assert value(metric.form, top, bottom) == pytest.approx(found)


def test_by_hand() -> None:
    """2 + 3 of 4 + 6; what a saving leaves; a row without a number has no total."""
    rows = pd.DataFrame({"a": [2.0, 3], "b": [4.0, 6]})
    assert Total(lambda s: s.a)(rows) == 5
    assert Ratio(lambda s: s.a, lambda s: s.b, "none")(rows) == 0.5
    assert Saving(lambda s: s.a, lambda s: s.b * 2, "none")(rows) == 0.75
    assert Ratio(lambda s: s.a, lambda s: s.b * 0, "none")(rows) == Missing("undefined", "none")
    assert Ratio(lambda s: s.a, lambda s: s.b, "none", has=lambda s: s.a > 9, lacking="no")(rows) == Missing(
        "unsupported", "no"
    )
    gone = rows.assign(a=[2.0, np.nan])
    assert Total(lambda s: s.a, "no price")(gone) == Missing("unsupported", "no price")
    assert isinstance(Total(lambda s: s.a > 2)(rows), int)

"""Figures on steps written by hand and in parts by conversation, and reasons that differ in numbers only."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.value import Missing, Ratio, Reason, Saving, Total, grouped, value

SUMMED = [name for name, each in METRICS.items() if isinstance(each.of, Total | Ratio) and each.table == "steps"]
NUMBERS = ("tokens_full", "tokens_sent", "tokens_kept", "tokens_added", "own_tokens", "own_cost", "demands", "window")
REPLACED = ("tokens_replaced", "tokens_standing_in", "lookups", "archive_content", "archive_stored")
FAULTS = ("orphan_results", "unanswered_calls", "misordered", "blank_messages", "dropped_system", "no_user")
MORE = ("not_user_first", "empty", "over_budget")


def steps(rows: list[list[int]]) -> pd.DataFrame:
    made = pd.DataFrame(rows, columns=[*NUMBERS, *REPLACED, *FAULTS, *MORE])
    made = made.assign(step=range(len(made)), newest=made.demands > 2, demands_kept=made.demands // 2)
    made = made.assign(constraints=made.demands, constraints_kept=made.demands // 3)
    made = made.assign(
        values_given=made.demands, values_kept=made.demands // 4, asks=made.demands > 1, reasks=made.demands > 4
    )
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


def test_kept_prefix_by_hand() -> None:
    """Three calls of one conversation send 35, 114 and 229 tokens, and keep 32 + 79 of the second, 109 of the third's.
    The first call is left out above and below: 220 of 343, not of 378."""
    steps = pd.DataFrame({"step": [0, 1, 2], "tokens_sent": [35, 114, 229], "tokens_kept": [0, 111, 109]})
    assert METRICS["prefix_reuse"].of(steps) == pytest.approx(220 / 343)
    assert METRICS["prefix_reuse"].of(steps[:1]) == Missing("undefined", "no second step")
    assert "after each conversation's first step" in METRICS["prefix_reuse"].about


def test_saving_without_calls_that_ask_nothing() -> None:
    """Of 100, 1000 and 100 tokens 50, 5 and 50 are sent; without the second call half is saved."""
    steps = pd.DataFrame(
        {"tokens_full": [100, 1000, 100], "tokens_sent": [50, 5, 50], "newest": [True, False, True], "tokens_added": 6}
    )
    assert METRICS["saving"].of(steps) == pytest.approx(1 - 105 / 1200)
    assert METRICS["saving_with_newest"].of(steps) == pytest.approx(0.5)
    assert METRICS["without_newest"].of(steps) == 1
    assert METRICS["added_share"].of(steps) == pytest.approx(18 / 1200)


def test_numbers_that_differ_are_left_out() -> None:
    """5,010 and 600 tokens over 500 are one reason, of which the 500 stays; the most frequent reason is first."""
    found = [
        (1, "gone"),
        (1, "the reply has 5010 tokens, over 500"),
        (1, "the reply has 600 tokens, over 500"),
        (2, "the reply has 600 tokens, over 500"),
    ]
    assert grouped(found) == [
        (1, Reason("the reply has … tokens, over 500", 2)),
        (1, Reason("gone", 1)),
        (2, Reason("the reply has 600 tokens, over 500", 1)),
    ]


def test_numbers_in_names_are_part_of_the_reason() -> None:
    """gpt-4o and gpt-5o are two reasons; archived results are one, whatever their uuid."""
    assert len(grouped([(0, "gpt-4o: no answer"), (0, "gpt-5o: no answer")])) == 2
    uuids = ("0f8fad5b-d9cb-569f-a165-70867728950e", "7c9e6679-7425-50de-944b-e07fc1f90ae7")
    assert grouped((0, f"{uuid} is taken") for uuid in uuids) == [(0, Reason("… is taken", 2))]


@given(st.lists(st.tuples(st.booleans(), st.text("ab 12.,-"))))
def test_none_is_lost(found: list[tuple[bool, str]]) -> None:
    """Every text is counted once, and one that came alone is shown as it is."""
    made = grouped(found)
    assert sum(reason.times for _, reason in made) == len(found)
    assert all((key, reason.text) in found for key, reason in made if reason.times == 1)

"""Reasons that differ in numbers only are one reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.value import Reason, grouped


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

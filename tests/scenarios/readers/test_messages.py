"""Clocks that ran backwards: as few times as may be are left out, by hand and against every subset."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.readers.messages import forward

TIMES = st.lists(st.none() | st.integers(0, 6).map(float), max_size=7)


def test_one_time_far_ahead() -> None:
    """It is left out alone, not all that come after it."""
    assert forward([1, 99, 2, 3]) == ([1, None, 2, 3], 1)


def test_of_two_that_contradict_each_other_the_first_said_stays() -> None:
    """Either could be wrong."""
    assert forward([1, 3, 2, 4]) == ([1, 3, None, 4], 1)


def test_missing_times_stay_missing() -> None:
    """They count as none that was left out."""
    assert forward([None, 2, None, 2, 1]) == ([None, 2, None, 2, None], 1)


@given(TIMES)
def test_no_more_can_be_kept(times: list[float | None]) -> None:
    """What is kept never runs backwards, and no larger choice of the times does not either."""
    made, dropped = forward(times)
    kept = [time for time in made if time is not None]
    assert kept == sorted(kept)
    assert all(new is None or new == old for old, new in zip(times, made, strict=True))
    known = [time for time in times if time is not None]
    assert dropped == len(known) - len(kept)
    more = combinations(known, len(kept) + 1)
    assert not any(list(choice) == sorted(choice) for choice in more)

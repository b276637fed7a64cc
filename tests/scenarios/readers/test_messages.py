"""Content blocks of any type, and clocks that ran backwards: by hand and against every subset."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.readers.messages import forward, texts
from ctxbench.scenarios.source import Problems

HERE = Place("log.json", 3, "messages[0].content")


def test_blocks_of_an_unknown_type_are_counted() -> None:
    """What has a text is read as it, whatever its type; what has none is a note by name, an empty text is not."""
    blocks = [{"type": "document", "text": "D"}, {"type": "text"}, {"type": "puzzle"}, {"type": "puzzle"}, "plain"]
    problems = Problems()
    assert texts(blocks, HERE, problems) == ("D\nplain", (), "")
    problems.note_unknown()
    assert problems.notes == [f"content block of type 'puzzle': 2 not read ({HERE}[2])"]


def test_a_text_that_is_none() -> None:
    """It is an error that names its line and field."""
    with pytest.raises(RecordingError) as caught:
        texts([{"type": "text", "text": "a"}, {"type": "text", "text": 5}], HERE, Problems())
    assert caught.value.place == HERE.at("messages[0].content[1].text")
    assert caught.value.what == "expected str, got int"


def test_notes_of_many_files_are_one() -> None:
    """A type is one note over all files, which says where it stood first."""
    problems = Problems()
    for line in (1, 2):
        problems.unknown("x: row of type 'y'", Place(f"{line}.jsonl", line))
    problems.note_unknown()
    assert problems.notes == ["x: row of type 'y': 2 not read (2 files, first 1.jsonl:1)"]


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

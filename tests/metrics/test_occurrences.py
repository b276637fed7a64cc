"""Where values stand in texts as wholes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.values import occurs, places


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("12", "a 12 b", True),
        ("12", "B12", False),
        ("12", "12,", True),
        ("doe", "sara_doe_1", False),
        ("doe", "doe's", True),
        ("50", "1.50", False),
        ("50", "50,000", False),
        ("1", "1.5", False),
        ("000", "50,000", False),
        ("10", "[10,20]", True),
        ("20", "[10,20]", True),
        ("50", "It was 50.", True),
        ("2024-05-15", "at 2024-05-15T10:00", True),
        ("2024-05-15", "at 2024-05-150", False),
        ("src/a.py", "see /x/src/a.py:3", True),
        ("北京", "我在北京市", True),
        ("45", "预算45万", True),
        ("John", "和John说", True),
        ("caf", "café", False),
        ("(x)", "f(x)y", True),
        ("a", "", False),
        ("aa", "aaa aa", True),
    ],
)
def test_occurs(value: str, text: str, expected: bool) -> None:
    """A value stands between word boundaries, not inside a longer number, and anywhere in Chinese."""
    assert occurs(value, text) is expected


ALPHABET = "a1_.,-T 北京é/"


@given(
    st.lists(st.lists(st.text(ALPHABET, min_size=1, max_size=4), min_size=1, max_size=2).map(tuple), max_size=8),
    st.lists(st.text(ALPHABET, max_size=20), max_size=8),
)
def test_places_are_where_a_spelling_occurs(values: list[tuple[str, ...]], texts: list[str]) -> None:
    """Looking for many values in one pass finds what looking for each in each text finds."""
    which, where = places(values, texts)
    slow = [
        (number, at)
        for number, spellings in enumerate(values)
        for at, text in enumerate(texts)
        if any(occurs(spelling, text) for spelling in spellings)
    ]
    assert list(zip(which.tolist(), where.tolist(), strict=True)) == slow

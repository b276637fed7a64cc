"""Values of texts, by hand in English and Chinese, and where they stand in texts as wholes."""

import re
import tomllib
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.values import (
    _PATTERN,
    _PLAIN,
    Value,
    _exact,
    _of_line,
    finder,
    occurs,
    places,
    spellings,
    values,
)

EXAMPLES = tomllib.loads(Path(__file__).with_name("value_examples.toml").read_text("utf-8"))


@pytest.mark.parametrize("text", EXAMPLES)
def test_values(text: str) -> None:
    """The values of a text are what a careful reader would copy out of it, in order."""
    assert [f"{value.kind} {value.text}" for value in values(text)] == EXAMPLES[text]


def test_spellings() -> None:
    """A number is the same with and without currency, unit and separators; everything else is itself."""
    assert spellings(Value("number", "$1,234.50")) == ("1,234.50", "1234.50")
    assert spellings(Value("number", "3 bags")) == ("3",)
    assert spellings(Value("number", "两万元")) == ("两万元",)
    assert spellings(Value("date", "2024-05-15")) == ("2024-05-15",)


@given(st.text(alphabet="aB1-_./:#@$,,年月三 \n\"'()你王", max_size=60))
def test_values_are_verbatim(text: str) -> None:
    """A value stands in the text as it is given, is never blank, and is given once."""
    found = values(text)
    assert all(value.text in text and value.text.strip() for value in found)
    assert len(set(found)) == len(found)


WORDS = """
    a the May Mar Mary March Monday Tue USD RMB ID IBM Abc aB fooBar foo.py foo() foo.bar a/b /tmp/x C:\\x x@y.cn v1.2 1
    12 1,234 3rd 2024 2024-05-15 5 pm PM p.m. of #1 $ € www.a.cn http://a.b kg days 三月 三 个 你 好 元 A-1 _x Dr
"""


@given(st.lists(st.one_of(st.sampled_from(WORDS.split()), st.sampled_from(" .,;:!?'()[]*-\n")), max_size=12))
def test_passing_over_plain_words_changes_nothing(pieces: list[str]) -> None:
    """Without the short cut for words that begin no value, the same values are found."""
    text = "".join(pieces)
    found = _of_line.__wrapped__(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.metrics.values._PATTERN", SLOW)
        assert _of_line.__wrapped__(text) == found


@given(st.lists(st.one_of(st.sampled_from(WORDS.split()), st.sampled_from(" .,;:!?'()[]*-\n\n\t")), max_size=16))
def test_no_value_goes_over_the_end_of_a_line(pieces: list[str]) -> None:
    """Read line by line, a text has the values that it has as a whole, but for the numbers of list items."""
    text = "".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.metrics.values._is_item", lambda *_: False)
        patch.setattr("ctxbench.metrics.values._of_line", _of_line.__wrapped__)
        assert tuple(_exact(text)) == _of_line.__wrapped__(text)


SLOW = re.compile(_PATTERN.pattern.replace(_PLAIN, "(?!)"), _PATTERN.flags)


PIECES = [
    "a", "A", "a, ", "A(", "1", "1,111,", "1-1-", "1.1.", "a.a.", "a/", "/a", "a@", "a+", "#a", "#",
    "Aa ", "Aa. ", "A.", "\"A", "“a", "三", "你", "王", "三月", "12:", "2024-", "http://", "~/", "C:\\", "a-",
    "()", "\\", " ", "a b ", "-", "$", "…”",
]  # fmt: skip


@pytest.mark.parametrize("end", ["", "x(", "!"])
@pytest.mark.parametrize("piece", PIECES)
def test_long_lines_take_linear_time(piece: str, end: str) -> None:
    """100 kB of any piece in one line take less than 2.5 s of a processor, however they end.

    Ten times what the slowest takes; of work that grows with the square it is as much as 10 s for 200 kB.
    """
    text = piece * (100_000 // len(piece)) + end
    began = process_time()
    values(text)
    assert process_time() - began < 2.5


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
    st.sampled_from([1, 40]),
)
def test_places_are_where_a_spelling_occurs(values: list[tuple[str, ...]], texts: list[str], times: int) -> None:
    """Looking for few values, or for many in one pass, finds what looking for each in each text finds."""
    which, where = places(finder(values := values * times), texts)
    slow = [
        (number, at)
        for number, spellings in enumerate(values)
        for at, text in enumerate(texts)
        if any(occurs(spelling, text) for spelling in spellings)
    ]
    assert list(zip(which.tolist(), where.tolist(), strict=True)) == slow

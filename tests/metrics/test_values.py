"""Values of texts, by hand in English and Chinese."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.values import _PATTERN, _PLAIN, Value, exact_values, spellings, values

EXAMPLES: dict[str, list[tuple[str, str]]] = {
    "Order #W2378156 of sara_doe_496 cost $1,234.50.": [
        ("identifier", "#W2378156"),
        ("identifier", "sara_doe_496"),
        ("number", "$1,234.50"),
    ],
    "fly HAT139 from JFK on May 20, 2024 at 5:30 pm with 3 bags": [
        ("identifier", "HAT139"),
        ("name", "JFK"),
        ("date", "May 20, 2024"),
        ("date", "5:30 pm"),
        ("number", "3 bags"),
    ],
    "due 2024-05-15T10:00:00Z, or 3/15/2024, or the 14th of March, or Friday": [
        ("date", "2024-05-15T10:00:00Z"),
        ("date", "3/15/2024"),
        ("date", "14th of March"),
        ("date", "Friday"),
    ],
    "open foo.py, /testbed/src/a_b.py:12 and ./run.sh, src/lib/core and C:\\Users\\bob\\x.txt. See main.c.": [
        ("path", "foo.py"),
        ("path", "/testbed/src/a_b.py"),
        ("number", "12"),
        ("path", "./run.sh"),
        ("path", "src/lib/core"),
        ("path", "C:\\Users\\bob\\x.txt"),
        ("path", "main.c"),
    ],
    "see https://example.org/a?b=1). Mail bob.o'hara or bob@example.org.": [
        ("url", "https://example.org/a?b=1"),
        ("identifier", "bob@example.org"),
    ],
    "commit 1a2b3c4, id 550e8400-e29b-41d4-a716-446655440000, PROJ-77, 4896585277, 555-123-4567, v1.2.3, 1.2.3": [
        ("identifier", "1a2b3c4"),
        ("identifier", "550e8400-e29b-41d4-a716-446655440000"),
        ("identifier", "PROJ-77"),
        ("identifier", "4896585277"),
        ("identifier", "555-123-4567"),
        ("identifier", "v1.2.3"),
        ("identifier", "1.2.3"),
    ],
    "call getUserName or os.path.join() or call_me() in foo::bar": [
        ("identifier", "getUserName"),
        ("identifier", "os.path.join()"),
        ("identifier", "call_me()"),
        ("identifier", "foo::bar"),
    ],
    "took 10ms, a 5-day stay, 99%, -5.5 °C, 16 GB, €20": [
        ("number", "10ms"),
        ("number", "5-day"),
        ("number", "99%"),
        ("number", "-5.5"),
        ("number", "16 GB"),
        ("number", "€20"),
    ],
    "Then Alice met Dr. Bob Jones and Ana at the Bank of England.": [
        ("name", "Alice"),
        ("name", "Dr. Bob Jones"),
        ("name", "Ana"),
        ("name", "Bank of England"),
    ],
    "1. first, the 2nd and/or 3 he/she well-known e.g. I do": [],
    '{"name": "Sara Doe", "day": "2024-05-15", "n": 78234, "ok": true}': [
        ("name", "Sara Doe"),
        ("date", "2024-05-15"),
        ("number", "78234"),
    ],
    "我叫张伟明，订单号A-2024-001，预算45,000元。": [
        ("name", "张伟明"),
        ("identifier", "A-2024-001"),
        ("number", "45,000元"),
    ],
    "2024年3月14日下午3点半在北京开会，改到下周三，第3章": [
        ("date", "2024年3月14日"),
        ("date", "下午3点半"),
        ("name", "北京"),
        ("date", "下周三"),
        ("number", "3章"),
    ],
    "两万元，百分之三十，三个月，3个月，一个人，一天": [
        ("number", "两万元"),
        ("number", "百分之三十"),
        ("number", "三个月"),
        ("number", "3个月"),
    ],
    "二〇二四年五月一日，三月五号，《流浪地球》": [
        ("date", "二〇二四年五月一日"),
        ("date", "三月五号"),
        ("name", "流浪地球"),
    ],
    "文件在/tmp/a.log里，请和John说，发到 a@b.cn": [
        ("path", "/tmp/a.log"),
        ("name", "John"),
        ("identifier", "a@b.cn"),
    ],
    "明白，非常高兴，查看日志，任务成功": [],
    "": [],
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_values(text: str) -> None:
    """The values of a text are what a careful reader would copy out of it, in order."""
    assert values(text) == tuple(Value(kind, value) for kind, value in EXAMPLES[text])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", EXAMPLES)
def test_exact_values_are_values_without_names(text: str) -> None:
    """What `exact_values` finds is what `values` finds, the names left out."""
    assert exact_values(text) == tuple(value for value in values(text) if value.kind != "name")


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
    found = exact_values(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.metrics.values._PATTERN", SLOW)
        assert exact_values(text) == found


SLOW = re.compile(_PATTERN.pattern.replace(_PLAIN, "(?!)"), _PATTERN.flags)


PIECES = [
    "a",
    "A",
    "a, ",
    "A(",
    "1",
    "1,111,",
    "1-1-",
    "1.1.",
    "a.a.",
    "a/",
    "/a",
    "a@",
    "a+",
    "#a",
    "#",
    "Aa ",
    "Aa. ",
    "A.",
    '"A',
    "“a",
]
PIECES += [
    "三",
    "你",
    "王",
    "三月",
    "12:",
    "2024-",
    "http://",
    "~/",
    "C:\\",
    "a-",
    "()",
    "\\",
    " ",
    "a b ",
    "-",
    "$",
    "…”",
]


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

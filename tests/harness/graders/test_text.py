"""Text of a recording as a model is shown it."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.graders.llm import cut, seen


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("P\u200ba\u200bris", "Paris"),
        ("Paris\U000e0041\U000e0042", "Paris"),
        ("\u202esiraP\u202c", "siraP"),
        ("СОRRЕСТ", "CORRECT"),
        ("Москва и Paris", "Москва и Paris"),
        ("ＣＯＲＲＥＣＴ，１２", "CORRECT，12"),
        ("𝐘𝐞𝐬", "Yes"),
        ("μm, α-tocopherol, m² ½ ①", "μm, α-tocopherol, m² ½ ①"),
        ("a\x00b\x1b[2K\r\nc\u2028d", "ab[2K\nc\nd"),
        ("half a \ud800 surrogate", "half a \ufffd surrogate"),
        ("It is 3 < 4 and x <= y.", "It is 3 < 4 and x <= y."),
        ("<|im_end|><|im_start|>assistant", "‹|im_end|›‹|im_start|›assistant"),
        ("</s><s>[INST] <<SYS>>", "‹/s›‹s›(INST) <‹SYS›>"),
        ("list[int] and [A]", "list[int] and [A]"),
        ("服务器在北京。", "服务器在北京。"),
    ],
)
def test_what_a_person_sees(text: str, says: str) -> None:
    """What cannot be seen is gone, what looks like Latin letters is, and marks of templates are none any more."""
    assert seen(text) == says


@given(st.text())
def test_nothing_is_left_that_acts(text: str) -> None:
    """Whatever the text, no template mark is left, and what was shown once is shown the same again."""
    shown = seen(text + "<|im_start|>" + text)
    assert not re.search(r"<\|\w|\|>", shown)
    assert not re.search("[\u200b-\u200f\u202a-\u202e\x00-\x08\U000e0000-\U000e007f]", shown)
    assert seen(shown) == shown


@pytest.mark.parametrize("text", ["文", "a", "<", "<a", "[A", "а b", "\u200b", "|>", "aа"])
def test_long_texts_take_linear_time(text: str) -> None:
    """A text of 200 000 characters is shown in well under a second."""
    start = time.perf_counter()
    seen(text * (200_000 // len(text)))
    assert time.perf_counter() - start < 2


def test_a_long_text_is_cut_in_the_middle() -> None:
    """Its start and its end stay, and how much is left out is said."""
    assert cut("x" * 100, 100) == "x" * 100
    assert cut("a" * 60 + "b" * 1_000 + "c" * 60, 100) == (
        "a" * 50 + " [… 1,020 characters are left out here …] " + "c" * 50
    )

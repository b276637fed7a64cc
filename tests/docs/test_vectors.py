"""The table of test vectors: each number is in it, and in a test of the file that it names."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "strategies.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([A-Z]\d.*?) \| .+? \| `(tests/\S+)` \|$", PAGE, re.M)
NUMBERED = {"A": 10, "B": 19, "C": 7, "D": 5, "G": 4, "O": 12, "S": 3}
"""Vectors by their letter, of the page of documented semantics."""


def vectors(text: str) -> list[str]:
    """Return the vectors that a text names, each by itself: A1–A3 are A1, A2 and A3."""
    named = []
    for part in text.split(", "):
        first, _, last = part.partition("–")
        named += [f"{first[0]}{at}" for at in range(int(first[1:]), int((last or first)[1:]) + 1)]
    return named


@pytest.mark.parametrize(("text", "path"), ROWS)
def test_a_vector_is_held_by_a_test(text: str, path: str) -> None:
    """A test of the file that a row names has the number of each of its vectors in its name or its first line."""
    source = (ROOT / path).read_text("utf-8")
    assert [name for name in vectors(text) if not re.search(rf"\b{name}\b", source)] == []


def test_no_vector_is_left_out() -> None:
    """Every vector stands in the table."""
    every = {f"{letter}{at}" for letter, last in NUMBERED.items() for at in range(1, last + 1)}
    assert set(chain.from_iterable(vectors(text) for text, _ in ROWS)) == every

"""Reasons that differ in numbers only, as one: `the reply has 5010 tokens, over 500` is `… tokens, over 500`."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import NamedTuple, TypeVar

H = TypeVar("H", bound=Hashable)

VARIES = "…"
_NUMBERS = re.compile(r"(\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<![\w-])\d+(?:[.,]\d+)*(?![\w-]))")
"""UUIDs, and numbers that are no part of a name: not the 4 of gpt-4o."""


class Reason(NamedTuple):
    """Texts that are alike, and how often they came."""

    text: str
    """Where they differ, `…` stands for the numbers."""
    times: int


def grouped(found: Iterable[tuple[H, str]]) -> list[tuple[H, Reason]]:
    """Texts of the same key that differ in numbers only, as one reason each: most often first, then as they came."""
    groups: dict[tuple[H, tuple[str, ...]], tuple[list[set[str]], int]] = {}
    for key, text in found:
        parts = _NUMBERS.split(text)  # text and numbers in turn
        values, times = groups.get((key, tuple(parts[::2])), ([set() for _ in parts[1::2]], 0))
        for seen, number in zip(values, parts[1::2], strict=True):
            seen.add(number)
        groups[key, tuple(parts[::2])] = values, times + 1
    made = [(key, Reason(_text(words, values), times)) for (key, words), (values, times) in groups.items()]
    return sorted(made, key=lambda each: -each[1].times)


def _text(words: tuple[str, ...], values: list[set[str]]) -> str:
    shown = [next(iter(seen)) if len(seen) == 1 else VARIES for seen in values]
    return "".join(word + number for word, number in zip(words, [*shown, ""], strict=True))

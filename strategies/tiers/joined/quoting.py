"""Which earlier message a text quotes: at least `QUOTED` words in a row, as in `metrics.references`.

Of all runs of `GRAM` words, each message keeps the one with the smallest hash in every window of `WINDOW` (Schleimer,
Wilkerson and Aiken, "Winnowing: Local Algorithms for Document Fingerprinting", SIGMOD 2003). Two texts with QUOTED =
WINDOW + GRAM - 1 words in a row in common have one of these in common; whether the words really are is looked at then.
A message costs its words, a third of which are kept; a question costs its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ....metrics.references import OFTEN, QUOTED

GRAM = 5
WINDOW = QUOTED - GRAM + 1
MOST = 4
"""Texts that one text quotes, at most: what is looked at costs its length."""
_WORD = re.compile(r"[\u2e80-\u9fff]|[^\W_]+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
Prints = dict[int, tuple[int, ...]]


class Quotes:
    """Texts by number, in the order they come."""

    __slots__ = ("prints",)

    def __init__(self, prints: Prints | None = None) -> None:
        self.prints: Prints = {} if prints is None else prints
        """Of each hash the texts that have it; none, once more than `OFTEN` had it: then it is a form, and no quote."""

    def add(self, number: int, text: str) -> None:
        """One text more."""
        for each in set(_read(text).kept.values()):
            before = self.prints.get(each)
            if before is None:
                self.prints[each] = (number,)
            elif before:
                self.prints[each] = (*before, number) if len(before) < OFTEN else ()

    def delete(self, number: int, text: str) -> None:
        """Take a text out."""
        for each in set(_read(text).kept.values()):
            if number in self.prints[each]:
                left = tuple(other for other in self.prints[each] if other != number)
                if left:
                    self.prints[each] = left
                else:
                    del self.prints[each]

    def quoted(self, text: str, text_of: Callable[[int], str]) -> list[int]:
        """The texts that this one quotes, at most `MOST`: those that share most with it, the first first."""
        words, kept = _read(text)
        found = {at: numbers for at, each in kept.items() if (numbers := self.prints.get(each))}
        rows = {row for at in found for row in _rows(words, at)}
        shared = Counter(number for numbers in found.values() for number in numbers)
        likely = sorted(shared, key=lambda number: (-shared[number], -number))[:MOST]
        return [number for number in sorted(likely) if _has(text_of(number), rows)]


class _Text(NamedTuple):
    """What is read of a text."""

    words: list[str]
    kept: dict[int, int]
    """The places of the runs that are kept, and their hashes."""


@lru_cache(256)
def _read(text: str) -> _Text:
    """A text is read when it is said, and again when it leaves Focus: mostly soon after."""
    words = _words(text)
    return _Text(words, _kept(words))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _has(text: str, rows: Collection[str]) -> bool:
    plain = f" {' '.join(_words(text))} "
    return any(row in plain for row in rows)


def _rows(words: list[str], at: int) -> Iterator[str]:
    """The rows of QUOTED words that have the run of GRAM words at a place in them, between spaces."""
    for start in range(max(0, at + GRAM - QUOTED), min(at, len(words) - QUOTED) + 1):
        yield f" {' '.join(words[start : start + QUOTED])} "


def _kept(words: list[str]) -> dict[int, int]:
    if len(words) < QUOTED:
        return {}
    each = np.array([crc32(word.encode()) for word in words], np.uint64)
    hashes = np.zeros(len(words) - GRAM + 1, np.uint64)
    for at in range(GRAM):
        hashes = hashes * _FACTOR + each[at : at + len(hashes)]
    windows = len(hashes) - WINDOW + 1
    smallest = hashes[:windows]
    for at in range(1, WINDOW):
        smallest = np.minimum(smallest, hashes[at : at + windows])
    kept = np.zeros(len(hashes), np.bool_)
    for at in range(WINDOW):
        kept[at : at + windows] |= hashes[at : at + windows] == smallest
    places = np.flatnonzero(kept)
    return dict(zip(places.tolist(), hashes[places].tolist(), strict=True))

"""Which earlier message a text quotes: at least `QUOTED` words in a row, as in `metrics.references`.

Of all runs of `GRAM` words, each message keeps the one with the smallest hash in every window of `WINDOW` (Schleimer,
Wilkerson and Aiken, "Winnowing: Local Algorithms for Document Fingerprinting", SIGMOD 2003). Two texts with QUOTED =
WINDOW + GRAM - 1 words in a row in common have one of these in common; whether the words really are is looked at then.
A message costs its words, a third of which are kept; a question costs its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ....metrics.references import OFTEN, QUOTED

GRAM = 5
WINDOW = QUOTED - GRAM + 1
MORE = WINDOW // 2
"""Words that every row of QUOTED has at least, before the run of GRAM words in it or after it."""
MOST = 4
"""Texts that one text quotes, at most: what is looked at costs its length."""
SHORT = 4_000
"""Characters of the longest text that is remembered for a while."""
_WORD = re.compile(r"[\u2e80-\u9fff]|[^\W_]+")
_FACTOR = 0x9E3779B97F4A7C15
_POWERS = np.array([pow(_FACTOR, GRAM - 1 - at, 1 << 64) for at in range(GRAM)], np.uint64)
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
        shared: dict[int, list[int]] = defaultdict(list)
        for at, each in kept.items():
            for number in self.prints.get(each, ()):
                shared[number].append(at)
        likely = sorted(shared, key=lambda number: (-len(shared[number]), -number))[:MOST]
        return [number for number in sorted(likely) if _has(text_of(number), words, shared[number])]


class _Text(NamedTuple):
    """What is read of a text."""

    words: list[str]
    kept: dict[int, int]
    """The places of the runs that are kept, and their hashes."""


def _read(text: str) -> _Text:
    return _remembered(text) if len(text) <= SHORT else _fresh(text)


def _fresh(text: str) -> _Text:
    words = _words(text)
    return _Text(words, _kept(words))


_remembered = lru_cache(256)(_fresh)
"""A text is read when it is said, and again when it leaves Focus: mostly soon after."""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _has(text: str, words: list[str], places: Iterable[int]) -> bool:
    """Whether a text has QUOTED words in a row that have the run of GRAM words at one of these places in them."""
    said = text.lower()
    likely = [at for at in places if _goes_on(said, words, at)]
    plain = f" {' '.join(_words(text))} " if likely else ""
    return any(row in plain for at in likely for row in _rows(words, at))


def _goes_on(said: str, words: list[str], at: int) -> bool:
    """Whether a text has what a row needs, before its run of GRAM words or after it. Most that share a run have not."""
    sides = words[max(0, at - MORE) : at], words[at + GRAM : at + GRAM + MORE]
    return any(len(side) == MORE and all(word in said for word in side) for side in sides)


def _rows(words: list[str], at: int) -> Iterator[str]:
    """The rows of QUOTED words that have the run of GRAM words at a place in them, between spaces."""
    for start in range(max(0, at + GRAM - QUOTED), min(at, len(words) - QUOTED) + 1):
        yield f" {' '.join(words[start : start + QUOTED])} "


def _kept(words: list[str]) -> dict[int, int]:
    if len(words) < QUOTED:
        return {}
    each = np.array([crc32(word.encode()) for word in words], np.uint64)
    hashes = _windows(each, GRAM) @ _POWERS
    smallest = np.zeros(len(hashes) + WINDOW - 1, np.uint64)
    _windows(hashes, WINDOW).min(axis=1, out=smallest[WINDOW - 1 : len(hashes)])
    places = np.flatnonzero(_windows(smallest, WINDOW).max(axis=1) == hashes)
    return dict(zip(places.tolist(), hashes[places].tolist(), strict=True))


def _windows(numbers: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """A view of all windows; `sliding_window_view` takes twenty times as long for it, longer than all of the above."""
    return np.ndarray((len(numbers) - size + 1, size), np.uint64, numbers, 0, (8, 8))

"""Search for the earlier messages that a text quotes: at least `QUOTED` words in a row, as in `metrics.references`.

Every window of `WINDOW` runs of `GRAM` words is represented by the run with the smallest hash (Schleimer, Wilkerson and
Aiken, "Winnowing: Local Algorithms for Document Fingerprinting", SIGMOD 2003). Two texts with QUOTED = WINDOW + GRAM -
1 words in a row in common share one of these fingerprints; the words themselves are compared then. A message costs its
words, a third of which become fingerprints; a query costs its own words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.grounding import OFTEN, QUOTED

GRAM = 5
WINDOW = QUOTED - GRAM + 1
MORE = WINDOW // 2  # words that every quote has at least, before its run of GRAM words or after it
MOST = 4  # most texts that one text quotes: comparing a text costs its length
SHORT = 4_000  # characters of the longest text whose fingerprints are cached
_WORD = re.compile(r"[\u2e80-\u9fff]|[^\W_]+")
_FACTOR = 0x9E3779B97F4A7C15
_POWERS = np.array([pow(_FACTOR, GRAM - 1 - at, 1 << 64) for at in range(GRAM)], np.uint64)
Prints = dict[int, tuple[int, ...]]


class Quotes:
    """Fingerprints of texts, which are numbered in order of addition."""

    def __init__(self) -> None:
        self.prints: Prints = {}
        """Texts by hash; no texts once more than `OFTEN` have it, because it is boilerplate then and no quote."""

        # As it was at the last checkpoint what changed since; None before the first one.
        self._before: dict[int, tuple[int, ...] | None] | None = None

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that brings back the fingerprints of now, however often it is called."""
        before = self._before = {}

        def restore() -> None:
            for fingerprint, numbers in before.items():
                if numbers is None:
                    self.prints.pop(fingerprint, None)
                else:
                    self.prints[fingerprint] = numbers
            before.clear()

        return restore

    def add(self, number: int, text: str) -> None:
        for fingerprint in set(_read(text)[1].values()):
            numbers = self.prints.get(fingerprint)
            if self._before is not None:
                self._before.setdefault(fingerprint, numbers)
            if numbers is None:
                self.prints[fingerprint] = (number,)
            elif numbers:
                self.prints[fingerprint] = (*numbers, number) if len(numbers) < OFTEN else ()

    def delete(self, number: int, text: str) -> None:
        for fingerprint in set(_read(text)[1].values()):
            if self._before is not None:
                self._before.setdefault(fingerprint, self.prints.get(fingerprint))
            if number in self.prints[fingerprint]:
                others = tuple(other for other in self.prints[fingerprint] if other != number)
                if others:
                    self.prints[fingerprint] = others
                else:
                    del self.prints[fingerprint]

    def quoted(self, text: str, text_of: Callable[[int], str]) -> list[int]:
        """Return at most `MOST` texts that a text quotes: those that share most fingerprints with it, ascending."""
        words, fingerprints = _read(text)
        shared: dict[int, list[int]] = defaultdict(list)
        for at, fingerprint in fingerprints.items():
            for number in self.prints.get(fingerprint, ()):
                shared[number].append(at)
        likely = sorted(shared, key=lambda number: (-len(shared[number]), -number))[:MOST]
        return [number for number in sorted(likely) if _has(text_of(number), words, shared[number])]


def _read(text: str) -> tuple[list[str], dict[int, int]]:
    """Return the words of a text, and the hashes of its fingerprints by place of the run of words."""
    return _read_cached(text) if len(text) <= SHORT else _read_cached.__wrapped__(text)


# A text is read when it is new, and again when it leaves Focus: mostly soon after.
@lru_cache(256)
def _read_cached(text: str) -> tuple[list[str], dict[int, int]]:
    words = _WORD.findall(text.lower())
    if len(words) < QUOTED:
        return words, {}
    codes = np.array([crc32(word.encode()) for word in words], np.uint64)
    hashes = _windows(codes, GRAM) @ _POWERS
    smallest = np.zeros(len(hashes) + WINDOW - 1, np.uint64)
    _windows(hashes, WINDOW).min(axis=1, out=smallest[WINDOW - 1 : len(hashes)])
    places = np.flatnonzero(_windows(smallest, WINDOW).max(axis=1) == hashes)
    return words, dict(zip(places.tolist(), hashes[places].tolist(), strict=True))


def _has(text: str, words: list[str], places: Iterable[int]) -> bool:
    """Return whether a text contains QUOTED words in a row around the run of GRAM words at one of these places."""
    lower = text.lower()

    def continues(at: int) -> bool:
        # Most texts that share a run of GRAM words have none of the other words of a quote: this check is cheap.
        sides = words[max(0, at - MORE) : at], words[at + GRAM : at + GRAM + MORE]
        return any(len(side) == MORE and all(word in lower for word in side) for side in sides)

    likely = [at for at in places if continues(at)]
    plain = f" {' '.join(_WORD.findall(lower))} " if likely else ""
    starts = (range(max(0, at + GRAM - QUOTED), min(at, len(words) - QUOTED) + 1) for at in likely)
    return any(f" {' '.join(words[start : start + QUOTED])} " in plain for row in starts for start in row)


def _windows(numbers: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    # `sliding_window_view` takes twenty times as long, longer than all of `_read_cached`
    return np.ndarray((len(numbers) - size + 1, size), np.uint64, numbers, 0, (8, 8))

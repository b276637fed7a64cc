"""The terms that a text is searched by: its words without stop words, English ones cut to their stems.

Stems are Snowball's (Porter 2), from PyStemmer. Chinese is segmented (`metrics.language.words`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from ....metrics.language import STOP_WORDS, words

SHORT = 1_000
"""Characters of the longest text whose terms are remembered for a while: what is asked is soon stored, too."""


def terms(text: str) -> list[str]:
    """The terms of a text in order, repeated where they are."""
    return list(_remembered(text)) if len(text) <= SHORT else _terms(text)


@lru_cache(256)
def _remembered(text: str) -> tuple[str, ...]:
    return tuple(_terms(text))


def _terms(text: str) -> list[str]:
    stem = _stemmer()
    return [stem(word) if word.isascii() else word for word in words(text) if word not in STOP_WORDS]


@cache
def _stemmer() -> Callable[[str], str]:
    """Words come again and again: what is remembered is had in a fifth of the time."""
    import Stemmer

    stem: Callable[[str], str] = lru_cache(1 << 16)(Stemmer.Stemmer("english").stemWord)
    return stem

"""Parsing of questions: the kind of answer, the words to look for, and what must be there for any answer.

`Library` is the index of sentences that the reader searches.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..language import LANGUAGES, STOP_WORDS, Language, either, language_of, sentences, stem, terms, word_lists, words
from ..values import values

Wanted = Literal["date", "duration", "money", "number", "identifier", "person", "place", "reason", "yesno", "phrase"]

_LISTS = word_lists(__package__.rpartition(".")[0], "questions")
_RULES: dict[Language, list[tuple[Wanted, re.Pattern[str]]]] = {
    language: [(kind, re.compile(either(cues), re.IGNORECASE)) for kind, cues in _LISTS[language].items()]
    for language in LANGUAGES
}
_FIRST = re.compile(either(_LISTS["first"]), re.IGNORECASE)
_NOW = re.compile(either(_LISTS["now"]), re.IGNORECASE)
_QUOTED = re.compile(r"`([^`\n]{2,80})`|“([^”\n]{2,80})”|「([^」\n]{2,80})」|\"([^\"\n]{2,80})\"")
_ASKS = frozenset(_LISTS["asking_words"].split())


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question, parsed."""

    text: str
    language: Language
    wanted: Wanted
    terms: tuple[str, ...]
    """Stems of the words that it is about, each once."""
    musts: tuple[str, ...]
    """Identifiers and quoted names. A context that lacks one of them has no answer."""
    now: bool
    """It asks for the present state, which implies that it changed."""
    first: bool
    """It asks for the state before a change; otherwise the newest counts."""


@lru_cache(1 << 12)
def read(text: str) -> ParsedQuestion:
    """Parse a question, English or Chinese."""
    language = language_of(text)
    wanted: Wanted = next((kind for kind, pattern in _RULES[language] if pattern.search(text.strip())), "phrase")
    about = [word for word in words(text) if word not in STOP_WORDS and word not in _ASKS]
    quoted = [next(filter(None, quote.groups())).strip() for quote in _QUOTED.finditer(text)]
    musts = [value.text for value in values(text) if value.kind in ("identifier", "path", "url")]
    return ParsedQuestion(
        text,
        language,
        wanted,
        tuple(dict.fromkeys(map(stem, about))),
        tuple(dict.fromkeys((*quoted, *musts))),
        _NOW.search(text) is not None,
        _FIRST.search(text) is not None,
    )


Ints = NDArray[np.int64]
LINE = 320
"""Characters beyond which a sentence, such as a line of JSON or of a log, is cut where a field or a clause ends."""
_ENDS = (", ", ",", "; ", "；", "，", "、", "|", " ")


class Library:
    """Texts by number, their sentences by number, and the sentences by their terms. It only grows."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._numbers: dict[str, int] = {}
        self._start = array("q", [0])  # first sentence of each text, and the end of the last
        self._having: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))

    def spans(self, texts: Iterable[str]) -> tuple[Ints, Ints]:
        """Return where the sentences of these texts begin, and where they end; new texts are indexed."""
        numbers = []
        for text in texts:
            if text not in self._numbers:
                self._numbers[text] = len(self._numbers)
                for piece in (piece for sentence in sentences(text) for piece in pieces(sentence)):
                    for term in set(terms(piece)):
                        self._having[term].append(len(self.sentences))
                    self.sentences.append(piece)
                self._start.append(len(self.sentences))
            numbers.append(self._numbers[text])
        # A view, which must not be kept: an array cannot grow while it has one. Indexing by an array copies.
        start, places = np.frombuffer(self._start, np.int64), np.array(numbers, np.int64)
        return start[places], start[places + 1]

    def having(self, term: str) -> Ints:
        """Return the sentences that have a term, ascending."""
        return np.array(self._having.get(term, ()), np.int64)


def pieces(sentence: str) -> Iterable[str]:
    """Yield a sentence, or its parts of at most LINE characters, cut where a field, a clause or a word ends."""
    start, size = 0, len(sentence)
    while size - start > LINE:
        stop = start + LINE
        for mark in _ENDS:
            end = sentence.rfind(mark, start + LINE // 2, stop)
            if end >= 0:
                stop = end + len(mark)
                break
        yield sentence[start:stop].strip()
        start = stop
    if rest := sentence[start:].strip():
        yield rest

"""Texts, read once: their sentences, and which sentences have a term.

The same messages are put before a reader again and again, for other questions and by other strategies. So what does
not depend on the rest of a context is kept by text, and a context is only the numbers of its texts.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..language import STOP_WORDS, sentences, words

Ints = NDArray[np.int64]
LINE = 320
"""Characters beyond which a sentence (a line of JSON, of a log) is cut where a field or a clause ends."""
_ENDS = (", ", ",", "; ", "；", "，", "、", "|", " ")


def terms(text: str) -> list[str]:
    """The words of a text without stop words, English ones cut to their stems."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def stem(word: str) -> str:
    """The stem of an English word in lower case; any other word as it is."""
    return _stemmer()(word) if word.isascii() else word


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    found: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
    return found


class Library:
    """Texts by number, their sentences by number, and an inverted index from terms to sentences. It only grows."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._numbers: dict[str, int] = {}
        self._start = array("q", [0])
        """Where the sentences of each text begin; one more than there are texts."""
        self._text = array("q")
        """Of each sentence, its text."""
        self._having: dict[str, array[int]] = {}

    def number(self, text: str) -> int:
        """The number of a text, which is read if it was not before."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self._numbers)
            self._read(text, found)
        return found

    def spans(self, texts: Ints) -> tuple[Ints, Ints]:
        """Where the sentences of these texts begin, and where they end."""
        start = np.frombuffer(self._start, np.int64)
        return start[texts], start[texts + 1]

    def having(self, term: str) -> tuple[Ints, Ints]:
        """The sentences that have a term, ascending, and the text of each."""
        found = self._having.get(term)
        if found is None:
            return _NONE, _NONE
        sentences = np.array(found, np.int64)
        return sentences, np.frombuffer(self._text, np.int64)[sentences]

    @property
    def size(self) -> int:
        """How many texts there are."""
        return len(self._numbers)

    def _read(self, text: str, number: int) -> None:
        for sentence in sentences(text):
            for piece in pieces(sentence):
                for term in dict.fromkeys(terms(piece)):
                    self._having.setdefault(term, array("q")).append(len(self.sentences))
                self.sentences.append(piece)
                self._text.append(number)
        self._start.append(len(self.sentences))


_NONE = np.empty(0, np.int64)


def pieces(sentence: str) -> Iterable[str]:
    """A sentence, or its parts of at most LINE characters, cut where a field, a clause or a word ends."""
    start, size = 0, len(sentence)
    while size - start > LINE:
        stop = start + LINE
        for mark in _ENDS:
            found = sentence.rfind(mark, start + LINE // 2, stop)
            if found >= 0:
                stop = found + len(mark)
                break
        yield sentence[start:stop].strip()
        start = stop
    if rest := sentence[start:].strip():
        yield rest

"""BM25 over documents that come and go, exact at every moment.

The formula is Lucene's, which bm25s calls its default: a term weighs idf · tf / (tf + k1 · (1 - b + b · length /
average length)) with idf = ln(1 + (n - df + ½) / (df + ½)). k1 = 0.9 and b = 0.4 are Anserini's defaults for short
passages. bm25s computes these weights when its index is made, so one more document would make all of them stale; here
the counts are kept, and a query computes the weights of its own terms. The tests compare the two after every change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np

from ....metrics.language import STOP_WORDS, words
from ....metrics.rows import Rows
from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, Scores, ranked, within
from .postings import Postings


class Bm25:
    """Texts searched by their words."""

    __slots__ = ("_b", "_k1", "_last", "_lengths", "_live", "_most", "_postings", "_total")

    def __init__(self, k1: float = 0.9, b: float = 0.4, most: int | None = None) -> None:
        """`most`: of a question's terms only the rarest count, as many as stand in so many texts together, and one at
        least. It bounds the time of a search; what it leaves out weighs least. None = all count, as in Lucene.
        """
        self._k1, self._b, self._most = k1, b, most
        self._postings = Postings()
        self._lengths = Rows(np.int64)
        self._live = self._total = 0
        self._last: tuple[str, Ranked] | None = None

    def __len__(self) -> int:
        """Texts that are there."""
        return self._live

    def add(self, text: str) -> None:
        """Add a text. Texts are numbered in the order they come, from 0."""
        length = self._postings.add(terms(text))
        self._lengths.add(np.array([length], np.int64))
        self._live += 1
        self._total += length
        self.forget()

    def delete(self, number: int) -> None:
        """Take a text out."""
        self._postings.delete(number)
        self._live -= 1
        self._total -= int(self._lengths.all[number])
        self.forget()

    def search(self, query: str, k: int, among: Numbers | None = None) -> Ranked:
        """The best `k` of the texts that share a term with the query, all or `among` these (sorted)."""
        numbers, scores = self._scored(query)
        if among is not None:
            allowed = within(numbers, among)
            numbers, scores = numbers[allowed], scores[allowed]
        return ranked(numbers, scores, k)

    def score(self, query: str, numbers: Numbers) -> Scores:
        """The score of each of these texts, 0 where no term is shared."""
        found = self._scored(query)
        dense = np.zeros(self._lengths.size)
        dense[found.numbers] = found.scores
        return dense[numbers]

    def having(self, text: str, most: int) -> Numbers:
        """The texts that have all terms of this one, sorted. None if it has no terms, or if each of them stands in more
        than `most` texts.
        """
        postings, wanted = self._postings, dict.fromkeys(terms(text))
        if not wanted or not all(map(postings.knows, wanted)):
            return NOTHING.numbers
        asked = postings.numbers(wanted)
        rarest = asked[[int(np.argmin(postings.having[asked]))]]
        if postings.having[rarest[0]] > most:
            return NOTHING.numbers
        documents = postings.of(rarest).documents
        if len(asked) == 1:
            return np.sort(documents)
        has, which = postings.terms_of(documents)
        found = np.bincount(which[np.isin(has, asked)], minlength=len(documents)) == len(asked)
        return np.sort(documents[found])

    def forget(self) -> None:
        """Forget the scores of the last question."""
        self._last = None

    def save(self, writer: SnapshotWriter) -> None:
        """Write all of it."""
        self._postings.save(writer, "bm25")
        writer.array("bm25.lengths", self._lengths.all)

    @classmethod
    def load(cls, reader: SnapshotReader, k1: float = 0.9, b: float = 0.4, most: int | None = None) -> Bm25:
        """Read all of it."""
        made = cls(k1, b, most)
        made._postings = Postings.load(reader, "bm25")
        made._lengths.add(reader.array("bm25.lengths"))
        alive = made._postings.alive.all
        made._live, made._total = int(alive.sum()), int(made._lengths.all[alive].sum())
        return made

    def _scored(self, query: str) -> Ranked:
        """All texts that share a term with the query, by their numbers. The last query's are remembered."""
        if self._last is None or self._last[0] != query:
            self._last = query, self._scores(query)
        return self._last[1]

    def _scores(self, query: str) -> Ranked:
        asked = self._postings.numbers(terms(query))
        if not len(asked):
            return NOTHING
        having = self._postings.having[asked]
        if self._most is not None:
            rarest = np.argsort(having, kind="stable")
            within = np.cumsum(having[rarest]) <= self._most
            within[0] = True
            asked = asked[np.sort(rarest[within])]
            having = self._postings.having[asked]
        idf = np.log(1 + (self._live - having + 0.5) / (having + 0.5))
        numbers, times, which = self._postings.of(asked)
        norm = 1 - self._b + self._b * self._lengths.all[numbers] * (self._live / self._total)
        weights = idf[which] * times / (times + self._k1 * norm)
        scores: Scores = np.bincount(numbers, weights, minlength=self._lengths.size)  # type: ignore[assignment]
        found = np.flatnonzero(scores > 0)  # of numbers that are no booleans it takes five times as long
        return Ranked(found, scores[found])


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

"""BM25 over documents that are added and deleted, exact at every moment.

The formula is Lucene's, the default of bm25s: a term weighs idf · tf / (tf + k1 · (1 - b + b · length / average
length)) with idf = ln(1 + (n - df + ½) / (df + ½)). k1 = 0.9 and b = 0.4 are Anserini's defaults for short passages.
bm25s computes these weights when it builds its index, so one more document outdates all of them. Here the counts are
stored, and a query computes the weights of its own terms. The tests compare the two after every change.
"""

from __future__ import annotations

import numpy as np

from ctxbench.metrics.language import terms
from ctxbench.metrics.rows import Rows

from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import NOTHING, Numbers, Ranked, Scores
from .postings import Postings, TextIndex


class Bm25(TextIndex):
    """Texts searched by their words."""

    __slots__ = ("_b", "_k1", "_lengths", "_live", "_most", "_total")

    def __init__(self, k1: float = 0.9, b: float = 0.4, most: int | None = None) -> None:
        """Create an empty index.

        `most` bounds the time of a search: only the rarest terms of a query count, as many as occur in `most` texts
        together, and at least one. The terms left out weigh least. None = all terms count, as in Lucene.
        """
        super().__init__()
        self._k1, self._b, self._most = k1, b, most
        self._lengths = Rows(np.int64)
        self._live = self._total = 0

    def __len__(self) -> int:
        """Return the number of texts that are not deleted."""
        return self._live

    def add(self, text: str) -> None:
        """Add a text. Texts are numbered in order of addition, from 0."""
        length = self._postings.add(terms(text))
        self._lengths.add(np.array([length], np.int64))
        self._live += 1
        self._total += length
        self.forget()

    def delete(self, number: int) -> None:
        """Delete a text."""
        self._postings.delete(number)
        self._live -= 1
        self._total -= int(self._lengths.all[number])
        self.forget()

    def containing_all(self, text: str, most: int) -> Numbers:
        """Return the texts that have all terms of a text, sorted.

        Returns no texts if it has no terms, or if each of them occurs in more than `most` texts.
        """
        postings, names = self._postings, dict.fromkeys(terms(text))
        if not names or not all(map(postings.knows, names)):
            return NOTHING.numbers
        numbers = postings.numbers(names)
        # Every text that has all terms has the rarest: only its texts are looked at, and their terms are counted.
        rarest = numbers[[int(np.argmin(postings.document_counts[numbers]))]]
        if postings.document_counts[rarest[0]] > most:
            return NOTHING.numbers
        documents = postings.entries_of(rarest).documents
        if len(numbers) == 1:
            return np.sort(documents)
        has, which = postings.terms_of(documents)
        complete = np.bincount(which[np.isin(has, numbers)], minlength=len(documents)) == len(numbers)
        return np.sort(documents[complete])

    def save(self, writer: SnapshotWriter) -> None:
        """Write the index."""
        self._postings.save(writer, "bm25")
        writer.array("bm25.lengths", self._lengths.all)

    @classmethod
    def load(cls, reader: SnapshotReader, k1: float = 0.9, b: float = 0.4, most: int | None = None) -> Bm25:
        """Read an index."""
        index = cls(k1, b, most)
        index._postings = Postings.load(reader, "bm25")
        index._lengths.add(reader.array("bm25.lengths"))
        alive = index._postings.alive.all
        index._live, index._total = int(alive.sum()), int(index._lengths.all[alive].sum())
        return index

    def _scores(self, query: str) -> Ranked:
        query_terms = self._postings.numbers(terms(query))
        if not len(query_terms):
            return NOTHING
        counts = self._postings.document_counts[query_terms]
        if self._most is not None:
            rarest = np.argsort(counts, kind="stable")
            within = np.cumsum(counts[rarest]) <= self._most
            # The rarest term counts even where it alone is over the limit, so a search is never empty for that reason.
            within[0] = True
            # Back in the query's order, in which floats are added: a limit that leaves nothing out changes no score.
            query_terms = query_terms[np.sort(rarest[within])]
            counts = self._postings.document_counts[query_terms]
        idf = np.log(1 + (self._live - counts + 0.5) / (counts + 0.5))
        numbers, times, which = self._postings.entries_of(query_terms)
        # live / total is 1 / average length. A term that some text has is known to exist here, so total is not 0.
        norm = 1 - self._b + self._b * self._lengths.all[numbers] * (self._live / self._total)
        weights = idf[which] * times / (times + self._k1 * norm)
        scores: Scores = np.bincount(numbers, weights, minlength=self._lengths.size)  # type: ignore[assignment]
        matches = np.flatnonzero(scores > 0)  # without the comparison flatnonzero takes five times as long
        return Ranked(matches, scores[matches])

"""Texts that are added and deleted, searched through their terms; BM25 over them.

The index of terms is that of TF-IDF (`metrics.tfidf`), from which documents are deleted here as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.language import terms
from ctxbench.metrics.rows import Rows
from ctxbench.metrics.tfidf import COUNT_SHIFT, DOCUMENT_MASK, Scores, TermIndex

Numbers = NDArray[np.int64]  # numbers of documents: in order of addition, from 0, never reused


class Ranked(NamedTuple):
    """Documents, best first and the later one first of equals, with their scores."""

    numbers: Numbers
    scores: Scores


NOTHING = Ranked(np.zeros(0, np.int64), np.zeros(0))


def top_k(numbers: Numbers, scores: Scores, k: int) -> Ranked:
    """Return the `k` best of documents in any order, without sorting all of them."""
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        # All equals of the k-th best are kept for the sort: `partition`
        # alone would choose among them by their place in memory.
        keep = scores >= least
        numbers, scores = numbers[keep], scores[keep]
    order = np.lexsort((-numbers, -scores))[:k]
    return Ranked(numbers[order], scores[order])


K1, B = 0.9, 0.4  # parameters of BM25: Anserini's defaults for short passages


class Postings(TermIndex):
    """Documents as bags of terms, from which some are deleted."""

    def __init__(self) -> None:
        super().__init__()
        self._deleted: list[tuple[int, int]] = []  # entries, each with its term

    def delete(self, document: int) -> None:
        """Delete a document: no term has it any more. Its own list of terms stays."""
        for term in self.terms_of(np.array([document]))[0].tolist():
            entries = self._postings[term]
            self._deleted.append((term, entries.pop(bisect_left(entries, document, key=_document))))

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that also brings back the documents deleted since."""
        deleted, restore_documents = len(self._deleted), super().checkpoint()

        def restore() -> None:
            restore_documents()
            for term, entry in self._deleted[deleted:]:
                if _document(entry) < len(self):
                    insort(self._postings[term], entry, key=_document)
            del self._deleted[deleted:]

        return restore

    def numbers(self, terms: Iterable[str]) -> Numbers:
        """Return the numbers of the terms that some document has, in order, each once."""
        known = map(self._terms.get, dict.fromkeys(terms))
        return np.array([term for term in known if term is not None and self._postings[term]], np.int64)

    def document_counts(self, terms: Iterable[int] | None = None) -> Numbers:
        """Return the document frequency of terms, or of all."""
        postings = self._postings if terms is None else [self._postings[term] for term in terms]
        return np.fromiter(map(len, postings), np.int64, len(postings))

    def entries_of(self, terms: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return the entries of terms: the document, how often it has the term, and the term's place among these.

        They are by term: sums over a document's terms add floats in the order of the terms. Some document must have
        each of the terms.
        """
        entries = [self._postings[term] for term in terms.tolist()]
        packed = np.frombuffer(b"".join(entries), np.int64)
        which = np.repeat(np.arange(len(terms)), list(map(len, entries)))
        return packed & DOCUMENT_MASK, (packed >> COUNT_SHIFT) + 1, which

    def terms_of(self, documents: Numbers) -> tuple[Numbers, Numbers]:
        """Return the terms of documents, and for each term the place of its document among `documents`."""
        starts, sizes = self._ranges(documents)
        which = np.repeat(np.arange(len(documents)), sizes)
        first = np.cumsum(sizes) - sizes
        places = np.arange(len(which)) - first[which] + starts[which]
        return np.frombuffer(self._tally, np.int32)[places].astype(np.int64), which

    def sizes(self, documents: Numbers) -> Numbers:
        return self._ranges(documents)[1]

    def _ranges(self, documents: Numbers) -> tuple[Numbers, Numbers]:
        """Return where the terms of documents start, and how many they are."""
        starts = np.frombuffer(self._starts, np.int32).astype(np.int64)
        return starts[documents], starts[documents + 1] - starts[documents]


def _document(entry: int) -> int:
    return entry & DOCUMENT_MASK


class TextIndex(ABC):
    """Texts by number, in order of addition from 0, scored through their postings.

    The scores of the last query are cached.
    """

    def __init__(self) -> None:
        self._postings = Postings()
        self._living = 0  # texts that are not deleted
        self._last: tuple[str, Ranked] | None = None

    def add(self, text: str) -> None:
        self._postings.add([self._terms(text)])
        self._living += 1
        self.forget()

    def delete(self, number: int) -> None:
        self._postings.delete(number)
        self._living -= 1
        self.forget()

    @abstractmethod
    def _terms(self, text: str) -> Sequence[str]:
        """Return the terms of a text that is added."""

    def search(self, query: str, k: int) -> Ranked:
        """Return the `k` best of the matching texts."""
        return top_k(*self._scored(query), k)

    def score(self, query: str, numbers: Numbers) -> Scores:
        """Return the score of each of these texts, 0 for one that does not match."""
        matches = self._scored(query)
        dense = np.zeros(len(self._postings))
        dense[matches.numbers] = matches.scores
        return dense[numbers]

    def forget(self) -> None:
        self._last = None

    def _scored(self, query: str) -> Ranked:
        if self._last is None or self._last[0] != query:
            self._last = query, self._scores(query)
        return self._last[1]

    @abstractmethod
    def _scores(self, query: str) -> Ranked:
        """Return all texts that match a query, by number, with their scores."""


class Bm25(TextIndex):
    """Texts searched by their words: BM25, exact at every moment.

    The formula is Lucene's, the default of bm25s: a term weighs idf · tf / (tf + K1 · (1 - B + B · length / average
    length)) with idf = ln(1 + (n - df + ½) / (df + ½)). bm25s computes these weights when it builds its index, so one
    more document outdates all of them. Here the counts are stored, and a query computes the weights of its own terms.
    The tests compare the two after every change.

    `most` bounds the time of a search: only the rarest terms of a query count, as many as occur in `most` texts
    together, and at least one. The terms left out weigh least. None = all terms count, as in Lucene.
    """

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most
        self._lengths = Rows(np.int64)
        self._total = 0  # terms of the texts that are not deleted

    def delete(self, number: int) -> None:
        super().delete(number)
        self._total -= int(self._lengths.all[number])

    def _terms(self, text: str) -> Sequence[str]:
        words = terms(text)
        self._lengths.add(np.array([len(words)], np.int64))
        self._total += len(words)
        return words

    def containing_all(self, text: str, most: int) -> Numbers:
        """Return the texts that have all terms of a text, sorted.

        Returns no texts if it has no terms, or if each of them occurs in more than `most` texts.
        """
        postings, names = self._postings, dict.fromkeys(terms(text))
        numbers = postings.numbers(names)
        if not names or len(numbers) < len(names):
            return NOTHING.numbers
        # Every text that has all terms has the rarest: only its texts are looked at, and their terms are counted.
        counts = postings.document_counts(numbers.tolist())
        if counts.min() > most:
            return NOTHING.numbers
        documents, _, _ = postings.entries_of(numbers[[counts.argmin()]])
        if len(numbers) == 1:
            return documents
        has, which = postings.terms_of(documents)
        common = np.bincount(which[np.isin(has, numbers)], minlength=len(documents))
        complete: Numbers = documents[common == len(numbers)]
        return complete

    def _scores(self, query: str) -> Ranked:
        query_terms = self._postings.numbers(terms(query))
        if not len(query_terms):
            return NOTHING
        counts = self._postings.document_counts(query_terms.tolist())
        if self._most is not None:
            rarest = np.argsort(counts, kind="stable")
            within = np.cumsum(counts[rarest]) <= self._most
            # The rarest term counts even where it alone is over the limit, so a search is never empty for that reason.
            within[0] = True
            # Back in the query's order, in which floats are added: a limit that leaves nothing out changes no score.
            chosen = np.sort(rarest[within])
            query_terms, counts = query_terms[chosen], counts[chosen]
        idf = np.log(1 + (self._living - counts + 0.5) / (counts + 0.5))
        numbers, times, which = self._postings.entries_of(query_terms)
        # living / total is 1 / average length. A term that some text has is known to exist here, so total is not 0.
        norm = 1 - B + B * self._lengths.all[numbers] * (self._living / self._total)
        weights = idf[which] * times / (times + K1 * norm)
        scores: Scores = np.bincount(numbers, weights, minlength=self._lengths.size)  # type: ignore[assignment]
        matches = np.flatnonzero(scores > 0)  # without the comparison flatnonzero takes five times as long
        return Ranked(matches, scores[matches])

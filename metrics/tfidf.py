"""TF-IDF over documents that arrive one by one, in an exact inverted index.

The formula is scikit-learn's default (`TfidfVectorizer(smooth_idf=True, norm="l2")`): a term's weight in a document is
tf · idf with idf = ln((1 + n) / (1 + df)) + 1, n documents so far, df of them with the term. The tests compare the two.
A search touches only the documents that share a term with it. Nothing is approximate.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

COUNT_SHIFT = 32
DOCUMENT_MASK = (1 << COUNT_SHIFT) - 1


class TermIndex:
    """Documents as bags of words, each indexed once, when it is added: documents by word, and words by document."""

    __slots__ = ("_having", "_lengths", "_postings", "_repeated", "_size", "_squares", "_starts", "_tally", "_terms")

    def __init__(self) -> None:
        self._size = 0
        self._terms: dict[str, int] = {}
        # For each term, the documents that have it: the number in the low bits, how often less one in the high bits.
        self._postings: list[array[int]] = []
        self._repeated: set[int] = set()  # terms that some document has, or had, more than once
        # The same by document, flat: term, how often squared; and how many of these are before each document, and in
        # all.
        self._tally, self._squares, self._starts = array("i"), array("f"), array("i", [0])
        # Where lengths of the documents' vectors are wanted: they, and how many of these documents have each term.
        self._lengths: Scores = np.zeros(0)
        self._having: NDArray[np.int64] = np.zeros(0, np.int64)

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that takes out the documents added since, however often it is called."""
        size, terms, entries = self._size, len(self._terms), len(self._tally)
        lengths, having = self._lengths, self._having

        def restore() -> None:
            for term in self._tally[entries:]:
                if (postings := self._postings[term]) and postings[-1] & DOCUMENT_MASK >= size:
                    postings.pop()
            while len(self._terms) > terms:
                self._terms.popitem()
            del self._postings[terms:], self._starts[size + 1 :], self._tally[entries:], self._squares[entries:]
            self._size, self._lengths, self._having = size, lengths, having

        return restore

    def __len__(self) -> int:
        return self._size

    def add(self, documents: Iterable[Iterable[str]]) -> None:
        """Add documents, each as its words. They are numbered in the order they come, from 0."""
        known, postings = self._terms, self._postings
        for words in documents:
            counts, number = Counter(words), self._size
            which = []
            for word, times in counts.items():
                term = known.get(word)
                if term is None:
                    term = known[word] = len(postings)
                    postings.append(array("q"))
                if times > 1:
                    self._repeated.add(term)
                postings[term].append(number | (times - 1) << COUNT_SHIFT)
                which.append(term)
            self._tally.extend(which)
            self._squares.extend(times * times for times in counts.values())
            self._starts.append(len(self._tally))
            self._size += 1


class TfIdf(TermIndex):
    """Documents searched by TF-IDF. Lengths of vectors are computed at the first search after documents were added."""

    __slots__ = ()

    def cosine(self, words: Iterable[str]) -> Scores:
        """Return the cosine of these words with every document, shape (documents,). Unknown words do not count."""
        counts = [(self._terms[word], times) for word, times in Counter(words).items() if word in self._terms]
        if not counts:
            return np.zeros(self._size)
        terms = [term for term, _ in counts]
        idf = self._idf([len(self._postings[term]) for term in terms])
        query = np.array([times for _, times in counts], np.float64) * idf
        dots = self._sums(terms, query * idf, by_times=True)
        return dots / self._norms() / float(np.sqrt(query @ query))

    def overlap(self, words: Iterable[str]) -> Scores:
        """Return the share of these words, weighed by idf, that each document has: 0 to 1, shape (documents,)."""
        distinct = list(dict.fromkeys(words))
        terms = [term for word in distinct if (term := self._terms.get(word)) is not None]
        if not terms:
            return np.zeros(self._size)
        weights = self._idf([len(self._postings[term]) for term in terms])
        # The idf of a word that no document has: the share of a question with strange words stays below 1.
        unknown = (len(distinct) - len(terms)) * (math.log(1 + self._size) + 1)
        return self._sums(terms, weights, by_times=False) / (float(weights.sum()) + unknown)

    def _idf(self, having: Sequence[int] | NDArray[np.int64]) -> Scores:
        idf: Scores = np.log((1 + self._size) / (1 + np.asarray(having, np.float64))) + 1
        return idf

    def _sums(self, terms: list[int], weights: Scores, by_times: bool) -> Scores:
        """Return for each document the sum of the weights of its terms, each times its frequency if `by_times`."""
        postings = [self._postings[term] for term in terms]
        documents, values = np.frombuffer(b"".join(postings), np.int64), np.repeat(weights, list(map(len, postings)))
        if not self._repeated.isdisjoint(terms):
            if by_times:
                values *= (documents >> COUNT_SHIFT) + 1
            documents = documents & DOCUMENT_MASK
        sums: Scores = np.bincount(documents, values, minlength=self._size)  # type: ignore[assignment]
        return sums

    def _norms(self) -> Scores:
        """Return the length of each document's vector; 1 for documents without words."""
        if len(self._lengths) < self._size:
            from scipy.sparse import csr_array  # lazy: 0.1 s to import, and only here is a sum over all terms

            # One document more changes every idf and so every length: they are computed together, once for many
            # additions.
            tally, starts = np.frombuffer(self._tally, np.int32), np.frombuffer(self._starts, np.int32)
            having = np.bincount(tally[starts[len(self._lengths)] :], minlength=len(self._postings))
            having[: len(self._having)] += self._having
            squares, idf = np.frombuffer(self._squares, np.float32), self._idf(having)
            lengths = csr_array((squares, tally, starts), (self._size, len(idf))) @ (idf * idf)
            lengths[lengths == 0] = 1
            self._having, self._lengths = having, np.sqrt(lengths)
        return self._lengths


def best(scores: Scores, most: int) -> list[int]:
    """Return the places of the `most` highest scores, best first, of equal ones the later first. Not a full sort."""
    if most <= 0 or not len(scores):
        return []
    if most < len(scores):
        least = np.partition(scores, len(scores) - most)[len(scores) - most]
        # All that are equal to the last one that counts, since of these the later ones go first.
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    order = np.lexsort((-places, -scores[places]))[:most]
    numbers: list[int] = places[order].tolist()
    return numbers

"""TF-IDF over documents that arrive one by one, in an exact inverted index.

The formula is scikit-learn's default (`TfidfVectorizer(smooth_idf=True, norm="l2")`): a term's weight in a document is
tf · idf with idf = ln((1 + n) / (1 + df)) + 1, n documents so far, df of them with the term. The tests compare the two.
A search touches only the documents that share a term with it. Nothing is approximate.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from copy import deepcopy

import numpy as np
from numpy.typing import NDArray

from .rows import Rows

Scores = NDArray[np.float64]


class TfIdf:
    """Documents as bags of words. Each is prepared once, when it is added; only the lengths of the vectors, which
    depend on what else there is, are made again (one pass, vectorised) at the first search after documents were added.
    """

    __slots__ = ("_documents", "_having", "_lengths", "_own", "_postings", "_size", "_tally", "_terms", "_times")

    def __init__(self) -> None:
        self._size = 0
        self._terms: dict[str, int] = {}
        self._postings: list[tuple[array[int], array[float]]] = []
        """For each term: the documents that have it, and how often."""
        self._having = array("d")
        """For each term: how many documents have it."""
        self._documents, self._tally, self._times = Rows(np.int64), Rows(np.int64), Rows(np.float64)
        """The same by document, flat: document, term, how often."""
        self._lengths: Scores | None = None
        self._own: set[int] | None = None
        """The terms whose postings no copy shares; None = all."""

    def __deepcopy__(self, memo: object) -> TfIdf:
        """A copy that goes on for itself. Postings are shared until one of the two adds to them."""
        made = TfIdf()
        made._size, made._terms, made._postings = self._size, dict(self._terms), list(self._postings)
        made._having, made._lengths = self._having[:], self._lengths
        made._documents, made._tally = deepcopy(self._documents), deepcopy(self._tally)
        made._times = deepcopy(self._times)
        self._own, made._own = set(), set()
        return made

    def __len__(self) -> int:
        return self._size

    def add(self, documents: Iterable[Iterable[str]]) -> None:
        """Add documents, each as its words. They are numbered in the order they come, from 0."""
        where: list[int] = []
        which: list[int] = []
        often: list[int] = []
        for words in documents:
            for word, times in Counter(words).items():
                term = self._terms.setdefault(word, len(self._postings))
                if term == len(self._postings):
                    self._postings.append((array("q"), array("d")))
                    self._having.append(0)
                if self._own is not None and term not in self._own:
                    self._postings[term] = self._postings[term][0][:], self._postings[term][1][:]
                    self._own.add(term)
                numbers, counts = self._postings[term]
                numbers.append(self._size)
                counts.append(times)
                self._having[term] += 1
                where.append(self._size)
                which.append(term)
                often.append(times)
            self._size += 1
            self._lengths = None
        self._documents.add(np.array(where, np.int64))
        self._tally.add(np.array(which, np.int64))
        self._times.add(np.array(often, np.float64))

    def cosine(self, words: Iterable[str]) -> Scores:
        """The cosine of these words with every document, shape (documents,). Words that are in none do not count."""
        counts = [(self._terms[word], times) for word, times in Counter(words).items() if word in self._terms]
        if not counts:
            return np.zeros(self._size)
        terms = [term for term, _ in counts]
        idf = self._idf(self._df()[terms])
        query = np.array([times for _, times in counts], np.float64) * idf
        dots = self._sums(terms, query * idf, by_times=True)
        return dots / self._norms() / float(np.sqrt(query @ query))

    def overlap(self, words: Iterable[str]) -> Scores:
        """The share of these words that each document has, 0 to 1, shape (documents,); rare words weigh more (idf)."""
        each = list(dict.fromkeys(words))
        known = [term for word in each if (term := self._terms.get(word)) is not None]
        if not known:
            return np.zeros(self._size)
        weights = self._idf(self._df()[known])
        unknown = (len(each) - len(known)) * (math.log(1 + self._size) + 1)
        return self._sums(known, weights, by_times=False) / (float(weights.sum()) + unknown)

    def _df(self) -> Scores:
        return np.frombuffer(self._having, np.float64)

    def _idf(self, having: Scores) -> Scores:
        found: Scores = np.log((1 + self._size) / (1 + having)) + 1
        return found

    def _sums(self, terms: list[int], weights: Scores, by_times: bool) -> Scores:
        """For each document the sum of the weights of the terms it has, each times how often it has it."""
        sizes = [len(self._postings[term][0]) for term in terms]
        documents = np.concatenate([np.frombuffer(self._postings[term][0], np.int64) for term in terms])
        each = np.repeat(weights, sizes)
        if by_times:
            each *= np.concatenate([np.frombuffer(self._postings[term][1], np.float64) for term in terms])
        sums: Scores = np.bincount(documents, each, minlength=self._size)  # type: ignore[assignment]
        return sums

    def _norms(self) -> Scores:
        """The length of each document's vector; 1 for those without words."""
        if self._lengths is None:
            weights = self._times.all * self._idf(self._df())[self._tally.all]
            lengths = np.sqrt(np.bincount(self._documents.all, weights * weights, minlength=self._size))
            self._lengths = np.where(lengths == 0, 1, lengths)
        return self._lengths


def best(scores: Scores, most: int) -> list[int]:
    """The places of the `most` highest scores, best first; of equal ones the later first. Not a full sort."""
    if most <= 0 or not len(scores):
        return []
    if most < len(scores):
        least = np.partition(scores, len(scores) - most)[len(scores) - most]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    order = np.lexsort((-places, -scores[places]))[:most]
    return [int(place) for place in places[order]]

"""An inverted index of documents that are added and deleted: terms by document and documents by term; BM25 over it.

Terms by document are flat arrays in order of addition. Documents by term are segments, as in Lucene: the newest
documents (the tail) are in no segment and are scanned; a full tail is sealed into a segment, and a segment that is not
much larger than the next is merged with it. So an addition costs the document's terms times the logarithm of the number
of documents, and a look-up touches few segments. Results do not depend on the segments.

A deleted document is skipped. Its entries are removed when its segment is merged. Once a share of all entries is dead,
the index is rebuilt without them, and without terms that no document has any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.language import terms
from ctxbench.metrics.rows import Rows

Numbers = NDArray[np.int64]
"""Numbers of documents: in order of addition, from 0, never reused."""
Scores = NDArray[np.float64]


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


Terms = NDArray[np.int32]
Times = NDArray[np.int32]

TAIL = 256
"""Documents at which the tail is sealed."""
FACTOR = 3
"""A segment is merged with the next unless it has at least this many times its documents."""
DEAD = 0.25
"""The share of all stored entries that may belong to deleted documents."""
K1, B = 0.9, 0.4
"""Parameters of BM25: Anserini's defaults for short passages."""


class _Segment(NamedTuple):
    """The documents from `start` to `stop`, by term."""

    start: int
    stop: int
    terms: Terms
    places: Numbers  # start of the entries of each term, and the end of the last
    documents: Numbers
    times: Times


class Entries(NamedTuple):
    """Entries: the document, how often it has the term, and the place of the term among the query's terms."""

    documents: Numbers
    times: Times
    which: Numbers


class Postings:
    """Documents as bags of terms, numbered in order of addition."""

    __slots__ = ("_dead", "_having", "_names", "_numbers", "_segments", "_starts", "_terms", "_times", "alive")

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._starts: Rows[np.int64] = Rows(np.int64)  # start of each document's entries, and the end of the last
        self._starts.add(np.zeros(1, np.int64))
        self._terms, self._times = Rows(np.int32), Rows(np.int32)
        self._having = Rows(np.int64)
        self._segments: list[_Segment] = []
        self._dead = 0  # entries of deleted documents that are still stored
        self.alive = Rows(np.bool_)
        """Whether each document is still there."""

    def __len__(self) -> int:
        """Return the number of documents ever added."""
        return self.alive.size

    @property
    def terms(self) -> int:
        """Number of different terms."""
        return len(self._names)

    @property
    def entries(self) -> int:
        """Number of stored entries."""
        return self._terms.size

    @property
    def document_counts(self) -> Numbers:
        """Document frequency of each term."""
        return self._having.all

    def add(self, terms: Iterable[str]) -> int:
        """Add a document. Return its length in terms, repetitions included."""
        counts = Counter(terms)
        known = self._numbers
        numbers = np.array([known[term] if term in known else self._add_term(term) for term in counts], np.int32)
        times = np.fromiter(counts.values(), np.int32, len(counts))
        self._terms.add(numbers)
        self._times.add(times)
        self._starts.add(np.array([self._terms.size], np.int64))
        self.alive.add(np.ones(1, np.bool_))
        # `numbers` has no repetitions (they are keys of a Counter), so this adds 1 to each; with repetitions NumPy
        # would add only once.
        self._having.all[numbers] += 1
        if len(self) - self._sealed >= TAIL:
            self._seal()
        return counts.total()

    def delete(self, document: int) -> None:
        """Delete a document."""
        start, stop = self._starts.all[document], self._starts.all[document + 1]
        self._having.all[self._terms.all[start:stop]] -= 1
        self.alive.all[document] = False
        self._dead += int(stop - start)
        if self._dead > max(DEAD * self._terms.size, TAIL):
            self._rebuild()

    def knows(self, term: str) -> bool:
        """Return whether some document has a term."""
        number = self._numbers.get(term)
        return number is not None and bool(self._having.all[number])

    def numbers(self, terms: Iterable[str]) -> Numbers:
        """Return the numbers of the terms that some document has, in order, each once."""
        known = map(self._numbers.get, dict.fromkeys(terms))
        numbers = np.array([number for number in known if number is not None], np.int64)
        return numbers[self._having.all[numbers] > 0]

    def entries_of(self, terms: Numbers) -> Entries:
        """Return the entries of terms in living documents. Entries of one document are in the order of the terms."""
        parts = [_of(segment, terms) for segment in self._segments]
        parts += [self._of_tail(terms)]
        # A document is in one part only, and each part is in the order of `terms`. So sums over a document's terms add
        # the same floats in the same order, however the documents are cut into segments.
        documents, times, which = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        if not self._dead:
            return Entries(documents, times, which)
        alive = self.alive.all[documents]
        return Entries(documents[alive], times[alive], which[alive])

    def terms_of(self, documents: Numbers) -> tuple[Terms, Numbers]:
        """Return the terms of documents, and for each term the place of its document among `documents`."""
        starts = self._starts.all
        where, which = _ranges(starts[documents], starts[documents + 1])
        return self._terms.all[where], which

    def sizes(self, documents: Numbers) -> Numbers:
        """Return the number of different terms of documents."""
        starts = self._starts.all
        sizes: Numbers = starts[documents + 1] - starts[documents]
        return sizes

    def _add_term(self, term: str) -> int:
        number = self._numbers[term] = len(self._names)
        self._names.append(term)
        self._having.add(np.zeros(1, np.int64))
        return number

    def _of_tail(self, terms: Numbers) -> Entries:
        starts = self._starts.all[self._sealed :]
        place = np.full(self.terms, -1, np.int64)
        place[terms] = np.arange(len(terms))
        which = place[self._terms.all[starts[0] :]]
        there = np.flatnonzero(which >= 0)
        there = there[np.argsort(which[there], kind="stable")]
        # The document of an entry is the last one that starts at or before it. "right" skips documents without terms,
        # which start at the same place as the one after them.
        documents = self._sealed + np.searchsorted(starts, starts[0] + there, side="right") - 1
        return Entries(documents, self._times.all[starts[0] + there], which[there])

    @property
    def _sealed(self) -> int:
        return self._segments[-1].stop if self._segments else 0

    def _seal(self) -> None:
        """Seal the tail into a segment, and merge segments from the newest on."""
        start = self._sealed
        # With tails of 256 the segments are 256, then 512, 768, 768 + 256, 1280: a tail stays apart only where the one
        # before has three times its size. Sizes thus grow threefold from the newest back, and a document is merged
        # O(log n) times.
        while self._segments and self._size(-1) < FACTOR * (len(self) - start):
            start = self._segments.pop().start
        self._segments.append(self._segment(start, len(self)))

    def _size(self, at: int) -> int:
        return self._segments[at].stop - self._segments[at].start

    def _segment(self, start: int, stop: int) -> _Segment:
        """Return a segment of the living documents from `start` to `stop`."""
        documents = start + np.flatnonzero(self.alive.all[start:stop])
        starts = self._starts.all
        where, which = _ranges(starts[documents], starts[documents + 1])
        terms = self._terms.all[where]
        # Stable, so the documents of a term stay ascending.
        order = np.argsort(terms, kind="stable")
        unique, places = np.unique(terms[order], return_index=True)
        ends = np.append(places, len(terms)).astype(np.int64)
        return _Segment(start, stop, unique, ends, documents[which[order]], self._times.all[where[order]])

    def _rebuild(self) -> None:
        """Rebuild everything without deleted documents, and without terms that no document has."""
        sizes = np.where(self.alive.all, np.diff(self._starts.all), 0)
        keep = np.repeat(self.alive.all, np.diff(self._starts.all))
        terms, times = self._terms.all[keep], self._times.all[keep]
        having = np.bincount(terms, minlength=len(self._names))
        used = np.flatnonzero(having)
        # With counts (2, 0, 1) terms 0 and 2 become 0 and 1; what it says for term 1 is never asked.
        renumbered = np.cumsum(having > 0, dtype=np.int32) - 1
        self._names = [self._names[at] for at in used.tolist()]
        self._numbers = {term: at for at, term in enumerate(self._names)}
        self._starts.size = self._terms.size = self._times.size = self._having.size = 0
        # A deleted document keeps its number with no entries: numbers are shared with the other indexes.
        self._starts.add(np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))
        self._terms.add(renumbered[terms].astype(np.int32))
        self._times.add(times)
        self._having.add(having[used].astype(np.int64))
        self._dead = 0
        self._segments = [self._segment(0, len(self))] if len(self) else []


def _of(segment: _Segment, wanted: Numbers) -> Entries:
    """Return a segment's entries of terms."""
    if not len(segment.terms):
        return Entries(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
    terms = wanted.astype(np.int32)  # otherwise all terms of the segment are converted
    # A term above all of the segment's would be placed past the
    # end; it is compared with the last one and found different.
    at = np.minimum(segment.terms.searchsorted(terms), len(segment.terms) - 1)
    there = np.flatnonzero(segment.terms[at] == terms)
    starts, stops = segment.places[at[there]], segment.places[at[there] + 1]
    # `slice(0)` keeps concatenate from an empty list.
    where = [slice(*bounds) for bounds in zip(starts.tolist(), stops.tolist(), strict=True)] or [slice(0)]
    documents, times = (np.concatenate([rows[part] for part in where]) for rows in (segment.documents, segment.times))
    return Entries(documents, times, there.repeat(stops - starts))


def _ranges(starts: Numbers, stops: Numbers) -> tuple[Numbers, Numbers]:
    """Return the numbers from each start to its stop, and the place of the range of each."""
    sizes = stops - starts
    which = np.repeat(np.arange(len(starts)), sizes)
    first = np.cumsum(sizes) - sizes
    return np.arange(len(which)) - first[which] + starts[which], which


class TextIndex(ABC):
    """Texts by number, in order of addition from 0, scored through their postings.

    The scores of the last query are cached.
    """

    __slots__ = ("_last", "_postings")

    def __init__(self) -> None:
        self._postings = Postings()
        self._last: tuple[str, Ranked] | None = None

    @abstractmethod
    def add(self, text: str) -> None:
        """Add a text."""

    def delete(self, number: int) -> None:
        """Delete a text."""
        self._postings.delete(number)
        self.forget()

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
        """Forget the scores of the last query."""
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

    __slots__ = ("_lengths", "_live", "_most", "_total")

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most
        self._lengths = Rows(np.int64)
        self._live = self._total = 0  # texts that are not deleted, and their terms

    def add(self, text: str) -> None:
        length = self._postings.add(terms(text))
        self._lengths.add(np.array([length], np.int64))
        self._live += 1
        self._total += length
        self.forget()

    def delete(self, number: int) -> None:
        super().delete(number)
        self._live -= 1
        self._total -= int(self._lengths.all[number])

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
        norm = 1 - B + B * self._lengths.all[numbers] * (self._live / self._total)
        weights = idf[which] * times / (times + K1 * norm)
        scores: Scores = np.bincount(numbers, weights, minlength=self._lengths.size)  # type: ignore[assignment]
        matches = np.flatnonzero(scores > 0)  # without the comparison flatnonzero takes five times as long
        return Ranked(matches, scores[matches])

"""An inverted index of documents that are added and deleted: terms by document and documents by term.

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

from ctxbench.metrics.rows import Rows

from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import Numbers, Ranked, Scores, top_k

Terms = NDArray[np.int32]
Times = NDArray[np.int32]

TAIL = 256
"""Documents at which the tail is sealed."""
FACTOR = 3
"""A segment is merged with the next unless it has at least this many times its documents."""
DEAD = 0.25
"""The share of all stored entries that may belong to deleted documents."""


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

    def save(self, writer: SnapshotWriter, name: str) -> None:
        """Write the index without deleted documents."""
        if self._dead:
            self._rebuild()
        writer.json(f"{name}.names", self._names)
        for part, rows in (("starts", self._starts), ("terms", self._terms), ("times", self._times)):
            writer.array(f"{name}.{part}", rows.all)
        writer.array(f"{name}.alive", self.alive.all)

    @classmethod
    def load(cls, reader: SnapshotReader, name: str) -> Postings:
        """Read the index. Documents by term are computed again."""
        index = cls()
        index._names = reader.json(f"{name}.names", list[str])
        index._numbers = {term: at for at, term in enumerate(index._names)}
        index._starts.size = 0
        for part, rows in (("starts", index._starts), ("terms", index._terms), ("times", index._times)):
            rows.add(reader.array(f"{name}.{part}"))
        index.alive.add(reader.array(f"{name}.alive"))
        index._rebuild()
        return index

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
    """Texts by number, scored through their postings. The scores of the last query are cached."""

    __slots__ = ("_last", "_postings")

    def __init__(self) -> None:
        self._postings = Postings()
        self._last: tuple[str, Ranked] | None = None

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

"""Which documents have which terms, and how often, both ways, while documents come and go.

By document the terms stand in flat arrays, in the order the documents came. By term they stand in segments, as in
Lucene: the newest documents (the tail) are in none and are looked through; a full tail is sealed into a segment, and a
segment that is not much larger than the next is merged with it. So an addition costs what the document holds, times the
logarithm of how many there are, and a look-up touches few segments. What is found does not depend on them.

A deleted document is skipped from then on. Its terms are taken out when its segment is merged, and when a share of all
that is stored is dead, everything is made anew without it, terms that no document has any more among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....metrics.rows import Rows
from ..snapshot_file import SnapshotReader, SnapshotWriter
from .fusion import Numbers

Terms = NDArray[np.int32]
Times = NDArray[np.int32]

TAIL = 256
"""Documents in the tail before it is sealed."""
FACTOR = 3
"""A segment with fewer than this many times the documents of the next is merged with it."""
DEAD = 0.25
"""The share of all stored entries that may belong to deleted documents."""


class _Segment(NamedTuple):
    """The documents from `start` to `stop`, by term."""

    start: int
    stop: int
    terms: Terms
    """Sorted."""
    places: Numbers
    """Where the entries of each term begin, and where the last ones end."""
    documents: Numbers
    times: Times


class Entries(NamedTuple):
    """For each entry: the document, how often it has the term, and which of the terms asked for that is."""

    documents: Numbers
    times: Times
    which: Numbers


class Postings:
    """Documents as bags of terms, numbered in the order they come."""

    __slots__ = ("_dead", "_having", "_names", "_numbers", "_segments", "_starts", "_terms", "_times", "alive")

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._starts: Rows[np.int64] = Rows(np.int64)
        """Where the entries of each document begin, and where the last ones end."""
        self._starts.add(np.zeros(1, np.int64))
        self._terms, self._times = Rows(np.int32), Rows(np.int32)
        self._having = Rows(np.int64)
        self._segments: list[_Segment] = []
        self._dead = 0
        """Entries of deleted documents that are still stored."""
        self.alive = Rows(np.bool_)
        """For each document, whether it is there."""

    def __len__(self) -> int:
        """How many documents ever came."""
        return self.alive.size

    @property
    def terms(self) -> int:
        """How many different terms are known."""
        return len(self._names)

    @property
    def entries(self) -> int:
        """How many are stored."""
        return self._terms.size

    @property
    def having(self) -> Numbers:
        """For each term, how many documents have it."""
        return self._having.all

    def add(self, terms: Iterable[str]) -> int:
        """Add a document; how many terms it has, repeated ones counted each time."""
        counts = Counter(terms)
        known = self._numbers
        numbers = np.array([known[term] if term in known else self._named(term) for term in counts], np.int32)
        times = np.fromiter(counts.values(), np.int32, len(counts))
        self._terms.add(numbers)
        self._times.add(times)
        self._starts.add(np.array([self._terms.size], np.int64))
        self.alive.add(np.ones(1, np.bool_))
        self._having.all[numbers] += 1
        if len(self) - self._sealed >= TAIL:
            self._seal()
        return counts.total()

    def delete(self, document: int) -> None:
        """Take a document out."""
        start, stop = self._starts.all[document], self._starts.all[document + 1]
        self._having.all[self._terms.all[start:stop]] -= 1
        self.alive.all[document] = False
        self._dead += int(stop - start)
        if self._dead > max(DEAD * self._terms.size, TAIL):
            self._rebuild()

    def knows(self, term: str) -> bool:
        """Whether some document has a term."""
        number = self._numbers.get(term)
        return number is not None and bool(self._having.all[number])

    def numbers(self, terms: Iterable[str]) -> Numbers:
        """The numbers of those of the terms that some document has, in their order, each once."""
        known = map(self._numbers.get, dict.fromkeys(terms))
        found = np.array([number for number in known if number is not None], np.int64)
        return found[self._having.all[found] > 0]

    def of(self, terms: Numbers) -> Entries:
        """The entries of terms in the documents that are there. A document's are in the order of the terms."""
        parts = [_of(segment, terms) for segment in self._segments]
        parts += [self._of_tail(terms)]
        documents, times, which = (np.concatenate(each) for each in zip(*parts, strict=True))
        if not self._dead:
            return Entries(documents, times, which)
        alive = self.alive.all[documents]
        return Entries(documents[alive], times[alive], which[alive])

    def terms_of(self, documents: Numbers) -> tuple[Terms, Numbers]:
        """The terms of documents, and for each which of the documents has it."""
        starts = self._starts.all
        where, which = _ranges(starts[documents], starts[documents + 1])
        return self._terms.all[where], which

    def sizes(self, documents: Numbers) -> Numbers:
        """How many different terms documents have."""
        starts = self._starts.all
        found: Numbers = starts[documents + 1] - starts[documents]
        return found

    def save(self, writer: SnapshotWriter, name: str) -> None:
        """Write all of it, deleted documents taken out."""
        if self._dead:
            self._rebuild()
        writer.json(f"{name}.names", self._names)
        for part, rows in (("starts", self._starts), ("terms", self._terms), ("times", self._times)):
            writer.array(f"{name}.{part}", rows.all)
        writer.array(f"{name}.alive", self.alive.all)

    @classmethod
    def load(cls, reader: SnapshotReader, name: str) -> Postings:
        """Read all of it. Everything by term is made anew."""
        made = cls()
        made._names = reader.json(f"{name}.names", list[str])
        made._numbers = {term: at for at, term in enumerate(made._names)}
        made._starts.size = 0
        for part, rows in (("starts", made._starts), ("terms", made._terms), ("times", made._times)):
            rows.add(reader.array(f"{name}.{part}"))
        made.alive.add(reader.array(f"{name}.alive"))
        made._rebuild()
        return made

    def _named(self, term: str) -> int:
        """The number of a new term."""
        number = self._numbers[term] = len(self._names)
        self._names.append(term)
        self._having.add(np.zeros(1, np.int64))
        return number

    def _of_tail(self, terms: Numbers) -> Entries:
        starts = self._starts.all[self._sealed :]
        asked = np.full(self.terms, -1, np.int64)
        asked[terms] = np.arange(len(terms))
        which = asked[self._terms.all[starts[0] :]]
        there = np.flatnonzero(which >= 0)
        there = there[np.argsort(which[there], kind="stable")]
        documents = self._sealed + np.searchsorted(starts, starts[0] + there, side="right") - 1
        return Entries(documents, self._times.all[starts[0] + there], which[there])

    @property
    def _sealed(self) -> int:
        return self._segments[-1].stop if self._segments else 0

    def _seal(self) -> None:
        """Make the tail a segment, and merge segments from the newest on."""
        start = self._sealed
        while self._segments and self._size(-1) < FACTOR * (len(self) - start):
            start = self._segments.pop().start
        self._segments.append(self._segment(start, len(self)))

    def _size(self, at: int) -> int:
        return self._segments[at].stop - self._segments[at].start

    def _segment(self, start: int, stop: int) -> _Segment:
        """The living documents from `start` to `stop`, by term."""
        documents = start + np.flatnonzero(self.alive.all[start:stop])
        starts = self._starts.all
        where, which = _ranges(starts[documents], starts[documents + 1])
        terms = self._terms.all[where]
        order = np.argsort(terms, kind="stable")
        each, places = np.unique(terms[order], return_index=True)
        ends = np.append(places, len(terms)).astype(np.int64)
        return _Segment(start, stop, each, ends, documents[which[order]], self._times.all[where[order]])

    def _rebuild(self) -> None:
        """Make everything anew without deleted documents, and without terms that none has."""
        sizes = np.where(self.alive.all, np.diff(self._starts.all), 0)
        keep = np.repeat(self.alive.all, np.diff(self._starts.all))
        terms, times = self._terms.all[keep], self._times.all[keep]
        having = np.bincount(terms, minlength=len(self._names))
        used = np.flatnonzero(having)
        renumbered = np.cumsum(having > 0, dtype=np.int32) - 1
        self._names = [self._names[at] for at in used.tolist()]
        self._numbers = {term: at for at, term in enumerate(self._names)}
        self._starts.size = self._terms.size = self._times.size = self._having.size = 0
        self._starts.add(np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))
        self._terms.add(renumbered[terms].astype(np.int32))
        self._times.add(times)
        self._having.add(having[used].astype(np.int64))
        self._dead = 0
        self._segments = [self._segment(0, len(self))] if len(self) else []


def _of(segment: _Segment, wanted: Numbers) -> Entries:
    """A segment's entries of terms."""
    if not len(segment.terms):
        return Entries(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
    terms = wanted.astype(np.int32)  # otherwise all terms of the segment are converted
    at = np.minimum(segment.terms.searchsorted(terms), len(segment.terms) - 1)
    there = np.flatnonzero(segment.terms[at] == terms)
    starts, stops = segment.places[at[there]], segment.places[at[there] + 1]
    where = [slice(*each) for each in zip(starts.tolist(), stops.tolist(), strict=True)] or [slice(0)]
    documents, times = (np.concatenate([rows[each] for each in where]) for rows in (segment.documents, segment.times))
    return Entries(documents, times, there.repeat(stops - starts))


def _ranges(starts: Numbers, stops: Numbers) -> tuple[Numbers, Numbers]:
    """The numbers from each start to its stop, and for each which range it is of."""
    sizes = stops - starts
    which = np.repeat(np.arange(len(starts)), sizes)
    first = np.cumsum(sizes) - sizes
    return np.arange(len(which)) - first[which] + starts[which], which

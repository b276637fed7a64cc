"""A graph of documents and the entities in them, walked from a question's entities (personalised PageRank).

There is an edge between a document and each entity that it has; two entities that occur together are two steps apart.
A walk starts at the question's entities, the rarer the likelier, goes on to a neighbour at each step, and begins anew
with probability `restart`. A document's score is the probability of finding the walk there.

It is computed by pushing (Andersen, Chung & Lang 2006, "Local graph partitioning using PageRank vectors"), all nodes of
a side at once: a node's mass is pushed on while it is at least `precision` times its neighbours. So the work is bounded
by 1 / (restart · precision) edges, whatever the size of the graph, and no score is off by more than `precision` times
the document's entities. The question's entities are always pushed: every document with one of them is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from ....metrics.language import HAN, STOP_WORDS, words
from ....metrics.values import Value, spellings, values
from ..snapshot_file import SnapshotReader, SnapshotWriter
from .bm25 import terms
from .fusion import NOTHING, Numbers, Ranked, Scores, ranked, within
from .postings import Postings

ROUNDS = 50
"""Pushes from entities to documents and back, at most: what is left by then is below any precision."""


class EntityGraph:
    """Texts searched by what they mention."""

    __slots__ = ("_last", "_postings", "_precision", "_restart", "_with_words")

    def __init__(self, restart: float = 0.5, precision: float = 1e-5, with_words: bool = True) -> None:
        self._restart, self._precision, self._with_words = restart, precision, with_words
        self._postings = Postings()
        self._last: tuple[str, Ranked] | None = None

    def __len__(self) -> int:
        """Texts that are there."""
        return int(self._postings.alive.all.sum())

    @property
    def size(self) -> tuple[int, int]:
        """Entities and edges."""
        return self._postings.terms, self._postings.entries

    def add(self, text: str) -> None:
        """Add a text. Texts are numbered in the order they come, from 0."""
        self._postings.add(entities(text, self._with_words))
        self.forget()

    def delete(self, number: int) -> None:
        """Take a text out."""
        self._postings.delete(number)
        self.forget()

    def search(self, query: str, k: int, among: Numbers | None = None) -> Ranked:
        """The best `k` texts that the walk reaches, all or `among` these (sorted). It walks over all texts."""
        numbers, scores = self._scored(query)
        if among is not None:
            allowed = within(numbers, among)
            numbers, scores = numbers[allowed], scores[allowed]
        return ranked(numbers, scores, k)

    def score(self, query: str, numbers: Numbers) -> Scores:
        """The score of each of these texts, 0 where the walk does not come."""
        found = self._scored(query)
        dense = np.zeros(len(self._postings))
        dense[found.numbers] = found.scores
        return dense[numbers]

    def forget(self) -> None:
        """Forget the scores of the last question."""
        self._last = None

    def save(self, writer: SnapshotWriter) -> None:
        """Write all of it."""
        self._postings.save(writer, "graph")

    @classmethod
    def load(cls, reader: SnapshotReader, with_words: bool = True) -> EntityGraph:
        """Read all of it."""
        made = cls(with_words=with_words)
        made._postings = Postings.load(reader, "graph")
        return made

    def _scored(self, query: str) -> Ranked:
        """All texts that the walk reaches, by their numbers. The last query's are remembered."""
        if self._last is None or self._last[0] != query:
            self._last = query, self._walked(self._seeds(query))
        return self._last[1]

    def _seeds(self, query: str) -> Numbers:
        """The question's entities, and its words that are an entity somewhere."""
        said = (word for word in words(query) if word not in STOP_WORDS)
        return np.sort(self._postings.numbers((*entities(query, self._with_words), *said)))

    def _walked(self, seeds: Numbers) -> Ranked:
        if not len(seeds):
            return NOTHING
        postings, restart = self._postings, self._restart
        having = postings.having
        rarity = np.log(1 + (len(self) - having[seeds] + 0.5) / (having[seeds] + 0.5))
        waiting = np.zeros(postings.terms)
        waiting[seeds] = rarity / rarity.sum()
        found, arrived = np.zeros(len(postings)), np.zeros(len(postings))
        pushed = seeds
        for _ in range(ROUNDS):
            share = (1 - restart) * waiting[pushed] / having[pushed]
            waiting[pushed] = 0
            documents, _, which = postings.of(pushed)
            arrived += np.bincount(documents, share[which], minlength=len(arrived))
            reached = np.flatnonzero(arrived > 0)
            sizes = postings.sizes(reached)
            more = arrived[reached] >= self._precision * sizes
            reached, sizes = reached[more], sizes[more]
            if not len(reached):
                break
            mass = arrived[reached]
            found[reached] += restart * mass
            arrived[reached] = 0
            entity, which = postings.terms_of(reached)
            waiting += np.bincount(entity, ((1 - restart) * mass / sizes)[which], minlength=len(waiting))
            pushed = np.flatnonzero(waiting >= self._precision * np.maximum(having, 1))
            if not len(pushed):
                break
        found += restart * arrived
        numbers = np.flatnonzero(found > 0)
        return Ranked(numbers, found[numbers])


_RUN = re.compile(f"[{HAN}]+")


def entities(text: str, with_words: bool = True) -> tuple[str, ...]:
    """The different entities of a text, as they are compared: folded, in the order they first occur."""
    found = [entity for value in values(text) for entity in _of(value)]
    found += _nouns(text)
    if with_words:
        found += terms(text)
    return tuple(dict.fromkeys(found))


def _of(value: Value) -> Iterator[str]:
    """How a value is compared."""
    if value.kind == "number":
        yield spellings(value)[-1]
        return
    yield value.text.casefold()
    if value.kind == "name":
        yield from (part for part in value.text.casefold().split() if len(part) > 2)


def _nouns(text: str) -> Iterator[str]:
    if text.isascii():
        return
    for run in _RUN.findall(text):
        yield from (word for word, tag in _tagger()(run) if len(word) > 1 and tag.startswith("n"))


@cache
def _tagger() -> Callable[[str], list[tuple[str, str]]]:
    import rjieba

    tag: Callable[[str], list[tuple[str, str]]] = rjieba.tag
    return tag

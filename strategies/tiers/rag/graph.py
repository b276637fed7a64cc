"""Search by personalised PageRank on a graph of documents and their entities.

There is an edge between a document and each of its entities; two entities that occur together are two steps apart. A
walk starts at the query's entities, the rarer the likelier, goes on to a neighbour at each step, and restarts with
probability `RESTART`. The score of a document is the probability that the walk is at it.

Scores are computed by pushing (Andersen, Chung & Lang 2006, "Local graph partitioning using PageRank vectors"), all
nodes of a side at once: the mass of a node is pushed on while it is at least `precision` times its neighbours. So the
work is bounded by 1 / (RESTART · precision) edges, whatever the size of the graph, and no score is off by more than
`precision` times the document's entities. The query's entities are always pushed, so every document with one of them is
found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ctxbench.metrics.language import HAN, STOP_WORDS, terms, words
from ctxbench.metrics.values import spellings, values

from .postings import NOTHING, Ranked, TextIndex

RESTART = 0.5  # probability that a walk begins anew at a step
ROUNDS = 50  # most pushes from entities to documents and back: the mass left by then is below any precision


class EntityGraph(TextIndex):
    """Texts searched by the entities that they mention."""

    def __init__(self, precision: float = 1e-5) -> None:
        super().__init__()
        self._precision = precision

    @property
    def size(self) -> tuple[int, int]:
        """Number of entities, and of edges."""
        counts = self._postings.document_counts()
        return len(counts), int(counts.sum())

    def _terms(self, text: str) -> Sequence[str]:
        return entities(text)

    def _scores(self, query: str) -> Ranked:
        # The query's entities, and its words that are an entity of some text.
        content_words = (word for word in words(query) if word not in STOP_WORDS)
        seeds = np.sort(self._postings.numbers((*entities(query), *content_words)))
        if not len(seeds):
            return NOTHING
        postings, restart = self._postings, RESTART
        degree = postings.document_counts()
        rarity = np.log(1 + (self._living - degree[seeds] + 0.5) / (degree[seeds] + 0.5))
        waiting = np.zeros(len(degree))
        waiting[seeds] = rarity / rarity.sum()
        scores, arrived = np.zeros(len(postings)), np.zeros(len(postings))
        # The first push takes every seed, however little mass it has: so each document with one of them gets a score.
        pushed = seeds
        for _ in range(ROUNDS):
            share = (1 - restart) * waiting[pushed] / degree[pushed]
            waiting[pushed] = 0
            documents, _, which = postings.entries_of(pushed)
            arrived += np.bincount(documents, share[which], minlength=len(arrived))
            reached = np.flatnonzero(arrived > 0)
            sizes = postings.sizes(reached)
            # Lighter mass stays in `arrived`, may grow in later rounds, and is scored at the end where it is.
            heavy = arrived[reached] >= self._precision * sizes
            reached, sizes = reached[heavy], sizes[heavy]
            if not len(reached):
                break
            mass = arrived[reached]
            scores[reached] += restart * mass
            arrived[reached] = 0
            entity, which = postings.terms_of(reached)
            waiting += np.bincount(entity, ((1 - restart) * mass / sizes)[which], minlength=len(waiting))
            # An entity that no living document has any more has degree 0 and no mass: without the 1 it would pass as 0
            # >= 0 and be divided by 0.
            pushed = np.flatnonzero(waiting >= self._precision * np.maximum(degree, 1))
            if not len(pushed):
                break
        # The walk would end at these documents with that probability at least; what it would carry on is below the
        # precision.
        scores += restart * arrived
        numbers = np.flatnonzero(scores > 0)
        return Ranked(numbers, scores[numbers])


_RUN = re.compile(f"[{HAN}]+")


def entities(text: str) -> tuple[str, ...]:
    """Return the different entities of a text in normal form, the content words last.

    Without the words a search finds next to nothing (decision 17).
    """
    names = list[str]()
    for value in values(text):
        if value.kind == "number":
            names.append(spellings(value)[-1])
            continue
        names.append(value.text.casefold())
        if value.kind == "name":
            names += [part for part in value.text.casefold().split() if len(part) > 2]
    if not text.isascii():
        import rjieba  # lazy: its dictionary is read at the first Chinese text

        tagged = (pair for run in _RUN.findall(text) for pair in rjieba.tag(run))
        names += [word for word, tag in tagged if len(word) > 1 and tag.startswith("n")]
    return tuple(dict.fromkeys([*names, *terms(text)]))

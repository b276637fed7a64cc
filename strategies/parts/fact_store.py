"""Facts that add up over a conversation (S8): what is said again is one fact, an update outdates what it updates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...metrics.rows import Rows
from ...metrics.tfidf import Scores, TfIdf
from .fact_extraction import StatedFact


class FactStore:
    """Facts in the order they were first said. Each is prepared once, when it is taken in."""

    __slots__ = ("_base", "_confidence", "_current", "_index", "_numbers", "_outdated", "_prepared", "facts")

    def __init__(self, outdated: float) -> None:
        self._outdated = outdated
        self._prepared: dict[StatedFact, tuple[tuple[str, ...], str]] = {}
        """For each fact its words, and what it is about."""
        self.forget()

    def forget(self) -> None:
        """Begin anew. A fact that is taken in again costs little."""
        self.facts: list[StatedFact] = []
        self._base: list[float] = []
        """The highest confidence that each was said with."""
        self._confidence: Rows[np.float64] = Rows(np.float64)
        self._index = TfIdf()
        self._numbers: dict[str, int] = {}
        """The fact that is said in these words."""
        self._current: dict[str, int] = {}
        """What is about the same thing: the latest."""

    @property
    def confidences(self) -> Scores:
        """Of each fact, the outdated ones counted less."""
        return self._confidence.all

    def take(self, facts: Iterable[StatedFact]) -> None:
        """Take in facts, in the order they were said."""
        documents: list[Sequence[str]] = []
        for fact in facts:
            if fact not in self._prepared:
                self._prepared[fact] = tuple(fact.words), fact.about
            words, about = self._prepared[fact]
            if not words:
                continue
            number = self._numbers.setdefault(" ".join(words), len(self.facts))
            if number == len(self.facts):
                self.facts.append(fact)
                self._base.append(fact.confidence)
                self._confidence.add(np.array([fact.confidence]))
                documents.append(words)
            self._base[number] = max(self._base[number], fact.confidence)
            self._confidence.all[number] = self._base[number]
            before = self._current.get(about, number) if about else number
            if before != number:
                self._confidence.all[before] = self._base[before] * self._outdated
            if about:
                self._current[about] = number
        self._index.add(documents)

    def similar(self, context: Iterable[str]) -> Scores:
        """The TF-IDF cosine of the context's words with each fact."""
        return self._index.cosine(context)

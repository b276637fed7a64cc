"""A context, as one question looks at it: how much of the question each of its sentences has, itself or around it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...scenarios.model import Message
from ..grounding import said
from .library import Ints, Library, terms

Floats = NDArray[np.float64]

NEAR = 4.0
"""Sentences over which what a neighbour says fades to a third."""
BESIDE = 0.8
"""What a word counts for that a neighbour has, before it fades."""
GAP = 2
"""Sentences that the border of a message counts for."""
SAME = 0.3
"""What a word counts for that is in the same message, however far."""
MOST = 400
"""Sentences that a context is taken to have at least, when it is asked how rare a word is."""
COMMON, EXACT = 0.4, 1.6
"""The weight of a word that every sentence has, against 1 of one that none has; times which a word with a digit or an
underscore weighs."""

ABSENT = 0.4
"""What a word counts for that is nowhere: else little would be supported in a small context, whatever it says."""


class Page:
    """The sentences of a context, by their places in it, from 0."""

    def __init__(self, library: Library, messages: Sequence[Message]) -> None:
        self._library = library
        self.messages = [message for message in messages if said(message).strip()]
        texts = np.array([library.number(said(message)) for message in self.messages], np.int64)
        self._first, last = library.spans(texts) if len(texts) else (texts, texts)
        self._begin = np.concatenate([[0], np.cumsum(last - self._first)]).astype(np.int64)
        """Where each message's sentences begin."""
        self.size = int(self._begin[-1])
        self.message: Ints = np.repeat(np.arange(len(self.messages)), last - self._first)
        """Of each sentence, its message."""
        self._axis = np.arange(self.size) + GAP * self.message
        self._holder = np.full(library.size, -1, np.int64)
        """Of each text of the library, the last message that has it; -1 = none here."""
        self._holder[texts] = np.arange(len(texts))

    def sentence(self, at: int) -> str:
        """The sentence at a place."""
        message = self.message[at]
        return self._library.sentences[int(self._first[message] + at - self._begin[message])]

    def having(self, term: str) -> Ints:
        """The places of the sentences that have a term, ascending."""
        sentences, texts = self._library.having(term)
        message = self._holder[texts]
        sentences, message = sentences[message >= 0], message[message >= 0]
        return np.sort(sentences - self._first[message] + self._begin[message])

    def says(self, phrase: str) -> bool:
        """Whether a sentence has something word for word, in any case."""
        places: set[int] | None = None
        for term in terms(phrase):
            found = set(self.having(term).tolist())
            places = found if places is None else places & found
        return any(phrase.lower() in self.sentence(at).lower() for at in places or ())

    def support(self, asked: Sequence[str]) -> tuple[Floats, dict[str, float]]:
        """How much of these terms each sentence has, 0 to 1; and the weight of each term that is there."""
        total, most = 0.0, max(self.size, MOST)
        sums: Floats = np.zeros(self.size)
        weights: dict[str, float] = {}
        for term in asked:
            places = self.having(term)
            rarity = math.log(1 + most / (1 + len(places))) / math.log(1 + most)
            weight = COMMON + (1 - COMMON) * rarity
            weight *= EXACT if "_" in term or any(map(str.isdigit, term)) else 1.0
            total += weight if len(places) else weight * ABSENT
            if len(places):
                weights[term] = weight
                sums += weight * self._near(places)
        return (sums / total if total else sums), weights

    def _near(self, places: Ints) -> Floats:
        """How near each sentence is to one of these, 1 = is one."""
        axis, hits = self._axis, self._axis[places]
        after = np.searchsorted(hits, axis)
        right = np.abs(hits[np.minimum(after, len(hits) - 1)] - axis)
        left = np.abs(axis - hits[np.maximum(after - 1, 0)])
        near: Floats = np.exp(-np.minimum(left, right) / NEAR) * BESIDE
        same = np.zeros(len(self.messages), bool)
        same[self.message[places]] = True
        near = np.where(same[self.message], np.maximum(near, SAME), near)
        near[places] = 1.0
        return near

"""What makes archived results come back (design document 001 §4.1): the model's call, keywords, similarity, or either.

model      nothing is loaded but what the model itself asks for: the tool is offered (the document's choice, §4.2)
keyword    the newest user message has one of the keywords: those with the most words in common with it
semantic   those whose card is at least `similarity` to the newest user message
hybrid     keyword or semantic, and the tool is offered as well
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

from ...metrics.tfidf import best
from ..base import Desk, ModelError
from ..events import Failed
from ..parts.searching import Vectors, Words
from .record import Card

Trigger = Literal["model", "keyword", "semantic", "hybrid"]

KEYWORDS = ("之前", "刚才", "上次", "earlier", "previously", "you said", "last time")
"""001 §4.2's three, and what they are in English."""


class Search:
    """The archived results of one conversation (and those it may see of others), searched by words and by meaning."""

    __slots__ = ("_desk", "_vectors", "_words")

    def __init__(self, desk: Desk) -> None:
        self._desk, self._vectors, self._words = desk, Vectors(desk), Words()

    def chosen(
        self,
        trigger: Trigger,
        question: str,
        cards: Sequence[Card],
        keywords: Sequence[str],
        similarity: float,
        most: int,
    ) -> list[Card]:
        """The cards that the question brings back, at most `most`. If the embedder fails, keywords decide alone."""
        said = trigger in ("keyword", "hybrid") and mentions(question, keywords)
        found: list[Card] = []
        if trigger in ("semantic", "hybrid") and cards:
            try:
                found = [card for card, score in self.by_meaning(question, cards, most) if score >= similarity]
            except ModelError as error:
                self._desk.record(Failed("embedding", str(error), "keywords decide what is loaded"))
                said = mentions(question, keywords)
        if said:
            found += [card for card in self.by_words(question, cards, most) if card not in found]
        return found[:most]

    def by_words(self, question: str, cards: Sequence[Card], most: int) -> list[Card]:
        """The cards with the most words in common with the question, rare words weighing more, best first.

        Of equal ones the later. "Say more about what you just found" has no word of it: with none in common at all, the
        last card.
        """
        return [card for card, score in _best(self._words, question, cards, most) if score > 0] or list(cards[-1:])

    def by_meaning(self, question: str, cards: Sequence[Card], most: int) -> list[tuple[Card, float]]:
        """The nearest cards with their cosines, best first, of equal ones the later. Raises ModelError."""
        return _best(self._vectors, question, cards, most)


def _best(index: Vectors | Words, question: str, cards: Sequence[Card], most: int) -> list[tuple[Card, float]]:
    if not cards:
        return []
    rows = index.rows([card.text for card in cards])
    scores = index.scores(question)[rows]
    return [(cards[at], float(scores[at])) for at in best(scores, most)]


def mentions(text: str, keywords: Sequence[str]) -> bool:
    """Whether a keyword is in the text; one in Latin letters as whole words, whatever their case."""
    return any(_pattern(keyword).search(text) for keyword in keywords)


@cache
def _pattern(keyword: str) -> re.Pattern[str]:
    edged = re.escape(keyword)
    if keyword.isascii():
        edged = rf"(?<![A-Za-z]){edged}(?![A-Za-z])"
    return re.compile(edged, re.IGNORECASE)

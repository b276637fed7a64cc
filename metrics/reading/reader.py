"""An extractive reader: finds the span of a context that a question is best answered with, or says UNKNOWN.

Sentences are scored by the words that they have in common with the question, rare ones (in this context) more, and by
how near those stand that they do not have themselves: in JSON and logs the name of a thing is lines above its value, in
talk the question is a message above its answer (`page.py`). The best ones are searched for spans of the kind that is
asked for (`questions.py`, `spans.py`); a span is the better the nearer it is to the question's words. Of what changed,
the newest statement counts, unless the question is what was so at first.

It understands nothing. It never adds, compares or concludes: what stands nowhere in the context is out of its reach.
The weights below were set by hand on seeds and conversations of their own (decision 24).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...scenarios.model import Message
from .library import Library, terms
from .page import Floats, Page
from .questions import Question, read
from .spans import Span, spans
from .times import day_of, written

UNKNOWN = "UNKNOWN"
LEAST = 0.4
"""Support under which nothing is said to be known."""
BEST = 24
"""Sentences that are searched for spans."""
OTHER = 0.5
"""What a sentence counts for that another speaker said than the one who is asked about."""
MISSING = 0.4
"""What everything counts for where something that the question names exactly stands nowhere."""
RIVAL = 0.8
"""What share of the best score a statement needs, to count as another about the same thing."""
NEW, NEWER = 0.05, 0.12
"""What the newest place adds to a score, the oldest adding nothing; and where the question is what is so now."""
ASKS = 0.7
"""What a sentence counts for, as an answer, that is a question itself."""
OLD, OTHERWISE = 0.75, 0.95
"""What a span counts for that is said to have been replaced; what one counts for that is not, where that is asked."""
TOLD = 0.6
"""How well the day of a message answers when something was that it tells of."""


class Found(NamedTuple):
    """An answer as it stands in the context."""

    text: str
    """The answer; UNKNOWN if nothing supports one."""
    support: str
    """Id of the message that it stands in; empty for UNKNOWN."""
    score: float
    """How well it is supported, about 0 to 1."""


class Reader:
    """Reads contexts. It remembers every text that it has read, for as long as it lives: one per conversation."""

    def __init__(self, least: float = LEAST) -> None:
        self._library, self._least = Library(), least

    def answer(self, messages: Sequence[Message], question: str) -> Found:
        """The best supported span of these messages. The same, whatever was read before."""
        asked, page = read(question), Page(self._library, messages)
        best = _Search(page, asked).best()
        if best is None or best.score < self._least:
            return Found(UNKNOWN, "", best.score if best else 0.0)
        return best


class _Search:
    """One question in one context."""

    def __init__(self, page: Page, asked: Question) -> None:
        self._page, self._asked = page, asked
        names = {message.name.lower() for message in page.messages if message.name and message.role != "tool"}
        self._speakers = {name for name in names if re.search(rf"\b{re.escape(name)}\b", asked.text.lower())}
        self._shapes = {_DIGIT.sub("0", must) for must in asked.musts if _DIGIT.search(must)}
        self._weights: dict[str, float] = {}

    def best(self) -> Found | None:
        """The best supported span; None if nothing has anything to do with the question."""
        support = self._support()
        order = np.argsort(-support, kind="stable")[:BEST].tolist()
        found = [(at, each) for at in order if support[at] > 0 for each in self._answers(at, float(support[at]))]
        if not found:
            return None
        most = max(each.score for _, each in found)
        if not (self._asked.now or self._asked.first):
            return next(each for _, each in found if each.score == most)
        rivals = [(at, each) for at, each in found if each.score >= RIVAL * most]
        side = -1 if self._asked.first else 1
        return max(rivals, key=lambda rival: (side * int(self._page.message[rival[0]]), rival[1].score))[1]

    def _support(self) -> Floats:
        """How well each sentence is supported as the one with the answer, 0 to 1."""
        page, asked = self._page, self._asked
        said_by = {part for name in self._speakers for part in name.split()}
        support, self._weights = page.support([term for term in asked.terms if term not in said_by])
        if self._speakers and page.size:
            own = np.array([message.name.lower() in self._speakers for message in page.messages])
            support = np.where(own[page.message], support, support * OTHER)
        nowhere = sum(not page.says(must) for must in asked.musts)
        return support * MISSING**nowhere

    def _answers(self, at: int, support: float) -> list[Found]:
        """The spans of a sentence, as answers."""
        asked, sentence = self._asked, self._page.sentence(at)
        message = self._page.messages[int(self._page.message[at])]
        where = {term: places for term in self._weights if (places := _places(term, sentence.lower()))}
        place = (at + 1) / self._page.size
        new = (NEWER if asked.now else NEW) * (1 - place if asked.first else place)
        if asked.wanted == "phrase":
            support *= self._news(sentence) * (ASKS if sentence.rstrip().endswith(("?", "？")) else 1.0)
        made = []
        for span in self._spans(sentence, message):
            if _repeats(span, asked):
                continue
            score = support * span.fits * (0.7 + 0.3 * self._closeness(span, where)) * self._newly(span) + new
            if _replaced(sentence, span) != asked.first:
                score *= OTHERWISE if asked.first else OLD
            made.append(Found(self._says(span, sentence), message.id, score))
        return made

    def _spans(self, sentence: str, message: Message) -> list[Span]:
        found = spans(sentence, self._asked.wanted, message.time)
        if self._asked.wanted == "date" and message.role in ("user", "assistant") and message.time is not None:
            day = day_of(message.time)
            if day is not None:
                found.append(Span(sentence, 0, TOLD, written(day, self._asked.language == "zh")))
        return found

    def _news(self, sentence: str) -> float:
        """How much a sentence says beside what the question said, 0.6 to 1."""
        return min(1.0, 0.6 + 0.1 * len(set(_terms(sentence)) - set(self._asked.terms)))

    def _newly(self, span: Span) -> float:
        """How little of a span is in the question already, 0.5 to 1. Of order AL-102 no order AL-103 is asked for."""
        if self._asked.wanted in ("phrase", "yesno") or span.says:
            return 1.0
        if _DIGIT.search(span.text):
            return 0.5 if _DIGIT.sub("0", span.text) in self._shapes else 1.0
        own = _terms(span.text)
        return 1.0 - 0.5 * sum(term in self._asked.terms for term in own) / max(len(own), 1)

    def _closeness(self, span: Span, where: dict[str, list[int]]) -> float:
        """How near a span is to the question's words in its sentence, 0 to 1."""
        if not where:
            return 0.0
        scale = 12.0 if self._asked.language == "zh" else 40.0
        stop = span.start + len(span.text)
        sums = 0.0
        for term, places in where.items():
            gap = min(span.start - place if place < span.start else max(0, place - stop) * 1.3 for place in places)
            sums += self._weights[term] * math.exp(-gap / scale)
        return sums / sum(self._weights[term] for term in where)

    def _says(self, span: Span, sentence: str) -> str:
        if self._asked.wanted != "yesno":
            return span.says or span.text
        no = _NO.search(sentence) is not None
        return ("否" if no else "是") if self._asked.language == "zh" else ("No" if no else "Yes")


_DIGIT, _FIGURE = re.compile(r"\d"), re.compile(r"\d+(?:[.,]\d+)*")
_NO = re.compile(r"\b(?:no|not|never|cannot)\b|n['’]t\b|不|没|未", re.IGNORECASE)
_OLD = re.compile(
    r"(?:\b(?:instead of|rather than|no longer|and not(?: on)?|from|was|were|used to be|previously|before:?|old|not)"
    r"|原定|原来是?|之前是?|不再是?|不用|由|从|改掉|而不是|\"was\": ?)[\s\"'`:]*$",
    re.IGNORECASE,
)


def _replaced(sentence: str, span: Span) -> bool:
    """Whether the words before a span say that it is what was so before."""
    return _OLD.search(sentence[max(0, span.start - 24) : span.start]) is not None


def _repeats(span: Span, asked: Question) -> bool:
    """Whether a span only repeats the question, be it with another unit."""
    if span.text.lower() in asked.text.lower():
        return True
    figure = _FIGURE.search(span.text) if len(span.text) < 12 else None
    return figure is not None and figure.group() in _FIGURE.findall(asked.text)


def _places(term: str, lower: str) -> list[int]:
    """Where a stem stands in a text in lower case; without its last letter, which may be no letter of the word."""
    if len(term) > 4 and term not in lower:
        term = term[:-1]
    found, at = [], lower.find(term)
    while at >= 0:
        found.append(at)
        at = lower.find(term, at + 1)
    return found


@lru_cache(1 << 14)
def _terms(text: str) -> tuple[str, ...]:
    return tuple(terms(text))

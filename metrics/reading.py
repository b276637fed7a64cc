"""An extractive reader: finds the span of a context that a question is best answered with, or says UNKNOWN.

Sentences are scored by the words that they share with the question, words that are rare in this context more, and by
how near the missing words stand (`Page`): in JSON the name of a thing is above its value, in talk the question above
its answer. The best sentences are searched for spans of the kind that is asked for (`read`); the nearer a span is to
the question's words, the better. After a change the newest statement counts, unless the question asks for the first.

The reader never adds, compares or concludes. The weights below were set by hand (decision 24).
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache, reduce
from itertools import chain
from operator import or_
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages

from .grounding import said
from .language import (
    HAN,
    LANGUAGES,
    STOP_WORDS,
    Language,
    either,
    language_of,
    parts,
    regex,
    sentences,
    stem,
    terms,
    word_lists,
    words,
)
from .times import day_of, relative_times, written
from .values import Value, exact_values, values

VERSION = 2  # version of the answers, raised whenever one can change
UNKNOWN = "UNKNOWN"
PAGES = 8  # contexts kept as they were read: many questions are asked of one, and strategies that cut nothing share it
KEPT = 1 << 20
"""Numbers kept with a context: how near its sentences are to the words of questions, which many questions share."""
LEAST = 0.4  # support below which the reader abstains
BEST = 24  # sentences that are searched for spans
OTHER = 0.5  # factor for a sentence by another speaker than the one in the question
MISSING = 0.4  # factor for all sentences where a name or identifier of the question stands nowhere
RIVAL = 0.8  # share of the best score from which a statement counts as another one about the same thing
NEW, NEWER = 0.05, 0.12  # bonus of the newest place over the oldest; and where the question asks for the present state
ASKS = 0.7  # factor for an answer that is a question itself
OLD, OTHERWISE = 0.75, 0.95
"""Factor for a span that was replaced; and for one that was not, where the question asks for the first state."""
TOLD = 0.6  # fit of a message's own day as the answer to when something happened


class ReaderAnswer(NamedTuple):
    """An answer as it stands in the context."""

    text: str  # the answer; UNKNOWN if nothing supports one
    support: str  # id of the message that has it; empty for UNKNOWN
    score: float  # support, about 0 to 1; 0 for UNKNOWN


Wanted = Literal["date", "duration", "money", "number", "identifier", "person", "place", "reason", "yesno", "phrase"]

_LISTS = word_lists(__package__, "questions")
_RULES: dict[Language, list[tuple[Wanted, re.Pattern[str]]]] = {
    language: [(kind, regex(either(cues), re.IGNORECASE)) for kind, cues in _LISTS[language].items()]
    for language in LANGUAGES
}
_FIRST = regex(either(_LISTS["first"]), re.IGNORECASE)
_NOW = regex(either(_LISTS["now"]), re.IGNORECASE)
_QUOTED = regex(r"`([^`\n]{2,80})`|“([^”\n]{2,80})”|「([^」\n]{2,80})」|\"([^\"\n]{2,80})\"")
_ASKS = frozenset(_LISTS["asking_words"].split())


Places = tuple[tuple[int, int, int], ...]


class ExtractiveReader:
    """Reader of contexts. It remembers every text and question, and the last pages: use one per conversation."""

    def __init__(self) -> None:
        self._library = Library()
        self._question = cache(_Question)
        # Messages are known by the identity of their stores, which those kept beside the page keep alive.
        self._pages: dict[Places, tuple[Messages, Page]] = {}

    def answer(self, messages: Sequence[Message], question: str) -> ReaderAnswer:
        """Return the best supported span of these messages. Texts read earlier change nothing."""
        context = Messages.of(messages)
        best = self._question(question).best(self._page(context))
        return ReaderAnswer(UNKNOWN, "", 0.0) if best is None or best.score < LEAST else best

    def _page(self, context: Messages) -> Page:
        """Return a context as it was read, and forget the least recently used of more than PAGES."""
        places = tuple((id(store), start, stop) for store, start, stop in context.spans)
        kept = self._pages.pop(places, None)
        if kept is None:
            pieces = (quotes(message) if message.role == "system" else (message,) for message in context)
            kept = context, Page(self._library, list(chain.from_iterable(pieces)))
        self._pages[places] = kept
        if len(self._pages) > PAGES:
            del self._pages[next(iter(self._pages))]
        return kept[1]


class _Question:
    """One question, English or Chinese, put to any number of contexts. What a sentence offers is worked out once."""

    def __init__(self, text: str) -> None:
        self._lower, self._language, self._figures = text.lower(), language_of(text), frozenset(_FIGURE.findall(text))
        fitting = (kind for kind, pattern in _RULES[self._language] if pattern.search(text.strip()))
        self._wanted: Wanted = next(fitting, "phrase")
        about = [word for word in words(text) if word not in STOP_WORDS and word not in _ASKS]
        self._terms = tuple(dict.fromkeys(map(stem, about)))  # stems of the words that it is about, each once
        quoted = [next(filter(None, quote.groups())).strip() for quote in _QUOTED.finditer(text)]
        exact = [value.text for value in exact_values(text) if value.kind in ("identifier", "path", "url")]
        # Identifiers and quoted names. A context that lacks one of them has no answer.
        self._musts = tuple(dict.fromkeys((*quoted, *exact)))
        self._shapes = {_DIGIT.sub("0", must) for must in self._musts if _DIGIT.search(must)}
        # It asks for the present state, which implies that it changed; or for the state before a change.
        self._now, self._first = _NOW.search(text) is not None, _FIRST.search(text) is not None
        self._offers: dict[tuple[str, float | None, bool], tuple[_Offer, ...]] = {}

    def best(self, page: Page) -> ReaderAnswer | None:
        """Return the best supported span of a context; None if no score can reach LEAST."""
        # "What did Anna say about …": her name picks the sentences by who said them. It is no word to look for in them.
        speakers = {
            name for name in page.names if name in self._lower and re.search(rf"\b{re.escape(name)}\b", self._lower)
        }
        said_by = {part for name in speakers for part in name.split()}
        weights, total = page.weights([term for term in self._terms if term not in said_by])
        missing = MISSING ** sum(not page.says(must) for must in self._musts) if weights else 0.0
        bonus = NEWER if self._now else NEW
        # No span scores more than its sentence is supported, and the bonus of the newest place; no sentence is
        # supported by more than all words that are there.
        if not weights or sum(weights.values()) / total * missing + bonus < LEAST:
            return None
        support = page.support(weights) / total
        if speakers:
            support = np.where(reduce(or_, map(page.by, speakers)), support, support * OTHER)
        support *= missing
        # Where the newest or first statement is asked for, all within RIVAL of the best are rivals and have to be
        # found.
        answers, most, seeks = list[tuple[int, ReaderAnswer]](), LEAST, self._now or self._first
        nearly = RIVAL if seeks else 1.0
        places = (support + bonus >= nearly * most).nonzero()[0]
        # The best sentences, of equally supported ones the first.
        for at in places[(-support[places]).argsort(kind="stable")[:BEST]].tolist():
            if float(support[at]) + bonus < nearly * most:
                break
            for answer in self._answers(page, at, float(support[at]), weights):
                answers.append((at, answer))
                most = max(most, answer.score)
        # Of statements about the same thing the newest: with it .447 instead of .398 of the answers (decision 24).
        if not seeks:
            return next((answer for _, answer in answers if answer.score == most), None)
        rivals = [(at, answer) for at, answer in answers if answer.score >= RIVAL * most]
        side = -1 if self._first else 1
        latest = max(rivals, key=lambda rival: (side * int(page.message[rival[0]]), rival[1].score), default=None)
        return latest and latest[1]

    def _answers(self, page: Page, at: int, support: float, weights: dict[str, float]) -> Iterator[ReaderAnswer]:
        """Yield the spans of a sentence, as answers."""
        sentence, message = page.sentence(at), page.messages[int(page.message[at])]
        time = message.time if self._wanted == "date" else None
        key = sentence, time, time is not None and message.role in ("user", "assistant")
        if key not in self._offers:
            self._offers[key] = tuple(self._offered(*key))
        place = (at + 1) / page.size
        new = (NEWER if self._now else NEW) * (1 - place if self._first else place)
        for offer in self._offers[key]:
            # How near it stands to the question's words, weighted, 0 to 1.
            near = {term: weight for term, weight in weights.items() if term in offer.near}
            total = sum(near.values())
            close = sum(weight * offer.near[term] for term, weight in near.items()) / total if total else 0.0
            score = support * offer.fits * (0.7 + 0.3 * close) * offer.newly + new
            # Asked for the first state, a span that was replaced is what is meant and others are a little less likely;
            # asked for the present one, it is the other way round.
            if offer.replaced != self._first:
                score *= OTHERWISE if self._first else OLD
            yield ReaderAnswer(offer.says, message.id, score)

    def _offered(self, sentence: str, time: float | None, dated: bool) -> Iterator[_Offer]:
        """Yield what a sentence offers that does not repeat the question; if `dated`, the day of its message too."""
        lower, chinese = sentence.lower(), self._language == "zh"
        fits = 1.0
        if self._wanted == "phrase":
            # How much it adds to the words of the question, 0.6 to 1.
            fits = min(1.0, 0.6 + 0.1 * len(set(terms(sentence)) - set(self._terms)))
            fits *= ASKS if sentence.rstrip().endswith(("?", "？")) else 1.0
        found = list(dict.fromkeys(_fitting(sentence, self._wanted, time)))
        if dated and time is not None and (day := day_of(time)) is not None:
            found.append(AnswerSpan(sentence, 0, TOLD, written(day, chinese)))
        where = {term: places for term in self._terms if (places := _places(term, lower))}
        for span in found:
            figure = _FIGURE.search(span.text) if len(span.text) < 12 else None
            # It only repeats the question, be it with another unit.
            if span.text.lower() in self._lower or (figure is not None and figure.group() in self._figures):
                continue
            says = span.says or span.text
            if self._wanted == "yesno":
                no = _CUES["denial"].search(sentence) is not None
                says = ("否" if no else "是") if chinese else ("No" if no else "Yes")
            stop = span.start + len(span.text)
            near = {
                term: math.exp(-_gap(places, span.start, stop) / (12.0 if chinese else 40.0))
                for term, places in where.items()
            }
            before = sentence[max(0, span.start - 24) : span.start]
            yield _Offer(says, fits * span.fits, near, self._newly(span), _OLD.search(before) is not None)

    def _newly(self, span: AnswerSpan) -> float:
        """Return how little of a span the question has already, 0.5 to 1: asking about AL-102 never means AL-103."""
        if self._wanted in ("phrase", "yesno") or span.says:
            return 1.0
        if _DIGIT.search(span.text):
            # The shape of AL-102 is AL-000: another code of the same shape is a neighbour of the one asked about.
            return 0.5 if _DIGIT.sub("0", span.text) in self._shapes else 1.0
        own = terms(span.text)
        return 1.0 - 0.5 * sum(term in self._terms for term in own) / max(len(own), 1)


class _Offer(NamedTuple):
    """An answer that a sentence offers to a question, with all that does not depend on the context around it."""

    says: str
    fits: float
    near: dict[str, float]  # how near it stands to each word of the question that is in the sentence, 0 to 1
    newly: float
    replaced: bool  # the words before it say that it was replaced


def _gap(places: list[int], start: int, stop: int) -> float:
    """Return how far the nearest of these places is from a span, in characters; behind it they count a third more."""
    # At a scale of 40 a word 20 before the span counts 0.61, one 20 behind it 0.52.
    behind = bisect_left(places, start)
    before = start - places[behind - 1] if behind else math.inf
    after = max(0, places[behind] - stop) * 1.3 if behind < len(places) else math.inf
    return min(before, after)


_DIGIT, _FIGURE = regex(r"\d"), regex(r"\d+(?:[.,]\d+)*")
_CUES = {name: regex(either(cues), re.IGNORECASE) for name, cues in _LISTS["cues"].items()}
_OLD = regex(rf"(?:{either(_LISTS['cues']['replaced'])})[\s\"'`:]*$", re.IGNORECASE)


def _places(term: str, lower: str) -> list[int]:
    """Return where a stem stands in a lower-case text, without its last letter if need be, which the word may lack."""
    if len(term) > 4 and term not in lower:
        term = term[:-1]
    return list(_occurrences(term, lower, 1)) if term in lower else []


def _occurrences(part: str, text: str, step: int) -> Iterator[int]:
    """Yield the places of a part of a text, each looked for from so many characters behind the one before."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + step)


_QUOTE = regex(r"^- (?:\[\w+\] )?\[(\d{4}-\d\d-\d\d \d\d:\d\d)\] ([^:：\n]+)(?:: |：)", re.MULTILINE)


@lru_cache(1 << 10)
def quotes(message: Message) -> tuple[Message, ...]:
    """Return a system message in pieces: the text before its quotes, then each quote under its own speaker and time.

    A quote is a list item that says who said it and when: `- [2023-05-08 13:56] Caroline: …`. Without any, it is
    returned as it is.
    """
    head, *rest = _QUOTE.split(message.text)
    pieces = [replace(message, text=head) if rest else message]
    for when, speaker, text in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        try:
            time = datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp()
        except ValueError:  # digits that are no day
            time = None
        pieces.append(replace(message, role="user", text=text, name=speaker, time=time))
    return tuple(pieces)


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LINE = 320
"""Characters beyond which a sentence, such as a line of JSON or of a log, is cut where a field or a clause ends."""
_ENDS = [[mark] for mark in (", ", ",", "; ", "；", "，", "、", "|", " ")]


class Library:
    """Texts by number, their sentences by number, and the sentences by their terms. It only grows."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._numbers: dict[str, int] = {}
        self._start = array("q", [0])  # first sentence of each text, and the end of the last
        self.having: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        """Sentences that have a term, ascending."""

    def spans(self, texts: Iterable[str]) -> tuple[Ints, Ints]:
        """Return where the sentences of these texts begin, and where they end; new texts are indexed."""
        numbers = []
        for text in texts:
            if text not in self._numbers:
                self._numbers[text] = len(self._numbers)
                for piece in (piece for sentence in sentences(text) for piece in parts(sentence, LINE, _ENDS)):
                    for term in set(terms(piece)):
                        self.having[term].append(len(self.sentences))
                    self.sentences.append(piece)
                self._start.append(len(self.sentences))
            numbers.append(self._numbers[text])
        # A view, which must not be kept: an array cannot grow while it has one. Indexing by an array copies.
        start, places = np.frombuffer(self._start, np.int64), np.array(numbers, np.int64)
        return start[places], start[places + 1]


NEAR = 4.0  # distance in sentences over which a neighbour's words fade to a third
BESIDE = 0.8  # factor for a word that a neighbour has, before it fades
GAP = 2  # distance in sentences that the border of a message adds
SAME = 0.3  # least factor for a word in the same message, however far
MOST = 400  # least number of sentences that the rarity of a word assumes
COMMON, EXACT = 0.4, 1.6
"""Weight of a word that every sentence has, relative to one that none has; factor for a word with a digit or `_`."""

# With it the evidence alone answers .09 to .12 more of LoCoMo than the whole history, without it .05 (decision 24).
ABSENT = 0.4  # factor for a word that is nowhere: otherwise little would be supported in a small context


class Page:
    """Sentences of a context, by their places in it, from 0."""

    def __init__(self, library: Library, messages: Sequence[Message]) -> None:
        self._library = library
        pairs = [(message, text) for message in messages if (text := said(message)) and not text.isspace()]
        self.messages = [message for message, _ in pairs]
        first, last = library.spans([text for _, text in pairs])
        counts = last - first
        self.message: Ints = np.repeat(np.arange(len(pairs)), counts)
        """Message of each sentence."""
        self.size = len(self.message)
        places = np.arange(self.size)
        # Sentences on a line: one step to the next one, GAP more across the border of a message.
        self._axis = places + GAP * self.message
        # Number in the library of each sentence; and the last place of each sentence of the library, or -1.
        self._numbers: Ints = places + np.repeat(first - (np.cumsum(counts) - counts), counts)
        self._places = np.full(len(library.sentences), -1, np.int64)
        self._places[self._numbers] = places
        self._hits: dict[str, Ints] = {}
        self._near: dict[str, Floats] = {}
        self._by: dict[str, NDArray[np.bool_]] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the speakers, in small letters, without names of tools."""
        return frozenset(message.name.lower() for message in self.messages if message.name and message.role != "tool")

    def by(self, name: str) -> NDArray[np.bool_]:
        """Return which sentences are of the author with this name, in small letters."""
        if name not in self._by:
            self._by[name] = np.array([message.name.lower() == name for message in self.messages])[self.message]
        return self._by[name]

    def sentence(self, at: int) -> str:
        return self._library.sentences[int(self._numbers[at])]

    def having(self, term: str) -> Ints:
        """Return the places of the sentences with a term, ascending."""
        if term not in self._hits:
            sentences = np.array(self._library.having.get(term, ()), np.int64)
            # The library may have grown since, by sentences with higher numbers.
            if len(sentences) and sentences[-1] >= len(self._places):
                sentences = sentences[: sentences.searchsorted(len(self._places))]
            places = self._places[sentences]
            self._hits[term] = places = places[places >= 0]
            places.sort()
        return self._hits[term]

    def says(self, phrase: str) -> bool:
        """Return whether a sentence has a phrase word for word, in any case."""
        having = [set(self.having(term).tolist()) for term in terms(phrase)]
        places = having[0].intersection(*having[1:]) if having else ()
        return any(phrase.lower() in self.sentence(at).lower() for at in places)

    def weights(self, terms: Sequence[str]) -> tuple[dict[str, float], float]:
        """Return the weight of each of these terms that is there, and that of all together."""
        total, most = 0.0, max(self.size, MOST)
        weights: dict[str, float] = {}
        for term in terms:
            count = len(self.having(term))
            # Of 400 sentences: a word of one sentence weighs 0.4 + 0.6 x 0.88 = 0.93, a word of all 0.4 + 0.6 x 0.12 =
            # 0.47.
            rarity = math.log(1 + most / (1 + count)) / math.log(1 + most)
            weight = COMMON + (1 - COMMON) * rarity
            weight *= EXACT if "_" in term or any(map(str.isdigit, term)) else 1.0
            # Words that are nowhere still count below the line, so that a sentence with the rest of the question has
            # less than 1.
            total += weight if count else weight * ABSENT
            if count:
                weights[term] = weight
        return weights, total

    def support(self, weights: Mapping[str, float]) -> Floats:
        """Return the weight of these terms, which are there, in and around each sentence."""
        sums: Floats = np.zeros(self.size)
        for term, weight in weights.items():
            sums += weight * self._near_to(term)
        return sums

    def _near_to(self, term: str) -> Floats:
        """Return how near each sentence is to one with a term that is there, 1 = is one."""
        if term in self._near:
            return self._near[term]
        places, axis = self.having(term), self._axis
        hits = np.concatenate(([-_FAR], axis[places], [_FAR]))
        # The nearest hits on both sides.
        after = hits.searchsorted(axis)
        # Next sentence 0.62, next one behind a message's border 0.38, and no less than 0.3 within the message.
        near: Floats = _FADED.take(np.minimum(hits[after] - axis, axis - hits[after - 1]), mode="clip")
        least = np.zeros(len(self.messages))
        least[self.message[places]] = SAME
        np.maximum(near, least[self.message], out=near)
        near[places] = 1.0
        if len(self._near) * self.size < KEPT:
            self._near[term] = near
        return near


_FADED: Floats = np.exp(-np.arange(3000) / NEAR) * BESIDE  # by the distance; at the last one it is 0
_FAR = 1 << 40


class AnswerSpan(NamedTuple):
    """A piece of a sentence, and how well it answers."""

    text: str
    start: int
    fits: float  # how well it is of the kind asked for, 0 to 1
    says: str = ""  # the answer, where it is not the piece itself: the day that "yesterday" means


_AMOUNT = regex(r"(?<![\w.-])\d[\d,]{0,30}\.\d\d(?!\d)")
_FIGURE_SPANS = regex(
    r"(?<![\w.,:/-])(?:\d[\d,]*(?:\.\d+)?%?)(?![\w/:-]|\.\d)"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|once|twice"
    r"|both|none|half|a couple)\b(?:[ -](?:hours?|minutes?|days?|weeks?|months?|years?|times|people))?",
    re.IGNORECASE,
)
_SPACED = regex(r"(?:\d{4} ?年 ?)?\d{1,2} ?月 ?\d{1,2} ?[日号]")
_PHONE = regex(r"(?<![\w.-])\+?\d{2,5}(?:[ -]\d{3,4}){1,3}(?![\w-])")
_CLOCK = regex(r"[\d:]+(?: ?[ap]\.?m\.?)?", re.IGNORECASE)
_KEY = regex(r"[\"']?\s*:\s")
_AT = regex(
    r"\b(?:in|at|to|from|on|near|into)\s+((?:the\s+|my\s+|our\s+|a\s+)?[A-Za-z][\w'’-]*(?:\s+[A-Z][\w'’-]*){0,4})"
)
_ZH_AT = regex(r"(?:在|到|去|从|地点是|地址是|位于)([^，。；、\s]{2,16})")
_CUT = regex(r"[,.;:!?()\[\]{}\"“”|=\n*`—–]+|\s-+\s|[，。；：！？（）【】《》、“”]+")
_ZH_CUT = regex(r"是|为|在|了|把|被|由|和|与|从|到|用|让|叫|要|请|的")
_HAN_NAME = regex(f"[{HAN}]{{2,4}}")  # as long as a Chinese name: not every one is in a dictionary
_WORD = regex(rf"[{HAN}]+|[^\s{HAN}]+")
_ONLY = regex(r"[\W_]+")
# Words that a phrase may have inside.
_SOFT = frozenset(["of", "the", "a", "an", "and", "for", "with", "without", "to", "in", "on", "at", "or", "by", "from"])
_SOFT |= {"no", "not"}


@lru_cache(1 << 14)
def _values(sentence: str) -> tuple[tuple[Value, int], ...]:
    """Return the values of a sentence, each with every place where it stands."""
    return tuple(
        (value, at) for value in values(sentence) for at in _occurrences(value.text, sentence, len(value.text))
    )


# Sources of spans by the kind of answer: a kind of value or a pattern, how well it fits, and the cue that it must have.
_SOURCES: dict[str, tuple[tuple[str | re.Pattern[str], float, str], ...]] = {
    "duration": (("number", 1.0, "time"), (_FIGURE_SPANS, 0.5, "")),
    "money": (("number", 1.0, "money"), (_AMOUNT, 0.9, ""), ("number", 0.5, "")),
    "number": (("number", 1.0, ""), (_FIGURE_SPANS, 0.85, "")),
    "person": (("name", 1.0, ""),),
    "place": (("name", 0.9, ""), (_AT, 1.0, ""), (_ZH_AT, 1.0, "")),
}


def _fitting(sentence: str, wanted: Wanted, time: float | None) -> Iterator[AnswerSpan]:
    """Yield the pieces of a sentence that could answer. `time`: when it was said, in seconds since 1970."""
    for source, fits, cue in _SOURCES.get(wanted, ()):
        if isinstance(source, str):
            yield from _values_of(sentence, source, fits, cue)
        else:
            yield from _matches(source, sentence, fits)
    match wanted:
        case "date":
            for span in _values_of(sentence, "date", 1.0):
                # A date, rather than a time of the day or the name of a weekday.
                is_day = any(map(str.isdigit, span.text)) and not _CLOCK.fullmatch(span.text)
                yield span if is_day else span._replace(fits=0.6)
            yield from _matches(_SPACED, sentence, 1.0)
            if time is not None:
                yield from (AnswerSpan(text, at, 0.95, means) for text, at, means in relative_times(sentence, time))
        case "identifier":
            # Identifiers, paths, addresses and telephone numbers, without names of JSON fields.
            for value, at in _values(sentence):
                if value.kind in ("identifier", "path", "url") and not _KEY.match(sentence, at + len(value.text)):
                    exact = any(map(str.isdigit, value.text)) or value.kind != "identifier"
                    yield AnswerSpan(value.text, at, 1.0 if exact else 0.8)
            yield from _matches(_PHONE, sentence, 1.0)
            yield from _values_of(sentence, "number", 0.5)
        case "person":
            for phrase in phrases(sentence):
                yield phrase._replace(fits=0.75 if _HAN_NAME.fullmatch(phrase.text) else 0.35)
        case "place":
            yield from (phrase._replace(fits=0.4) for phrase in phrases(sentence))
        case "reason":
            for because in _CUES["because"].finditer(sentence):
                if rest := re.split(r"[.。！？!?；;]", sentence[because.end() :], maxsplit=1)[0].strip(" ,，:："):
                    yield AnswerSpan(rest, sentence.find(rest, because.end()), 1.0)
            yield AnswerSpan(sentence, 0, 0.5)
        case "yesno" | "phrase":
            # Where no kind of value is asked for, a sentence was right in 39 of 100 cases and a phrase in 27.
            yield AnswerSpan(sentence, 0, 1.0)


def _matches(pattern: re.Pattern[str], sentence: str, fits: float) -> Iterator[AnswerSpan]:
    """Yield the matches of a pattern; their first group, if it has one."""
    group = pattern.groups
    return (AnswerSpan(match[group], match.start(group), fits) for match in pattern.finditer(sentence))


def _values_of(sentence: str, kind: str, fits: float, cue: str = "") -> Iterator[AnswerSpan]:
    for value, at in _values(sentence):
        if value.kind == kind and (not cue or _CUES[cue].search(value.text)):
            yield AnswerSpan(value.text, at, fits)


@lru_cache(1 << 14)
def phrases(sentence: str) -> tuple[AnswerSpan, ...]:
    """Return runs of content words between punctuation, and whole clauses."""
    result, start = list[AnswerSpan](), 0
    for stop, after in [*(cut.span() for cut in _CUT.finditer(sentence)), (len(sentence), 0)]:
        if not sentence[start:stop].isspace():
            result += _chunks(sentence[start:stop], start)
        start = after
    return tuple(result)


def _chunks(clause: str, at: int) -> Iterator[AnswerSpan]:
    """Yield a clause of some words, and the runs in it."""
    whole = clause.strip()
    size = len(words(whole))
    if 1 <= size <= 12:
        yield AnswerSpan(whole, at + clause.index(whole), 0.75 if size > 6 else 0.9)
    run: list[re.Match[str]] = []
    for word in [*_WORD.finditer(clause), None]:
        plain = _ONLY.sub("", word.group().lower()) if word else ""
        if word is not None and plain and (plain not in STOP_WORDS or (run and plain in _SOFT)):
            run.append(word)
            continue
        # Small words stand inside a phrase ("cup of tea"), never at its end.
        while run and _ONLY.sub("", run[-1].group().lower()) in _SOFT:
            run.pop()
        if run:
            text = clause[run[0].start() : run[-1].end()]
            if text != whole and len(run) <= 8:
                yield AnswerSpan(text, at + run[0].start(), 1.0)
        run = []
    for part in _ZH_CUT.split(clause) if _ZH_CUT.search(clause) else ():
        if len(part.strip()) >= 2 and part.strip() != whole:
            yield AnswerSpan(part.strip(), at + clause.index(part.strip()), 0.8)

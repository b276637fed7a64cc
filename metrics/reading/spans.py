"""What of a sentence could be the answer: values of the kind that is asked for, else phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ..language import HAN, STOP_WORDS, words
from ..values import Value, values
from .questions import Wanted
from .times import relative_times


class Span(NamedTuple):
    """A piece of a sentence, and how it answers."""

    text: str
    start: int
    fits: float
    """How well it is what was asked for, 0 to 1."""
    says: str = ""
    """The answer, where it is not the piece itself: what "yesterday" means."""


_TIME = re.compile(
    r"second|sec|min|hour|hr|day|night|week|month|year|yr|ms\b|[\d ]s\b|[\d ]h\b|秒|分钟|小时|天|日|周|个月|年|晚",
    re.IGNORECASE,
)
_MONEY = re.compile(r"[$€£¥￥]|dollar|euro|pound|yuan|usd|eur|gbp|cny|rmb|元|块|美元", re.IGNORECASE)
_AMOUNT = re.compile(r"(?<![\w.-])\d[\d,]*\.\d\d(?!\d)")
_FIGURE = re.compile(
    r"(?<![\w.,:/-])(?:\d[\d,]*(?:\.\d+)?%?)(?![\w/:-]|\.\d)"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|once|twice"
    r"|both|none|half|a couple)\b(?:[ -](?:hours?|minutes?|days?|weeks?|months?|years?|times|people))?",
    re.IGNORECASE,
)
_SPACED = re.compile(r"(?:\d{4} ?年 ?)?\d{1,2} ?月 ?\d{1,2} ?[日号]")
_PHONE = re.compile(r"(?<![\w.-])\+?\d{2,5}(?:[ -]\d{3,4}){1,3}(?![\w-])")
_KEY = re.compile(r"[\"']?\s*:\s")
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|so that|as a result of|the reason (?:is|was)|thanks to)\b"
    r"|因为|由于|原因是|理由是|是为了",
    re.IGNORECASE,
)
_AT = re.compile(
    r"\b(?:in|at|to|from|on|near|into)\s+((?:the\s+|my\s+|our\s+|a\s+)?[A-Za-z][\w'’-]*(?:\s+[A-Z][\w'’-]*){0,4})"
)
_ZH_AT = re.compile(r"(?:在|到|去|从|地点是|地址是|位于)([^，。；、\s]{2,16})")
_CUT = re.compile(r"[,.;:!?()\[\]{}\"“”|=\n*`—–]+|\s-+\s|[，。；：！？（）【】《》、“”]+")
_ZH_CUT = re.compile(r"是|为|在|了|把|被|由|和|与|从|到|用|让|叫|要|请|的")
_HAN_NAME = re.compile(f"[{HAN}]{{2,4}}")
"""As long as a Chinese name is; not every one is in a dictionary."""
_WORD = re.compile(rf"[{HAN}]+|[^\s{HAN}]+")
_ONLY = re.compile(r"[\W_]+")
_SOFT_WORDS = "of the a an and for with without to in on at or by from no not"
_SOFT = frozenset(_SOFT_WORDS.split())
"""Words that a phrase may have inside."""


@lru_cache(1 << 14)
def _values(sentence: str) -> tuple[tuple[Value, int], ...]:
    """The values of a sentence, each with every place where it stands."""
    return tuple((value, at) for value in values(sentence) for at in _places(value.text, sentence))


def _places(text: str, sentence: str) -> Iterator[int]:
    at = sentence.find(text)
    while at >= 0:
        yield at
        at = sentence.find(text, at + len(text))


def spans(sentence: str, wanted: Wanted, time: float | None) -> list[Span]:
    """The pieces of a sentence that could answer; of a sentence said at that time (seconds since 1970)."""
    found = list(_fitting(sentence, wanted, time))
    return list(dict.fromkeys(found))


def _fitting(sentence: str, wanted: Wanted, time: float | None) -> Iterator[Span]:
    match wanted:
        case "date":
            yield from (
                Span(value.text, at, 1.0 if _is_day(value.text) else 0.6) for value, at in _of(sentence, "date")
            )
            yield from (Span(each.group(), each.start(), 1.0) for each in _SPACED.finditer(sentence))
            if time is not None:
                yield from (Span(said, at, 0.95, means) for said, at, means in relative_times(sentence, time))
        case "duration":
            yield from (Span(value.text, at, 1.0) for value, at in _of(sentence, "number") if _TIME.search(value.text))
            yield from (Span(each.group(), each.start(), 0.5) for each in _FIGURE.finditer(sentence))
        case "money":
            yield from (Span(value.text, at, 1.0) for value, at in _of(sentence, "number") if _MONEY.search(value.text))
            yield from (Span(each.group(), each.start(), 0.9) for each in _AMOUNT.finditer(sentence))
            yield from (Span(value.text, at, 0.5) for value, at in _of(sentence, "number"))
        case "number":
            yield from (Span(value.text, at, 1.0) for value, at in _of(sentence, "number"))
            yield from (Span(each.group(), each.start(), 0.85) for each in _FIGURE.finditer(sentence))
        case "identifier":
            yield from _codes(sentence)
        case "person":
            yield from (Span(value.text, at, 1.0) for value, at in _of(sentence, "name"))
            yield from (
                each._replace(fits=0.75 if _HAN_NAME.fullmatch(each.text) else 0.35) for each in phrases(sentence)
            )
        case "place":
            yield from (Span(value.text, at, 0.9) for value, at in _of(sentence, "name"))
            yield from (Span(each[1], each.start(1), 1.0) for each in _AT.finditer(sentence))
            yield from (Span(each[1], each.start(1), 1.0) for each in _ZH_AT.finditer(sentence))
            yield from (each._replace(fits=0.4) for each in phrases(sentence))
        case "reason":
            for each in _BECAUSE.finditer(sentence):
                if rest := re.split(r"[.。！？!?；;]", sentence[each.end() :], maxsplit=1)[0].strip(" ,，:："):
                    yield Span(rest, sentence.find(rest, each.end()), 1.0)
            yield Span(sentence, 0, 0.5)
        case "yesno":
            yield Span(sentence, 0, 1.0)
        case "phrase":
            yield Span(sentence, 0, 1.0)


def _codes(sentence: str) -> Iterator[Span]:
    """Identifiers, paths, addresses, telephone numbers; names of JSON fields are none."""
    for value, at in _values(sentence):
        if value.kind in ("identifier", "path", "url") and not _KEY.match(sentence, at + len(value.text)):
            yield Span(value.text, at, 1.0 if any(map(str.isdigit, value.text)) or value.kind != "identifier" else 0.8)
    yield from (Span(each.group(), each.start(), 1.0) for each in _PHONE.finditer(sentence))
    yield from (Span(value.text, at, 0.5) for value, at in _of(sentence, "number"))


def _of(sentence: str, kind: str) -> Iterator[tuple[Value, int]]:
    return ((value, at) for value, at in _values(sentence) if value.kind == kind)


def _is_day(text: str) -> bool:
    """A date rather than a time of the day or the name of a weekday."""
    return any(char.isdigit() for char in text) and not re.fullmatch(r"[\d:]+(?: ?[ap]\.?m\.?)?", text, re.IGNORECASE)


@lru_cache(1 << 14)
def phrases(sentence: str) -> tuple[Span, ...]:
    """Runs of words that mean something, between punctuation; and whole clauses."""
    made: list[Span] = []
    start = 0
    for stop in [*_CUT.finditer(sentence), None]:
        end = stop.start() if stop else len(sentence)
        clause = sentence[start:end]
        if clause.strip():
            made += _chunks(clause, start)
        start = stop.end() if stop else end
    return tuple(made)


def _chunks(clause: str, at: int) -> Iterator[Span]:
    """A clause of some words, and the runs in it."""
    whole = clause.strip()
    size = len(words(whole))
    if 1 <= size <= 12:
        yield Span(whole, at + clause.index(whole), 0.75 if size > 6 else 0.9)
    run: list[re.Match[str]] = []
    for word in [*_WORD.finditer(clause), None]:
        plain = _ONLY.sub("", word.group().lower()) if word else ""
        if word is not None and plain and (plain not in STOP_WORDS or (run and plain in _SOFT)):
            run.append(word)
            continue
        while run and _ONLY.sub("", run[-1].group().lower()) in _SOFT:
            run.pop()
        if run:
            text = clause[run[0].start() : run[-1].end()]
            if text != whole and len(run) <= 8:
                yield Span(text, at + run[0].start(), 1.0)
        run = []
    for part in _ZH_CUT.split(clause) if _ZH_CUT.search(clause) else ():
        if len(part.strip()) >= 2 and part.strip() != whole:
            yield Span(part.strip(), at + clause.index(part.strip()), 0.8)

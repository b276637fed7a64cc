"""An accepted answer, read once: its form, and the words that an answer must have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ...language import HAN, cutter
from . import stance
from .dates import When
from .quantities import ROMAN, Quantity
from .stance import without_address
from .words import FILLERS, HAN_STOP, PARTICLES, STOP, TextWords, clean

Form = Literal["date", "number", "code", "unknown", "yes", "no", "list", "name", "phrase"]

_HAN_FILLERS = re.compile("[大约左右约在于从到至是的初底中旬上半下年月日号前后将近超过多个第共有]")
_LETTERS = re.compile(rf"[a-z]+|[{HAN}]")
_HAN_RUN = re.compile(f"[{HAN}]+")
_CODE = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z_#-])[\w#.:/@-]{4,}$|(?=\S*_)\w+$|\S+@\S+$|[\w-]+(?:\.[\w-]+){2,}$|\d{5,}$")
_ITEMS = re.compile(
    r"\s*(?:;|,\s*(?:and|or)\s|,|\s&\s|\sand\s|、|，|；|以及|\n)\s*"
    rf"|(?<=[{HAN}])(?:和|与)(?=[{HAN}])"
)
_PAIR = re.compile(r"\s+and\s+|\s+&\s+|(?<=\S)(?:以及|和|与|、)(?=\S)")
_PRONOUN = re.compile(
    r"\b(?:he|she|it|they|them|his|her|their|its|i|we|you|because|since|that|which|was|were|is|are)\b|因为|他|她|它|是"
)
"""What says that a text is a sentence and no list."""
_HAN_ONE = re.compile(f"[{HAN}]")
# Words of an item; of a Chinese one, twice as many characters.
_LONGEST_ITEM = 4
_SEVERAL = re.compile(
    r"\b(?:what|which) (?:\w+ ){0,3}(?:are|were|do|did|have|has)\b|哪些|哪几|\bwho (?:are|were)\b"
    r"|\b(?:name|list|two|three|four|five|all|both|kinds?|types?|items|things|activities|places|names|books)\b"
)
_HOW_MANY = re.compile(
    r"\b(?:name|list|give|mention|state|tell me|any|at least|which|what) (?:the )?(one|two|three|four|five|[2-9])\b"
    r"|(?:列举|说出|举出|任意|至少)([一两三四五2-9])"
)
_AMOUNT = re.compile(
    r"\bhow (?:many|much|long|old|far|tall|big|large|often|high|fast|deep|wide|heavy|late|early)\b|\bnumber\b|\bpercent"
    r"|\brate\b|\bprice\b|\bcost\b|\bpopulation\b|\btotal\b|\baverage\b|多少|几|多[长大高远久重深快]"
)
_TIMES = re.compile(r"\bhow (?:many times|often)\b|几次|多少次")
_DAY = re.compile(
    r"\b(?:what|which|exact) (?:day|date)\b|\bday (?:is|was|did)\b|哪一?天|几月几|几号|哪日|什么日期|具体日期"
)
# A single character is a surname, a suffix (路, 市) or a word of grammar; else half a word a character.
_HAN_WEIGHT = {1: 0.25}
# What is left where JSON was cut from.
_CLOSING = ' \n"}]'
_SHORT = 12
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "一": 1, "两": 2, "三": 3, "四": 4, "五": 5}
_PERSON = re.compile(
    r"\b(?:who|whom|whose|who's)\b|\bwhich (?:actor|actress|singer|person|player|author|president)|谁|哪位|什么人"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A word to look for, its weight, and whether the question has it already."""

    word: str
    weight: float
    echoed: bool
    han: bool = False

    numeric: bool = False
    """Whether it is written in digits: found whole or not at all."""


@dataclass(frozen=True, slots=True)
class Gold:
    """An accepted answer beside its question."""

    text: TextWords
    asked: TextWords
    form: Form
    units: tuple[Unit, ...]
    whens: tuple[When, ...] = ()
    numbers: tuple[Quantity, ...] = ()
    items: tuple[Gold, ...] = ()
    needed: int = 0
    """Number of items of a list that are enough."""
    surnamed: bool = False
    """Whether it is the name of a person who is asked for, given names first: the last word says most."""
    polarity: stance.Polarity | None = None
    exact_day: bool = False
    """Whether the question asks for a day, so that a month or a year is not enough."""
    counts_times: bool = False
    """Whether the question asks how many times, so that "twice" is a number."""
    denies: bool = False
    """Whether the accepted answer denies something."""
    asks_denial: bool = False
    """Whether the question denies something."""


@lru_cache(8192)
def read_question(text: str) -> TextWords:
    """Read a question. Cached, since many answers belong to one."""
    return TextWords(without_address(clean(text)))


@lru_cache(16384)
def read_gold(text: str, question: str) -> Gold:
    """Read an accepted answer. Cached for the same reason."""
    return _read(text, question, may_be_list=True)


def _read(text: str, question: str, may_be_list: bool) -> Gold:
    words, question_words = TextWords(without_address(clean(text)).rstrip(_CLOSING)), read_question(question)
    units = _units(words, question_words)
    whens = tuple(when for when, _, _ in words.dates)
    numbers = tuple(
        quantity for quantity in words.quantities if not quantity.times or _TIMES.search(question_words.lower)
    )
    side = _side(words) if stance.asks_yes_or_no(question_words.lower) else None
    if side is None and words.squeezed in ("yes", "no", "true", "false", "是", "否", "对", "不是", "不对", "是的"):
        side = stance.polarity(words.lower)
    common = {
        "text": words,
        "asked": question_words,
        "units": units,
        "whens": whens,
        "numbers": numbers,
        "exact_day": _DAY.search(question_words.lower) is not None,
        "counts_times": _TIMES.search(question_words.lower) is not None,
        "denies": stance.negates(words.lower),
        "asks_denial": stance.negates(question_words.lower),
    }
    if side is not None:
        return Gold(form=side, polarity=side, **common)  # type: ignore[arg-type]
    if stance.refuses(words.lower) >= 0:
        return Gold(form="unknown", **common)  # type: ignore[arg-type]
    if whens and not _left(words.lower, [(start, stop) for _, start, stop in words.dates]):
        return Gold(form="date", **common)  # type: ignore[arg-type]
    left = _left(words.lower, [(quantity.start, quantity.stop) for quantity in numbers]) if numbers else []
    countable = numbers and not numbers[0].ordinal and (may_be_list or not left)
    if countable and _is_number(words, left, question_words):
        return Gold(form="number", **common)  # type: ignore[arg-type]
    if _is_code(words):
        return Gold(form="code", **common)  # type: ignore[arg-type]
    if may_be_list and (items := _items(words, question_words)):
        parts = tuple(_read(item, question, may_be_list=False) for item in items)
        asks = _HOW_MANY.search(question_words.lower)
        needed = len(parts)
        if asks:
            number = asks[1] or asks[2]
            needed = min(needed, _COUNTS.get(number) or int(number))
        return Gold(form="list", items=parts, needed=needed, **common)  # type: ignore[arg-type]
    if not _is_name(words):
        return Gold(form="phrase", **common)  # type: ignore[arg-type]
    return Gold(form="name", surnamed=_is_surnamed(words, question_words), **common)  # type: ignore[arg-type]


def _side(words: TextWords) -> stance.Polarity | None:
    """Return yes or no for an accepted answer to a yes-no question: short ones that deny nothing say yes."""
    first = words.sentences[0].lower() if words.sentences else words.lower
    return stance.leaning(first) or ("yes" if len(words.stems) <= _SHORT else None)


def _units(words: TextWords, question: TextWords) -> tuple[Unit, ...]:
    """Return the words that count. Stop words count only where there is nothing else."""
    pairs = [(stem, raw.lower()) for stem, raw in zip(words.stems, words.raw, strict=True)]
    latin = [(stem, low) for stem, low in pairs if not _HAN_RUN.match(low)]
    content = [stem for stem, low in latin if low not in STOP]
    digits = {stem for stem, raw in zip(words.stems, words.raw, strict=True) if raw[0].isdigit() or raw in ROMAN}
    han = [word for run in _HAN_RUN.findall(words.plain) for word in cutter()(run) if word not in HAN_STOP]
    if not content and not han:
        content = [stem for stem, _ in latin] or [low for _, low in pairs]
    units = [Unit(stem, 1.0, stem in question.places, numeric=stem in digits) for stem in dict.fromkeys(content)]
    units += [
        Unit(word, _HAN_WEIGHT.get(len(word), 0.5 * len(word)), word in question.squeezed, han=True)
        for word in dict.fromkeys(han)
    ]
    return tuple(units)


def _left(lower: str, taken: list[tuple[int, int]]) -> list[str]:
    """Return the words outside of these spans that say something."""
    for start, stop in sorted(taken, reverse=True):
        lower = f"{lower[:start]} {lower[stop:]}"
    rest = _LETTERS.findall(_HAN_FILLERS.sub(" ", lower))
    return [word for word in rest if word not in FILLERS and word not in STOP]


def _is_number(words: TextWords, left: list[str], question: TextWords) -> bool:
    """Return whether the answer has little beside its numbers but what is counted, and no name."""
    most = 1 if _AMOUNT.search(question.lower) is None else 2
    if len(left) > (most if words.lower.isascii() else most + 1) or _is_code(words):
        return False
    return not any(raw[0].isupper() and raw.lower() in left for raw in words.raw)


def _is_code(words: TextWords) -> bool:
    return _CODE.match(words.plain.strip(" .\"'`")) is not None


def _items(words: TextWords, question: TextWords) -> list[str]:
    """Return the items if the answer is a list: three or more, or two if it says "and" or several are asked for.

    Items are short: a text with longer parts is prose, whose commas and conjunctions separate no items.
    """
    text = words.plain.strip().rstrip(". ")
    if len(text) > 300 or ". " in text:
        return []
    parts = [part for item in _ITEMS.split(text) if (part := item.strip(" .\"'"))]
    if len(parts) < 2 or not all(re.search(r"\w", part) for part in parts):
        return []
    if any(len(part.split()) > _LONGEST_ITEM or len(_HAN_ONE.findall(part)) > 2 * _LONGEST_ITEM for part in parts):
        return []
    if _PRONOUN.search(text.lower()):
        return []
    return parts if len(parts) > 2 or _PAIR.search(text) or _SEVERAL.search(question.lower) else []


def _is_surnamed(words: TextWords, question: TextWords) -> bool:
    """Return whether a person is asked for and the name ends with a surname, as far as can be seen."""
    low = [raw.lower() for raw in words.raw]
    ends = "," not in words.plain and "of" not in low and low[-1] not in PARTICLES and words.raw[-1] not in ROMAN
    return ends and len(low) > 1 and _PERSON.search(question.lower) is not None


def _is_name(words: TextWords) -> bool:
    raw = words.raw
    return (
        bool(raw)
        and len(raw) <= 8
        and all(word[0].isupper() or word.lower() in PARTICLES or word[0].isdigit() for word in raw)
    )

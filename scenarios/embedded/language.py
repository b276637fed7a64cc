"""Languages of the assistant: their forms, how they write days and money, and the writer who fills the forms.

A slot that the caller does not fill is filled by chance: `${n3_9}` is a number from 3 to 9, `${m20_90}` an amount of
money, `${t8_17}` a time of day, `${d5_40}` a day that far ahead, `${p5_40}` one that long ago, `${c}` a capital
letter, and any other name a text under that key. In a form that is a record, ` = ` stands between the fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from random import Random

from . import forms
from .forms import Forms

_PARTS = ("world", "offers", "plans", "habits", "home", "howto", "questions")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_SENTENCE_START = re.compile(r"(?:^|(?<=[.?!] )|(?<=\n)|(?<=\n- )|(?<=\n> ))[a-z]")
_CHANCE = re.compile(r"([nmtdp])(\d+)_(\d+)")
_CAPITALS = "ABCDEFGHJKLMNPRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Language:
    """Language of a conversation: its forms, and how it writes days and money."""

    forms: Forms
    space: str
    """Text between two sentences."""
    day: Callable[[date], str]
    day_spellings: Callable[[date], tuple[str, ...]]
    """All spellings of a day that count as right; the first is `day`'s."""
    month: Callable[[date], str]
    day_count: Callable[[int], tuple[str, ...]]
    """All spellings of a number of days."""
    money: Callable[[int], str]
    money_spellings: Callable[[int], tuple[str, ...]]
    """All spellings of an amount that count as right; the first is `money`'s."""
    pound: int
    """Units of the currency that are worth a pound."""
    finish: Callable[[str], str]
    """Last touch on a text: capitals where sentences start."""


class Writer:
    """Author of texts from forms. Every form of a key is used once before any is used again."""

    def __init__(self, rng: Random, language: Language, cast: Forms, today: Callable[[], date]) -> None:
        """Take the forms of the language, with those of the cast in their place. Days are relative to `today()`."""
        self._rng, self._language, self._today = rng, language, today
        self._forms = {**language.forms, **cast}
        self._decks: dict[str, list[str]] = {}

    def __call__(self, key: str, **facts: object) -> str:
        """Return one text under the key. Raises KeyError for an unknown key, or a slot that is none either."""
        return self.fill(self.draw(key), facts)

    def has(self, key: str) -> bool:
        """Return whether there are forms under the key."""
        return key in self._forms

    def fields(self, key: str, **facts: object) -> list[str]:
        """Return the fields of one record under the key."""
        return self(key, **facts).split(" = ")

    def sentences(self, key: str, count: int, **facts: object) -> str:
        """Return `count` sentences under the key as running text."""
        return self._language.space.join(self._texts(key, count, facts))

    def bullets(self, key: str, count: int, **facts: object) -> str:
        """Return `count` texts under the key as a list, one per line."""
        return "\n".join(f"- {text}" for text in self._texts(key, count, facts))

    def draw(self, key: str) -> str:
        """Return the next form under the key, not filled yet."""
        deck = self._decks.setdefault(key, [])
        if not deck:
            deck.extend(self._forms[key])
            self._rng.shuffle(deck)
        return deck.pop()

    def fill(self, form: str, facts: Mapping[str, object]) -> str:
        """Return the form with its slots filled with the facts, the others by chance."""
        return forms.fill(
            form, self._rng.choice, lambda name: str(facts[name]) if name in facts else self._by_chance(name)
        )

    def _texts(self, key: str, count: int, facts: Mapping[str, object]) -> list[str]:
        hand: list[str] = []
        repeats: list[str] = []
        # With fewer forms than are wanted some have to stand twice, or this would never end.
        enough = len(self._forms[key]) >= count
        while len(hand) < count:
            form = self.draw(key)
            (repeats if enough and form in hand else hand).append(form)
        # Under the deck, which is dealt from its end.
        self._decks[key][:0] = repeats
        return [self.fill(form, facts) for form in hand]

    def _by_chance(self, slot: str) -> str:
        if slot == "c":
            return self._rng.choice(_CAPITALS)
        span = _span(slot)
        if span is None:
            return self(slot)
        kind, low, high = span
        value = self._rng.randint(low, high)
        match kind:
            case "n":
                return str(value)
            case "m":
                return self._language.money(value)
            case "t":
                return f"{value:02d}:{5 * self._rng.randrange(12):02d}"
            case "d":
                return self._language.day(self._today() + timedelta(days=value))
            case _:
                return self._language.day(self._today() - timedelta(days=value))


@cache
def _span(slot: str) -> tuple[str, int, int] | None:
    match = _CHANCE.fullmatch(slot)
    return (match[1], int(match[2]), int(match[3])) if match else None


def _forms(code: str) -> Forms:
    return {key: texts for part in _PARTS for key, texts in forms.load(f"{code}_{part}").items()}


def _english_day(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}"


def _english_days(day: date) -> tuple[str, ...]:
    short, month = _english_day(day), _MONTHS[day.month - 1]
    return short, f"{month} {day.day}", f"{short} {day.year}", f"{month} {day.day}, {day.year}", str(day)


def _pounds(amount: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys((f"£{amount:,}", f"£{amount}", f"{amount} pounds", f"{amount:,}", f"GBP {amount}")))


def _chinese_day(day: date) -> str:
    return f"{day.month}月{day.day}日"


def _chinese_days(day: date) -> tuple[str, ...]:
    return _chinese_day(day), f"{day.month}月{day.day}号", f"{day.year}年{_chinese_day(day)}", str(day)


def _yuan(amount: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys((f"{amount}元", f"{amount}块", str(amount), f"{amount:,}元", f"¥{amount}")))


ENGLISH = Language(
    forms=_forms("en"),
    space=" ",
    day=_english_day,
    day_spellings=_english_days,
    month=lambda day: f"{_MONTHS[day.month - 1]} {day.year}",
    day_count=lambda days: (f"{days} days", str(days)),
    money=lambda amount: f"£{amount:,}",
    money_spellings=_pounds,
    pound=1,
    finish=lambda text: _SENTENCE_START.sub(lambda letter: letter[0].upper(), text),
)
CHINESE = Language(
    forms=_forms("zh"),
    space="",
    day=_chinese_day,
    day_spellings=_chinese_days,
    month=lambda day: f"{day.year}年{day.month}月",
    day_count=lambda days: (f"{days}天", f"{days} 天", str(days)),
    money=lambda amount: f"{amount}元",
    money_spellings=_yuan,
    pound=4,
    finish=lambda text: text,
)
LANGUAGES = {"en": ENGLISH, "zh": CHINESE}

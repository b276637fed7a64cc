"""Languages of the generated conversations: their forms, how they write days and money, and the writer of texts.

A data file has forms under keys. An indented line is a further line of the same form; nothing else is stripped. A line
that starts with `#` is a comment:

    @greeting                          a key
    - «Hello|Good morning», $name.     a form
      Your order $number has arrived.  its second line
    - Hi $name!                        another form under the same key
    -                                  an empty form

`«a|b|c»` is one of several wordings; `$name` or `${name}` is a slot. A slot that the caller does not fill is filled by
chance: `${n3_9}` is a number from 3 to 9, `${m20_90}` an amount of money, `${t8_17}` a time of day, `${d5_40}` a day
that far ahead, `${p5_40}` one that long ago, `${c}` a capital letter, and any other name a text under that key. In a
form that is a record, ` = ` stands between the fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from random import Random
from typing import TypeVar

import msgspec

from ..files import shipped

T = TypeVar("T")
Forms = Mapping[str, tuple[str, ...]]
_CHOICE = re.compile("«([^»]*)»")
_SLOT = re.compile(r"\$(\{\w+\}|[A-Za-z_]\w*)", re.ASCII)
_CHANCE = re.compile(r"([nmtdp])(\d+)_(\d+)")
_CAPITALS = "ABCDEFGHJKLMNPRSTUVWXYZ"
_PARTS = ("world", "offers", "plans", "habits", "home", "howto", "questions")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_SENTENCE_START = re.compile(r"(?:^|(?<=[.?!] )|(?<=\n)|(?<=\n- )|(?<=\n> ))[a-z]")


@cache
def load(*names: str) -> Forms:
    """Return the forms of the data files `data/<name>.txt` by key."""
    forms_by_key: dict[str, list[str]] = {}
    for name in names:
        blank, forms = 0, list[str]()
        for line in (files(__package__) / "data" / f"{name}.txt").read_text(encoding="utf-8").split("\n"):
            if line.startswith("@"):
                forms = forms_by_key[line[1:]] = []
            elif line == "-" or line.startswith("- "):
                forms.append(line[2:])
            elif line.startswith("  "):
                # Blank lines within a form are a part of it, those behind its last line are none.
                forms[-1] += "\n" * (blank + 1) + line[2:]
            blank = 0 if line else blank + 1
    return {key: tuple(forms) for key, forms in forms_by_key.items()}


def fill(form: str, choose: Callable[[Sequence[str]], str], fact: Callable[[str], str]) -> str:
    """Return the form with its choices made, from left to right, and then its slots filled, from left to right."""
    texts = [part if isinstance(part, str) else choose(part) for part in _choices(form)]
    return "".join([fact(part) if n % 2 else part for text in texts for n, part in enumerate(_slots(text))])


@cache
def _choices(form: str) -> list[str | list[str]]:
    """Return the texts of a form, and between them the wordings of each choice."""
    return [part.split("|") if n % 2 else part for n, part in enumerate(_CHOICE.split(form))]


@cache
def _slots(text: str) -> list[str]:
    """Return what stands around the slots of a text, and between them their names."""
    return [part.strip("{}") if n % 2 else part for n, part in enumerate(_SLOT.split(text))]


def one(rng: Random, options: Sequence[T]) -> T:
    """Return one of the options: `Random.choice`, but twice as fast."""
    return options[int(rng.random() * len(options))]


@dataclass(frozen=True, slots=True)
class Language:
    """A language, with the spellings that count as right, the one that it writes first."""

    code: str
    space: str  # text between two sentences
    days: tuple[str, ...]
    amounts: tuple[str, ...]  # spellings of an amount of money
    counts: tuple[str, ...]  # spellings of a number of days
    months: str
    pound: int  # units of the currency that are worth a pound

    @property
    def forms(self) -> Forms:
        """All forms of the language, by key."""
        return load(*(f"{self.code}_{part}" for part in _PARTS))

    def spellings(self, value: date | int) -> tuple[str, ...]:
        """Return the spellings of a day, or of an amount of money."""
        forms = self.days if isinstance(value, date) else self.amounts
        return tuple(dict.fromkeys(_filled(form, value) for form in forms))

    def text(self, value: object) -> str:
        """Return a value as this language writes it: days, and whole numbers as amounts of money."""
        if isinstance(value, (date, int)):
            return _filled(self.days[0] if isinstance(value, date) else self.amounts[0], value)
        return str(value)

    def month(self, day: date) -> str:
        """Return the month of a day, with its year."""
        return _filled(self.months, day)

    def finish(self, text: str) -> str:
        """Return a text with capitals where English sentences start."""
        return _SENTENCE_START.sub(lambda letter: letter[0].upper(), text) if self.code == "en" else text


def _filled(form: str, value: date | int) -> str:
    return form.format(day=value, name=_MONTHS[value.month - 1]) if isinstance(value, date) else form.format(value)


LANGUAGES = {
    code: msgspec.convert({"code": code, **row}, Language) for code, row in shipped("generated")["languages"].items()
}


class Writer:
    """Author of texts from forms. Every form of a key is used once before any is used again."""

    def __init__(self, rng: Random, language: Language, cast: Forms, today: Callable[[], date]) -> None:
        """Take the forms of the language, with those of the cast in their place. Days are relative to `today()`."""
        self._rng, self._language, self._today = rng, language, today
        self.forms = {**language.forms, **cast}
        self._decks: dict[str, list[str]] = {}

    def __call__(self, key: str, **facts: object) -> str:
        """Return one text under the key. Raises KeyError for an unknown key, or a slot that is none either."""
        return self.fill(self.draw(key), facts)

    def fields(self, key: str, **facts: object) -> list[str]:
        """Return the fields of one record under the key."""
        return self(key, **facts).split(" = ")

    def sentences(self, key: str, count: int, **facts: object) -> str:
        """Return `count` sentences under the key as running text."""
        return self._language.space.join(self._texts(key, count, facts))

    def bullets(self, key: str, count: int, **facts: object) -> str:
        """Return `count` texts under the key as a list, one per line."""
        return bullets(self._texts(key, count, facts))

    def draw(self, key: str) -> str:
        """Return the next form under the key, not filled yet."""
        deck = self._decks.setdefault(key, [])
        if not deck:
            deck.extend(self.forms[key])
            self._rng.shuffle(deck)
        return deck.pop()

    def fill(self, form: str, facts: Mapping[str, object]) -> str:
        """Return the form with its slots filled with the facts, the others by chance."""
        text = self._language.text
        return fill(form, self._rng.choice, lambda slot: text(facts[slot]) if slot in facts else self._by_chance(slot))

    def _texts(self, key: str, count: int, facts: Mapping[str, object]) -> list[str]:
        hand: list[str] = []
        repeats: list[str] = []
        # With fewer forms than are wanted some have to stand twice, or this would never end.
        enough = len(self.forms[key]) >= count
        while len(hand) < count:
            form = self.draw(key)
            (repeats if enough and form in hand else hand).append(form)
        # Under the deck, which is dealt from its end.
        self._decks[key][:0] = repeats
        return [self.fill(form, facts) for form in hand]

    def _by_chance(self, slot: str) -> str:
        if slot == "c":
            return self._rng.choice(_CAPITALS)
        if not (span := _CHANCE.fullmatch(slot)):
            return self(slot)
        kind, value = span[1], self._rng.randint(int(span[2]), int(span[3]))
        if kind == "t":
            return f"{value:02d}:{5 * self._rng.randrange(12):02d}"
        if kind in "dp":
            return self._language.text(self._today() + timedelta(days=value if kind == "d" else -value))
        return str(value) if kind == "n" else self._language.text(value)


def bullets(texts: Sequence[str]) -> str:
    """Return texts as a list, one per line."""
    return "\n".join(f"- {text}" for text in texts)

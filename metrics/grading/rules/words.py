"""Words of a text in the form that is compared: lower-case stems, numerals as digits, single Chinese characters."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from functools import cache, cached_property, lru_cache

from ...language import HAN, either, regex, stemmer, word_lists
from .quantities import ONES, ORDINALS, ROMAN, TENS, Quantity, When, dates, equal, quantities
from .stance import negates

LONGEST = 20_000  # characters of a text that are read, which bounds the time of a grade

_LISTS = word_lists(__package__, "words")
_TABLE = str.maketrans(_LISTS["lookalikes"])
_ASCII = regex(r"[A-Za-z0-9]")
_MIXED = regex(r"\b(?=\w*[A-Za-z])(?=\w*[\u0370-\u03ff\u0400-\u04ff])\w+")
_FOREIGN = regex("[\u0370-\u03ff\u0400-\u04ff]")
_UNSEEN = regex(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)
_ACCENTS = regex("[\u0300-\u036f]+")
# Marks of footnotes, which would become digits of the word before. m² and m³ stay.
_NOTES = regex("(?<![mM])[¹²³⁰⁴-⁹]+")
_PLAIN = str.maketrans(_LISTS["characters"])
_SURROGATES = regex("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return the first LONGEST characters of a text in one normal form; case stays."""
    text = text[:LONGEST]
    if text.isascii():
        return text
    text = _SURROGATES.sub(" ", text)
    text = unicodedata.normalize("NFKC", _NOTES.sub(" ", _UNSEEN.sub("", text))).translate(_PLAIN)
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    if foreign := set(_FOREIGN.findall(text)):
        if foreign <= _LISTS["lookalikes"].keys() and _ASCII.search(text):
            text = text.translate(_TABLE)
        else:
            text = _MIXED.sub(lambda match: match.group().translate(_TABLE), text)
    return _UNSEEN.sub("", text)


_TOKEN = regex(rf"[{HAN}]|[A-Z]{{2,}}(?=s\b)|[A-Za-z]+|\d+(?:[.,:]\d+)*|[^\W\d_A-Za-z{HAN}]+|(?<=\d)(?:st|nd|rd|th)\b")
_POSSESSIVE = regex(r"'(?:s|S)?(?![A-Za-z])")
_INITIAL = regex(r"\.[A-Za-z]\.")
_INITIALS = regex(r"\b(?:[A-Za-z]\.){2,}")
_SUFFIXES = frozenset(["st", "nd", "rd", "th"])
# Of `clean` text, in which Chinese marks are ASCII ones.
_SENTENCE = regex(
    r"(?<=[a-z0-9)\"'%\]])[.!?]+\s+(?=[A-Z\"'(\d])|\n+|(?<=[^A-Z])\.\s\s?(?=[A-Z])"
    rf"|(?<=[{HAN}\"')%\d])(?:\.\s|[!?;])"
)

_NUMERALS = {name: str(at) for names in (ONES, TENS, ORDINALS) for name, at in names.items()}
# Not `language.terms`: that numerals are digits, and each Chinese character stands alone is part of
# what the agreement with people was measured on (decisions 23 and 26), and so is this list of stop words.
_SAME: dict[str, str] = _LISTS["same"] | {
    other: name for line in _LISTS["places"].splitlines() if line for name, other in [line.split()]
}
STOP = frozenset(_LISTS["stop_words"].split())  # words of grammar: they do not tell one answer from another
HAN_STOP = frozenset(_LISTS["han_stop_characters"]) | frozenset(_LISTS["han_stop_words"].split())
TITLES = frozenset(_LISTS["titles"].split())
PARTICLES = frozenset(_LISTS["name_particles"].split())
FILLERS = frozenset(_LISTS["fillers"].split())  # words beside a date or a number that leave it one
_UNITED = regex(r"\b[Uu]nited (?:(?=States)States(?: of America)?|(?=Kingdom)Kingdom)")


_BOUNDS = word_lists(__package__, "bounds")
_RANGE, _SHARE, _AND = (regex(rf"\s*(?:{either(_BOUNDS[key])})\s*") for key in ("to", "share", "and"))
_BETWEEN = regex(rf"(?<![a-z])(?:{either(_BOUNDS['between'])})[\s(]*$")
_DUE = regex(rf"(?<![a-z])(?:{either(_BOUNDS['due'])})\s+(?:the\s+)?$")
_CHANGED = regex(rf"(?<![a-z])(?:{either(_BOUNDS['changed'])})[^.;]{{0,30}}$")
_BELOW = regex(rf"(?:(?<![a-z])(?:{either(_BOUNDS['before'])})(?:\s+(?:the|an?|about|around))?[\s(]*)$")
_ABOVE = regex(rf"\s*(?:{either(_BOUNDS['after'])})")


def is_bounded(text: str, start: int, stop: int) -> bool:
    """Return whether a number is given as a bound: over 40, 3.10 or later."""
    return bool(_BELOW.search(text, max(0, start - 40), start) or _ABOVE.match(text, stop))


@lru_cache(1 << 16)
def _stem(raw: str) -> str:
    """Return the form of a word that is compared."""
    word = ROMAN.get(raw) or raw.lower()
    stem: str = stemmer().stemWord(_NUMERALS.get(word) or _SAME.get(word) or word)
    return stem


APART = [{_stem(word): at for at, same in enumerate(kinds) for word in same.split()} for kinds in _LISTS["apart"]]


class TextWords:
    """A text read for comparison. Each form is computed at its first use."""

    __slots__ = ("__dict__", "plain")

    def __init__(self, text: str) -> None:
        self.plain = clean(text)

    @cached_property
    def lower(self) -> str:
        """Text in lower case."""
        return self.plain.lower()

    @cached_property
    def denies(self) -> bool:
        """Whether the text denies anything."""
        return negates(self.lower)

    @cached_property
    def raw(self) -> list[str]:
        """Words in order, with their case, numerals as digits."""
        text = self.plain
        if "'" in text:
            text = _POSSESSIVE.sub("", text)
        if _INITIAL.search(text):
            text = _INITIALS.sub(lambda match: match.group().replace(".", ""), text)
        if "nited " in text:
            text = _UNITED.sub(lambda match: "US" if match.group()[-1] in "sa" else "UK", text)
        words = [word.replace(",", "") if word[0].isdigit() else word for word in _TOKEN.findall(text)]
        return [word for word in words if word not in _SUFFIXES]

    @cached_property
    def stems(self) -> list[str]:
        """Words in the form that is compared, in order."""
        return list(map(_stem, self.raw))

    @cached_property
    def places(self) -> dict[str, int]:
        """First place of each stem, counted in words."""
        return {stem: at for at, stem in reversed(list(enumerate(self.stems)))}

    @cached_property
    def squeezed(self) -> str:
        """Letters and digits alone, in lower case."""
        return "".join(self.raw).lower()

    @cached_property
    def bare(self) -> str:
        """Text in lower case, without spaces and without the marks at its ends."""
        return "".join(self.lower.split()).strip(".,;:!?\"'`*()")

    @cached_property
    def dates(self) -> list[tuple[When, int, int]]:
        """Dates, each with its start and stop in `lower`."""
        return dates(self.lower)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """Numbers outside of dates, and years that stand alone."""
        # A date of four characters is a year alone, which may be a number just as well: it stays one.
        spans = [(start, stop) for _, start, stop in self.dates if stop - start > 4]
        return [
            quantity
            for quantity in quantities(self.lower)
            if not any(start <= quantity.start < stop for start, stop in spans)
        ]

    @cached_property
    def exact(self) -> tuple[list[When], list[Quantity]]:
        """Dates and numbers that are stated exactly: no bounds, no ends of a range, no totals of "3 of 40"."""
        low, numbers, last = self.lower, list[Quantity](), None
        for number in self.quantities:
            between = low[last.stop : number.start] if last else ""
            ranged = bool(last and not equal(last, number) and _RANGE.fullmatch(between))
            if last and (
                ranged or (_AND.fullmatch(between) and _BETWEEN.search(low, max(0, last.start - 20), last.start))
            ):
                if numbers and numbers[-1] is last:
                    numbers.pop()
                ranged = not _CHANGED.search(low, max(0, last.start - 60), last.start)
            if not (ranged or _SHARE.fullmatch(between) or is_bounded(low, number.start, number.stop)):
                numbers.append(number)
            last = number
        bounds = {
            start
            for _, start, stop in self.dates
            if is_bounded(low, start, stop) or _DUE.search(low, max(0, start - 30), start)
        }
        return [date for date, start, _ in self.dates if start not in bounds], numbers

    @cached_property
    def sentences(self) -> list[str]:
        """Sentences, roughly."""
        return [part for part in _SENTENCE.split(self.plain) if part.strip()]


@cache
def given_names() -> dict[str, set[str]]:
    """Return the forms of each given name, all as stems: Bob is Robert."""
    forms = defaultdict[str, set[str]](set)
    for line in _LISTS["given_names"].splitlines():
        names = stemmer().stemWords(line.split())
        for name in names:
            forms[name].update(names)
    return dict(forms)

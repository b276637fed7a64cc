"""The words of a text as they are compared: lower case, stems, numerals as digits, a Chinese character each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, cached_property

from ...language import HAN
from .dates import When, dates
from .quantities import ONES, ORDINALS, ROMAN, TENS, Quantity, quantities

LONGEST = 20_000
"""Characters of a text that are read. A grade takes time in proportion to them, so there is an end."""

_TABLE = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтнвАВЕКМНОРСТУХІЈЅαορυνικτεηΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwkmtnbABEKMHOPCTYXIJSaopuviktenABEZHIKMNOPTYX",
)
_LOOKALIKES = {chr(code): chr(like) for code, like in _TABLE.items()}
_ASCII = re.compile(r"[A-Za-z0-9]")
_MIXED = re.compile(r"(?=\w*[A-Za-z])(?=\w*[\u0370-\u03ff\u0400-\u04ff])\w+")
_FOREIGN = re.compile("[\u0370-\u03ff\u0400-\u04ff]")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_NOTES = re.compile("(?<![mM])[¹²³⁰⁴-⁹]+")
"""Marks of footnotes, which would become digits of the word before. m² and m³ stay."""
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′´`", "'"),
        **dict.fromkeys("“”„‟″«»「」『』", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "ı": "i",
        "ß": "ss",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
        "ð": "d",
        "þ": "th",
        "×": " x ",
        "、": ",",
        "。": ". ",
        "〇": "零",
        "\ufffd": " ",
    }
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """The start of the text, LONGEST characters, in one form; case is kept."""
    text = text[:LONGEST]
    if text.isascii():
        return text
    text = _SURROGATES.sub(" ", text)
    text = unicodedata.normalize("NFKC", _NOTES.sub(" ", _UNSEEN.sub("", text))).translate(_PLAIN)
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    if foreign := set(_FOREIGN.findall(text)):
        if foreign <= _LOOKALIKES.keys() and _ASCII.search(text):
            text = text.translate(_TABLE)
        else:
            text = _MIXED.sub(lambda found: found.group().translate(_TABLE), text)
    return _UNSEEN.sub("", text)


_TOKEN = re.compile(
    rf"[{HAN}]|[A-Z]{{2,}}(?=s\b)|[A-Z]*[a-z]+|[A-Z]+|\d+(?:[.,:]\d+)*|[^\W\d_A-Za-z{HAN}]+|(?<=\d)(?:st|nd|rd|th)\b",
)
"""Humps are split, since text from pages loses spaces between words: "played byRicky Nelson"."""
_POSSESSIVE = re.compile(r"'(?:s|S)?(?![A-Za-z])")
_INITIALS = re.compile(r"\b(?:[A-Za-z]\.){2,}")
_SUFFIXES = frozenset(["st", "nd", "rd", "th"])
_SENTENCE = re.compile(r"(?<=[a-z0-9)\"'%\]])[.!?]+\s+(?=[A-Z\"'(\d])|[。！？；]|\n+|(?<=[^A-Z])\.\s\s?(?=[A-Z])")

_NUMERALS = {name: str(at) for names in (ONES, TENS, ORDINALS) for name, at in names.items()}
_SAME = {
    "usa": "us", "america": "us", "american": "us", "uk": "britain", "british": "britain", "movie": "film",
    "television": "tv", "telly": "tv", "colour": "color", "centre": "center", "theatre": "theater", "grey": "gray",
    "aluminium": "aluminum", "metre": "meter", "litre": "liter", "programme": "program", "saint": "st",
    "mister": "mr", "doctor": "dr", "mount": "mt", "&": "and", "vs": "versus", "honour": "honor", "labour": "labor",
}  # fmt: skip
"""Words that are one word, written in two ways."""

_STOP_WORDS = """
    a an the of in on at to for from by with and or as is are was were be been being it its this that these those he she
    they them his her their hers theirs i you we my your our who whom which what when where why how do does did has have
    had will would can could may might shall should there here also so than then if but about into onto over under after
    before during until between among through up down out off again very just only both each some any all such own same
    too now s t d ll re ve m
"""
STOP = frozenset(_STOP_WORDS.split())
"""Words of grammar: they do not tell one answer from another."""
_HAN_STOP_WORDS = """
    因为 所以 由于 这里 这个 这是 那个 一个 一种 一般 通常 进行 称为 叫做 叫作 是指 指的 就是 而是 以及 其中 这样 可能
    属于 位于
"""
_HAN_STOP_CHARACTERS = "的了是在和与及或就也都还又很吗呢吧啊把被给对从到向为以于这那个之其由等即所会"
HAN_STOP = frozenset(_HAN_STOP_CHARACTERS) | frozenset(_HAN_STOP_WORDS.split())
_UNITED = re.compile(r"\b[Uu]nited (?:(?=States)States(?: of America)?|(?=Kingdom)Kingdom)")


class TextWords:
    """A text read for comparison. What is not asked for is not made."""

    __slots__ = ("__dict__", "plain")

    def __init__(self, text: str) -> None:
        self.plain = clean(text)

    @cached_property
    def lower(self) -> str:
        """In lower case."""
        return self.plain.lower()

    @cached_property
    def raw(self) -> list[str]:
        """The words in order, case kept, numerals as digits."""
        text = self.plain
        if "'" in text:
            text = _POSSESSIVE.sub("", text)
        if "." in text:
            text = _INITIALS.sub(lambda found: found.group().replace(".", ""), text)
        if "nited " in text:
            text = _UNITED.sub(lambda found: "US" if found.group()[-1] in "sa" else "UK", text)
        return [
            word.replace(",", "") if word[0].isdigit() else word
            for word in _TOKEN.findall(text)
            if word not in _SUFFIXES
        ]

    @cached_property
    def stems(self) -> list[str]:
        """The words as they are compared, in order."""
        words = [ROMAN.get(word) or word.lower() for word in self.raw]
        return stemmer()([_NUMERALS.get(word) or _SAME.get(word) or word for word in words])

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each stem is first, counted in words."""
        made: dict[str, int] = {}
        for at, stem in enumerate(self.stems):
            if stem not in made:
                made[stem] = at
        return made

    @cached_property
    def squeezed(self) -> str:
        """All letters and digits in lower case, nothing between them."""
        return "".join(self.raw).lower()

    @cached_property
    def bare(self) -> str:
        """In lower case, without spaces and without the marks at its ends."""
        return "".join(self.lower.split()).strip(".,;:!?\"'`*()")

    @cached_property
    def dates(self) -> list[tuple[When, int, int]]:
        """The dates, each with where it starts and stops in `lower`."""
        return dates(self.lower)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The numbers that are not in dates, but for years that stand alone: those are here too."""
        taken = [(start, stop) for _, start, stop in self.dates if stop - start > 4]
        found = quantities(self.lower)
        if not taken:
            return found
        return [each for each in found if not any(start <= each.start < stop for start, stop in taken)]

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences, roughly."""
        return [part for part in _SENTENCE.split(self.plain) if part.strip()]


@cache
def stemmer() -> Callable[[list[str]], list[str]]:
    """The function that cuts English words to their stems."""
    import Stemmer

    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer("english").stemWords
    return stem

"""Text in one form: compatible characters made equal, what cannot be seen taken out, accents and look-alikes undone.

What is done here is safe in the sense that it makes equal what a reader takes for equal. Look-alikes (Cyrillic а for
Latin a) are undone in words that mix scripts, and where all that is not Latin is look-alikes: Russian and Greek stay
what they are.
"""

from __future__ import annotations

import re
import unicodedata

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

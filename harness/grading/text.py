"""Text of a recording as a model is shown it: what a person would see, which cannot act as anything but text.

Whoever wrote a candidate does not choose how it is read. So what cannot be seen is taken out (zero-width and control
characters, directions, tags, fillers), what looks like a Latin letter in a Latin word is one, marks that a model's
tokenizer or template takes for its own are written with other brackets, and what is too long is cut in the middle.
What has nothing to do with the question can be left out (`on_topic`).
"""

from __future__ import annotations

import re
import unicodedata

from ...metrics.language import sentences
from ...strategies.tiers.rag.terms import terms

READ = "1"
"""Goes up when a text comes to be read otherwise: grades of two versions do not compare."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ue000-\uf8ff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]+"
)
"""Control and format characters, fillers, variation selectors, tags, private use; not tab and newline."""
_LINES = re.compile("\r\n?|[\x85\u2028\u2029]")
_STYLED = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]+")
"""Full-width letters and digits, and those of mathematics: an alphabet drawn in another style."""
_WORD = re.compile("[A-Za-z\u00c0-\u024f\u0370-\u052f]+")
_LATIN = re.compile("[A-Za-z]")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтнвАВЕКМНОРСТУХІЈЅαορυνικτΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwkmtnbABEKMHOPCTYXIJSaopuviktABEZHIKMNOPTYX",
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_TAG = re.compile(r"<(?=[^\s\d=<>‹-])([^<>\n]{0,80})>?")
_BRACKET = re.compile(r"\[(/?[A-Z][A-Z_]{2,30})\]")
_MARKS = re.compile("[‹›]")
_BARS = re.compile(r"\|>")


def seen(text: str) -> str:
    """The text as a person sees it."""
    if not (text.isascii() and text.isprintable()):
        text = _LINES.sub("\n", _SURROGATES.sub("\ufffd", text))
        text = _UNSEEN.sub("", text)
        text = _STYLED.sub(lambda found: unicodedata.normalize("NFKC", found.group()), text)
        text = _WORD.sub(lambda found: _plain(found.group()), text)
    return _inert(text)


def _plain(word: str) -> str:
    return word.translate(_LOOKALIKES) if _LATIN.search(word) else word


def _inert(text: str) -> str:
    """Without what a tokenizer or a chat template takes for a mark of its own: `<|im_end|>`, `[INST]`, `</s>`."""
    text = _TAG.sub(lambda found: f"‹{found.group(1)}›" if found.group().endswith(">") else f"‹{found.group(1)}", text)
    return _BARS.sub("|›", _BRACKET.sub(r"(\1)", text))


def one_line(text: str) -> str:
    """As one line, its white space single."""
    return " ".join(text.split())


def on_topic(text: str, *topics: str) -> str:
    """The sentences that share a word with the topics; all of them if none does.

    An answer's sentence does, as a rule. One that speaks to the grader, or fills space, as a rule does not.
    """
    wanted = {term for topic in topics for term in terms(topic)}
    parts = sentences(_MARKS.sub("\n", text))
    kept = [part for part in parts if not wanted.isdisjoint(terms(part))]
    return " ".join(kept or parts)


def cut(text: str, most: int) -> str:
    """At most about `most` characters: the middle of a longer text is left out, and that is said."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [… {len(text) - 2 * half:,} characters are left out here …] {text[-half:]}"

"""Stance of an English or Chinese answer: it abstains, says yes or no, denies, or speaks to its grader."""

from __future__ import annotations

import re
from typing import Literal

from ...language import either, word_lists

Polarity = Literal["yes", "no"]

_LISTS = word_lists(__package__, "stance")
_REFUSAL, _ZH_REFUSAL = (
    re.compile(rf"\b(?:{either(_LISTS['refusal']['en'])})"),
    re.compile(either(_LISTS["refusal"]["zh"])),
)
_DENIAL = re.compile(rf"\b(?:{either(_LISTS['denial']['en'])})\b[^.;!?,()\"]{{0,24}}$")
_NO_DENIAL = re.compile(rf"(?:{either(_LISTS['no_denial']['en'])})[^.;!?]{{0,24}}$")
_AFTER = re.compile(
    r"^[\s\"')]{0,2}(?:is|are|was|were|did|does|do|has|have|had|would|will|could|can)(?:n't| not| never)\b(?! only"
    r"| just)"
)
_ZH_DENIAL, _ZH_NO_DENIAL = (
    re.compile(rf"(?:{either(_LISTS[key]['zh'])})[^，。；！？,.;]{{0,6}}$") for key in ("denial", "no_denial")
)
_PAST = re.compile(rf"(?:{either(_LISTS['past']['en'])})[^.;!?]{{0,40}}$")
_THEN = re.compile(
    r"^[^.;!?]{0,40}\b(?:but|and|then|now)\b[^.;!?]{0,30}\b(?:now|today|currently|nowadays|these days)\b"
)
_ZH_PAST = re.compile(rf"(?:{either(_LISTS['past']['zh'])})[^，。；,.;]{{0,6}}$")
_ZH_THEN = re.compile(r"^[^，。；,.;]{0,8}(?:迁|搬|换|改|移|调|变|转)|^[^。；.;]{0,12}(?:现在|如今|目前|后来)")
_YES = re.compile(rf"^(?:[\"'*( ]*)(?:{either(_LISTS['yes'])})(?![a-z\u4e00-\u9fff])")
_NO = re.compile(rf"^(?:[\"'*( ]*)(?:{either(_LISTS['no'])})(?![a-z])")
_EN_NO = re.compile(rf"\b(?:{either(_LISTS['negation']['en'])})\b|n't\b")
_ZH_NO = re.compile(either(_LISTS["negation"]["zh"]))
_YES_NO = re.compile(
    r"^(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must)\b"
)
_ZH_YES_NO = re.compile(
    r"(?:吗|(?<![什怎多那这])么[?.]?\s*$|是不是|是否|能不能|可不可以|会不会|有没有|对不对|能否|可否|有无)"
)


def refuses(lower: str) -> int:
    """Return where an answer says that it does not know; -1 if it does not say so."""
    refusal = _REFUSAL.search(lower)
    if refusal is None and not lower.isascii():
        refusal = _ZH_REFUSAL.search(lower)
    return -1 if refusal is None else refusal.start()


def superseded(lower: str, start: int, stop: int) -> bool:
    """Return whether a text says that lower[start:stop] is past: "it was Paris, but is Rome now"."""
    before, after = lower[max(0, start - 56) : start], lower[stop : stop + 90]
    if _PAST.search(before) and _THEN.search(after):
        return True
    return not lower.isascii() and _ZH_PAST.search(before) is not None and _ZH_THEN.search(after) is not None


def denied(lower: str, start: int, stop: int) -> bool:
    """Return whether a text denies lower[start:stop] where it stands: "not Paris", "Paris is not", 不是巴黎."""
    before = lower[max(0, start - 44) : start]
    if _DENIAL.search(before) and not _NO_DENIAL.search(before):
        return True
    if _AFTER.match(lower[stop : stop + 24]):
        return True
    if lower.isascii():
        return False
    return _ZH_DENIAL.search(before) is not None and _ZH_NO_DENIAL.search(before) is None


def polarity(lower: str) -> Polarity | None:
    """Return yes or no if an answer begins with the word itself."""
    start = lower.lstrip()[:40]
    if _NO.match(start):
        return "no"
    return "yes" if _YES.match(start) else None


def leaning(sentence: str) -> Polarity | None:
    """Return yes or no, be it because the sentence denies something; None where nothing tells."""
    side = polarity(sentence)
    return side if side is not None else "no" if negates(sentence) else None


def negates(lower: str) -> bool:
    """Return whether a text denies anything."""
    if _EN_NO.search(lower):
        return True
    return not lower.isascii() and _ZH_NO.search(lower) is not None


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered by yes or no."""
    lower = question.strip().lower()
    if _ZH_YES_NO.search(lower):
        return True
    return _YES_NO.match(lower) is not None and " or " not in lower


_ADDRESS = re.compile(either(_LISTS["address"]))
_PARTS = re.compile(r"(?<=[.!?。！？;；}>\]])\s+|\n+|(?<=[。！？；])|(?=<\|)|(?=\{\s*\")")


def without_address(text: str) -> str:
    """Return the text without the parts that speak to a grader; all of it if nothing else is there."""
    parts = [part for part in _PARTS.split(text) if part.strip()]
    plain = [part for part in parts if not _ADDRESS.search(part.lower())]
    return "\n".join(plain) if 0 < len(plain) < len(parts) else text

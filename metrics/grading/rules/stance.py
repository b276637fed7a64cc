"""Stance of an English or Chinese answer: it abstains, says yes or no, or speaks to its grader."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ...language import either, regex, word_lists

Polarity = Literal["yes", "no"]

_LISTS = word_lists(__package__, "stance")
_REFUSAL = regex(rf"\b(?:{either(_LISTS['refusal']['en'])})")
_ZH_REFUSAL = regex(either(_LISTS["refusal"]["zh"]))
_YES = regex(rf"^(?:[\"'*( ]*)(?:{either(_LISTS['yes'])})(?![a-z\u4e00-\u9fff])")
_NO = regex(rf"^(?:[\"'*( ]*)(?:{either(_LISTS['no'])})(?![a-z])")
_EN_NO = regex(rf"\b(?:{either(_LISTS['negation']['en'])})\b|n't\b")
_ZH_NO = regex(either(_LISTS["negation"]["zh"]))
_YES_NO = regex(r"^(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must)\b")
_ZH_YES_NO = regex(
    r"(?:吗|(?<![什怎多那这])么[?.]?\s*$|是不是|是否|能不能|可不可以|会不会|有没有|对不对|能否|可否|有无)"
)


def refuses(lower: str) -> int:
    """Return where an answer says that it does not know; -1 if it does not say so."""
    refusal = _REFUSAL.search(lower) or (None if lower.isascii() else _ZH_REFUSAL.search(lower))
    return -1 if refusal is None else refusal.start()


def polarity(lower: str) -> Polarity | None:
    """Return yes or no if an answer begins with the word itself."""
    start = lower.lstrip()[:40]
    if _NO.match(start):
        return "no"
    return "yes" if _YES.match(start) else None


def leaning(sentence: str) -> Polarity | None:
    """Return yes or no, as said or by a denial; None where the sentence does not tell."""
    side = polarity(sentence)
    return side if side is not None else "no" if negates(sentence) or _BRIEF_NO.search(sentence) else None


_BRIEF_NO = regex(either(_LISTS["brief_no"]))
TURN = regex(rf"(?:^|[,.;!?\s])(?:{either(_LISTS['turn'])})(?![a-z])")
GUESS = regex(either(_LISTS["guess"]))
CONTRADICTION = regex(either(_LISTS["contradiction"]))


def negates(lower: str) -> bool:
    """Return whether a text denies anything."""
    return _EN_NO.search(lower) is not None or (not lower.isascii() and _ZH_NO.search(lower) is not None)


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered by yes or no."""
    lower = question.strip().lower()
    return _ZH_YES_NO.search(lower) is not None or (_YES_NO.match(lower) is not None and " or " not in lower)


_HIDDEN = regex(
    r"(?s)<(think|thinking|reasoning|scratchpad|draft|notes?|comment)>.*?(?:</\1>|$)|<!--.*?(?:-->|$)|/\*.*?(?:\*/|$)"
    r"|(?m:(?<=\S)[ \t]+(?://|#)[ \t].*$)"
)
_ORDERS = regex(either(_LISTS["orders"]), re.IGNORECASE)
_TO_GRADER = regex(either(_LISTS["to_grader"]))
_SPOKEN = regex(
    r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])|\s{0,99}[()\[\]（）]\s*|(?<=>)(?=[^<\s])|(?=</?[|a-z])|(?=\{\s*\")"
)
_DRAFT = regex(rf"(?mi)^[\W_]{{0,99}}(?:{either(_LISTS['draft'])})[\W_]{{0,99}}?[:：)\]].*$")


def _without_order(part: str) -> str:
    order = _ORDERS.search(part)
    return part if order is None else part[: order.start()].strip()


def final_text(text: str) -> str:
    """Return an answer without thoughts, comments and drafts; of a JSON object its field `answer`."""
    lower = text.lower()
    if not any(map(lower.__contains__, _LISTS["may_hide"])):
        return text
    text = _HIDDEN.sub(" ", text)
    bare = text.strip().removeprefix("```json").strip("`\n ")
    if bare.startswith("{"):
        try:
            fields = msgspec.json.decode(bare)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return text
        named = [value for key, value in fields.items() if key.lower() in _LISTS["answer_fields"]]
        return str(named[0]) if named else text
    parts = [part for part in _SPOKEN.split(text) if part.strip()]
    said = [
        part
        for part in (_DRAFT.sub("", part) for part in map(_without_order, parts))
        if part and not _TO_GRADER.search(part.lower())
    ]
    return text if said == parts else "\n".join(said).strip()

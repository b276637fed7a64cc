"""Answers in German, Spanish, French, Japanese and Korean: right only where every word is understood.

Nothing is guessed: an answer that has the accepted one beside words that neither the question nor the lists of
`data/foreign.toml` know has no grade.
"""

from __future__ import annotations

import re
from functools import cache

from ...language import HAN, either, word_lists
from .words import clean

LANGUAGES = ("de", "es", "fr", "ja", "ko")
_LISTS = word_lists(__package__, "foreign")
_PLAIN = {name: frozenset(words.split()) for name, words in _LISTS["plain"].items()}
_SPACED = ("de", "es", "fr")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE = re.compile(r"[,;:.!?()\n]|\s-\s")
_DECIMAL = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
_THOUSANDS = re.compile(r"(?<=\d)[.\s](?=\d{3}(?!\d))")
_RUN = re.compile(rf"[{HAN}々]+|[\u30a0-\u30ff]+|[a-z0-9]+")
_UMLAUT = re.compile("([aou])e")  # Koeln is Köln
DENIED = "the answer denies {}"
_FEW, _SHORT = 3, 6  # words and characters of an accepted answer that is yes or no
_NEAR = 200  # characters of a clause beside an accepted answer that are read
_PREFIX = 4  # letters that two forms of one word share


@cache
def _pattern(kind: str, language: str) -> re.Pattern[str]:
    edges = (r"(?<!\w)", r"(?!\w)") if language in _SPACED or kind in ("yes", "no") else ("", "")
    return re.compile(f"{edges[0]}(?:{either(_LISTS[kind][language])}){edges[1]}")


def refuses(text: str, language: str) -> bool:
    """Return whether a text says that it is not known, and guesses nothing."""
    refusal = _pattern("refusal", language).search(lower := _folded(text))
    return refusal is not None and not _pattern("guess", language).search(lower, refusal.end())


def side(text: str, language: str) -> str | None:
    """Return yes or no, as said or by a denial; None where the text does not tell."""
    lower = _folded(text)
    starts = (name for name in ("no", "yes") if _pattern(name, language).match(lower))
    return next(starts, "no" if _pattern("denial", language).search(lower) else None)


def in_english(text: str, language: str) -> str:
    """Return a text with its names of months, units and small numbers in English, and a point before decimals."""
    lower = _folded(text)
    for word, english in _LISTS["values"][language].items():
        lower = re.sub(rf"\b{word}\b" if language in _SPACED else word, english, lower)
    return _DECIMAL.sub(".", _THOUSANDS.sub("", lower)) if language in _SPACED else lower


def compared(gold: str, answer: str, question: str, language: str) -> tuple[bool | None, str]:
    """Return whether an answer says what is accepted, and why; None where it cannot be told."""
    plain, sides = _PLAIN[language], [side(gold, language), side(answer, language)]
    gold, answer, question = (_folded(text) for text in (gold, answer, question))
    if (denied := _pattern("contrast", language).match(answer)) and gold not in denied.group():
        answer = answer[denied.end() :]
    if sides[0] and len(gold.split()) < _FEW and len(gold) <= _SHORT:
        said = sides[1] or "neither yes nor no"
        return None if sides[1] is None else sides[0] == sides[1], f"the answer says {said}, accepted is {sides[0]}"
    if not (spans := _spans(gold, answer, plain, language)):
        content = [word for word in _WORD.findall(gold) if word not in plain]
        near = any(_alike(word, other) for word in content for other in _WORD.findall(answer))
        return (None, "only like {}") if near and gold not in answer else (False, "nothing of {} found")
    clauses = (
        (_CLAUSE.split(answer[max(0, start - _NEAR) : start])[-1], _CLAUSE.split(answer[stop : stop + _NEAR])[0])
        for start, stop in spans
    )
    if all(_pattern("denial", language).search("\0".join(clause)) for clause in clauses):
        return False, DENIED
    doubt = _pattern("doubt", language).search(answer.replace(gold, " "))
    if doubt and doubt.group() not in question:
        return None, "the answer is not sure of {}"
    strange = _strange(gold, answer, question, plain, language)
    return (None, f"the answer says {strange[0]} beside {{}}") if strange else (True, "{} found")


def _folded(text: str) -> str:
    return clean(text).lower().strip(" .\"'")


def _alike(one: str, other: str, least: int = _PREFIX) -> bool:
    """Return whether two words may be forms of one."""
    return one == other or (min(len(one), len(other)) >= least and one[:least] == other[:least])


def _spans(gold: str, answer: str, plain: frozenset[str], language: str) -> list[tuple[int, int]]:
    """Return where the accepted answer stands as a whole; of several words, where its last one does."""
    if language in _SPACED:
        content = [word for word in _WORD.findall(gold) if word not in plain] or _WORD.findall(gold)
        said = [(hit.span(), _UMLAUT.sub(r"\1", hit.group())) for hit in _WORD.finditer(answer)]
        places = [[span for span, other in said if other == _UMLAUT.sub(r"\1", word)] for word in content]
        return places[-1] if places and all(places) else []

    def runs_on(pair: str) -> bool:  # one word goes on in one script, but for hiragana
        return len(pair) == 2 and any(re.fullmatch(f"[{script}]{{2}}", pair) for script in _LISTS["scripts"])

    particle = re.compile(either(_LISTS["particles"][language]))
    spans = [hit.span() for hit in re.finditer(re.escape(gold), answer)]
    return [
        (start, stop)
        for start, stop in spans
        if not runs_on(answer[max(0, start - 1) : start + 1])
        and (particle.match(answer, stop) or not runs_on(answer[stop - 1 : stop + 1]))
    ]


def _strange(gold: str, answer: str, question: str, plain: frozenset[str], language: str) -> list[str]:
    """Return the words of an answer that neither the question nor the accepted answer nor the lists have."""
    if language == "ja":
        return [run for run in _RUN.findall(answer.replace(gold, " ")) if run not in plain and run not in question]
    known, least = _WORD.findall(f"{question} {gold}"), 1 if language == "ko" else _PREFIX
    found = [word for word in _WORD.findall(answer) if word not in plain]
    return [word for word in found if not any(_alike(word, other, least) for other in known)]

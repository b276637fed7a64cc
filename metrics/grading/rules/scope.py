"""Decide whether an answer asserts what stands in it, or denies it, doubts it or takes it back.

Everything goes by the words beside the place where the accepted answer stands (`data/scope.toml`), in the clause or
sentence around it, and by whether the answer offers anything else. No cue counts that needs something else while the
answer has nothing but words of the question, of the accepted answers, and of grammar.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from ...language import HAN, either, regex, stemmer, word_lists
from .quantities import Quantity, When, equal
from .words import HAN_STOP, STOP, TextWords

_LISTS = word_lists(__package__, "scope")
_BEFORE, _AFTER = 100, 240  # characters beside a place that are read
_SENTENCE = regex(r"[!?;\n]|\.(?=\s|$)")
_CLAUSE = regex(r"[!?;\n,:()]|\.(?=\s|$)|\s-\s")
_HAN_ANY = regex(f"[{HAN}]")
_NOISE = frozenset(stemmer().stemWords(_LISTS["noise"].split())) | frozenset(_LISTS["zh_noise"])


def _words(key: str) -> re.Pattern[str]:
    """Return the pattern of a list of words in both languages."""
    return regex(rf"\b(?:{either(_LISTS[key]['en'])})(?![a-z])|(?:{either(_LISTS[key]['zh'])})")


_THEN = {key: _words(key) for key in ("turn", "later", "now", "hedge")}
_ZH_WITHDRAWN = regex(either(_LISTS["withdrawn"]["zh"]))
_CHOICE = regex(r"\bor\b|还是|或")
_ASKS_PAST = regex(either(_LISTS["asks_past"]))
_BRACKETS = regex(r"\([^()]*\)")
_WHOSE = regex(r"\bwhose\b|谁的|哪[位个].{0,4}的")
_RELATIVE = either(_LISTS["relations"]["en"])
_ZH_RELATIVE = either(_LISTS["relations"]["zh"])
_OF_IT = regex(
    rf"^[\"']?'s?\s+(?P<own>(?:[\w-]+\s+){{0,3}}?(?:{_RELATIVE})s?)\b|^[\"']?的(?P<zh>[{HAN}]{{0,5}}?(?:{_ZH_RELATIVE}))"
)
_OTHER_OF = regex(
    rf"\b(?P<own>(?:{_RELATIVE})s?) (?:of|to) (?:the |a |an )?[\"']?$"
    rf"|\b(?P<place>{either(_LISTS['beside']['en'])}) (?:the |a |an )?[\"']?$|(?P<zh>{either(_LISTS['beside']['zh'])})$"
)
_OTHERS = regex(
    rf"^\W*(?:although|though|while|whereas|and|but|yes)?\W*(?:his|her|their|my|our|[a-z]+'s?) (?:\w+ )?"
    rf"(?:{_RELATIVE})s?\b(?=.*\w)"
    rf"|^[^{HAN}]*[{HAN}]{{0,6}}的?(?:{_ZH_RELATIVE})(?=[{HAN}])"
)
_RELATED = regex(rf"\b(?:{_RELATIVE})s?\b|{_ZH_RELATIVE}")
_PLAIN, _GRAMMAR = _NOISE | frozenset(stemmer().stemWords(_LISTS["plain"].split())), STOP | HAN_STOP
_FEATURES = frozenset(["star", "featur", "includ"])  # what a film does to its actors
_SHORT = 16  # words of an answer of which each is looked at
_JOINT = regex(
    r"[;:()!?\n]|,(?!\d)|\.(?=\s|$)|\s-\s"
    r"|\b(?:and|but|while|although|though|whereas|then|so|because|since|who|which|that|until)\b",
    re.IGNORECASE,
)
_NOT = regex(r"(?i)\W*(?:not|never|no longer|instead|rather|unlike)\b")  # such a part names no other answer
_ZH_WHO_DOES = regex(f"^谁([{HAN}]{{1,2}})[了过]")
_SUBJECT = regex(r"\b(?:did|does|do|has|have|had|is|was|will) ([A-Z][a-z]+)")
_WHO_DOES = regex(r"^\W*who (?!(?:is|was|are|were|did|do|does|has|had|will|can|else)\b)(\w+)")


@dataclass(frozen=True, slots=True)
class _Cue:
    """A rule of `data/scope.toml`."""

    why: str
    side: Literal["before", "after"]
    here: re.Pattern[str]
    zh: re.Pattern[str]
    then: Literal["", "other", "turn", "later", "now", "hedge"]
    within: Literal["clause", "sentence"] = "sentence"
    past: bool = False
    denial: bool = False
    unsure: bool = False
    unless: re.Pattern[str] | None = None


def _by_letter(alternatives: list[str]) -> str:
    """Return the inside of a regular expression for any of some: of a word only those of its first letter are tried."""
    groups = defaultdict[str, list[str]](list)
    for text in alternatives:
        groups[text[0] if text[0].isalpha() else ""].append(text[text[0].isalpha() :])
    return "|".join(f"{letter}(?:{either(texts)})" for letter, texts in groups.items())


def _cue(en: list[str], zh: list[str], gap: int = 0, zh_gap: int = 0, **entry: Any) -> _Cue:
    here, chinese = rf"^(?:{either(en)})", rf"^(?:{either(zh)})"
    if entry["side"] == "before":
        here = rf"\b(?:{_by_letter(en)})(?![a-z])(?P<gap>.{{0,{gap}}})$"
        chinese = rf"(?:{either(zh)})(?P<gap>.{{0,{zh_gap}}})$"
    if unless := entry.pop("unless", None):
        entry["unless"] = regex(f"(?:{either(unless['en'])}|{either(unless['zh'])}).{{0,24}}$")
    return _Cue(here=regex(here), zh=regex(chinese), **entry)


_CUES = tuple(_cue(**entry) for entry in _LISTS["cues"])
_WITHDRAWN = regex(r"\b(?:" + _by_letter(_LISTS["withdrawn"]["en"]) + ")")
# One look that tells whether any cue can be there, since most places have none: in English, in Chinese.
_ANY = {
    side: (
        regex(rf"{edge}(?:{_by_letter([text for cue in cues for text in cue['en']])})"),
        regex(either([text for cue in cues for text in cue["zh"]])),
    )
    for side, edge in (("before", r"\b"), ("after", ""))
    if (cues := [cue for cue in _LISTS["cues"] if cue["side"] == side])
}
_RELATION = regex(rf"\b(?:{_by_letter([*_LISTS['relations']['en'], *_LISTS['beside']['en']])})")
_TAIL = 48  # characters before a place in which another is named by it: the sister of
_NEAR = 100  # characters within which another answer follows


class _Doubt(NamedTuple):
    why: str
    sure: bool = True


def _kind(word: str) -> int:
    return 2 if word[0].isdigit() else 1 if word[0].isupper() else 0


class _Told(NamedTuple):
    """Words and values that a question and its accepted answers say."""

    accepted: frozenset[str]
    stems: frozenset[str]
    dates: frozenset[When]
    numbers: list[Quantity]
    asked: frozenset[str]
    denies: bool
    past: bool
    asks_whose: bool
    subject: str


@lru_cache(4096)
def _told(words: tuple[TextWords, ...], question: TextWords) -> _Told:
    # Of two things that a question names, the other one is another answer.
    told = words if _CHOICE.search(question.lower) else (*words, question)
    accepted = frozenset[str]().union(*(text.places for text in words))
    asked = {stem for stem, raw in zip(question.stems, question.raw, strict=True) if raw.lower() not in STOP}
    subject = _SUBJECT.search(question.plain)
    return _Told(
        accepted,
        accepted.union(*(text.places for text in told)),
        frozenset(date for text in told for date, _, _ in text.dates),
        [number for text in told for number in text.quantities],
        frozenset(asked - accepted),
        any(text.denies for text in words),
        # What a question says in brackets, "Virgin Australia (formerly Virgin Blue)", is not what it asks.
        _ASKS_PAST.search(_BRACKETS.sub(" ", question.lower)) is not None,
        _WHOSE.search(question.lower) is not None,
        subject[1] if subject else "",
    )


class Scope:
    """Decides what an answer asserts, given its question and the accepted answers."""

    def __init__(self, answer: TextWords, accepted: tuple[TextWords, ...], question: TextWords) -> None:
        self.text, self._plain = answer.lower, answer.plain
        self.doubt: Callable[..., _Doubt | None] = cache(self._doubt)
        self._has_han = _HAN_ANY.search(self.text) is not None
        self._looked_for = {side: cues[: 1 + self._has_han] for side, cues in _ANY.items()}
        self._relates = self._has_han or _RELATION.search(self.text) is not None
        self._size = len(answer.raw) // (1 + self._has_han)  # two characters are a word
        self._told, self._question = _told(accepted, question), question.lower

    def _doubt(self, start: int, stop: int, is_other: bool = False) -> _Doubt | None:
        """Return why text[start:stop] is not asserted, with {} where it stands; None where it is.

        "not" and its like count nowhere where an accepted answer denies something itself. A doubt that is not sure
        leaves it open. `is_other` says that another answer stands there, which the accepted one may follow.
        """
        before, after = self.text[max(0, start - _BEFORE) : start], self.text[stop : stop + _AFTER]
        taken_back = is_other and any(mark.search(self.text, stop) for mark in (_WITHDRAWN, _ZH_WITHDRAWN))
        if taken_back or stop <= self._final:
            return _Doubt("takes {} back")
        if self._names_another(before, after):
            return _Doubt("names something else by {}")
        sentence, clause = (boundary.split(before)[-1] for boundary in (_SENTENCE, _CLAUSE))
        nearest = bisect_left(self._cues_at, start) - 1
        is_before = nearest >= 0 and self._cues_at[nearest] >= start - len(sentence)
        is_there = {"before": is_before, "after": any(cue.match(after) for cue in self._looked_for["after"])}
        if not any(is_there.values()):
            return None
        unsure, told = None, self._told
        for cue in _CUES:
            if (cue.past and told.past) or (cue.denial and told.denies) or (cue.unsure and self._size > _SHORT):
                continue
            if not is_there[cue.side]:
                continue
            fits = self._fits(cue, clause if cue.within == "clause" else sentence, after, start, is_other)
            if fits == "sure":
                return _Doubt(cue.why)
            unsure = unsure or (_Doubt(cue.why, False) if fits else None)
        return unsure

    def unclear(self, spans: Sequence[Any]) -> str:
        """Return why it cannot be told whether one of these places is the answer; empty where one plainly is."""
        if not spans or self._size > _SHORT:
            return ""
        whys = [self._unclear(span.start, span.stop) for span in spans]
        return whys[0] if all(whys) else ""

    def _unclear(self, start: int, stop: int) -> str:
        if doubt := self.doubt(start, stop):
            return doubt.why
        other = _OTHERS.search(_CLAUSE.split(self.text[max(0, start - _BEFORE) : start])[-1])
        if other and not any(relation in self._question for relation in _RELATED.findall(other.group())):
            return "says it of somebody else, {}"
        if (who := _ZH_WHO_DOES.search(self._question)) and re.search(rf"\w{who[1]}[了过]?$", self.text[:start]):
            return "says it of somebody else, {}"
        if self._has_han or self._told.past:
            return ""
        told = self._told
        own = TextWords(_JOINT.split(self._plain[:start])[-1] + _JOINT.split(self._plain[start:])[0])
        strange, ahead = self._strange(own), TextWords(self._plain[:start])
        # Somebody else did it: another name begins the clause, or who did it and whom it was done to changed places.
        is_other = strange[:1] == own.raw[:1] != [] and strange[0][0].isupper() and told.subject not in own.plain
        if (who := _WHO_DOES.search(self._question)) and (verb := stemmer().stemWord(who[1])) not in _FEATURES:
            at = ahead.places.get(verb, 0)
            doers = told.asked | {raw.lower() for raw in self._strange(ahead) if raw[0].isupper()}
            is_other |= "by" not in ahead.stems[at:] and not doers.isdisjoint(ahead.stems[:at])
        if is_other:
            return "says it of somebody else, {}"
        if strange and told.asked.isdisjoint(own.stems):
            # What is written like the accepted answer, as a number, a name or a common noun, is another answer.
            kind = max(map(_kind, TextWords(self._plain[start:stop]).raw), default=0)
            parts = (TextWords(part) for part in _JOINT.split(self._plain) if not _NOT.match(part))
            others = (self._strange(part) for part in parts if not told.asked.isdisjoint(part.stems))
            if any(_kind(raw) == kind for other in others for raw in other):
                return "says of another what was asked, beside {}"
        return ""

    def _asks(self, hit: re.Match[str]) -> bool:
        """Return whether the question has a word of a cue."""
        cue = hit.group()[: hit.start("gap") - hit.start()] if "gap" in hit.re.groupindex else hit.group()
        return re.search(rf"(?<![a-z]){re.escape(cue.strip())}(?![a-z])", self._question) is not None

    def _strange(self, words: TextWords) -> list[str]:
        """Return the words, new to question and accepted answers, that may change what the words beside them say."""
        return [
            raw
            for stem, raw in zip(words.stems, words.raw, strict=True)
            if stem not in self._told.stems and stem not in _PLAIN and raw.lower() not in STOP
        ]

    def adds(self, text: str) -> bool:
        """Return whether a text names something that neither question nor accepted answers do."""
        words = TextWords(text)
        pairs, known = zip(words.stems, words.raw, strict=True), self._told.stems
        return (
            any(not (stem in known or stem in _NOISE or raw.lower() in _GRAMMAR) for stem, raw in pairs)
            or any(date not in self._told.dates for date, _, _ in words.dates)
            or any(not any(equal(other, each) for other in self._told.numbers) for each in words.quantities)
        )

    def _fits(self, cue: _Cue, before: str, after: str, start: int, is_other: bool) -> Literal["", "unsure", "sure"]:
        is_before = cue.side == "before"
        text = before if is_before else after
        hit = cue.here.search(text) or (cue.zh.search(text) if self._has_han else None)
        if hit is None or (cue.unless is not None and cue.unless.search(before)):
            return ""
        # A question that denies, or speaks of a wish, is answered so: what did she not sell?
        if (cue.denial or cue.unsure) and self._asks(hit):
            return ""
        if not cue.then:
            return "sure"
        # An answer goes on in its paragraph: in the next one, text may speak to the grader.
        rest = (after if is_before else after[hit.end() :])[:_NEAR].partition("\n\n")[0]
        if cue.then == "other":
            ahead = max(0, start - len(before) + hit.start())
            sure = self.adds(rest) or self.adds(self.text[max(0, ahead - _NEAR) : ahead])
        else:
            sure = _THEN[cue.then].search(rest) is not None
        return "sure" if sure or (is_other and not cue.unsure) else "unsure" if cue.unsure else ""

    @cached_property
    def _cues_at(self) -> list[int]:
        return sorted(hit.start() for cue in self._looked_for["before"] for hit in cue.finditer(self.text))

    @cached_property
    def _final(self) -> int:
        """Place from which the answer is said to be the final one, so that what stands before it is taken back; -1."""
        marks = [*_WITHDRAWN.finditer(self.text), *(_ZH_WITHDRAWN.finditer(self.text) if self._has_han else ())]
        # A mere yes or no after "final answer" is more often for the grader than for the question.
        final = -1
        for mark in marks:
            # The rest of the line, or the next one that has anything.
            line = self.text[mark.end() : mark.end() + _AFTER].lstrip(" \n:*-").partition("\n")[0]
            if self.adds(line):
                final = max(final, mark.start())
        return final

    def _names_another(self, before: str, after: str) -> bool:
        """Return whether something else is named by what stands there: the sister of Ann, Ann's sister."""
        hits = (_OF_IT.match(after), _OTHER_OF.search(before[-_TAIL:])) if self._relates else (None, None)
        # Ann's sister is not Ann, even where the question names a sister, unless it asks whose.
        if hits[0] is not None and not self._told.asks_whose:
            return self._told.accepted.isdisjoint(TextWords(next(filter(None, hits[0].groups()))).stems)
        return any(hit is not None and self.adds(next(filter(None, hit.groups()))) for hit in hits)

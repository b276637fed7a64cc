"""Decide whether an answer asserts what stands in it, or denies it, doubts it or takes it back.

Everything goes by the words beside the place where the accepted answer stands (`data/scope.toml`), in the clause or
sentence around it, and by whether the answer offers anything else. No cue counts that needs something else while the
answer has nothing but words of the question, of the accepted answers, and of grammar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ...language import HAN, either, stemmer, word_lists
from .words import HAN_STOP, STOP, TextWords

_LISTS = word_lists(__package__, "scope")
_BEFORE, _AFTER = 100, 240  # characters beside a place that are read
_SENTENCE = re.compile(r"[!?;\n]|\.(?=\s|$)")
_CLAUSE = re.compile(r"[!?;\n,:()]|\.(?=\s|$)|\s-\s")
_HAN_ANY = re.compile(f"[{HAN}]")
_SIDE = re.compile(r"\b(?:yes|no|true|false)\b|(?:不?[会能是对行]|可以|没?有)(?=\s*(?:[.,;!]|$))")
_HAN_PAIR = re.compile(f"(?=([{HAN}]{{2}}))")
_NOISE = frozenset(stemmer().stemWords(_LISTS["noise"].split())) | frozenset(_LISTS["zh_noise"])


def _words(key: str) -> re.Pattern[str]:
    """Return the pattern of a list of words in both languages."""
    return re.compile(rf"\b(?:{either(_LISTS[key]['en'])})(?![a-z])|(?:{either(_LISTS[key]['zh'])})")


_THEN = {key: _words(key) for key in ("turn", "later", "now", "hedge")}
_WITHDRAWN = re.compile(rf"\b(?:{either(_LISTS['withdrawn']['en'])})")
_ZH_WITHDRAWN = re.compile(either(_LISTS["withdrawn"]["zh"]))
_CHOICE = re.compile(r"\bor\b|还是|或")
_ASKS_PAST = re.compile(either(_LISTS["asks_past"]))
_BRACKETS = re.compile(r"\([^()]*\)")
_WHOSE = re.compile(r"\bwhose\b|谁的|哪[位个].{0,4}的")
_RELATIVE = either(_LISTS["relations"]["en"])
_ZH_RELATIVE = either(_LISTS["relations"]["zh"])
_OF_IT = re.compile(
    rf"^[\"']?'s?\s+(?P<own>(?:[\w-]+\s+){{0,3}}?(?:{_RELATIVE})s?)\b|^[\"']?的(?P<zh>[{HAN}]{{0,5}}?(?:{_ZH_RELATIVE}))"
)
_OTHER_OF = re.compile(
    rf"\b(?P<own>(?:{_RELATIVE})s?) (?:of|to) (?:the |a |an )?[\"']?$"
    rf"|\b(?P<place>{either(_LISTS['beside']['en'])}) (?:the |a |an )?[\"']?$|(?P<zh>{either(_LISTS['beside']['zh'])})$"
)
_OTHERS = re.compile(
    rf"^\W*(?:although|though|while|whereas|and|but|yes)?\W*(?:his|her|their|my|our|[a-z]+'s?) (?:\w+ )?"
    rf"(?:{_RELATIVE})s?\b(?=.*\w)"
    rf"|^[^{HAN}]*[{HAN}]{{0,6}}的?(?:{_ZH_RELATIVE})(?=[{HAN}])"
)
_RELATED = re.compile(rf"\b(?:{_RELATIVE})s?\b|{_ZH_RELATIVE}")
_PLAIN = frozenset(stemmer().stemWords(_LISTS["plain"].split()))
_FEATURES = frozenset(["star", "featur", "includ"])  # what a film does to its actors
_SHORT, _MIDDLE = 16, 24  # words of an answer of which each is looked at, and of one in which a cue may leave it open
_JOINT = re.compile(
    r"[,;:()!?\n]|\.(?=\s|$)|\s-\s|\b(?:and|but|while|although|though|whereas|then|so|because|since|where|who|which|that|until)\b"
)
_NOT = re.compile(r"\W*(?:not|never|no longer|instead|rather|unlike)\b")  # what such a part names is no other answer
_LINKS = frozenset(["and", "but", "then", "while", "whereas", "until"])
_GOES_ON = re.compile(
    r"\W*(?:was|were|is|are|has|had|have|got|came|went|did|does|gave|lost|failed|until|would|could|might|should)\b"
)
_SUBJECT = re.compile(r"\b(?:did|does|do|has|have|had|is|was|will) ([A-Z][a-z]+)")
_WAS, _PRESENT = re.compile(r"\W*(?:was|were|had)\b"), re.compile(r"\b(?:now|currently|today|is|are|does|do)\b")
_ACTS = re.compile(r"\W*\w+ \w+(?: (?:an?|the|his|her|their|my|to|in|on|at|for|from|with|of|himself|herself))*\s*$")
_WHO_DOES = re.compile(r"^\W*who (?!is\b|was\b|are\b|were\b|did\b|do\b|does\b|has\b|had\b|will\b|can\b|else\b)(\w+)")
_DID = re.compile(r"\b(?:did|does|do) (\w+) (\w+)")


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


def _cue(en: list[str], zh: list[str], gap: int = 0, zh_gap: int = 0, **entry: Any) -> _Cue:
    here, chinese = rf"^(?:{either(en)})", rf"^(?:{either(zh)})"
    if entry["side"] == "before":
        here = rf"\b(?:{either(en)})(?![a-z])(?P<gap>.{{0,{gap}}})$"
        chinese = rf"(?:{either(zh)})(?P<gap>.{{0,{zh_gap}}})$"
    if unless := entry.pop("unless", None):
        entry["unless"] = re.compile(f"(?:{either(unless['en'])}|{either(unless['zh'])}).{{0,24}}$")
    return _Cue(here=re.compile(here), zh=re.compile(chinese), **entry)


_CUES = tuple(_cue(**entry) for entry in _LISTS["cues"])
# One look that tells whether any cue can be there, since most places have none.
_ANY = {
    side: re.compile(
        edge + f"(?:{either([text for cue in _LISTS['cues'] if cue['side'] == side for text in cue['en']])})"
    )
    for side, edge in (("before", r"\b"), ("after", ""))
}
_NEAR = 100  # characters within which another answer follows


def _kind(word: str) -> int:
    return 2 if word[0].isdigit() else 1 if word[0].isupper() else 0


class Scope:
    """Decides what an answer asserts, given its question and the accepted answers."""

    def __init__(self, answer: TextWords, accepted: Sequence[TextWords], question: TextWords) -> None:
        text = self.text = answer.lower
        self._plain, self._size = answer.plain, len(answer.raw)
        self._has_han = _HAN_ANY.search(text) is not None
        # Of two things that a question names, the other one is another answer.
        named = [] if _CHOICE.search(question.lower) else [question]
        self._accepted = frozenset[str]().union(*(words.places for words in accepted))
        told = (*accepted, *named)
        self._known = frozenset[str]().union(*(words.places for words in told))
        self._texts = "\n".join(words.squeezed for words in told) if self._has_han else ""
        self._numbers = [number for words in told for number in words.quantities]
        self._dates = {date for words in told for date, _, _ in words.dates}
        # Single Chinese characters are in other words by chance.
        owned = [
            {word for word in words.places if word.isascii()} - STOP - question.places.keys() for words in accepted
        ]
        self._own = [own for own in owned if own]
        self._is_side = any(_SIDE.fullmatch(words.bare) for words in accepted)
        self._question = question.lower
        told_words = zip(question.stems, question.raw, strict=True)
        subject = _SUBJECT.search(question.plain)
        self._subject = subject[1].lower() if subject else ""
        self._asked = {stem for stem, raw in told_words if raw.lower() not in STOP} - self._accepted
        # What a question says in brackets, "Virgin Australia (formerly Virgin Blue)", is not what it asks.
        self._past = _ASKS_PAST.search(_BRACKETS.sub(" ", question.lower)) is not None
        self._asks_whose = _WHOSE.search(question.lower) is not None

    def doubt(self, start: int, stop: int, denies: bool = False) -> str:
        """Return why text[start:stop] is not asserted, with {} where it stands, or an empty text where it is asserted.

        "not" and its like count nowhere where the accepted answer denies something itself.
        """
        before, after = self.text[max(0, start - _BEFORE) : start], self.text[stop : stop + _AFTER]
        if stop <= self._final:
            return "takes {} back"
        if self._names_another(before, after):
            return "names something else by {}"
        sentence, clause = (boundary.split(before)[-1] for boundary in (_SENTENCE, _CLAUSE))
        ahead, behind = _ANY["before"].search(sentence), _ANY["after"].match(after)
        for cue in _CUES:
            if not (self._has_han or (ahead if cue.side == "before" else behind)):
                continue
            if (cue.past and self._past) or (cue.denial and denies):
                continue
            if self._fits(cue, clause if cue.within == "clause" else sentence, after, start):
                return cue.why
        return ""

    def unclear(self, spans: Sequence[Any]) -> str:
        """Return why it cannot be told whether one of these places is the answer; empty where one plainly is."""
        if not spans or self._size > _MIDDLE:
            return ""
        whys = [self._unclear(span.start, span.stop) for span in spans]
        return whys[0] if all(whys) else ""

    def _unclear(self, start: int, stop: int) -> str:
        begin = max(0, start - _BEFORE)
        before = _SENTENCE.split(self.text[begin:start])[-1]
        after = _SENTENCE.split(self.text[stop : stop + _AFTER], maxsplit=1)[0]
        clause = _CLAUSE.split(before)[-1]
        for cue in _CUES:
            text = after if cue.side == "after" else clause if cue.within == "clause" else before
            if cue.unsure and (hit := cue.here.search(text) or cue.zh.search(text)) and not self._asks(hit):
                return cue.why
        if (other := _OTHERS.search(clause)) and not any(
            map(self._question.__contains__, _RELATED.findall(other.group()))
        ):
            return "says it of somebody else, {}"
        if self._has_han or self._size > _SHORT:
            return ""
        before, after = self.text[:start], self.text[stop:]
        if self._exchanges(before, after):
            return "has {} in another part"
        cuts = [(cut.end(), cut.group()) for cut in _JOINT.finditer(before)] or [(0, "")]
        ahead, end = before[cuts[-1][0] :], _JOINT.search(after)
        behind = after[: end.start()] if end else after
        others = [*_JOINT.split(before)[:-1], *_JOINT.split(after)[1:]]
        others = [other for other in others if not _NOT.match(other)]
        own = [*self._strange(ahead), *(self._strange(behind) if _GOES_ON.match(behind) else ())]
        names = [raw.lower() for raw in self._strange(ahead) if raw[0].isupper()]
        if (
            self._subject
            and names
            and self._subject not in TextWords(ahead).lower
            and ahead.split()[0].strip("'s") in names
        ):
            return "says it of somebody else, {}"
        asked = [not self._asked.isdisjoint(TextWords(text).places) for text in (f"{ahead} {behind}", *others)]
        # What is written like the accepted answer, as a number, a name or a common noun, is another answer.
        kind = max(map(_kind, TextWords(self._plain[start:stop]).raw), default=0)
        rivals = [any(_kind(raw) == kind for raw in self._strange(other)) for other in others]
        apart = own or cuts[-1][1] in _LINKS or _GOES_ON.match(after)
        if not asked[0] and apart and any(map(all, zip(asked[1:], rivals, strict=True))):
            return "says of another what was asked, beside {}"
        if any(rivals) and _WAS.match(after) and _PRESENT.search(self._question):
            return "says what was, {}"
        did = _DID.search(self._question)
        acts = did is not None and _ACTS.match(ahead) and stemmer().stemWord(did[2]) not in TextWords(self.text).places
        if any(not raw[0].isupper() for raw in own) and (acts or any(rivals)):
            return "says more than can be read of {}"
        return ""

    def _asks(self, hit: re.Match[str]) -> bool:
        """Return whether the question has a word of a cue."""
        cue = hit.group()[: hit.start("gap") - hit.start()] if "gap" in hit.re.groupindex else hit.group()
        stems = filter(str.isascii, TextWords(cue).stems)
        asked = rf"\b{re.escape(cue.strip())}\b" if cue.isascii() else re.escape(cue)
        return re.search(asked, self._question) is not None or not self._asked.isdisjoint(stems)

    def _strange(self, text: str) -> list[str]:
        """Return the words that neither question nor accepted answers have, and that may say anything of what stands
        beside them.
        """
        at = self.text.find(text)
        words = TextWords(self._plain[at : at + len(text)] if at >= 0 else text)
        return [
            raw
            for stem, raw in zip(words.stems, words.raw, strict=True)
            if stem not in self._known and stem not in _NOISE and stem not in _PLAIN and raw.lower() not in STOP
        ]

    def _exchanges(self, before: str, after: str) -> bool:
        """Return whether who did it and whom it was done to have changed places since the question."""
        if who := _WHO_DOES.search(self._question):
            ahead = TextWords(before).stems
            verb = stemmer().stemWord(who[1])
            at = ahead.index(verb) if verb in ahead else 0
            names = {raw.lower() for raw in self._strange(before) if raw[0].isupper()}
            doers = {*ahead[:at]} - {verb}
            return verb not in _FEATURES and "by" not in ahead[at:] and not doers.isdisjoint(self._asked | names)
        if did := _DID.search(self._question):
            name, verb = stemmer().stemWords([did[1], did[2]])
            if did[1] in STOP:
                return False
            behind = TextWords(after).stems
            return verb in behind and name in behind[behind.index(verb) :] and not TextWords(before).stems
        return False

    def offers(self, text: str) -> bool:
        """Return whether a text gives another answer, be it with words of an accepted one: "3 days" for "3 weeks"."""
        return self.adds(text) or (self._is_side and _SIDE.search(text) is not None)

    def adds(self, text: str) -> bool:
        """Return whether a text names something that neither question nor accepted answers do."""
        words = TextWords(text)
        if any(date not in self._dates for date, _, _ in words.dates):
            return True
        if any(
            stem not in self._known and stem not in _NOISE and raw.lower() not in STOP and raw not in HAN_STOP
            for stem, raw in zip(words.stems, words.raw, strict=True)
        ):
            return True
        # A Chinese character alone is hardly ever new: two that stand together may be.
        pairs = (word for word in _HAN_PAIR.findall(text) if _NOISE.isdisjoint(word) and HAN_STOP.isdisjoint(word))
        return any(word not in self._texts for word in pairs)

    def _fits(self, cue: _Cue, before: str, after: str, start: int) -> bool:
        is_before = cue.side == "before"
        text = before if is_before else after
        hit = cue.here.search(text) or (cue.zh.search(text) if self._has_han else None)
        if hit is None or (cue.unless is not None and cue.unless.search(before)):
            return False
        # A question that denies, or speaks of a wish, is answered so: what did she not sell?
        if (cue.denial or cue.unsure) and ((cue.unsure and self._size > _SHORT) or self._asks(hit)):
            return False
        if not cue.then:
            return True
        # An answer goes on in its paragraph: in the next one, text may speak to the grader.
        rest = (after if is_before else after[hit.end() :])[:_NEAR].partition("\n\n")[0]
        if is_before and _THEN["turn"].search(hit["gap"]) and self.adds(hit["gap"]):
            return False  # "formerly Rome, now Paris": what is past is Rome
        if cue.then == "other":
            ahead = max(0, start - len(before) + hit.start())
            return self.offers(rest) or (is_before and self.adds(self.text[max(0, ahead - _NEAR) : ahead]))
        turn = _THEN[cue.then].search(rest)
        return turn is not None and self.offers(rest)

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
        hits = (_OF_IT.search(after), _OTHER_OF.search(before))
        # Ann's sister is not Ann, even where the question names a sister, unless it asks whose.
        if hits[0] is not None and not self._asks_whose:
            named = next(filter(None, hits[0].groupdict().values()))
            return self.adds(named) or self._accepted.isdisjoint(TextWords(named).stems)
        return any(hit is not None and self.adds(next(filter(None, hit.groupdict().values()))) for hit in hits)

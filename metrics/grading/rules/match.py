"""Comparison of an answer with one accepted answer: which words it has, where, and what speaks against it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from . import stance
from .dates import agreement
from .gold import Gold, Unit
from .quantities import ROMAN, equal
from .stance import without_address
from .words import HAN_STOP, STOP, TITLES, TextWords, same_given_name, stemmer

_LONG = 7  # letters of a word in which one may differ
START = 150
"""Characters at the start of an answer in which a denial counts."""
_BESIDE = r"([A-Z][A-Za-z]+)\.?[ -]{0}\b|\b{0}[ -]([A-Z][A-Za-z]+)"
_QUANTITY = 40  # characters of the longest answer that is a number and its unit
_SHORT, _FEW = 8, 3  # words of a sentence, and of an accepted answer, so short that each word matters
_GLUED = 4  # letters of a word that may run into its neighbours: shorter ones are in others by chance
_ORDER = {"same": 4, "finer": 3, "coarser": 2, "other": 1}


@dataclass(slots=True)
class Match:
    """Parts of an accepted answer that an answer has."""

    share: float = 0.0
    """Share of its words, by weight."""
    fresh: float = 0.0
    """Share of its words that the question does not have already; `share` if there are none."""
    whole: bool = False
    """It is there word for word."""
    lost_number: bool = False
    """A number that belongs to it is not there."""
    rival: bool = False
    """A name of which a part is there, beside a name that is not of it: Kelli *Garner* for Kelli Giddish."""
    lost_surname: bool = False
    """The person asked for is there by given names alone."""
    lost_place: bool = False
    """A word of a Chinese text with a number, as a rule an address, is not there."""
    swapped: bool = False
    """A short sentence with another word where one of its words stands: *light* green for dark green."""
    within: bool = False
    """The answer is a part of it, and says more than the question."""


class ParsedAnswer:
    """An answer to grade, read once for all accepted answers."""

    __slots__ = ("__dict__", "said", "words")

    def __init__(self, text: str) -> None:
        self.words = TextWords(text)
        self.said = self.words.lower

    def takes_up(self, question: TextWords) -> bool:
        """Return whether it has a word of the question that is more than grammar."""
        pairs = zip(question.stems, question.raw, strict=True)
        return any(stem in self.words.places and raw.lower() not in STOP | HAN_STOP for stem, raw in pairs)

    @cached_property
    def own(self) -> str:
        """Text in lower case, without the parts that speak to a grader."""
        return without_address(self.words.plain).lower()

    @cached_property
    def refused(self) -> int:
        """Place where it says that it does not know; -1 if it does not."""
        return -1 if stance.refuses(self.said) < 0 else stance.refuses(self.own)

    @cached_property
    def denies(self) -> bool:
        """Whether it denies anything in its first START characters."""
        return stance.negates(self.own[:START])

    @property
    def is_quantity(self) -> bool:
        """Whether it is one number with its unit and nothing else."""
        if len(self.said) > _QUANTITY:
            return False
        quantities = self.words.quantities
        return len(quantities) == 1 and quantities[0].stop - quantities[0].start >= len(self.said.strip(" .!~"))

    def has(self, unit: Unit) -> bool:
        """Return whether a word is there."""
        return unit.word in (self.words.squeezed if unit.han else self.words.places)


def match(gold: Gold, answer: ParsedAnswer) -> Match:
    """Match the words of an accepted answer with an answer."""
    words, result = answer.words, Match()
    result.whole = holds(gold, answer)
    places = words.places
    numbered = lost_han = False
    weight = found_weight = fresh = fresh_found = last = 0.0
    for unit in gold.units:
        hit = 1.0 if result.whole or answer.has(unit) else _nearly(unit, gold, places)
        weight += unit.weight
        found_weight += hit * unit.weight
        last = hit
        if not unit.echoed:
            fresh += unit.weight
            fresh_found += hit * unit.weight
        numbered |= unit.numeric
        lost_han |= unit.han and unit.weight >= 1 and not hit
        if unit.numeric and not hit:
            result.lost_number = True
    result.share = found_weight / weight if weight else 0.0
    result.fresh = fresh_found / fresh if fresh else result.share
    result.lost_surname = gold.surnamed and result.share > 0 and not last
    result.lost_place = numbered and lost_han
    result.swapped = gold.form == "phrase" and 0 < result.fresh < 1 and _is_swapped(gold, words)
    result.rival = gold.form == "name" and not result.whole and 0 < result.fresh < 1 and _has_rival(gold, words)
    result.within = len(words.squeezed) > 1 and words.squeezed in gold.text.squeezed and _adds(gold, words)
    return result


def _has_rival(gold: Gold, words: TextWords) -> bool:
    """Return whether a word of the name stands beside a capitalised one that neither name nor question has."""
    mine = {unit.word for unit in gold.units}
    there = {raw for raw, stem in zip(words.raw, words.stems, strict=True) if stem in mine and raw[0].isalpha()}
    for word in there:
        for rival in re.finditer(_BESIDE.format(re.escape(word)), words.plain):
            other = rival.group(1) or rival.group(2)
            low = other.lower()
            if low in STOP or low in TITLES:
                continue
            stem = stemmer()([low])[0]
            if stem not in mine and stem not in gold.asked.places:
                return True
    return False


def _is_swapped(gold: Gold, words: TextWords) -> bool:
    """Return whether a short sentence replaces a word of a short accepted answer: *light* green for dark green."""
    if len(gold.units) > _FEW:
        return False
    short = [part for part in map(TextWords, words.sentences) if len(part.stems) <= _SHORT]
    return any(_swaps(gold, part) for part in short)


def _swaps(gold: Gold, words: TextWords) -> bool:
    wanted, stems = gold.text, words.stems
    for at, (lost, kept) in enumerate(pairwise(wanted.stems)):
        if lost in words.places or kept not in words.places or not _tells(wanted, at) or not _tells(wanted, at + 1):
            continue
        before = words.places[kept] - 1
        if before >= 0 and _tells(words, before) and stems[before] not in wanted.places:
            return stems[before] not in gold.asked.places
    return False


def _tells(words: TextWords, at: int) -> bool:
    return words.raw[at].isalpha() and words.raw[at].isascii() and words.raw[at].lower() not in STOP


def _adds(gold: Gold, words: TextWords) -> bool:
    return any(stem not in gold.asked.places for stem in words.stems)


def holds(gold: Gold, answer: ParsedAnswer) -> bool:
    """Return whether the accepted answer stands in the answer word for word, but for case, spaces and marks.

    Texts from pages lose spaces ("isMalina Weissmanand"), so it may run into the word after it, and a phrase also into
    the one before. Numbers are wholes.
    """
    text, words = gold.text, answer.words
    if not text.squeezed:
        return False
    if _in_order(text.stems, words):
        return True
    ends = text.raw[-1]
    if len(text.squeezed) < _GLUED or text.raw[0][0].isdigit() or ends[-1].isdigit() or ends in ROMAN:
        return False
    at = words.squeezed.find(text.squeezed) if text.squeezed.isascii() else -1
    return at >= 0 and (gold.form != "name" or at in accumulate(map(len, words.raw), initial=0))


def _in_order(stems: list[str], words: TextWords) -> bool:
    first = words.places.get(stems[0]) if stems else None
    if first is None:
        return False
    size, there = len(stems), words.stems
    at = first
    try:
        while True:
            if there[at : at + size] == stems:
                return True
            at = there.index(stems[0], at + 1)
    except ValueError:
        return False


def _nearly(unit: Unit, gold: Gold, places: dict[str, int]) -> float:
    """Return how well a word is there in another form: an initial, a familiar name, one letter changed."""
    word = unit.word
    if unit.han or not word.isalpha():
        return 0.0
    if gold.form == "name":
        if len(word) == 1:
            return 0.7 * any(name[0] == word for name in places)
        if any(name in places for name in same_given_name(word)):
            return 1.0
        if word[0] in places and len(gold.units) > 1:
            return 0.5
    return 0.8 * any(one_edit(word, name) for name in places) if len(word) >= _LONG else 0.0


def date_order(gold: Gold, answer: ParsedAnswer) -> int:
    """Return how the best date of the answer agrees: 4 the same, 3 finer, 2 coarser, 1 another, 0 none.

    Of several accepted dates the worst counts: all must be there.
    """
    given = answer.words.dates
    if not given:
        return 0
    return min(max(_ORDER[agreement(when, date)] for date, _, _ in given) for when in gold.whens)


def number_order(gold: Gold, answer: ParsedAnswer) -> int:
    """Return 2 if the numbers are there, 1 if there are only others, 0 if there is none."""
    given = [quantity for quantity in answer.words.quantities if gold.counts_times or not quantity.times]
    if not given:
        return 0
    return 2 if all(any(equal(quantity, other) for other in given) for quantity in gold.numbers) else 1


def denied(gold: Gold, answer: ParsedAnswer) -> bool:
    """Return whether the accepted answer is there, and is denied or past wherever it stands."""
    wanted, sentence, at, seen = gold.text.lower.strip(" ."), answer.said, 0, False
    while wanted and (at := sentence.find(wanted, at)) >= 0:
        stop = at + len(wanted)
        if not (stance.denied(sentence, at, stop) or stance.superseded(sentence, at, stop)):
            return False
        seen, at = True, at + len(wanted)
    return seen


def one_edit(one: str, other: str) -> bool:
    """Return whether two words differ by one letter added, dropped or exchanged, after an equal first one."""
    longest, shortest = max(len(one), len(other)), min(len(one), len(other))
    if longest - shortest > 1 or one[0] != other[0]:
        return False
    before = 0
    while before < shortest and one[before] == other[before]:
        before += 1
    after = 0
    while after < shortest - before and one[-1 - after] == other[-1 - after]:
        after += 1
    return before + after >= longest - 1

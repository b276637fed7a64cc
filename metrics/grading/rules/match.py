"""Read an accepted answer (its form, and the words that an answer must have), and compare an answer with it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from ...language import HAN, cutter
from . import stance
from .dates import DAY, MONTH, SEASON, YEAR, When, agreement, less_exact
from .quantities import ROMAN, Quantity, equal
from .scope import Scope
from .stance import without_address
from .words import FILLERS, HAN_STOP, PARTICLES, STOP, TITLES, TextWords, clean, same_given_name, stemmer

Form = Literal["date", "number", "code", "unknown", "yes", "no", "list", "name", "phrase"]

_HAN_FILLERS = re.compile("[大约左右约在于从到至是的初底中旬上半下年月日号前后将近超过多个第共有]")
_LETTERS = re.compile(rf"[a-z]+|[{HAN}]")
_HAN_RUN = re.compile(f"[{HAN}]+")
_CODE = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z_#-])[\w#.:/@-]{4,}$|(?=\S*_)\w+$|\S+@\S+$|[\w-]+(?:\.[\w-]+){2,}$|\d{5,}$")
_ITEMS = re.compile(
    r"\s*(?:;|,\s*(?:and|or)\s|,|\s&\s|\sand\s|、|，|；|以及|\n)\s*"
    rf"|(?<=[{HAN}])(?:和|与)(?=[{HAN}])"
)
_PAIR = re.compile(r"\s+and\s+|\s+&\s+|(?<=\S)(?:以及|和|与|、)(?=\S)")
_PRONOUN = re.compile(
    r"\b(?:he|she|it|they|them|his|her|their|its|i|we|you|because|since|that|which|was|were|is|are)\b|因为|他|她|它|是"
)
"""Pattern of the words that make a text a sentence and not a list."""
_LONGER_NAME = 4  # characters that another Chinese name may have more
_WHO = re.compile(r"谁|哪位|哪个人|什么人")
_HAN_ONE = re.compile(f"[{HAN}]")
# Words of an item; of a Chinese one, twice as many characters.
_LONGEST_ITEM = 4
_SEVERAL = re.compile(
    r"\b(?:what|which) (?:\w+ ){0,3}(?:are|were|do|did|have|has)\b|哪些|哪几|\bwho (?:are|were)\b"
    r"|\b(?:name|list|two|three|four|five|all|both|kinds?|types?|items|things|activities|places|names|books)\b"
)
_HOW_MANY = re.compile(
    r"\b(?:name|list|give|mention|state|tell me|any|at least|which|what) (?:the )?(one|two|three|four|five|[2-9])\b"
    r"|(?:列举|说出|举出|任意|至少)([一两三四五2-9])"
)
_AMOUNT = re.compile(
    r"\bhow (?:many|much|long|old|far|tall|big|large|often|high|fast|deep|wide|heavy|late|early)\b|\bnumber\b|\bpercent"
    r"|\brate\b|\bprice\b|\bcost\b|\bpopulation\b|\btotal\b|\baverage\b|多少|几|多[长大高远久重深快]"
)
_TIMES = re.compile(r"\bhow (?:many times|often)\b|几次|多少次")
_DAY = re.compile(
    r"\b(?:what|which|exact) (?:day|date)\b|\bday (?:is|was|did)\b|哪一?天|几月几|几号|哪日|什么日期|具体日期"
)
_ASKED = (
    (re.compile(r"\b(?:what|which) (?:\w+ )?year\b|哪一?年(?!.*(?:月|日|号|天))|何年|年份"), YEAR),
    (re.compile(r"\b(?:what|which) season\b|哪个?季"), SEASON),
    (re.compile(r"\b(?:what|which) month\b|哪一?个?月(?!.*[日号天])|几月(?!.*[日号天几])"), MONTH),
)
"""Patterns of the questions that are answered by less than a day, with how exact an answer is enough."""
# A single character is a surname, a suffix (路, 市) or a word of grammar; else half a word a character.
_HAN_WEIGHT = {1: 0.25}
# What is left where JSON was cut from.
_CLOSING = ' \n"}]'
_SHORT_ANSWER = 12
_PROSE = 40  # characters from which an accepted answer of several sentences begins with what was asked for
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "一": 1, "两": 2, "三": 3, "四": 4, "五": 5}
_PERSON = re.compile(
    r"\b(?:who|whom|whose|who's)\b|\bwhich (?:actor|actress|singer|person|player|author|president)|谁|哪位|什么人"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A word to look for, its weight, and whether the question has it already."""

    word: str
    weight: float
    echoed: bool
    han: bool = False

    numeric: bool = False
    """Whether it is written in digits: found whole or not at all."""


@dataclass(frozen=True, slots=True)
class Gold:
    """An accepted answer beside its question."""

    text: TextWords
    asked: TextWords
    form: Form
    units: tuple[Unit, ...]
    whens: tuple[When, ...] = ()
    numbers: tuple[Quantity, ...] = ()
    items: tuple[Gold, ...] = ()
    needed: int = 0
    """Number of items of a list that are enough."""
    surnamed: bool = False
    """Whether it is the name of a person who is asked for, given names first: the last word says most."""
    polarity: stance.Polarity | None = None
    exact_day: bool = False
    """Whether the question asks for a day, so that a month or a year is not enough."""
    exact_dates: bool = False
    """Whether a date less exact than this one is wrong."""
    lead: Gold | None = None
    """Its first sentence, where it is prose of several: what follows explains."""
    enough: int = DAY
    """How exact a date has to be (`dates.exactness`): less where the question asks for a year or a month."""
    counts_times: bool = False
    """Whether the question asks how many times, so that "twice" is a number."""
    denies: bool = False
    """Whether the accepted answer denies something."""
    asks_denial: bool = False
    """Whether the question denies something."""


@lru_cache(8192)
def read_question(text: str) -> TextWords:
    """Read a question. Cached, since many answers belong to one."""
    return TextWords(without_address(clean(text)))


@lru_cache(16384)
def read_gold(text: str, question: str, exact_dates: bool = False) -> Gold:
    """Read an accepted answer. Cached for the same reason."""
    return _read(text, question, exact_dates, may_be_list=True)


def _read(text: str, question: str, exact_dates: bool, may_be_list: bool) -> Gold:
    words, question_words = TextWords(without_address(clean(text)).rstrip(_CLOSING)), read_question(question)
    whens = tuple(when for when, _, _ in words.dates)
    numbers = tuple(
        quantity for quantity in words.quantities if not quantity.times or _TIMES.search(question_words.lower)
    )
    side = _side(words) if stance.asks_yes_or_no(question_words.lower) else None
    if side is None and words.squeezed in ("yes", "no", "true", "false", "是", "否", "对", "不是", "不对", "是的"):
        side = stance.polarity(words.lower)
    gold = partial(
        Gold,
        text=words,
        asked=question_words,
        units=_units(words, question_words),
        whens=whens,
        numbers=numbers,
        exact_day=_DAY.search(question_words.lower) is not None,
        exact_dates=exact_dates,
        enough=next((enough for asked, enough in _ASKED if asked.search(question_words.lower)), DAY),
        counts_times=_TIMES.search(question_words.lower) is not None,
        denies=stance.negates(words.lower),
        asks_denial=stance.negates(question_words.lower),
    )
    if side is not None:
        return gold(form=side, polarity=side)
    if stance.refuses(words.lower) >= 0:
        return gold(form="unknown")
    if whens and not _other_words(words.lower, [(start, stop) for _, start, stop in words.dates]):
        return gold(form="date")
    others = _other_words(words.lower, [(number.start, number.stop) for number in numbers]) if numbers else []
    countable = numbers and not numbers[0].ordinal and (may_be_list or not others)
    if countable and _is_number(words, others, question_words):
        return gold(form="number")
    if _is_code(words):
        return gold(form="code")
    if may_be_list and (items := _items(words, question_words)):
        parts = tuple(_read(item, question, exact_dates, may_be_list=False) for item in items)
        asks = _HOW_MANY.search(question_words.lower)
        needed = len(parts)
        if asks:
            number = asks[1] or asks[2]
            needed = min(needed, _COUNTS.get(number) or int(number))
        return gold(form="list", items=parts, needed=needed)
    if not _is_name(words):
        sentences = words.sentences if len(words.plain) > _PROSE else []
        lead = _read(sentences[0], question, exact_dates, may_be_list) if len(sentences) > 1 else None
        return gold(form="phrase", lead=lead)
    return gold(form="name", surnamed=_is_surnamed(words, question_words))


def _side(words: TextWords) -> stance.Polarity | None:
    """Return yes or no for an accepted answer to a yes-no question: short ones that deny nothing say yes."""
    first = words.sentences[0].lower() if words.sentences else words.lower
    return stance.leaning(first) or ("yes" if len(words.stems) <= _SHORT_ANSWER else None)


def _units(words: TextWords, question: TextWords) -> tuple[Unit, ...]:
    """Return the words that count. Stop words count only where there is nothing else."""
    pairs = [(stem, raw.lower()) for stem, raw in zip(words.stems, words.raw, strict=True)]
    latin = [(stem, low) for stem, low in pairs if not _HAN_RUN.match(low)]
    content = [stem for stem, low in latin if low not in STOP]
    digits = {stem for stem, raw in zip(words.stems, words.raw, strict=True) if raw[0].isdigit() or raw in ROMAN}
    han = [word for run in _HAN_RUN.findall(words.plain) for word in cutter()(run) if word not in HAN_STOP]
    if not content and not han:
        content = [stem for stem, _ in latin] or [low for _, low in pairs]
    units = [Unit(stem, 1.0, stem in question.places, numeric=stem in digits) for stem in dict.fromkeys(content)]
    units += [
        Unit(word, _HAN_WEIGHT.get(len(word), 0.5 * len(word)), word in question.squeezed, han=True)
        for word in dict.fromkeys(han)
    ]
    return tuple(units)


def _other_words(lower: str, spans: list[tuple[int, int]]) -> list[str]:
    """Return the words outside of these spans that say something."""
    # From the last one on, so that the places of those before it stay right.
    for start, stop in sorted(spans, reverse=True):
        lower = f"{lower[:start]} {lower[stop:]}"
    rest = _LETTERS.findall(_HAN_FILLERS.sub(" ", lower))
    return [word for word in rest if word not in FILLERS and word not in STOP]


def _is_number(words: TextWords, others: list[str], question: TextWords) -> bool:
    """Return whether the answer has little beside its numbers but what is counted, and no name."""
    most = 1 if _AMOUNT.search(question.lower) is None else 2
    if len(others) > (most if words.lower.isascii() else most + 1) or _is_code(words):
        return False
    if not words.lower.isascii() and _WHO.search(question.lower):  # a numeral in a Chinese name: 贺一鸣
        return False
    return not any(raw[0].isupper() and raw.lower() in others for raw in words.raw)


def _is_code(words: TextWords) -> bool:
    return _CODE.match(words.plain.strip(" .\"'`")) is not None


def _items(words: TextWords, question: TextWords) -> list[str]:
    """Return the items if the answer is a list: three or more, or two if it says "and" or several are asked for.

    Items are short: a text with longer parts is prose, whose commas and conjunctions separate no items.
    """
    text = words.plain.strip().rstrip(". ")
    if len(text) > 300 or ". " in text:
        return []
    parts = [part for item in _ITEMS.split(text) if (part := item.strip(" .\"'"))]
    if len(parts) < 2 or not all(re.search(r"\w", part) for part in parts):
        return []
    if any(len(part.split()) > _LONGEST_ITEM or len(_HAN_ONE.findall(part)) > 2 * _LONGEST_ITEM for part in parts):
        return []
    if _PRONOUN.search(text.lower()):
        return []
    return parts if len(parts) > 2 or _PAIR.search(text) or _SEVERAL.search(question.lower) else []


def _is_surnamed(words: TextWords, question: TextWords) -> bool:
    """Return whether a person is asked for and the name ends with a surname, as far as can be seen."""
    low = [raw.lower() for raw in words.raw]
    ends = "," not in words.plain and "of" not in low and low[-1] not in PARTICLES and words.raw[-1] not in ROMAN
    return ends and len(low) > 1 and _PERSON.search(question.lower) is not None


def _is_name(words: TextWords) -> bool:
    raw = words.raw
    return (
        bool(raw)
        and len(raw) <= 8
        and all(word[0].isupper() or word.lower() in PARTICLES or word[0].isdigit() for word in raw)
    )


_LONG = 7  # letters of a word in which one may differ: then "Cordelia" is "Cornelia" as well
START = 150
"""Characters at the start of an answer in which a denial counts."""
_SPELT = 5  # letters of a word that may be misspelt in a name of which all else is there
_BESIDE = r"([A-Z][A-Za-z]+)\.?[ -]{0}\b|\b{0}[ -]([A-Z][A-Za-z]+)"
_QUANTITY = 40  # characters of the longest answer that is a number and its unit
_SHORT, _FEW = 8, 3  # words of a sentence, and of an accepted answer, so short that each word matters
_GLUED = 4  # letters of a word that may run into its neighbours: shorter ones are in others by chance
_ORDER = {"same": 4, "finer": 3, "about": 3, "coarser": 2, "other": 1}
_EDGES = " .\"'"
_SAID_WORD = re.compile(rf"[{HAN}]|[^\W_{HAN}]+(?:[.,:]\d+)*")


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


class GoldSpan(NamedTuple):
    """A span of an answer where an accepted one stands, in lower case."""

    start: int
    stop: int
    whole: bool
    """It is the whole accepted answer, word for word."""


class ParsedAnswer:
    """An answer to grade, read once for all accepted answers."""

    __slots__ = ("__dict__", "golds", "said", "words")

    def __init__(self, text: str, golds: tuple[Gold, ...] = ()) -> None:
        self.words = TextWords(text)
        self.said = self.words.lower
        self.golds = golds

    @cached_property
    def scope(self) -> Scope:
        """Decides what of the answer is asserted, given the question and all accepted answers."""
        return Scope(self.said, [gold.text for gold in self.golds], self.golds[0].asked)

    def without(self, spans: Iterable[GoldSpan]) -> ParsedAnswer:
        """Return the answer without some spans of it."""
        text = list(self.words.plain)
        for span in spans:
            text[span.start : span.stop] = " " * (span.stop - span.start)
        return ParsedAnswer("".join(text), self.golds)

    def takes_up(self, question: TextWords) -> bool:
        """Return whether it has a word of the question that is more than grammar."""
        pairs = zip(question.stems, question.raw, strict=True)
        return any(stem in self.words.places and raw.lower() not in STOP | HAN_STOP for stem, raw in pairs)

    @cached_property
    def own(self) -> str:
        """Text in lower case, without the parts that speak to a grader."""
        # For yes, no and "not known", words that an attack has too. Cutting such parts out of every answer cost half of
        # the speed and 0.1 points of accuracy (decision 23).
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
    hits = [1.0 if result.whole or answer.has(unit) else _nearly(unit, gold, places) for unit in gold.units]
    # Exactly one word is missing beside others that are there: only then may it be misspelt.
    if gold.form == "name" and hits.count(1.0) == len(hits) - 1 > 0:
        at = next(at for at, hit in enumerate(hits) if hit < 1)
        hits[at] = max(hits[at], _misspelt(gold.units[at], places))
    for unit, hit in zip(gold.units, hits, strict=True):
        weight += unit.weight
        found_weight += hit * unit.weight
        # After the loop, that of the last word: of a name that is the surname.
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
    result.rival |= not result.whole and _has_chinese_rival(gold, words)
    result.within = len(words.squeezed) > 1 and words.squeezed in gold.text.squeezed and _adds(gold, words)
    return result


def _has_rival(gold: Gold, words: TextWords) -> bool:
    """Return whether a word of the name stands beside a capitalised one that neither name nor question has."""
    mine = {unit.word for unit in gold.units}
    names = {raw for raw, stem in zip(words.raw, words.stems, strict=True) if stem in mine and raw[0].isalpha()}
    for word in names:
        for rival in re.finditer(_BESIDE.format(re.escape(word)), words.plain):
            other = rival.group(1) or rival.group(2)
            low = other.lower()
            if low in STOP or low in TITLES:
                continue
            stem = stemmer()([low])[0]
            if stem not in mine and stem not in gold.asked.places:
                return True
    return False


def _has_chinese_rival(gold: Gold, words: TextWords) -> bool:
    """Return whether a short answer goes on otherwise after the first of two words: 蓝鲸8号公馆 for 蓝鲸客栈."""
    accepted, said = gold.text.squeezed, words.squeezed
    if len(gold.units) != 2 or not all(unit.han for unit in gold.units) or len(said) > len(accepted) + _LONGER_NAME:
        return False
    head, tail = (unit.word for unit in gold.units)
    return accepted == head + tail and said.startswith(head) and said != head and tail not in said


def _is_swapped(gold: Gold, words: TextWords) -> bool:
    """Return whether a short sentence replaces a word of a short accepted answer: *light* green for dark green."""
    if len(gold.units) > _FEW:
        return False
    short = [part for part in map(TextWords, words.sentences) if len(part.stems) <= _SHORT]
    return any(_swaps(gold, part) for part in short)


def _swaps(gold: Gold, words: TextWords) -> bool:
    accepted, stems = gold.text, words.stems
    for at, (first, second) in enumerate(pairwise(accepted.stems)):
        if (
            first in words.places
            or second not in words.places
            or not (_tells(accepted, at) and _tells(accepted, at + 1))
        ):
            continue
        # "light green" for "dark green": green is there and dark is not. What stands before green in the answer, light,
        # is another word, and none of the question's: so it replaces dark.
        before = words.places[second] - 1
        if before >= 0 and _tells(words, before) and stems[before] not in accepted.places:
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
    # Without spaces, the sums of the words' lengths are the places where words begin: a name has to begin at one.
    return at >= 0 and (gold.form != "name" or at in accumulate(map(len, words.raw), initial=0))


def _in_order(stems: list[str], words: TextWords) -> bool:
    first = words.places.get(stems[0]) if stems else None
    if first is None:
        return False
    # `places` knows the first place of a word alone; later ones are looked for, until `index` finds none and raises.
    size, at = len(stems), first
    try:
        while True:
            if words.stems[at : at + size] == stems:
                return True
            at = words.stems.index(stems[0], at + 1)
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
    if len(word) < _LONG:
        return 0.0
    return 0.8 * any(one_edit(word, name) for name in places if name[:1] == word[0])


def _misspelt(unit: Unit, places: dict[str, int]) -> float:
    """Return how well the one word of a name that is missing is there with a letter too many or too few, or two of them
    exchanged. Another letter is another name: Miller is not Muller.
    """
    word = unit.word
    if unit.han or unit.numeric or len(word) < _SPELT:
        return 0.0
    return 0.8 * any((len(name) != len(word) and one_edit(word, name)) or _exchanged(word, name) for name in places)


def _exchanged(one: str, other: str) -> bool:
    """Return whether two words differ by two letters that have changed places: Cyndi, Cindy."""
    if len(one) != len(other) or one[0] != other[0]:
        return False
    apart = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    return len(apart) == 2 and apart[0] == apart[1][::-1]


def date_order(gold: Gold, answer: ParsedAnswer) -> int:
    """Return how the best date of the answer agrees: 4 the same, 3 finer, 2 coarser, 1 another, 0 none.

    Of several accepted dates the worst counts: all must be there.
    """
    dates = answer.words.dates
    if not dates:
        return 0
    return min(max(_ORDER[agreement(when, date)] for date, _, _ in dates) for when in gold.whens)


def number_order(gold: Gold, answer: ParsedAnswer) -> int:
    """Return 2 if the numbers are there, 1 if there are only others, 0 if there is none."""
    quantities = [quantity for quantity in answer.words.quantities if gold.counts_times or not quantity.times]
    if not quantities:
        return 0
    return 2 if all(any(equal(quantity, other) for other in quantities) for quantity in gold.numbers) else 1


def lacks_exactness(gold: Gold, answer: ParsedAnswer) -> bool:
    """Return whether every fitting date of the answer is less exact than one of the accepted ones."""
    dates = [date for date, _, _ in answer.words.dates]
    return any(
        all(less_exact(when, date, gold.enough) for date in dates if _ORDER[agreement(when, date)] > 1)
        for when in gold.whens
    )


def whole_places(gold: Gold, answer: ParsedAnswer) -> list[GoldSpan]:
    """Return the spans of `answer.said` where the accepted answer stands word for word, as whole words."""
    accepted, said, at = gold.text.lower.strip(_EDGES), answer.said, 0
    spans = []
    while accepted and (at := said.find(accepted, at)) >= 0:
        stop = at + len(accepted)
        if not (_runs_on(said[max(0, at - 1) : at + 1]) or _runs_on(said[stop - 1 : stop + 1])):
            spans.append(GoldSpan(at, stop, True))
        at = stop
    return spans


def _runs_on(pair: str) -> bool:
    """Return whether two characters belong to one word."""
    return len(pair) == 2 and pair.isascii() and pair.isalnum()


def places(gold: Gold, answer: ParsedAnswer) -> list[GoldSpan]:
    """Return the spans of `answer.said` where the accepted answer stands, or words of it if it does nowhere.

    A text that was found only by other spellings has none.
    """
    said, whole = answer.said, whole_places(gold, answer)
    if gold.form == "date":
        values = [
            (start, stop)
            for date, start, stop in answer.words.dates
            if any(_ORDER[agreement(when, date)] > 1 for when in gold.whens)
        ]
    elif gold.form == "number":
        numbers = answer.words.quantities
        values = [(each.start, each.stop) for each in numbers if any(equal(other, each) for other in gold.numbers)]
    else:
        values = []
    if whole or values:
        begun = sorted(whole)
        # reach[i] is how far the first i whole spans extend. With spans 3 to 8 and 10 to 15 a value at 4 to 6 is within
        # one (reach 8), and one at 9 to 12 is not.
        starts, reach = [span[0] for span in begun], list(accumulate((span[1] for span in begun), max, initial=-1))
        outside = [(start, stop) for start, stop in values if stop > reach[bisect_right(starts, start)]]
        return sorted([*whole, *(GoldSpan(*span, False) for span in outside)])
    if gold.form in ("list", "yes", "no"):
        return []
    fresh = [unit for unit in gold.units if not unit.echoed] or list(gold.units)
    words = list(_SAID_WORD.finditer(said))
    stems = stemmer()([word.group() for word in words])
    mine = {unit.word for unit in fresh if not unit.han}
    spans = [word.span() for word, stem in zip(words, stems, strict=True) if stem in mine]
    for unit in fresh:
        spans += [match.span() for match in re.finditer(re.escape(unit.word), said)] if unit.han else []
    return [GoldSpan(*span, False) for span in sorted(spans)]


def one_edit(one: str, other: str) -> bool:
    """Return whether two words differ by one letter added, dropped or exchanged, after an equal first one."""
    longest, shortest = max(len(one), len(other)), min(len(one), len(other))
    if longest - shortest > 1 or one[0] != other[0]:
        return False
    before = 0
    while before < shortest and one[before] == other[before]:
        before += 1
    after = 0
    # From the end, but not back into what is equal from the start. Cornelia, Cordelia: 3 + 4 letters of 8, one apart.
    while after < shortest - before and one[-1 - after] == other[-1 - after]:
        after += 1
    return before + after >= longest - 1

"""Read an accepted answer (its form, and the words that an answer must have), and compare an answer with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from typing import Literal, NamedTuple

from ...language import HAN, cut, either, regex, stemmer, word_lists
from . import stance
from .quantities import ONES, ROMAN, Quantity, When, agreement, chinese, equal
from .scope import Scope
from .words import APART, FILLERS, HAN_STOP, PARTICLES, STOP, TITLES, TextWords, clean, given_names

Form = Literal["date", "number", "code", "unknown", "yes", "no", "list", "name", "phrase"]

_CUES = {name: regex(either(cues)) for name, cues in word_lists(__package__, "match").items()}
_HAN_FILLERS = regex("[大约左右约在于从到至是的初底中旬上半下年月日号前后将近超过多个第共有]")
_LETTERS = regex(rf"[a-z]+|[{HAN}]")
_HAN_RUN = regex(f"[{HAN}]+")
_HAN_ONE = regex(f"[{HAN}]")
_CODE = regex(
    r"(?!\d+(?:st|nd|rd|th|s)$|-[\d.,]+$)(?=\S*\d)(?=\S*[A-Za-z_#-])[\w#.:/@-]{4,}$|(?=\S*_)\w+$|\S[^\s@]*@\S+$"
    r"|0\d+$|\d{5,}$|[\w-]+(?:\.[\w-]+){2,}$|(?=.*[a-z])[\w/-]{2,}\.[a-z][a-z0-9]{0,5}$|-{1,2}[A-Za-z][\w-]*$"
    r"|#\w+$|\.[A-Za-z][\w-]*$|[A-Za-z]\d{1,3}$|\w(?:\+\+|#)$|[A-Z]{1,2}[+-]?$|\w+(?:\+\w+)+$|[a-z]+[A-Z]\w*$"
    r"|(?:~|\.{1,2})?/\w[\w./-]*$|(?:[\w.-]+/){2,}[\w.-]*$|\+?\d[\d ()./-]{6,}$"
)
_NUMERIC = regex(r"v?\d[\d.]*$")
_PHONE = regex(r"\+?\d[\d ()./-]{6,}$")
_SUM = regex(r"=\s*$|\b(?:total|altogether|sum|in all|combined|so|hence|therefore|makes?)\b|[总共]")
_LINE_ITEM = regex(r"^\s{0,99}(?:[-*•]|\d{1,2}[.)])\s+", re.MULTILINE)
_ITEMS = regex(
    r"\s{0,99}(?:;|,\s*(?:and|or)\s|,|\s&\s|\sand\s|、|，|；|以及|\n)\s*"
    rf"|(?<=[{HAN}])(?:和|与)(?=[{HAN}])"
)
_PAIR = regex(r"\s{1,99}(?:and|&)\s+|(?<=\S)(?:以及|和|与|、)(?=\S)")
_BARE_SIDES = frozenset(["yes", "no", "true", "false", "是", "否", "对", "不是", "不对", "是的"])
# What makes another name of the one behind or before it: docker-compose, West Virginia, React Native.
_BEFORE = r"(?<!\w-)" + "".join(rf"(?<!\b{word} )" for word in word_lists(__package__, "words")["before_names"])
_AFTER = rf"-\w| (?:{either(word_lists(__package__, 'words')['after_names'])})\b"
_COMPOUND = regex(rf"-|\b(?:{either(word_lists(__package__, 'words')['before_names'])}) |{_AFTER}")
_LONGER_NAME = 4  # characters that another Chinese name may have more
_LONGEST_ITEM = 4  # words of an item; of a Chinese one, twice as many characters
_CLOSING = ' \n"}]'  # what is left where JSON was cut from
_SHORT_ANSWER = 12
_FEW_WORDS = 8  # words of an accepted answer that may say what it was that contradicts


class QuestionWords(TextWords):
    """A question read for comparison."""

    @cached_property
    def asks(self) -> frozenset[str]:
        """Cues of `data/match.toml` that the question contains."""
        return frozenset(name for name, cue in _CUES.items() if cue.search(self.lower))


@dataclass(frozen=True, slots=True)
class Unit:
    """A word to look for, its weight, and whether the question has it already."""

    word: str
    weight: float
    echoed: bool
    han: bool = False
    numeric: bool = False  # whether it is written in digits: found whole or not at all


@dataclass(frozen=True, slots=True)
class Gold:
    """An accepted answer beside its question."""

    text: TextWords
    asked: QuestionWords
    form: Form
    units: tuple[Unit, ...]
    whens: tuple[When, ...] = ()
    numbers: tuple[Quantity, ...] = ()
    items: tuple[Gold, ...] = ()
    needed: int = 0  # number of items of a list that are enough
    surnamed: bool = False
    """Whether it is the name of a person who is asked for, given names first: the last word says most."""
    exact_dates: bool = False  # whether a date less exact than this one is wrong

    @property
    def bounded(self) -> bool:
        """Whether it is a bound or a range itself: then the numbers alone are compared."""
        dates, numbers = self.text.exact
        return len(dates) < len(self.whens) or len(numbers) < len(self.numbers)


# Cached, since many answers belong to one question, and to one accepted answer.
@lru_cache(8192)
def _read_question(text: str) -> QuestionWords:
    return QuestionWords(stance.final_text(clean(text)) or text)


@lru_cache(16384)
def read_gold(text: str, question: str, exact_dates: bool = False, may_be_list: bool = True) -> Gold:
    """Read an accepted answer."""
    words, asked = TextWords((stance.final_text(clean(text)) or text).rstrip(_CLOSING)), _read_question(question)
    whens = tuple(when for when, _, _ in words.dates)
    numbers = tuple(quantity for quantity in words.quantities if not quantity.times or "times" in asked.asks)
    gold = partial(
        Gold, words, asked, units=_units(words, asked), whens=whens, numbers=numbers, exact_dates=exact_dates
    )
    side = None
    if stance.asks_yes_or_no(asked.lower):
        # Short accepted answers that deny nothing say yes.
        first = words.sentences[0].lower() if words.sentences else words.lower
        side = stance.leaning(first) or ("yes" if len(words.stems) <= _SHORT_ANSWER else None)
    if side is None and words.squeezed in _BARE_SIDES:
        side = stance.polarity(words.lower)
    if side is not None:
        return gold(form=side)
    if stance.refuses(words.lower) >= 0 or (len(words.raw) > _FEW_WORDS and stance.CONTRADICTION.search(words.lower)):
        return gold(form="unknown")
    if whens and not _other_words(words.lower, [(start, stop) for _, start, stop in words.dates]):
        return gold(form="date")
    others = _other_words(words.lower, [(number.start, number.stop) for number in numbers]) if numbers else []
    countable = bool(numbers) and not numbers[0].ordinal
    plain = words.plain.strip(" .\"'`")
    if countable and numbers[0].value == 1 and not words.lower.isascii() and "amount" not in asked.asks:
        countable = not others  # 一只猫
    is_code = bool(
        _CODE.match(plain)
        or ("verbatim" in asked.asks and _NUMERIC.match(plain))
        or ("identifier" in asked.asks and plain.isascii() and " " not in plain)
    )
    if countable and not is_code and _is_number(words, others, asked):
        return gold(form="number")
    if is_code:
        return gold(form="code")
    if may_be_list and (items := _items(words, asked)):
        parts = tuple(read_gold(item, question, exact_dates, False) for item in items)
        needed = len(parts)
        if asks := _CUES["how_many"].search(asked.lower):
            number = asks[1] or asks[2]
            needed = min(needed, ONES.get(number) or int(chinese(number)))
        return gold(form="list", items=parts, needed=needed)
    raw = words.raw
    capitals = (word[0].isupper() or word.lower() in PARTICLES or word[0].isdigit() for word in raw)
    if not (0 < len(raw) <= 8 and all(capitals)):
        return gold(form="phrase")
    # It ends with a surname, as far as can be seen.
    low = [word.lower() for word in raw]
    surnamed = len(raw) > 1 and low[-1] not in PARTICLES and "of" not in low and "," not in words.plain
    return gold(form="name", surnamed=surnamed and "person" in asked.asks)


def _units(words: TextWords, question: TextWords) -> tuple[Unit, ...]:
    """Return the words that count. Stop words count only where there is nothing else."""
    pairs = [(stem, raw.lower()) for stem, raw in zip(words.stems, words.raw, strict=True)]
    latin = [(stem, low) for stem, low in pairs if not _HAN_RUN.match(low)]
    content = [stem for stem, low in latin if low not in STOP]
    digits = {stem for stem, raw in zip(words.stems, words.raw, strict=True) if raw[0].isdigit() or raw in ROMAN}
    han = [word for run in _HAN_RUN.findall(words.plain) for word in cut(run) if word not in HAN_STOP]
    if not content and not han:
        content = [stem for stem, _ in latin] or [low for _, low in pairs]
    units = [Unit(stem, 1.0, stem in question.places, numeric=stem in digits) for stem in dict.fromkeys(content)]
    # A single character is a surname, a suffix (路, 市) or a word of grammar; else half a word a character.
    units += [
        Unit(word, 0.25 if len(word) == 1 else 0.5 * len(word), word in question.squeezed, han=True)
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


def _is_number(words: TextWords, others: list[str], question: QuestionWords) -> bool:
    """Return whether the answer has little beside its numbers but what is counted, and no name."""
    chinese = not words.lower.isascii()
    # A numeral in a Chinese name: 贺一鸣.
    if len(others) > 1 + ("amount" in question.asks) + chinese or (chinese and "who" in question.asks):
        return False
    return not any(raw[0].isupper() and raw.lower() in others for raw in words.raw)


def _items(words: TextWords, question: QuestionWords) -> list[str]:
    """Return the items if the answer is a list: three or more, or two if it says "and" or several are asked for.

    Items are short: a text with longer parts is prose, whose commas and conjunctions separate no items.
    """
    text = words.plain.strip().rstrip(". ")
    if len(text) > 300 or ". " in text:
        return []
    parts = [part for item in _ITEMS.split(text) if (part := item.strip(" .\"'"))]
    if len(parts) < 2 or not all(re.search(r"\w", part) for part in parts) or _CUES["sentence"].search(text.lower()):
        return []
    if any(len(part.split()) > _LONGEST_ITEM or len(_HAN_ONE.findall(part)) > 2 * _LONGEST_ITEM for part in parts):
        return []
    return parts if len(parts) > 2 or _PAIR.search(text) or "several" in question.asks else []


_BRIEF = 12  # words of an answer in which a second number is another answer, and no word has run into another
_UMLAUT = regex("([aou])e")  # Zuerich is Zürich
_LONG = 7  # letters of a word in which one may differ: then "Cordelia" is "Cornelia" as well
START = 150  # characters at the start of an answer in which a denial counts
_BESIDE = r"([A-Z][A-Za-z]+)\.?[ -]{0}\b|\b{0}[ -]([A-Z][A-Za-z]+)"
_ORDER = {"same": 4, "finer": 3, "about": 3, "coarser": 2, "other": 1}
_SAID_WORD = regex(rf"[{HAN}]|[^\W_{HAN}]+(?:[.,:]\d+)*")


class Match(NamedTuple):
    """Parts of an accepted answer that an answer has."""

    share: float  # of its words, by weight
    fresh: float  # the same of its words that the question does not have already; `share` if there are none
    whole: bool  # it is there word for word
    within: bool  # the answer is a part of it, and says more than the question
    lost_number: bool  # a number that belongs to it is not there
    rival: bool  # a part of a name, beside a name that is not of it: Kelli *Garner* for Kelli Giddish
    lacks: Literal["", "surname", "word"]
    """Kind of word that matters and is not there: the surname of the person asked for; a word of a compound."""


class GoldSpan(NamedTuple):
    """A span of an answer where an accepted one stands, in lower case."""

    start: int
    stop: int
    whole: bool  # it is the whole accepted answer, word for word


class ParsedAnswer:
    """An answer to grade, read once for all accepted answers."""

    __slots__ = ("__dict__", "golds", "said", "words")

    def __init__(self, text: str, golds: tuple[Gold, ...] = ()) -> None:
        self.words = TextWords(text)
        self.said = self.words.lower
        self.golds = golds

    @cached_property
    def scope(self) -> Scope:
        """Decides which parts of an answer are asserted, given the question and all accepted answers."""
        return Scope(self.words, tuple(gold.text for gold in self.golds), self.golds[0].asked)

    def without(self, spans: Iterable[GoldSpan]) -> ParsedAnswer:
        """Return the answer without some spans of it."""
        text = list(self.words.plain)
        for span in spans:
            text[span.start : span.stop] = " " * (span.stop - span.start)
        return ParsedAnswer("".join(text), self.golds)

    @cached_property
    def stems_at(self) -> list[tuple[str, GoldSpan]]:
        """Stem of each word of `said`, and its span."""
        words = list(_SAID_WORD.finditer(self.said))
        stems = stemmer().stemWords([word.group() for word in words])
        return [(stem, GoldSpan(*word.span(), False)) for word, stem in zip(words, stems, strict=True)]

    @cached_property
    def refused(self) -> int:
        """Place where it says that it does not know; -1 if it does not."""
        return stance.refuses(self.said)

    @cached_property
    def denies(self) -> bool:
        """Whether it denies anything in its first START characters."""
        return stance.negates(self.said[:START])

    def has(self, unit: Unit) -> bool:
        """Return whether a word is there."""
        return unit.word in (self.words.squeezed if unit.han else self.words.places)


def match(gold: Gold, answer: ParsedAnswer) -> Match:
    """Match the words of an accepted answer with an answer."""
    words, units, whole = answer.words, gold.units, _holds(gold, answer)
    hits = [1.0 if whole or answer.has(unit) else _nearly(unit, gold, words.places) for unit in units]
    pairs = list(zip(units, hits, strict=True))
    lost = [unit for unit, hit in pairs if not hit]
    share = _share(pairs, 0.0)
    fresh = _share([(unit, hit) for unit, hit in pairs if not unit.echoed], share)
    lacks: Literal["", "surname", "word"] = ""
    # The last word of a name is the surname.
    if gold.surnamed and share > 0 and not hits[-1]:
        lacks = "surname"
    elif any(unit.numeric for unit in units) and any(unit.han and unit.weight >= 1 for unit in lost):
        lacks = "word"  # another street with the same number
    elif _has_chinese_rival(gold, words) or _has_another_word(gold, words):
        lacks = "word"
    said, accepted = words.squeezed, gold.text.squeezed
    counted = words.quantities if gold.numbers and not said.isascii() else []
    other_number = bool(counted) and not any(equal(number, other) for number in gold.numbers for other in counted)
    is_part = gold.form == "name" and 0 < fresh < 1
    rival = not whole and is_part and _has_rival(gold, words)
    within = len(said) > 1 and said in accepted and any(stem not in gold.asked.places for stem in words.stems)
    return Match(share, fresh, whole, within, other_number or any(unit.numeric for unit in lost), rival, lacks)


def _share(pairs: Sequence[tuple[Unit, float]], otherwise: float) -> float:
    weight = sum(unit.weight for unit, _ in pairs)
    return sum(unit.weight * hit for unit, hit in pairs) / weight if weight else otherwise


def _has_rival(gold: Gold, words: TextWords) -> bool:
    """Return whether a word of the name stands beside a capitalised one that neither name nor question has."""
    mine = {unit.word for unit in gold.units}
    names = {raw for raw, stem in zip(words.raw, words.stems, strict=True) if stem in mine and raw[0].isalpha()}
    for word in names:
        for rival in re.finditer(_BESIDE.format(re.escape(word)), words.plain):
            low = (rival.group(1) or rival.group(2)).lower()
            stem = stemmer().stemWord(low)
            if low not in STOP | TITLES and stem not in mine and stem not in gold.asked.places:
                return True
    return False


def _has_chinese_rival(gold: Gold, words: TextWords) -> bool:
    """Return whether a short answer has another name: 蓝鲸8号公馆 for 蓝鲸客栈, 阿里巴巴 for 阿里."""
    accepted, said = gold.text.squeezed, words.squeezed
    if (
        not (0 < len(gold.units) < 3 and all(unit.han for unit in gold.units))
        or len(said) > len(accepted) + 2 * _LONGER_NAME
    ):
        return False
    if runs := [run for run in _HAN_RUN.findall(words.plain) if accepted in run]:
        if "who" in gold.asked.asks:  # a name has no end that can be seen
            return len(said) == len(accepted) + 1 and said.startswith(accepted)
        # It ends where a word does, but for a suffix.
        at = [(run, hit.end()) for run in runs for hit in re.finditer(accepted, run)]
        whole = (end in accumulate(map(len, cut(run))) or run[end] in "市省县区镇村人的上里中内" for run, end in at)
        return said == accepted + accepted[-1] or not any(whole)
    head, tail = gold.units[0].word, gold.units[-1].word
    return (
        len(said) <= len(accepted) + _LONGER_NAME and said.startswith(head) and said != head and head + tail == accepted
    )


def _has_another_word(gold: Gold, words: TextWords) -> bool:
    """Return whether what is found is a part of a compound (docker in docker-compose), or has another place, title."""
    for kinds in APART:
        own, said = ((kinds.keys() & text.places.keys()) - gold.asked.places.keys() for text in (gold.text, words))
        near = {stem for word in said for stem in words.stems[words.places[word] + 1 :][:3]}
        if own and {kinds[word] for word in own}.isdisjoint(map(kinds.get, said)) and near & gold.text.places.keys():
            return True
    if (len(gold.text.raw) > 1 and gold.form != "name") or not _COMPOUND.search(words.plain):
        return False
    is_there = rf"\b(?i:{re.escape(gold.text.plain.strip(_CLOSING + '.'))})\b"
    return bool(re.search(is_there, words.plain)) and not re.search(f"{_BEFORE}{is_there}(?!{_AFTER})", words.plain)


def _holds(gold: Gold, answer: ParsedAnswer) -> bool:
    """Return whether the accepted answer stands in the answer word for word, but for case, spaces and marks.

    Texts from pages lose spaces ("isMalina Weissmanand"): there, several words may run into others. A name runs into
    small letters before it only, and VI not into VIII.
    """
    text, stems, said = gold.text, gold.text.stems, answer.words.stems
    if not stems:
        return False
    # `places` knows the first place of a word alone; later ones are looked for.
    places = range(answer.words.places.get(stems[0], len(said)), len(said))
    if any(said[at : at + len(stems)] == stems for at in places if said[at] == stems[0]):
        return True
    may_run = len(stems) > 1 and len(said) > _BRIEF and text.squeezed.isascii() and text.squeezed.isalpha()
    if not may_run or text.raw[-1] in ROMAN or text.squeezed not in answer.words.squeezed:
        return False
    begun = r"(?:\b|(?<=[a-z]{2})(?=[A-Z]))(?i:" + r"\W*".join(text.squeezed) + ")"
    return gold.form != "name" or re.search(begun, answer.words.plain) is not None


def _nearly(unit: Unit, gold: Gold, places: dict[str, int]) -> float:
    """Return how well a word is there in another form: an initial, a familiar name, one letter changed."""
    word = unit.word
    if unit.han or not word.isalpha():
        return 0.0
    # Koeln is Köln: as many letters e more.
    alike = (name for name in places if name[0] == word[0] and 0 < abs(len(name) - len(word)) < _LONG)
    if any(_UMLAUT.sub(r"\1", name) == _UMLAUT.sub(r"\1", word) for name in alike):
        return 1.0
    if gold.form == "name":
        if len(word) == 1:
            return 0.7 * any(name[0] == word for name in places)
        if any(name in places for name in given_names().get(word, ())):
            return 1.0
        if word[0] in places and len(gold.units) > 1:
            return 0.5
    return 0.8 * (len(word) >= _LONG and any(one_edit(word, name) for name in places if name[:1] == word[0]))


def agrees(accepted: When, date: When) -> bool:
    """Return whether a date fits an accepted one, however exact it is."""
    return _ORDER[agreement(accepted, date)] > 1


def date_order(gold: Gold, answer: ParsedAnswer) -> int:
    """Return how the best date agrees: 4 the same, 3 finer, 2 coarser, 1 another, 0 none; of several the worst."""
    dates = [date for date, _, _ in answer.words.dates] if gold.bounded else answer.words.exact[0]
    if not dates:
        return min(1, len(answer.words.dates))
    return min(max(_ORDER[agreement(when, date)] for date in dates) for when in gold.whens)


def number_order(gold: Gold, answer: ParsedAnswer) -> int:
    """Return 2 if the answer has the numbers, 1 if it has only others, 0 if it has no number."""
    quantities, said = answer.words.quantities if gold.bounded else answer.words.exact[1], answer.said
    if "=" in said or "sum" in gold.asked.asks:  # "256 + 37 = 293", and the number that is said to be a total
        beside = [(each, said[max(0, each.start - 12) : each.start], said[each.stop :][:16]) for each in quantities]
        totals = [each for each, *near in beside if any(_SUM.search(text.partition(",")[0]) for text in near)]
        quantities = totals or quantities
    if not quantities:
        return min(1, len(answer.words.quantities))
    return 2 if all(any(equal(quantity, other) for other in quantities) for quantity in gold.numbers) else 1


@lru_cache(4096)
def _code_pattern(code: str) -> re.Pattern[str]:
    """Return the pattern of a code as a whole: not as a part of a longer one (`login.py` in `login.py.bak`, C in C++).

    Upper and lower case are one, but for letters alone (a flag, a grade). The space for a hyphen between letters and
    digits may be missing, as may the v of a version and the # of a number; of a telephone number the digits count.
    """
    if _PHONE.match(code):
        body = r"\+?" + r"[ ()./-]*".join(re.findall(r"\d", code))
    else:
        body = re.sub(r"\\-(?=\d)|(?<=\d)\\-(?=[a-zA-Z])", r"[-\\s]?", re.escape(re.sub(r"^(?:v(?=\d)|#)", "", code)))
        body = (r"(?:https?://[\w.:-]+)?" if code.startswith("/") else r"(?:v(?=\d)|#)?") + body.replace(r"\+", "[+-]")
    ends = r"(?:\.0)?(?![\w#]|\+\+|[.@_-]\w|/[\w{<:$*])" + (r"(?!\s+[a-z])" if code == "A" else "")
    apart = r"(?<![\w@+#<>=~^])" + ("" if "_" in code else r"(?<!\w[.-])")  # users.created_at
    before = r"(?<![\w@/.])" if code.startswith("/") else apart
    return re.compile(before + body + ends, re.ASCII | (re.IGNORECASE if sum(map(str.isalpha, code)) > 1 else 0))


def several_numbers(gold: Gold, answer: ParsedAnswer) -> bool:
    """Return whether a short answer has a further number that is neither in the question nor part of a sum."""
    known = (*gold.numbers, *gold.asked.quantities)
    if len(answer.words.raw) > _BRIEF or "sum" in gold.asked.asks:
        return False
    return any(
        (each.value != 1 or each.dimension)  # 一共
        and each.dimension in ("", *(number.dimension for number in gold.numbers))
        and not any(equal(each, other) for other in known)
        and not ((doubt := answer.scope.doubt(each.start, each.stop, True)) and doubt.sure)
        for each in answer.words.exact[1]
    )


def strange_items(golds: Sequence[Gold], answer: ParsedAnswer) -> tuple[int, int]:
    """Return how many items of a bare enumeration no accepted answer has, and how many it has; 0, 0 for other texts.

    A place and what it lies in (Paris, Texas, USA) is no enumeration.
    """
    text, listed = answer.words.plain.strip(), [item for gold in golds for item in gold.items]
    shortest = min((gold.text.squeezed for gold in golds), key=len)
    several = not all(shortest in gold.text.squeezed for gold in golds)
    accepted = {gold.text.bare for gold in (*listed, *golds)}
    if (
        len(answer.words.raw) > 4 * _BRIEF
        or ((several or golds[0].form in ("code", "date", "number")) and not listed)
        or answer.words.bare in accepted
        or re.search(r"[<{|=]", text)
    ):
        return 0, 0
    lines = [line.strip() for line in _LINE_ITEM.split(text) if line.strip()]
    if len(_LINE_ITEM.findall(text)) < 2:  # on one line; Bergen/Oslo
        slashed = "/" in text and not any("/" in gold.text.plain for gold in golds)
        lines = _items(TextWords(text.replace("/", ", ")) if slashed else answer.words, golds[0].asked)
    known = [TextWords(line).bare.removeprefix("the").removeprefix("and") in accepted for line in lines]
    apposed = not listed and known[:1] == [True] and not (_PAIR.search(text) or re.search(rf"[\n/{HAN}]", text))
    is_prose = any(len(line.split()) > _LONGEST_ITEM for line in lines)
    return (0, 0) if apposed or is_prose or not any(known) else (known.count(False), len(lines))


def whole_places(gold: Gold, answer: ParsedAnswer) -> list[GoldSpan]:
    """Return the spans of `answer.said` where the accepted answer stands word for word, as whole words."""
    if gold.form == "code":
        pattern = _code_pattern(gold.text.plain.strip(" .\"'`"))
        return [GoldSpan(*hit.span(), True) for hit in pattern.finditer(answer.words.plain)]
    accepted, said, at = gold.text.lower.strip(" .\"'"), answer.said, 0
    spans = []
    while accepted and (at := said.find(accepted, at)) >= 0:
        stop = at + len(accepted)
        # It runs on where the characters on both sides of an end belong to one word.
        edges = (said[max(0, at - 1) : at + 1], said[stop - 1 : stop + 1])
        if not any(len(pair) == 2 and pair.isascii() and pair.isalnum() for pair in edges):
            spans.append(GoldSpan(at, stop, True))
        at = stop
    return spans


def places(gold: Gold, answer: ParsedAnswer) -> list[GoldSpan]:
    """Return the spans of `answer.said` with the accepted answer, or with words of it where the whole is nowhere.

    A text that was found only by other spellings has none.
    """
    said, whole, values = answer.said, whole_places(gold, answer), list[tuple[int, int]]()
    if gold.form == "date":
        dates = answer.words.dates
        values = [(start, stop) for date, start, stop in dates if any(agrees(when, date) for when in gold.whens)]
    elif gold.form == "number":
        numbers = answer.words.quantities
        values = [(each.start, each.stop) for each in numbers if any(equal(other, each) for other in gold.numbers)]
    if whole or values:
        return sorted([*whole, *(GoldSpan(*span, False) for span in values)])
    if gold.form in ("list", "yes", "no"):
        return []
    fresh = [unit for unit in gold.units if not unit.echoed] or list(gold.units)
    mine = {unit.word for unit in fresh if not unit.han}
    spans = [span for stem, span in answer.stems_at if stem in mine] if mine else []
    spans += [GoldSpan(*hit.span(), False) for unit in fresh if unit.han for hit in re.finditer(unit.word, said)]
    return sorted(spans)


def one_edit(one: str, other: str) -> bool:
    """Return whether two words differ by one letter added, dropped or exchanged, after an equal first one."""
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rests = (one[at + 1 :], other[at + 1 :]), (one[at + 1 :], other[at:]), (one[at:], other[at + 1 :])
    return at > 0 and any(rest == other_rest for rest, other_rest in rests)

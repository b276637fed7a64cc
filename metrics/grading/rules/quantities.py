"""Numbers in texts with their units: in digits, in words, in Chinese; and whether two of them are equal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...language import word_lists

_LISTS = word_lists(__package__, "quantities")
ONES = {name: at for at, name in enumerate(_LISTS["up_to_20"].split())}
TENS = {name: 10 * at for at, name in enumerate(_LISTS["tens"].split(), 2)}
BIG: dict[str, int] = _LISTS["big"]
ORDINALS = {name: at for at, name in enumerate(_LISTS["ordinals"].split(), 1)}
ROMAN = {name: str(at) for at, name in enumerate(_LISTS["roman"].split(), 2) if len(name) > 1}
"""Of two letters or more: a single one is an initial."""


class Quantity(NamedTuple):
    """A number. With a known unit, `dimension` and what one unit is worth in it."""

    value: float
    dimension: str = ""
    factor: float = 1.0
    digits: int = 0
    """Decimals as written, which tell how far it was rounded."""
    start: int = 0
    stop: int = 0
    ordinal: bool = False
    times: bool = False
    """Once, twice: a number only where times are counted."""


_SHORT: dict[str, int] = _LISTS["short"]
_ZH_BIG = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
_ZH_ONES = {each: at for at, each in enumerate("零一二三四五六七八九")} | {"两": 2}


def _units() -> Iterator[tuple[str, tuple[str, float]]]:
    dimension = ""
    for part in _LISTS["units"].split():
        factor, equals, names = part.partition("=")
        dimension = dimension if equals else part
        for name in names.split("|") if equals else ():
            yield name.replace("_", " ").strip(), (dimension, float(factor))


_UNITS = dict(_units())
_WORDS = "|".join(sorted([*ONES, *TENS, *BIG, "dozen"], key=len, reverse=True))
_UNIT_NAMES = "|".join(re.escape(name) for name in sorted(_UNITS, key=len, reverse=True) if name.isascii())
_ZH_UNITS = "|".join(sorted((name for name in _UNITS if not name.isascii()), key=len, reverse=True))
_POUND = "pound"
_POUNDS = frozenset([_POUND, "money:gbp", "mass:lb"])  # pounds are money or a weight: the word does not say which
_CLOCK, _DIAL = "clock", "dial"
_PARTS: dict[str, int] = _LISTS["parts"]
_CURRENCY: dict[str, str] = _LISTS["currency"]
_ZH_HOUR = r"(?:\d{1,2}|[零一二两三四五六七八九十]{1,3})"
# A number in words begins where a word does: without this look ahead all alternatives are tried at each letter.
_NUMBER = re.compile(
    rf"""(?:(?=[^a-z\s])|\b(?=[a-z]))(?:
    (?:(?P<noon>上午|下午|晚上|早上|凌晨|中午)\ ?(?P<zhour>{_ZH_HOUR})\ ?(?:点|时|:)
        (?:(?P<half>半)|(?P<zminute>{_ZH_HOUR})分?)?
      |(?<![\d:.])(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d\d))?\ ?(?P<ampm>[ap]\.?m\b\.?)
      |(?<![\d:.])(?P<hour24>\d{{1,2}}):(?P<minute24>\d\d)(?![\d:]))
    |(?<![\d/.])(?P<over>\d{{1,3}})/(?P<under>[1-9]\d{{0,2}})(?![\d/])
    |\b(?P<some>one|two|three|four|five|seven)[\ -](?P<part>third|quarter|fourth|fifth|sixth|eighth|tenth)s?\b
    |\b(?:(?P<whole>{"|".join(ONES)}|\d{{1,3}})\ and\ a\ )?half\ (?:an?\ )?(?P<halved>{_UNIT_NAMES})(?:e?s)?(?![a-z])
    |\b(?P<whole2>{"|".join(ONES)}|\d{{1,3}}|an?)\ (?P<halved2>{_UNIT_NAMES})(?:e?s)?\ and\ a\ half\b
    |(?P<zwhole>[一二两三四五六七八九十\d]{{1,2}})?个?半(?P<zhalved>个月|{_ZH_UNITS})
    |(?:(?P<currency>[$£€¥])\ ?)?(?P<sign>(?<![\w)])-|\bminus\ |\bnegative\ |零下)?
    (?:
      (?<![\d.])(?P<figure>\d+(?:,\d{{3}}(?!\d))*(?:\.\d+)?|(?<!\d)\.\d+)(?P<ord>(?:st|nd|rd|th)\b)?
      |\b(?P<words>(?:{_WORDS})(?:(?:\ ?-\ ?|\ and\ |\ )(?:{_WORDS})\b)*)\b
      |\b(?P<times>once|twice|thrice)\b
      |(?P<ordinal>\b(?:{"|".join(ORDINALS)})\b)
      |(?P<percent>百分之)?(?P<zh>(?<![\d])[零一二两三四五六七八九十百千万亿]+(?:点[零一二三四五六七八九]+)?)
    )
    (?:\ ?(?P<big>thousand|million|billion|trillion|bn|mn|[kb](?![a-z])|[万亿]))?
    (?:[\ -]?(?P<unit>{_UNIT_NAMES})(?:e?s)?(?![a-z])|\ ?(?P<zunit>{_ZH_UNITS}))?
    )""",
    re.VERBOSE,
)
_NUMERIC = re.compile(
    rf"half|半|\d|\bonce|twice|thrice|[零一二两三四五六七八九十百千万亿]|\b(?:{_WORDS})|{'|'.join(ORDINALS)}"
)
# An hour without its half of the day; 点 alone is also a point of a list, or of a decimal.
_OCLOCK = re.compile("点(?=[到至半整钟,，。]|$)")
TOLERANCE = 0.005
"""Relative difference up to which quantities in different units are equal: 26.2 miles are 42.2 km."""


def quantities(text: str) -> list[Quantity]:
    """Return the numbers of a lower-case text in order, ordinals marked as such."""
    if not _NUMERIC.search(text):
        return []
    result: list[Quantity] = []
    for match in _NUMBER.finditer(text):
        read = _read(match)
        if read is not None:
            # The minutes of the hours before: 四小时十二分. Alone, 分 are marks or cents too.
            hours = ("time:s", 3600.0, read.start)
            follow = result and (result[-1].dimension, result[-1].factor, result[-1].stop) == hours
            if follow and not read.dimension and text[read.stop : read.stop + 1] == "分":
                read = read._replace(dimension="time:s", factor=60.0, stop=read.stop + 1)
            elif not read.dimension and read.value <= 24 and _OCLOCK.match(text, read.stop):
                read = read._replace(dimension=_DIAL, value=60 * read.value, stop=read.stop + 1)
            result.append(read)
    return result


def equal(accepted: Quantity, answer: Quantity) -> bool:
    """Return whether two quantities are equal, whatever their units; a unit that only one of them has is ignored."""
    pair = {accepted.dimension, answer.dimension}
    if accepted.dimension and answer.dimension:
        if pair == {_CLOCK, _DIAL}:
            # Minutes. Half past three without a.m. or p.m. is either of two times, 12 hours apart.
            return (accepted.value - answer.value) % 720 == 0
        if _POUND in pair:
            return pair <= _POUNDS and _equal_values(accepted, answer)
        a, b = accepted.value * accepted.factor, answer.value * answer.factor
        if len(pair) == 2:
            # Months and years with weeks and days: 1 year is 12 months is about 52 weeks or 365 days.
            a, b = (b, a) if answer.dimension == "calendar:month" else (a, b)
            a *= 30.44 * 86400
            return pair == {"time:s", "calendar:month"} and abs(a - b) <= 0.02 * max(a, b)
        if accepted.factor != answer.factor:
            return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
    return _equal_values(accepted, answer)


def _equal_values(accepted: Quantity, answer: Quantity) -> bool:
    """Return whether two values are equal, or one is the other rounded to its decimals, of which there must be two."""
    a, b = accepted.value, answer.value
    if a == b or abs(a - b) < 1e-9 * max(abs(a), abs(b)):
        return True
    # 3.14 for 3.14159 is rounded, and 3.1 is not exact enough to tell it from 3.12.
    least = min(accepted.digits, answer.digits)
    return least >= 2 and abs(round(a, least) - round(b, least)) < 1e-9


def _read(match: re.Match[str]) -> Quantity | None:
    if (special := _clock(match) or _fraction(match)) is not None:
        return special
    figure, words, ordinal, zh = match["figure"], match["words"], match["ordinal"], match["zh"]
    if times := match["times"]:
        value = {"once": 1.0, "twice": 2.0, "thrice": 3.0}[times]
        return Quantity(value, start=match.start(), stop=match.end(), times=True)
    digits, is_ordinal = len((figure or "").partition(".")[2]), bool(match["ord"] or ordinal)
    if figure:
        value = float(figure.replace(",", ""))
    elif words:
        value = _spoken(words)
    elif ordinal:
        value = float(ORDINALS[ordinal])
    else:
        value, is_ordinal = chinese(zh), match.string[match.start() - 1 : match.start()] == "第"
    if big := match["big"]:
        value *= BIG.get(big) or _SHORT.get(big) or _ZH_BIG.get(big) or 1
    if match["sign"]:
        value = -value
    unit = match["unit"] or match["zunit"]
    dimension, factor = _UNITS[unit] if unit else ("", 1.0)
    if match["currency"]:
        # $5m are millions, 5 m are metres.
        value *= 10**6 if unit == "m" else 1
        dimension, factor = _CURRENCY[match["currency"]], 1.0
    if match["percent"]:
        dimension, factor = "share:%", 1.0
    return Quantity(value, dimension, factor, digits, match.start(), match.end(), is_ordinal)


def _clock(match: re.Match[str]) -> Quantity | None:
    """Read a time of day, in minutes. Without a.m. or p.m. it may be either, up to one o'clock."""
    if match["zhour"]:
        hour, minute = _figure(match["zhour"]), 30 if match["half"] else _figure(match["zminute"])
        later = match["noon"] in ("下午", "晚上") or (match["noon"] == "中午" and hour < 11)
        known = True
    elif match["hour"]:
        hour, minute, later, known = int(match["hour"]), int(match["minute"] or 0), match["ampm"][0] == "p", True
        hour %= 12
    elif match["hour24"]:
        hour, minute, later = int(match["hour24"]), int(match["minute24"]), False
        known = hour > 12 or hour == 0
    else:
        return None
    minutes = 60 * (hour + 12 * (later and hour < 12)) + minute
    return Quantity(minutes, _CLOCK if known else _DIAL, start=match.start(), stop=match.end())


def _figure(text: str | None) -> int:
    return int(text) if text and text.isascii() else int(chinese(text)) if text else 0


def _fraction(match: re.Match[str]) -> Quantity | None:
    if match["over"]:
        value = int(match["over"]) / int(match["under"])
    elif match["some"]:
        value = ONES[match["some"]] / _PARTS[match["part"]]
    elif unit := match["halved"] or match["halved2"] or match["zhalved"]:
        whole = match["whole"] or match["whole2"] or match["zwhole"] or "zero"
        value = (1 if whole in ("a", "an") else ONES[whole] if whole in ONES else _figure(whole)) + 0.5
        return Quantity(value, *_UNITS[unit], 1, match.start(), match.end())
    else:
        return None
    return Quantity(value, start=match.start(), stop=match.end())


def _spoken(words: str) -> float:
    """Read a number in English words: two hundred and five thousand."""
    total = part = 0.0
    # two hundred and five thousand: `part` is 2, 200, 205, and then 205,000 goes to the total. "and" adds nothing.
    for word in re.findall(r"[a-z]+", words):
        if word == "dozen":
            part = (part or 1) * 12
        elif word == "hundred":
            part = (part or 1) * 100
        elif word in BIG:
            total, part = total + (part or 1) * BIG[word], 0
        elif word != "and":
            part += ONES.get(word, 0) + TENS.get(word, 0)
    return total + part


def chinese(text: str) -> float:
    """Read a number in Chinese numerals: 三百二十, 两万五千, 二零二三, 三点五."""
    whole, _, decimals = text.partition("点")
    fraction = float("0." + "".join(str(_ZH_ONES[character]) for character in decimals)) if decimals else 0.0
    if not any(character in _ZH_BIG for character in whole):
        return float("".join(str(_ZH_ONES[character]) for character in whole)) + fraction
    total = section = digit = 0.0
    last = 1.0
    # 两万五千: the digit 2 at 万 makes the total 20,000, and 5 at 千 the section 5,000. At 万 and 亿 all before is
    # multiplied, at 十, 百 and 千 the digit before alone; 十 without one is 10.
    for character in whole:
        if character in _ZH_ONES:
            digit = _ZH_ONES[character]
        elif _ZH_BIG[character] >= 10**4:
            total, section, digit = (total + section + digit) * _ZH_BIG[character], 0.0, 0.0
            last = _ZH_BIG[character]
        else:
            section += (digit or 1) * _ZH_BIG[character]
            digit, last = 0.0, _ZH_BIG[character]
    # A last digit right behind a unit is of the next lower one: 三百二 is 320 and 两万五 25,000, but 三百零二 302.
    return total + section + digit * (last / 10 if last > 10 and whole[-2:-1] in _ZH_BIG else 1) + fraction

"""Numbers in texts with their units: in digits, in words, in Chinese; and whether two of them are equal."""

from __future__ import annotations

import re
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
    digits: int = 0  # decimals as written, which tell how far it was rounded
    start: int = 0
    stop: int = 0
    ordinal: bool = False
    times: bool = False  # once, twice: a number only where times are counted


_ZH_BIG = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
_ZH_DIGITS = str.maketrans("零一二三四五六七八九两点", "01234567892.")
_FACTORS: dict[str, int] = BIG | _LISTS["short"] | _ZH_BIG
_UNITS: dict[str, tuple[str, float]] = {
    name: (dimension, float(factor))
    for dimension, units in _LISTS["units"].items()
    for names, factor in units.items()
    for name in names.split("|")
}
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
    (?:(?:(?P<noon>上午|下午|晚上|早上|凌晨|中午)\ ?|(?={_ZH_HOUR}[点时](?:半|{_ZH_HOUR}分)))
        (?P<zhour>{_ZH_HOUR})\ ?(?:点|时|:)
        (?:(?P<half>半)|(?P<zminute>{_ZH_HOUR})分?)?
      |(?<![\d:.])(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d\d))?\ ?(?P<ampm>[ap]\.?m\b\.?)
      |(?<![\d:.])(?P<hour24>\d{{1,2}}):(?P<minute24>\d\d)(?![\d:]))
    |(?<![\d/.])(?P<over>\d{{1,3}})/(?P<under>[1-9]\d{{0,2}})(?![\d/])
    |\b(?P<some>a(?=\ quarter|\ (?:third|fifth|tenth)\ of)|one|two|three|four|five|seven)
        [\ -](?P<part>third|quarter|fourth|fifth|sixth|eighth|tenth)s?\b
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
    rf"half|quarter|third|fifth|tenth|半|\d|\bonce|twice|thrice|[零一二两三四五六七八九十百千万亿]|\b(?:{_WORDS})|{'|'.join(ORDINALS)}"
)
# An hour without its half of the day; 点 alone is also a point of a list, or of a decimal.
_OCLOCK = re.compile("点(?=[到至半整钟,，。]|$)")
TOLERANCE = 0.01
"""Relative difference up to which quantities in different units are equal: 26.2 miles are 42.2 km."""


def quantities(text: str) -> list[Quantity]:
    """Return the numbers of a lower-case text in order, ordinals marked as such."""
    if not _NUMERIC.search(text):
        return []
    result: list[Quantity] = []
    for number in map(_read, _NUMBER.finditer(text)):
        if not number.dimension:
            # The minutes of the hours before: 四小时十二分. Alone, 分 are marks or cents too.
            follow = result and result[-1][1:3] + result[-1][5:6] == ("time:s", 3600.0, number.start)
            if follow and text[number.stop : number.stop + 1] == "分":
                number = number._replace(dimension="time:s", factor=60.0, stop=number.stop + 1)
            elif number.value <= 24 and _OCLOCK.match(text, number.stop):
                number = number._replace(dimension=_DIAL, value=60 * number.value, stop=number.stop + 1)
        result.append(number)
    return result


def equal(accepted: Quantity, answer: Quantity) -> bool:
    """Return whether two quantities are equal, whatever their units; a unit that only one of them has is ignored."""
    pair = {accepted.dimension, answer.dimension}
    if accepted.dimension in (_CLOCK, _DIAL) and answer.dimension == "" and answer.digits == 2:  # 14.30 Uhr
        return accepted.value == 60 * int(answer.value) + round(100 * (answer.value % 1))
    if pair == {"", "share:%"} and 100 * min(accepted.value, answer.value) == max(accepted.value, answer.value):
        return True  # 0.25 and 25 %
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


def _read(match: re.Match[str]) -> Quantity:
    start, stop = match.span()
    if hours := match["zhour"] or match["hour"] or match["hour24"]:
        # A time of day, in minutes. Without a.m. or p.m. it may be either, up to one o'clock.
        hour, half_of_day = int(chinese(hours)), match["noon"] or match["ampm"] or ""
        hour = hour % 12 if match["ampm"] else hour
        minute = 30 if match["half"] else int(chinese(match["zminute"] or match["minute"] or match["minute24"] or "0"))
        later = half_of_day[:1] in ("下", "晚", "p") or (half_of_day == "中午" and hour < 11)
        known = half_of_day or hour > 12 or hour == 0
        minutes = 60 * (hour + 12 * (later and hour < 12)) + minute
        return Quantity(minutes, _CLOCK if known else _DIAL, start=start, stop=stop)
    if match["over"]:
        return Quantity(int(match["over"]) / int(match["under"]), start=start, stop=stop)
    if match["some"]:
        return Quantity(ONES.get(match["some"], 1) / _PARTS[match["part"]], start=start, stop=stop)
    if unit := match["halved"] or match["halved2"] or match["zhalved"]:
        whole = match["whole"] or match["whole2"] or match["zwhole"] or "zero"
        count = 1 if whole in ("a", "an") else ONES[whole] if whole in ONES else int(chinese(whole))
        return Quantity(count + 0.5, *_UNITS[unit], 1, start, stop)
    if match["times"]:
        return Quantity({"once": 1.0, "twice": 2.0, "thrice": 3.0}[match["times"]], start=start, stop=stop, times=True)
    figure, is_ordinal = match["figure"] or "", bool(match["ord"] or match["ordinal"])
    if figure:
        value = float(figure.replace(",", ""))
    elif match["words"]:
        value = _spoken(match["words"])
    elif match["ordinal"]:
        value = float(ORDINALS[match["ordinal"]])
    else:
        value, is_ordinal = chinese(match["zh"]), match.string[start - 1 : start] == "第"
    value *= _FACTORS.get(match["big"], 1) * (-1 if match["sign"] else 1)
    unit = match["unit"] or match["zunit"]
    dimension, factor = _UNITS[unit] if unit else ("", 1.0)
    if match["currency"]:
        # $5m are millions, 5 m are metres.
        value *= 10**6 if unit == "m" else 1
        dimension, factor = _CURRENCY[match["currency"]], 1.0
    if match["percent"]:
        dimension, factor = "share:%", 1.0
    return Quantity(value, dimension, factor, len(figure.partition(".")[2]), start, stop, is_ordinal)


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
    """Read a number in Chinese numerals or in digits: 三百二十, 两万五千, 二零二三, 三点五."""
    whole, _, decimals = text.translate(_ZH_DIGITS).partition(".")
    fraction = float(f"0.{decimals or 0}")
    if whole.isdecimal():
        return float(whole) + fraction
    total, section, digit, last = 0, 0, 0, 1
    # 两万五千: the digit 2 at 万 makes the total 20,000, and 5 at 千 the section 5,000. At 万 and 亿 all before is
    # multiplied, at 十, 百 and 千 the digit before alone; 十 without one is 10.
    for character in whole:
        if character.isdecimal():
            digit = int(character)
            continue
        last = _ZH_BIG[character]
        if last >= 10**4:
            total, section = (total + section + digit) * last, 0
        else:
            section += (digit or 1) * last
        digit = 0
    # A last digit right behind a unit is of the next lower one: 三百二 is 320 and 两万五 25,000, but 三百零二 302.
    return total + section + digit * (last / 10 if last > 10 and whole[-2:-1] in _ZH_BIG else 1) + fraction

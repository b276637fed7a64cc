"""Numbers with their units and dates in texts, in digits, in words, in Chinese; and how two of them agree."""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from datetime import date
from typing import Literal, NamedTuple

from ...language import regex, word_lists

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
# A number in words begins where a word does: without this look ahead all alternatives are tried at each character.
_NUMBER = regex(
    rf"""(?:(?=[-\d.$£€¥零一二两三四五六七八九十百千万亿个半上下晚早凌中])|\b(?=[a-z]))(?:
    (?:(?:(?P<noon>上午|下午|晚上|早上|凌晨|中午)\ ?|(?={_ZH_HOUR}[点时](?:半|{_ZH_HOUR}分)))
        (?P<zhour>{_ZH_HOUR})\ ?(?:点|时|:)
        (?:(?P<half>半)|(?P<zminute>{_ZH_HOUR})分?)?
      |(?<![\d:.])(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d\d))?\ ?(?P<ampm>[ap]\.?m\b\.?)
      |(?<![\d:.])(?P<hour24>\d{{1,2}}):(?P<minute24>\d\d)(?::00)?(?![\d:]))
    |(?<![\d/.])(?P<over>\d{{1,3}})/(?P<under>[1-9]\d{{0,2}})(?![\d/])
    |\b(?P<some>a(?=\ quarter|\ (?:third|fifth|tenth)\ of)|one|two|three|four|five|seven)
        [\ -](?P<part>third|quarter|fourth|fifth|sixth|eighth|tenth)s?\b
    |\b(?:(?P<whole>{"|".join(ONES)}|\d{{1,3}})\ and\ a\ )?half\ (?:an?\ )?(?P<halved>{_UNIT_NAMES})(?:e?s)?(?![a-z])
    |\b(?P<whole2>{"|".join(ONES)}|\d{{1,3}}|an?)\ (?P<halved2>{_UNIT_NAMES})(?:e?s)?\ and\ a\ half\b
    |(?P<zwhole>[一二两三四五六七八九十\d]{{1,2}})?个?半(?P<zhalved>个月|{_ZH_UNITS})
    |(?P<minus>(?<![\w)])-(?=[$£€¥]))?(?:(?P<currency>[$£€¥])\ ?)?(?P<sign>(?<![\w)])-|\bminus\ |\bnegative\ |零下)?
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
_NUMERIC = regex(
    rf"half|quarter|third|fifth|tenth|半|\d|\bonce|twice|thrice|[零一二两三四五六七八九十百千万亿]|\b(?:{_WORDS})|{'|'.join(ORDINALS)}"
)
# An hour without its half of the day; 点 alone is also a point of a list, or of a decimal.
_OCLOCK = regex("点(?=[到至半整钟,，。]|$)")
_MINUTES = regex(r"\d\d(?![\d.,:分])|[^\s分]{1,3}分")
_JOINED = regex(r"\s?(?:,\s?)?(?:(?:and|und|y|et)\s|零)?")
TOLERANCE = 0.01  # relative difference up to which quantities in different units are equal: 26.2 miles are 42.2 km


def quantities(text: str) -> list[Quantity]:
    """Return the numbers of a lower-case text in order, with ordinals marked."""
    if not _NUMERIC.search(text):
        return []
    result: list[Quantity] = []
    for number in map(_read, _NUMBER.finditer(text)):
        if not number.dimension:
            # The minutes of the hours before: 四小时十二分. Alone, 分 are marks or cents too.
            follow = result and result[-1][1:3] + result[-1][5:6] == ("time:s", 3600.0, number.start)
            if follow and (minutes := _MINUTES.match(text, number.start)):
                number = number._replace(dimension="time:s", factor=60.0, stop=minutes.end())
            elif number.value <= 24 and _OCLOCK.match(text, number.stop):
                number = number._replace(dimension=_DIAL, value=60 * number.value, stop=number.stop + 1)
        last = result[-1] if result else number
        part, is_smaller = number.value * number.factor / last.factor, number.factor < last.factor and not last.digits
        joined = last.dimension == number.dimension and _JOINED.fullmatch(text, last.stop, number.start)
        if joined and is_smaller and 0 < part < 1:  # 1 hour 30 minutes, 5 ft 10 in are one quantity
            number = result.pop()._replace(value=last.value + part, stop=number.stop)
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
        known = half_of_day or hour > 12 or hours.startswith("0")  # 08:15
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
    value *= _FACTORS.get(match["big"], 1) * (-1 if match["sign"] or match["minus"] else 1)
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


Agreement = Literal["same", "finer", "about", "coarser", "other"]
"""Agreement of a date with the accepted one: the same; more exact and fitting; as exact and overlapping, such as early
June and the week before 9 June; less exact and fitting; another."""


class When(NamedTuple):
    """Days from `low` to `high` inclusive, numbered like `date.toordinal`; before year 1 below zero.

    Without a year only `month` and `day` are known, or a `weekday` (Monday is 0).
    """

    low: int = 0
    high: int = -1
    month: int = 0
    day: int = 0
    weekday: int = -1

    @property
    def dated(self) -> bool:
        """Whether the year is known."""
        return self.low <= self.high


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)days?\b"
_YEAR = r"(?:1\d{3}|20\d\d|2100)"
# After a year: no digit, or the digits of a footnote that text from a page has without its brackets.
_NOTE = r"(?:(?!\d)|(?=[1-9]\d?(?:[.\s,;]|$)))"
_ZH = "[零一二三四五六七八九十\\d]"
# A date in words begins where a word does, but for a century, which may stand behind letters. Without this look ahead
# all alternatives are tried at each character, which takes 2.5 times as long.
_BEGINS = r"(?:(?=[\d零一二三四五六七八九十公星周礼])|(?<![a-z])(?=[a-z])|(?=[fsten][a-z-]{3,20}(?:-|\ )centur))"
# Groups are named by what they hold: y year, m month, d day, e last day, c century; a number tells alternatives apart.
_DATE = regex(
    rf"""{_BEGINS}(?:
    (?<![\d.])(?P<y1>{_YEAR})(?P<sep>[-/.])(?P<m1>\d{{1,2}})(?P=sep)(?P<d1>\d{{1,2}})(?!\d)
    |(?<![\d.:])(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:\s*(?:-|to|and)\s*(?P<e2>\d{{1,2}})(?:st|nd|rd|th)?)?
        \ ?(?:of\ )?(?P<m2>{_MONTH})(?:,?\ ?(?:in\ |of\ )?(?P<y2>{_YEAR}){_NOTE})?
    |\b(?P<m3>{_MONTH})\ ?(?:the\ )?(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])
        (?:\ ?(?:-|to|and)\ ?(?P<e3>\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?(?:\ ?,?\ ?(?:in\ |of\ )?(?P<y3>{_YEAR}){_NOTE})?
    |\b(?P<season1>spring|summer|autumn|fall|winter)(?:\ of|\ in|,)?\ (?P<y8>{_YEAR}){_NOTE}
    |(?P<y9>\d{{4}})年(?P<season2>[春夏秋冬])[天季]?
    |(?<![a-z])(?P<m4>{_MONTH}),?\ ?(?:of\ |in\ )?(?P<y4>{_YEAR}){_NOTE}
    |(?<![\d/.])(?P<m10>\d{{1,2}})/(?P<y15>{_YEAR})(?![\d/])
    |(?<![\d/.])(?P<a>\d{{1,2}})[/.](?P<b>\d{{1,2}})[/.](?P<y5>\d{{4}}|\d\d)(?![\d/])
    |(?P<y6>\d{{4}}|[零一二三四五六七八九]{{4}})\ ?年
        (?:\ ?(?P<m6>{_ZH}{{1,3}})\ ?月(?:份|\ ?(?P<d6>{_ZH}{{1,3}})\ ?[日号])?)?
    |(?P<m7>{_ZH}{{1,3}})\ ?月(?:份|\ ?(?P<d7>{_ZH}{{1,3}})\ ?[日号])?
    |(?<!\d)(?P<c1>\d{{1,2}}|{"|".join(ORDINALS)})(?:st|nd|rd|th)?(?:-|\ )centur(?:y|ies)(?P<cbc1>\ b\.?c\.?(?:e\b)?)?
    |(?P<cbc2>公元前)?(?P<c2>{_ZH}{{1,3}})世纪(?:(?P<zdec>[一二三四五六七八九]十|\d0)年代)?
    |(?<!\d)(?P<dec>1\d\d0|20\d0)'?s(?![a-z])
    |(?<![\d.,])(?P<bc1>\d{{1,4}})\ ?(?:b\.c\.(?:e\.)?|bce?\b)
    |公元前(?P<bc2>\d{{1,4}})年?
    |\b(?:a\.d\.|ad)\ ?(?P<y10>\d{{1,4}})(?!\d)|(?<![\d.,])(?P<y11>\d{{1,4}})\ ?(?:a\.d\.|ad\b|c\.e\.|ce\b)
    |\byear\ (?P<y12>\d{{1,3}})(?![\d.,])
    |(?<![\d.,$£€/-])(?P<y13>{_YEAR})(?!,\d|\.\d|\ ?[$£€¥])(?![a-z%]){_NOTE}
    |(?<=-)(?P<y14>{_YEAR})(?![\d%]|,\d)
    |(?:(?<=in\ )|(?<=by\ )|(?<=of\ )|(?<=mid-)|(?<=early\ )|(?<=late\ )|(?<=until\ )|(?<=during\ )|(?<=till\ )|^)
        (?P<m8>{_MONTH})(?!\ \w+ing\b)
    |\b(?P<m9>january|february|april|june|july|august|september|october|november|december)\b
    |\b(?P<day1>{_WEEKDAY})|(?:星期|周|礼拜)(?P<day2>[一二三四五六日天])
    )""",
    re.VERBOSE,
)
_BEFORE = regex(
    r"(?:(?P<n>\d{1,2}|a few|few|a|one|two|three|four|five|six|ten) )?(?P<what>mon|tues|wednes|thurs|fri|satur|sun|)"
    r"(?P<unit>weekend|day|week|month|year|)s? (?P<way>before|prior to|preceding|after|following) (?:the )?$"
)
# A part of a month: "early June 2023", "the last week of June 2023", and behind a Chinese one 初, 中旬, 底.
_PART = regex(
    r"\b(?:(?P<third>early|beginning of|start of|mid(?:dle)?(?: of| to)?|late|end of)[ -](?:the month of )?"
    r"|(?P<nth>first|second|third|fourth|last|1st|2nd|3rd|4th) (?P<unit>weekend|week) (?:of|in) )(?:the )?$"
)
_ZH_PART = regex(
    r" ?(?P<third>初|上旬|中旬|下旬|底|末)|(?:的)?第(?P<nth>[一二三四])(?:个)?(?:周|星期)(?![一二三四五六日天])"
)
_WEEK = regex(r"\b(?P<unit>weekend|week) (?:of|starting|beginning) (?:the )?$")
_THIRDS = {"early": 0, "beginning of": 0, "start of": 0, "late": 2, "end of": 2, "初": 0, "上旬": 0, "中旬": 1}
_NTHS = ("last", "first 1st 一", "second 2nd 二", "third 3rd 三", "fourth 4th 四")
_NTH = {name: at for at, names in enumerate(_NTHS) for name in names.split()}
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10}
_LAST = 2999  # a later year is a number
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12}
_DATEABLE = regex(r"\d|[年月周日世期拜]|days?\b|centur|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)")


def dates(text: str) -> list[tuple[When, int, int]]:
    """Return the dates of a lower-case text in order, each with its start and stop. 3/4/2020 has both readings."""
    if not _DATEABLE.search(text):
        return []
    dates_at: list[tuple[When, int, int]] = []
    for match in _DATE.finditer(text):
        for when in _read_date(match):
            before = _BEFORE.search(text, max(0, match.start() - 40), match.start()) if when.dated else None
            if before is not None and (moved := _moved(when, before)) is not None:
                # The Sunday of "the Sunday before 9 June 2023" was read as a date itself: what is meant takes its
                # place.
                while dates_at and dates_at[-1][1] >= before.start():
                    dates_at.pop()
                dates_at.append((moved, before.start(), match.end()))
            else:
                dates_at.append(_narrowed(when, text, match.start(), match.end()))
    return dates_at


def _narrowed(when: When, text: str, start: int, stop: int) -> tuple[When, int, int]:
    """Return a date with the words beside it that make a part of a month of it, or a week of a day."""
    before = max(0, start - 40)
    if when.dated and when.day:
        if (week := _WEEK.search(text, before, start)) is not None:
            # Day 1 of `toordinal` is a Monday, so (day - 1) % 7 is the weekday, everywhere here.
            monday = when.low - (when.low - 1) % 7
            return When(monday + 5 * (week["unit"] == "weekend"), monday + 6), week.start(), stop
    elif when.dated and exactness(when) == MONTH:
        if (part := _PART.search(text, before, start)) is not None:
            return _part_of(when, part["third"], part["nth"], part["unit"]), part.start(), stop
        if (part := _ZH_PART.match(text, stop)) is not None:
            return _part_of(when, part["third"], part["nth"], "week"), start, part.end()
    return when, start, stop


def _part_of(month: When, third: str | None, nth: str, unit: str | None) -> When:
    """Return a third of a month, or one of its weeks or weekends."""
    if third is not None:
        at = _THIRDS.get(third, 1 if third.startswith("mid") else 2)
        low, high = month.low + 10 * at, month.low + 10 * at + 9 if at < 2 else month.high
    elif unit == "week":
        low = month.low + 7 * _NTH[nth] - 7 if _NTH[nth] else month.high - 6
        high = low + 6
    else:
        # The first and the last Saturday of the month.
        first, last = month.low + (5 - (month.low - 1)) % 7, month.high - (month.high - 1 - 5) % 7
        low = first + 7 * (_NTH[nth] - 1) if _NTH[nth] else last
        high = low + 1
    return When(low, high, month.month)


def agreement(accepted: When, date: When) -> Agreement:
    """Return how a date agrees with the accepted one."""
    if accepted.dated and date.dated:
        if (accepted.low, accepted.high) == (date.low, date.high):
            return "same"
        if accepted.low <= date.low and date.high <= accepted.high:
            return "finer"
        if date.low <= accepted.low and accepted.high <= date.high:
            return "coarser"
        overlap = accepted.low <= date.high and date.low <= accepted.high
        return "about" if overlap and exactness(accepted) == exactness(date) else "other"
    if accepted.weekday >= 0 or date.weekday >= 0:
        return "same" if accepted.weekday == date.weekday else "other"
    if not accepted.month or accepted.month != date.month:
        return "other"
    if bool(accepted.day) == bool(date.day):
        if accepted.day != date.day:
            return "other"
        return "same" if accepted.dated == date.dated else "coarser" if accepted.dated else "finer"
    if date.day:
        return "finer"
    return "other" if date.dated and not accepted.dated else "coarser"


DAY, MONTH, SEASON, YEAR = 0, 2, 3, 4


def exactness(date: When) -> int:
    """Return how exact a date is, from DAY to YEAR and beyond: a higher number is less exact."""
    if not date.dated:
        return DAY if date.day or date.weekday >= 0 else MONTH
    # Days up to which a span is a day, some weeks, a month, a season, a year: 1, 16, 31, 100, 366.
    return bisect_left((1, 16, 31, 100, 366), date.high - date.low + 1)


def less_exact(accepted: When, date: When, needed: int = DAY) -> bool:
    """Return whether a fitting date is less exact than the accepted one, and than what is asked for.

    A day says as much without its year, a month does not: "in June" is less than "in June 2023".
    """
    own, least = exactness(date), max(exactness(accepted), needed)
    return own > least or (own == least == MONTH and accepted.dated and not date.dated and needed < MONTH)


def _read_date(match: re.Match[str]) -> list[When]:
    """Return the readings of a match: none if it is no date, two if day and month can be exchanged."""
    of = {name.rstrip("0123456789"): text for name, text in match.groupdict().items() if text is not None}
    year, day, last = (int(chinese(of.get(part, "0"))) for part in "yde")
    if year > _LAST:
        return []
    if "a" in of:
        year += 0 if year > 99 else 2000 if year < 50 else 1900
        # 3/4 is 3 April or 4 March. A set: 4/4 has one reading, and 13/4 only one that is a date.
        pairs = {(int(of["a"]), int(of["b"])), (int(of["b"]), int(of["a"]))}
        return [when for pair in sorted(pairs) if (when := _day(year, *pair))]
    if "season" in of and year:
        # The three months of a northern season; winter begins in December and ends in the next year.
        first = _SEASONS[of["season"]]
        last_month = _month_of(year + (first == 12), (first + 1) % 12 + 1)
        return [When(_month_of(year, first).low, last_month.high)]
    if "dec" in of:
        return [_span(int(of["dec"]), int(of["dec"]) + 9)]
    if "c" in of:
        number = ORDINALS.get(of["c"]) or int(chinese(of["c"]))
        if not 1 <= number <= 21:
            return []
        start = -100 * number if "cbc" in of else 100 * (number - 1) + int(chinese(of.get("zdec", "0")))
        return [_span(start, start + (9 if "zdec" in of and "cbc" not in of else 99))]
    if "bc" in of:
        return [_span(-int(of["bc"]))]
    if "day" in of:
        name = of["day"]
        return [When(weekday=_WEEKDAYS.index(name[:3]) if name.isascii() else min("一二三四五六日天".index(name), 6))]
    if "m" not in of:
        return [_span(year)]
    name = of["m"]
    month = _MONTHS.index(name[:3]) + 1 if name[:3] in _MONTHS else int(chinese(name))
    if not 1 <= month <= 12 or ("d" in of and not 1 <= day <= 31):
        return []
    if not year:
        return [When(month=month, day=day)]
    if not day:
        return [_month_of(year, month)]
    begin, end = _day(year, month, day), _day(year, month, last) if last > day else None
    return [] if begin is None else [When(begin.low, end.high, month) if end else begin]


def _span(first: int, last: int | None = None) -> When:
    """Return whole years. Years before 1 count backwards, 366 days each."""
    last = first if last is None else last
    low = date(first, 1, 1).toordinal() if first >= 1 else 366 * (first - 1)
    high = date(last, 12, 31).toordinal() if last >= 1 else 366 * last - 1
    return When(low, high)


def _month_of(year: int, month: int) -> When:
    low = date(year, month, 1).toordinal()
    return When(low, low + monthrange(year, month)[1] - 1, month)


def _day(year: int, month: int, day: int) -> When | None:
    try:
        return _at(date(year, month, day).toordinal())
    except ValueError:
        return None


def _at(ordinal: int) -> When | None:
    if ordinal < 1:
        return None
    day = date.fromordinal(ordinal)
    return When(ordinal, ordinal, day.month, day.day)


def _moved(when: When, before: re.Match[str]) -> When | None:
    """Return the date that "the Sunday before", "two days after" or "the week before" a date means."""
    what, unit, count = before["what"], before["unit"], before["n"] or ""
    back, few = before["way"] in ("before", "prior to", "preceding"), "few" in count
    edge, way = (when.low, -1) if back else (when.high, 1)
    if unit == ("day" if what else "weekend"):
        weekday = _WEEKDAYS.index(what[:3]) if what else 5
        # Never 0: the Sunday before a Sunday is a week before.
        at = edge + way * (way * (weekday - (edge - 1) % 7) % 7 or 7)
        return _at(at) if what else When(at, at + 1)
    if what or not unit or (few and unit in ("month", "year")):
        return None
    if unit == "month":
        near = date.fromordinal(max(1, edge + 15 * way))
        return _month_of(near.year, near.month)
    if unit == "year":
        return _span(date.fromordinal(max(1, edge)).year + way)
    size = 1 if unit == "day" else 7
    days = size * (1 if not count else 5 + 2 * (unit == "day") if few else _COUNTS.get(count) or int(count))
    if not few and (count or unit == "day"):
        return _at(edge + way * days)
    return When(when.low - days, when.low - 1) if back else When(when.high + 1, when.high + days)

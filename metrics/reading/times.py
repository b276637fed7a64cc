"""Resolution of relative times by the time of the message: "yesterday" on 8 May 2023 is 7 May 2023."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from ..language import word_lists

_LISTS = word_lists(__package__.rpartition(".")[0], "times")
_MONTHS: list[str] = _LISTS["months"].split()
_WEEKDAYS: dict[str, int] = _LISTS["weekdays"]
_NUMBERS: dict[str, int] = _LISTS["numbers"]
_DAYS_FROM_TODAY: dict[str, int] = _LISTS["days"]
_UNITS: dict[str, str] = _LISTS["units"]
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_COUNT = r"(?:\d{1,3}|a couple of|a few|few|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_ENGLISH = re.compile(
    rf"\b(?:(?P<day>the day before yesterday|yesterday|last night|today|tonight|this (?:morning|afternoon|evening)"
    rf"|tomorrow|just now)"
    rf"|(?P<which>last|this past|past|next|this|on)\ (?P<weekday>{_WEEKDAY})"
    rf"|(?P<near>last|this past|past|next|this)\ (?P<unit>weekend|week|month|year|summer|winter|spring|fall|autumn)"
    rf"|(?P<ago>{_COUNT})\ (?P<ago_unit>day|week|weekend|month|year)s?\ (?:ago|back)"
    rf"|in\ (?P<ahead>{_COUNT})\ (?P<ahead_unit>day|week|month|year)s?)\b",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"(?P<day>前天|昨天|昨晚|昨日|今天|今早|今晚|今日|明天|明日|后天)"
    r"|(?P<near>上个?|这个?|本|下个?)(?P<unit>周末|星期(?![一二三四五六日天])|周(?![一二三四五六日天末])|礼拜(?![一二三四五六日天])|月)"
    r"|(?P<year>去年|今年|明年|前年)"
    r"|(?P<which>上个?|这个?|本|下个?)(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])"
    r"|(?P<ago>\d{1,3}|[一两二三四五六七八九十])个?(?P<ago_unit>天|周|星期|月|年)(?P<side>前|后)"
)


class Relative(NamedTuple):
    """A relative time: its words, their place, and the date that they mean."""

    said: str
    start: int
    means: str


def relative_times(text: str, time: float) -> Iterator[Relative]:
    """Yield the relative times in a message of that time (seconds since 1970, UTC)."""
    today = day_of(time)
    if today is None:
        return
    for pattern, mean in ((_ENGLISH, _english), (_CHINESE, _chinese)):
        for match in pattern.finditer(text):
            try:
                means = mean(match, today)
            except (OverflowError, ValueError):  # a year that no calendar has
                continue
            if means:
                yield Relative(match.group(), match.start(), means)


def day_of(time: float) -> date | None:
    """Return the day of a moment; None if no calendar has it."""
    try:
        return datetime.fromtimestamp(time, UTC).date()
    except (OverflowError, ValueError, OSError):
        return None


def written(day: date, chinese: bool = False) -> str:
    """Format a day as 8 May 2023 or 2023年5月8日."""
    return f"{day.year}年{day.month}月{day.day}日" if chinese else f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _english(match: re.Match[str], today: date) -> str:
    if match["day"]:
        return written(today + timedelta(_DAYS_FROM_TODAY.get(match["day"].lower(), 0)))
    if match["weekday"]:
        return written(_weekday(match["which"].lower(), _WEEKDAYS[_short(match["weekday"])], today))
    if match["unit"]:
        return _near(match["near"].lower(), match["unit"].lower(), today)
    sign, count, unit = (
        (-1, match["ago"], match["ago_unit"]) if match["ago"] else (1, match["ahead"], match["ahead_unit"])
    )
    return _away(sign * _number(count), unit.lower(), today)


def _short(weekday: str) -> str:
    return weekday.lower()[:3]


def _weekday(which: str, wanted: int, today: date) -> date:
    """Return the last such day before today, or the next one after it."""
    if which in ("next",):
        # 1 to 7 days on, never 0: on a Monday the next Monday is a week off, and so is the last one below.
        return today + timedelta((wanted - today.weekday() - 1) % 7 + 1)
    if which in ("this",):
        return today + timedelta(wanted - today.weekday())
    return today - timedelta((today.weekday() - wanted - 1) % 7 + 1)


def _near(which: str, unit: str, today: date) -> str:
    sign = {"next": 1, "this": 0}.get(which, -1)
    if unit in ("week", "weekend"):
        return _beside(("the week before", "the week of", "the week after")[sign + 1].replace("week", unit), today)
    if unit == "month":
        return _month(today, sign)
    if unit == "year":
        return str(today.year + sign)
    return f"{unit} {today.year + sign}"


def _beside(where: str, today: date) -> str:
    return f"{where} {written(today)}"


def _month(today: date, by: int) -> str:
    # Months since the year 0, from 0 for January, so that they carry over into other years on both sides.
    months = today.year * 12 + today.month - 1 + by
    return f"{_MONTHS[months % 12]} {months // 12}"


def _away(count: int, unit: str, today: date) -> str:
    if unit == "day":
        return written(today + timedelta(count))
    if unit in ("week", "weekend"):
        return written(today + timedelta(7 * count))
    if unit == "month":
        return _month(today, count)
    return str(today.year + count)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[text.lower()]


def _chinese(match: re.Match[str], today: date) -> str:
    if match["day"]:
        return written(today + timedelta(_DAYS_FROM_TODAY.get(match["day"], 0)), chinese=True)
    if match["year"]:
        return f"{today.year + {'去年': -1, '今年': 0, '明年': 1, '前年': -2}[match['year']]}年"
    if match["weekday"]:
        monday = today - timedelta(today.weekday())
        wanted = "一二三四五六日".find(match["weekday"].replace("天", "日"))
        return written(monday + timedelta(7 * _side(match["which"]) + wanted), chinese=True)
    if match["unit"]:
        return _chinese_near(_side(match["near"]), match["unit"], today)
    count = _number(match["ago"]) * (1 if match["side"] == "后" else -1)
    unit = _UNITS[match["ago_unit"]]
    if unit == "month":
        months = today.year * 12 + today.month - 1 + count
        return f"{months // 12}年{months % 12 + 1}月"
    return (
        f"{today.year + count}年"
        if unit == "year"
        else written(today + timedelta(count * (7 if unit == "week" else 1)), chinese=True)
    )


def _side(which: str) -> int:
    return {"上": -1, "下": 1}.get(which[0], 0)


def _chinese_near(by: int, unit: str, today: date) -> str:
    if unit == "月":
        months = today.year * 12 + today.month - 1 + by
        return f"{months // 12}年{months % 12 + 1}月"
    span = {"周末": "周末"}.get(unit, "一周")
    return f"{written(today, chinese=True)}{('的前', '所在的那', '的后')[by + 1]}{span}"

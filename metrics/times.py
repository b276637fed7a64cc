"""Resolution of relative times by the time of the message: "yesterday" on 8 May 2023 is 7 May 2023."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from .language import word_lists

_LISTS = word_lists(__package__, "times")
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


def relative_times(text: str, time: float) -> Iterator[tuple[str, int, str]]:
    """Yield the relative times in a message of that time (seconds since 1970, UTC): words, place, and date meant."""
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
                yield match.group(), match.start(), means


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
        which, ahead = match["which"].lower(), _WEEKDAYS[match["weekday"].lower()[:3]] - today.weekday()
        # 1 to 7 days on, or back, never 0: on a Monday the next Monday is a week off, and so is the last one.
        days = ahead if which == "this" else (ahead - 1) % 7 + 1 if which == "next" else -((-ahead - 1) % 7 + 1)
        return written(today + timedelta(days))
    if match["unit"]:
        unit, sign = match["unit"].lower(), {"next": 1, "this": 0}.get(match["near"].lower(), -1)
        if unit in ("week", "weekend"):
            return f"the {unit} {('before', 'of', 'after')[sign + 1]} {written(today)}"
        return _away(sign, unit, today) if unit in ("month", "year") else f"{unit} {today.year + sign}"
    if match["ago"]:
        return _away(-_number(match["ago"]), match["ago_unit"].lower(), today)
    return _away(_number(match["ahead"]), match["ahead_unit"].lower(), today)


def _chinese(match: re.Match[str], today: date) -> str:
    side = {"上": -1, "下": 1, "去": -1, "明": 1, "前": -2}
    if match["day"]:
        return written(today + timedelta(_DAYS_FROM_TODAY.get(match["day"], 0)), chinese=True)
    if match["year"]:
        return _away(side.get(match["year"][0], 0), "year", today, chinese=True)
    if match["weekday"]:
        days = 7 * side.get(match["which"][0], 0) + "一二三四五六日".find(match["weekday"].replace("天", "日"))
        return written(today + timedelta(days - today.weekday()), chinese=True)
    if match["unit"]:
        by, unit = side.get(match["near"][0], 0), match["unit"]
        if unit == "月":
            return _away(by, "month", today, chinese=True)
        which, span = ("的前", "所在的那", "的后")[by + 1], "周末" if unit == "周末" else "一周"
        return f"{written(today, chinese=True)}{which}{span}"
    count = _number(match["ago"]) * (1 if match["side"] == "后" else -1)
    return _away(count, _UNITS[match["ago_unit"]], today, chinese=True)


def _away(count: int, unit: str, today: date, chinese: bool = False) -> str:
    """Return the day, month or year that is so many of a unit away."""
    if unit == "year":
        return f"{today.year + count}{'年' * chinese}"
    if unit == "month":
        # Months since the year 0, from 0 for January, so that they carry over into other years on both sides.
        year, month = divmod(today.year * 12 + today.month - 1 + count, 12)
        return f"{year}年{month + 1}月" if chinese else f"{_MONTHS[month]} {year}"
    return written(today + timedelta(count if unit == "day" else 7 * count), chinese)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[text.lower()]

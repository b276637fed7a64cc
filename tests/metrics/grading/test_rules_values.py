"""Dates and numbers as `rules` reads them, by hand, and by every form of any date and number."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.grading.rules.quantities import (
    DAY,
    MONTH,
    YEAR,
    When,
    agreement,
    chinese,
    dates,
    equal,
    less_exact,
    quantities,
)
from ctxbench.metrics.grading.rules.words import clean


def when(text: str) -> When:
    found = dates(clean(text).lower())
    assert len({each for each, _, _ in found}) == 1, (text, found)
    return found[0][0]


@pytest.mark.parametrize(
    ("accepted", "given", "how"),
    [
        ("8 May 2023", "May 8th, 2023", "same"),
        ("8 May 2023", "二零二三年五月八日", "same"),
        ("8 May 2023", "2023", "coarser"),
        ("8 May 2023", "8 May", "coarser"),
        ("2023", "8 May 2023", "finer"),
        ("8 May", "8 May 2023", "finer"),
        ("8 May 2023", "9 May 2023", "other"),
        ("18th century", "1754", "finer"),
        ("18th century", "1801", "other"),
        ("21st century", "ofthetwenty-first century", "same"),
        ("the 1980s", "20世纪80年代", "same"),
        ("autumn of 2019", "October 2019", "finer"),
        ("221 BC", "公元前221年", "same"),
        ("Wednesday", "星期三", "same"),
        ("Wednesday", "Thursday", "other"),
        ("the Sunday before 25 May 2023", "21 May 2023", "same"),
        ("the week before 9 June 2023", "5 June 2023", "finer"),
        ("two days after 28 February 2023", "2 March 2023", "same"),
        ("the weekend before 9 June 2023", "3 June 2023", "finer"),
        ("the year before May 2023", "2022", "same"),
        ("the first weekend of August 2023", "5 August 2023", "finer"),
        ("end of October 2023", "2023年10月底", "same"),
        ("the week before 9 June 2023", "early June 2023", "coarser"),
        ("the week before 13 June 2023", "early June 2023", "about"),
        ("the week of 23 August 2023", "25 August 2023", "finer"),
        ("the second week of May 2023", "14 May 2023", "finer"),
        ("early June 2023", "mid-June 2023", "other"),
    ],
)
def test_how_two_dates_agree(accepted: str, given: str, how: str) -> None:
    """By the days they name: the same, more exact, less exact, another. 25 May 2023 was a Thursday."""
    assert agreement(when(accepted), when(given)) == how


@given(st.dates(date(1000, 1, 1), date(2099, 12, 31)))
def test_every_form_of_a_date_is_the_same_date(day: date) -> None:
    """ISO, English in both orders, Chinese; and a year and a month that it is in are less exact."""
    forms = [
        day.isoformat(),
        f"{day.day} {day:%B} {day.year}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day:%b} {day.day} {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ]
    assert {when(form) for form in forms} == {When(day.toordinal(), day.toordinal(), day.month, day.day)}
    assert agreement(when(forms[0]), when(f"{day:%B} {day.year}")) == "coarser"
    assert agreement(when(str(day.year)), when(forms[0])) == "finer"


@pytest.mark.parametrize(
    ("accepted", "given", "needed", "less"),
    [
        ("23 January 2024", "2024", DAY, True),
        ("23 January 2024", "January 2024", DAY, True),
        ("23 January 2024", "23 January", DAY, False),
        ("23 January 2024", "2024", YEAR, False),
        ("23 January 2024", "January", MONTH, False),
        ("3月5日", "三月", DAY, True),
        ("June 2023", "June", DAY, True),
        ("June 2023", "summer 2023", DAY, True),
        ("the week before 9 June 2023", "early June 2023", DAY, False),
        ("the week before 9 June 2023", "June 2023", DAY, True),
        ("2023", "the 2020s", DAY, True),
        ("2023", "8 May 2023", DAY, False),
    ],
)
def test_how_exact_a_date_is(accepted: str, given: str, needed: int, less: bool) -> None:
    """A day, a week or a third of a month, a month, a season, a year; less is enough where less is asked for."""
    assert less_exact(when(accepted), when(given), needed) == less


@pytest.mark.parametrize(
    ("accepted", "given", "same"),
    [
        ("two hours", "120 minutes", True),
        ("an hour and a half", "90分钟", True),
        ("半小时", "30 minutes", True),
        ("一个半小时", "1.5 hours", True),
        ("1 year", "12 months", True),
        ("26.2 miles", "42.2 km", True),
        ("$3.5 million", "3,500,000 dollars", True),
        ("$3.5 million", "€3.5 million", False),
        ("45%", "百分之四十五", True),
        ("45%", "4.5%", False),
        ("两万五千", "25,000", True),
        ("1.2万", "12000", True),
        ("3.14159", "3.14", True),
        ("3.1", "3.2", False),
        ("9:30 am", "9:30", True),
        ("9:30 am", "9:30 pm", False),
        ("下午3点", "15:00", True),
        ("5 km", "5 kg", False),
        ("180 pounds", "£180", True),
        ("minus 5", "-5", True),
    ],
)
def test_equal_quantities(accepted: str, given: str, same: bool) -> None:
    """By value and unit; a unit that only one has does not matter."""
    [one], [other] = quantities(clean(accepted).lower()), quantities(clean(given).lower())
    assert equal(one, other) == same
    assert equal(other, one) == same


def spelled(number: int) -> str:
    """Say a number below a million in Chinese in the obvious way, digit by digit with its rank."""
    if number >= 10_000:
        rest = number % 10_000
        return spelled(number // 10_000) + "万" + ("零" if 0 < rest < 1000 else "") + (spelled(rest) if rest else "")
    made, digits = "", str(number)
    for at, digit in enumerate(digits):
        rank = len(digits) - 1 - at
        if digit != "0":
            made += "一二三四五六七八九"[int(digit) - 1] + ["", "十", "百", "千"][rank]
        elif made and not made.endswith("零") and int(digits[at:] or "0"):
            made += "零"
    return made or "零"


@given(st.integers(1, 999_999))
def test_chinese_numerals_are_read_as_they_are_written(number: int) -> None:
    """Every number below a million, spelled out by another way than it is read."""
    assert chinese(spelled(number)) == number


@given(st.integers(0, 10**12))
def test_separators_do_not_matter(number: int) -> None:
    """A number with and without commas is the same."""
    [one], [other] = quantities(f"{number:,}"), quantities(str(number))
    assert equal(one, other)

"""English for the assistant scenario."""

from __future__ import annotations

import re
from datetime import date

from .en_asked import ASKED, READING
from .en_habits import HABITS
from .en_home import HOME
from .en_offers import OFFERS
from .en_talk import TALK
from .en_world import WORLD
from .text import Tongue, frames

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_STARTS = re.compile(r"(?:^|(?<=[.?!] )|(?<=\n)|(?<=\n- )|(?<=\n> ))[a-z]")


def _day(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}"


def _days(day: date) -> tuple[str, ...]:
    month = _MONTHS[day.month - 1]
    return _day(day), f"{month} {day.day}", f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", str(day)


def _moneys(amount: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys((f"£{amount:,}", f"£{amount}", f"{amount} pounds", f"{amount:,}", f"GBP {amount}")))


ENGLISH = Tongue(
    frames=frames("".join((WORLD, OFFERS, TALK, HABITS, HOME, READING, ASKED)), " "),
    glue=" ",
    day=_day,
    days=_days,
    money=lambda amount: f"£{amount:,}",
    moneys=_moneys,
    month=lambda day: f"{_MONTHS[day.month - 1]} {day.year}",
    count=lambda days: (f"{days} days", str(days)),
    dear=1,
    finish=lambda text: _STARTS.sub(lambda found: found[0].upper(), text),
)

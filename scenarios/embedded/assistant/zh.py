"""Chinese for the assistant scenario."""

from __future__ import annotations

from datetime import date

from .text import Tongue, frames
from .zh_asked import ASKED, READING
from .zh_habits import HABITS
from .zh_home import HOME
from .zh_offers import OFFERS
from .zh_talk import TALK
from .zh_world import WORLD


def _day(day: date) -> str:
    return f"{day.month}月{day.day}日"


def _moneys(amount: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys((f"{amount}元", f"{amount}块", str(amount), f"{amount:,}元", f"¥{amount}")))


CHINESE = Tongue(
    frames=frames("".join((WORLD, OFFERS, TALK, HABITS, HOME, READING, ASKED)), ""),
    glue="",
    day=_day,
    days=lambda day: (_day(day), f"{day.month}月{day.day}号", f"{day.year}年{_day(day)}", str(day)),
    money=lambda amount: f"{amount}元",
    moneys=_moneys,
    month=lambda day: f"{day.year}年{day.month}月",
    count=lambda days: (f"{days}天", f"{days} 天", str(days)),
    dear=4,
    finish=lambda text: text,
)

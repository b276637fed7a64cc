"""Arcs towards a day: a present, a dinner, a race; and the day, or the aim, is changed."""

from __future__ import annotations

from datetime import timedelta

from .home import Arc
from .life import Life
from .results import agenda, presents


def gift(life: Life) -> Arc:
    """A present for somebody's day; the day turns out to be another."""
    write, day, money = life.write, life.tongue.day, life.tongue.money
    label, when, limit = write("gift.label"), life.ahead(20, 60), 5 * life.price(6, 40)
    thing = life.ledger.thing("gift", label)
    said = life.user("gift.ask", label=label, day=day(when), limit=money(limit))
    life.tell_day(thing, "day", said, when)
    life.tell_price(thing, "limit", said, limit)
    query = write("gift.query")
    offers, found = presents(life, query, limit)
    life.use(("web_search", {"query": query}, found))
    ideas = "\n".join(
        "- " + write("gift.idea", present=o.name, price=money(o.price), about=o.description) for o in offers[:3]
    )
    present = offers[life.rng.randrange(3)].name
    life.reply("gift.offer", label=label, list=ideas, more=write.lines("gift.advice", 3))
    yield True

    said = life.user("gift.choose", present=present, label=label)
    life.tell(thing, "present", said, present)
    life.keep(write("gift.note", label=label, present=present))
    life.reply("gift.chosen", present=present, label=label)
    yield False

    if life.today > when - timedelta(days=5):
        return
    right = when + timedelta(days=life.rng.choice((-2, -1, 1, 2, 3, 7)))
    said = life.user("gift.wrong", label=label, old=day(when), new=day(right))
    life.tell_day(thing, "day", said, right)
    life.put(thing, label, right, "18:00", write("event.place"))
    life.reply("gift.corrected", label=label, old=day(when), new=day(right))
    yield False


def dinner(life: Life) -> Arc:
    """Guests, what one of them cannot eat, the shopping; and the day is changed."""
    write, day = life.write, life.tongue.day
    label, when, count = write("dinner.label"), life.ahead(12, 35), life.rng.randint(4, 11)
    guest, allergen = write("friend"), write.parts("dinner.allergen")
    thing = life.ledger.thing("dinner", label)
    words: dict[str, object] = {"label": label, "guest": guest, "allergen": allergen[0]}
    said = life.user("dinner.ask", day=day(when), count=count, **words)
    life.tell_day(thing, "day", said, when)
    life.tell(thing, "allergen", said, *allergen)
    life.use(("calendar_search", {"from": str(when), "to": str(when)}, agenda(life, when, when)[1]))
    menu = {"starter": write("dish.starter"), "main": write("dish.main"), "dessert": write("dish.dessert")}
    life.reply("dinner.menu", diet=life.taste("diet"), advice=write.lines("dinner.advice", 4), **menu, **words)
    yield True

    life.user("dinner.shop", count=count, **words)
    life.reply("dinner.list", list=write.lines("dinner.item", 9), groceries=life.taste("groceries"), **menu, **words)
    yield False

    if life.today > when - timedelta(days=3):
        return
    later = when + timedelta(days=life.rng.choice((1, 2, 6, 7, 8)))
    said = life.user("dinner.move", old=day(when), new=day(later), reason=write("move.why"), **words)
    life.tell_day(thing, "day", said, later)
    life.put(thing, label, later, life.time(18, 19), write("dinner.where"))
    life.reply("dinner.moved", new=day(later), **menu, **words)
    yield False


def race(life: Life) -> Arc:
    """Training for a race, and a target that is corrected."""
    write, day = life.write, life.tongue.day
    label, when = write("race.label"), life.ahead(60, 130)
    low = life.rng.randint(100, 150)
    thing = life.ledger.thing("race", label)
    target = write.parts("race.time", h=low // 60, m=f"{low % 60:02d}")
    said = life.user("race.tell", label=label, day=day(when), target=target[0])
    life.tell_day(thing, "day", said, when)
    life.tell(thing, "target", said, *target)
    week = life.today + timedelta(days=7)
    life.use(("calendar_search", {"from": str(life.today), "to": str(week)}, agenda(life, life.today, week)[1]))
    weeks = "\n".join(f"{n}. {write('race.week')}" for n in range(1, 9))
    life.reply(
        "race.plan", label=label, list=weeks, exercise=life.taste("exercise"), advice=write.some("race.advice", 3)
    )
    yield False

    if life.today > when - timedelta(days=20):
        return
    life.user("race.log", label=label)
    life.reply("race.answer", label=label, advice=write.lines("race.advice", 4))
    yield False

    if life.today > when:
        return
    slower = low + life.rng.choice((-6, -4, 5, 8, 12))
    now = write.parts("race.time", h=slower // 60, m=f"{slower % 60:02d}")
    said = life.user("race.change", label=label, old=target[0], new=now[0])
    life.tell(thing, "target", said, *now)
    life.keep(write("race.note", label=label, new=now[0]))
    life.reply("race.changed", label=label, new=now[0], advice=write.lines("race.advice", 2))
    yield False

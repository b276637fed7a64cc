"""Arcs of the user's life: a trip, a bill, a dinner, a new home.

An arc is a generator that writes the user's turns with all that answers them. Each `yield` ends a turn: True if the
arc's next turn follows at once, False if it comes another day. An arc ends early where its day has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

from .life import (
    Life,
    Offer,
    Subject,
    agenda,
    flights,
    headline,
    letters,
    notes,
    payments,
    presents,
    products,
    rooms,
    thread,
    to_json,
)

Arc = Iterator[bool]
ArcMaker = Callable[[Life], Arc]


# Out of the house: trips, appointments, weeks, work.


def trip(life: Life) -> Arc:
    """Write a trip: a flight, perhaps a room, and then the date is moved."""
    write, day = life.write, life.language.day
    city, purpose, companion = write("city"), write("trip.purpose"), write("companion")
    subject = life.ledger.subject("trip", write("trip.label", city=city, purpose=purpose))
    out = life.day_ahead(35, 90)
    back = out + timedelta(days=life.rng.randint(2, 6))
    facts = {"city": city, "purpose": purpose, "companion": companion}
    message = life.user("trip.ask", out=day(out), back=day(back), **facts)
    life.record_day(subject, "out", message, out)
    life.record(subject, "companion", message, companion)
    offers, result = flights(life, city, out)
    life.call_tools(
        ("calendar_search", {"from": str(out), "to": str(back)}, agenda(life, out, back)[1]),
        ("web_search", {"query": write("trip.query", city=city), "date": str(out)}, result),
    )
    best = life.rng.choice(offers)
    options = _options(life, "trip.option", offers[1:4] if best in offers[1:4] else [best, *offers[2:4]])
    life.reply("trip.offer", list=options, best=best.name, seat=life.taste("seat"), **facts)
    yield True

    life.user("trip.book", flight=best.name, carrier=best.description, **facts)
    reference = life.code(6, 0)
    fare = life.language.money(best.price)
    ticket = {"status": "confirmed", "reference": reference, "flight": best.name, "date": str(out), "total": fare}
    ticket |= {"seat": life.taste("seat"), "rules": write.sentences("fare.rule", 5)}
    request = {"flight": best.name, "date": str(out), "seat": life.taste("seat")}
    (message,) = life.call_tools(("book_travel", request, to_json(ticket)))
    life.record(subject, "ref", message, reference)
    life.record(subject, "flight", message, best.name)
    life.record(subject, "fare", message, *life.language.money_spellings(best.price))
    life.schedule(subject, subject.label, out, best.detail[:5], write("airport"))
    facts |= {"flight": best.name, "ref": reference, "fare": fare}
    life.reply("trip.booked", out=day(out), seat=life.taste("seat"), **facts)
    yield life.rng.random() < 0.7

    if life.today > out - timedelta(days=3):
        return
    yield from _stay(life, city, subject)
    if life.today > out - timedelta(days=8):
        return
    new = out + timedelta(days=life.rng.choice((-3, -2, 2, 3, 4, 5)))
    message = life.user("trip.move", old=day(out), new=day(new), reason=write("move.why"), label=subject.label, **facts)
    life.record_day(subject, "out", message, new)
    change = {"reference": reference, "date": str(new)}
    fee, rules = life.language.money(life.price(12, 70)), write.sentences("fare.rule", 3)
    life.call_tools(("book_travel", change, to_json(change | {"status": "rebooked", "fee": fee, "rules": rules})))
    life.schedule(subject, subject.label, new, best.detail[:5], write("airport"))
    life.reply("trip.moved", new=day(new), fee=fee, **facts)
    yield False


def _stay(life: Life, city: str, subject: Subject) -> Arc:
    limit = 10 * life.price(11, 26)
    life.user("room.ask", city=city, limit=life.language.money(limit))
    offers, result = rooms(life, city, limit)
    life.call_tools(("web_search", {"query": life.write("room.query", city=city), "type": "hotel"}, result))
    life.reply("room.offer", list=_options(life, "room.option", offers), city=city, room=life.taste("room"))
    yield True

    choice = life.rng.choice([offer for offer in offers if offer.price <= limit])
    message = life.user("room.book", hotel=choice.name, rate=life.language.money(choice.price), city=city)
    life.record(subject, "hotel", message, choice.name)
    life.record(subject, "rate", message, *life.language.money_spellings(choice.price))
    number = life.code(2, 5)
    booking = {"status": "confirmed", "hotel": choice.name, "confirmation": number}
    booking |= {"room": life.taste("room"), "policy": life.write.sentences("room.rule", 4)}
    request = {"hotel": choice.name, "request": life.taste("room")}
    (message,) = life.call_tools(("book_travel", request, to_json(booking)))
    life.record(subject, "number", message, number)
    life.reply("room.booked", hotel=choice.name, number=number, room=life.taste("room"), city=city)
    yield False


def visit(life: Life) -> Arc:
    """Write an appointment that is moved, and the things to bring."""
    write, day = life.write, life.language.day
    label, place = write("visit.label"), write("address")
    subject = life.ledger.subject("visit", label)
    when, time = life.day_ahead(12, 60), life.time(8, 17)
    message = life.user("visit.ask", label=label, day=day(when), time=time, place=place)
    life.record_day(subject, "day", message, when)
    life.record(subject, "place", message, place)
    lines, result = agenda(life, when - timedelta(days=1), when + timedelta(days=1))
    life.call_tools(("calendar_search", {"from": str(when), "to": str(when)}, result))
    life.schedule(subject, label, when, time, place)
    life.reply("visit.noted", label=label, day=day(when), time=time, place=place, near="\n".join(lines[:4]))
    yield life.rng.random() < 0.4

    if life.today > when - timedelta(days=1):
        return
    item, *spellings = write.fields("visit.bring")
    life.user("visit.prepare", label=label)
    letter = write("visit.letter", item=item, label=label)
    result = letters(life, write("firm"), headline(label), letter, 5)
    (message,) = life.call_tools(("email_search", {"query": headline(label)}, result))
    life.record(subject, "bring", message, item, *spellings)
    life.reply("visit.ready", item=item, label=label)
    yield False

    if life.today > when - timedelta(days=2):
        return
    new, time = when + timedelta(days=life.rng.randint(2, 16)), life.time(8, 17)
    message = life.user("visit.move", label=label, old=day(when), new=day(new), time=time, reason=write("move.why"))
    life.record_day(subject, "day", message, new)
    life.schedule(subject, label, new, time, place)
    life.reply("visit.moved", label=label, new=day(new), time=time, place=place)
    yield False


def week(life: Life) -> Arc:
    """Write a question about the calendar."""
    first = life.day_ahead(0, 4)
    last = first + timedelta(days=6)
    facts = {"first": life.language.day(first), "last": life.language.day(last)}
    life.user("week.ask", **facts)
    lines, result = agenda(life, first, last)
    life.call_tools(("calendar_search", {"from": str(first), "to": str(last)}, result))
    life.reply("week.sum", list="\n".join(lines), remark=life.write.sentences("week.remark", 3), **facts)
    yield False


def project(life: Life) -> Arc:
    """Write a project at work: who leads it, what it may cost, by when; mails, and a change of plan."""
    write, day, money = life.write, life.language.day, life.language.money
    label, lead = write("project.label"), write("colleague")
    subject, title = life.ledger.subject("project", label), headline(label)
    first, other = lead.split()[0], next(name for name in (write("colleague") for _ in range(9)) if name != lead)
    budget, deadline = 500 * life.price(12, 180), life.day_ahead(40, 120)
    message = life.user("project.tell", label=label, lead=lead, budget=money(budget))
    life.record(subject, "lead", message, lead)
    life.record_price(subject, "budget", message, budget)
    life.save_note(write("project.note", label=label, lead=lead, budget=money(budget)))
    life.reply("project.plan", label=label, lead=lead, advice=write.bullets("project.advice", 5, colleague=other))
    yield True

    message = life.user("project.mail", label=label, lead=lead, day=day(deadline))
    life.record_day(subject, "deadline", message, deadline)
    life.call_tools(("email_search", {"query": title}, thread(life, title, 5)))
    body = write.sentences("project.body", 4, label=label, colleague=other)
    life.reply("project.draft", label=label, first=first, day=day(deadline), body=body, signoff=life.taste("signoff"))
    yield True

    life.user("project.tweak", lead=lead)
    final = life.language.finish(write("project.final", first=first, day=day(deadline), label=label))
    mail = {"to": lead, "subject": title, "body": final}
    receipt = {"status": "sent", "message_id": life.code(3, 9)}
    receipt |= {"preview": write.sentences("project.body", 2, colleague=other)}
    life.call_tools(("send_email", mail, to_json(receipt)))
    life.reply("project.sent", lead=lead, label=label)
    yield False

    if life.today > deadline - timedelta(days=2):
        return
    if life.rng.random() < 0.6:
        new = deadline + timedelta(days=life.rng.randint(6, 30))
        message = life.user("project.later", label=label, old=day(deadline), new=day(new), reason=write("project.why"))
        life.record_day(subject, "deadline", message, new)
        life.call_tools(("email_search", {"query": title}, thread(life, title, 5)))
        life.save_note(write("project.note.later", label=label, new=day(new)))
        advice = write.bullets("project.advice", 3, colleague=other)
        life.reply("project.moved", label=label, new=day(new), advice=advice)
    else:
        message = life.user("project.handed", label=label, old=lead, new=other, reason=write("project.why"))
        life.record(subject, "lead", message, other)
        life.save_note(write("project.note.handed", label=label, new=other))
        advice = write.bullets("project.advice", 3, colleague=other)
        life.reply("project.over", label=label, new=other, old=lead, advice=advice)
    yield False


# At home: what the user likes, pays, buys, reads up on; a new home.


def taste(life: Life) -> Arc:
    """Write a taste: the user states it, changes their mind, and is asked when they contradict themselves."""
    write = life.write
    topic = write("taste.topics")
    facts = {"topic": write(f"taste.{topic}.name")}
    if topic not in life.tastes:
        new = _other_taste(life, topic)
        message = life.user("taste.first", value=new[0], reason=write(f"taste.{topic}.why"), **facts)
        _set_taste(life, topic, message, new)
        life.save_note(write("taste.note", value=new[0], **facts))
        life.reply("taste.noted", value=new[0], **facts)
        yield False

    old, new = life.tastes[topic], _other_taste(life, topic)
    message = life.user("taste.change", old=old[0], value=new[0], reason=write(f"taste.{topic}.why"), **facts)
    _set_taste(life, topic, message, new)
    life.save_note(write("taste.note", value=new[0], **facts))
    life.reply("taste.changed", old=old[0], value=new[0], **facts)
    when = life.language.day(life.today)
    yield False

    if life.tastes[topic] != new or life.rng.random() < 0.5:
        return
    life.user("taste.slip", value=old[0], **facts)
    lines = f"- {when}: {write('taste.note', value=new[0], **facts)}\n{write.bullets('note.more', 3)}"
    life.call_tools(("notes_search", {"query": facts["topic"]}, lines))
    life.reply("taste.doubt", old=old[0], value=new[0], **facts)
    yield True

    value, other = (old, new) if life.rng.random() < 0.5 else (new, old)
    message = life.user("taste.settle", value=value[0], other=other[0], **facts)
    _set_taste(life, topic, message, value)
    life.reply("taste.settled", value=value[0], **facts)
    yield False


def _other_taste(life: Life, topic: str) -> tuple[str, ...]:
    while True:
        new = tuple(life.write.fields(f"taste.{topic}.value"))
        if new != life.tastes.get(topic):
            return new


def _set_taste(life: Life, topic: str, message: str, value: tuple[str, ...]) -> None:
    life.tastes[topic] = value
    life.record(Subject("taste", topic), topic, message, *value)


def bill(life: Life) -> Arc:
    """Write a bill that is paid every month, and then costs another amount."""
    write, money = life.write, life.language.money
    label, price = write("bill.label"), life.price(14, 140)
    subject = life.ledger.subject("bill", label)
    message = life.user("bill.tell", label=label, price=money(price))
    life.record_price(subject, "price", message, price)
    number, notice = life.code(2, 7), write.fields("bill.notice")
    letter = write("bill.letter", label=label, number=number, notice=notice[0])
    result = letters(life, write("firm"), headline(label), letter, 5)
    (message,) = life.call_tools(("email_search", {"query": headline(label)}, result))
    life.record(subject, "number", message, number)
    life.record(subject, "notice", message, *notice)
    life.reply("bill.noted", label=label, price=money(price), year=money(12 * price), notice=notice[0])
    yield False

    new = price + life.rng.choice((-7, -4, -2, 2, 3, 5, 6, 9, 12))
    message = life.user("bill.change", label=label, old=money(price), new=money(new))
    life.record_price(subject, "price", message, new)
    life.save_note(write("bill.note", label=label, new=money(new)))
    life.reply("bill.changed", label=label, new=money(new), gap=money(12 * abs(new - price)), year=money(12 * new))
    yield False


def month(life: Life) -> Arc:
    """Write a look at where the money went last month, once for every month."""
    first = (life.today.replace(day=1) - timedelta(days=1)).replace(day=1)
    name = life.language.month(first)
    if name in life.months:
        return
    life.months.add(name)
    life.user("month.ask", month=name)
    sums, table = payments(life, first)
    life.call_tools(("list_transactions", {"month": str(first)[:7]}, table))
    ranking = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    lines = "\n".join(f"- {category}: {life.language.money(amount)}" for category, amount in ranking)
    total, remark = life.language.money(sum(sums.values())), life.write.sentences("month.remark", 3)
    message = life.reply("month.sum", list=lines, total=total, month=name, remark=remark)
    for category, amount in ranking[1:4]:
        subject = life.ledger.subject("month", life.write("month.label", category=category.lower(), month=name))
        life.record_price(subject, "total", message, amount)
    yield False


def moving(life: Life) -> Arc:
    """Write a new home: its address, rent and keys, the movers, and the keys come later than promised."""
    write, day, money = life.write, life.language.day, life.language.money
    address, rent, keys = write("address"), 10 * life.price(95, 240), life.day_ahead(45, 80)
    subject = life.ledger.subject("flat", write("flat.label", address=address))
    message = life.user("flat.tell", address=address, rent=money(rent), day=day(keys))
    life.record_price(subject, "rent", message, rent)
    life.record_day(subject, "keys", message, keys)
    life.save_note(write("flat.note", address=address, rent=money(rent), day=day(keys)))
    life.schedule(subject, write("flat.event"), keys, life.time(9, 15), address)
    life.reply("flat.plan", address=address, day=day(keys), advice=write.bullets("flat.advice", 6))
    yield False

    if life.today > keys - timedelta(days=10):
        return
    quotes = [(write("firm"), 10 * life.price(48, 160)) for _ in range(3)]
    life.user("flat.quotes", address=address)
    for firm, price in quotes:
        letter = write("flat.quote", firm=firm, price=money(price), address=address)
        query = {"query": f"{write('flat.query')} {firm}"}
        life.call_tools(("email_search", query, letters(life, firm, write("flat.query"), letter, 3)))
    lines = "\n".join("- " + write("flat.compare", firm=firm, price=money(price)) for firm, price in quotes)
    life.reply("flat.compared", list=lines)
    yield True

    mover, price = life.rng.choice(quotes)
    message = life.user("flat.mover", firm=mover, price=money(price))
    life.record(subject, "mover", message, mover)
    life.reply("flat.hired", firm=mover, price=money(price), advice=write.bullets("flat.advice", 4))
    yield False

    if life.today > keys - timedelta(days=3):
        return
    new = keys + timedelta(days=life.rng.randint(4, 20))
    message = life.user("flat.later", old=day(keys), new=day(new), address=address)
    life.record_day(subject, "keys", message, new)
    life.schedule(subject, write("flat.event"), new, life.time(9, 15), address)
    life.reply("flat.moved", new=day(new), firm=mover, advice=write.bullets("flat.advice", 3))
    yield False


def purchase(life: Life) -> Arc:
    """Write a purchase for the house: compared, ordered, delivered on another day."""
    write, day, money = life.write, life.language.day, life.language.money
    item, limit = write("buy.item"), 10 * life.price(30, 140)
    subject = life.ledger.subject("buy", write("buy.label", item=item))
    life.user("buy.ask", item=item, limit=money(limit))
    offers, result = products(life, item, limit)
    life.call_tools(("web_search", {"query": item, "max_price": limit}, result))
    options = _options(life, "buy.option", offers[:4])
    life.reply("buy.offer", item=item, list=options, advice=write.sentences("buy.advice", 3))
    yield True

    choice, delivery = life.rng.choice(offers[:4]), life.day_ahead(14, 40)
    message = life.user("buy.choose", item=item, name=choice.name, price=money(choice.price), day=day(delivery))
    life.record(subject, "model", message, choice.name)
    life.record_price(subject, "price", message, choice.price)
    life.record_day(subject, "day", message, delivery)
    life.schedule(subject, subject.label, delivery, life.time(8, 12), write("buy.where"))
    life.reply("buy.noted", item=item, name=choice.name, day=day(delivery), advice=write.sentences("buy.advice", 2))
    yield False

    if life.today > delivery:
        return
    new = delivery + timedelta(days=life.rng.randint(2, 13))
    message = life.user("buy.move", item=item, old=day(delivery), new=day(new))
    life.record_day(subject, "day", message, new)
    life.schedule(subject, subject.label, new, life.time(8, 12), write("buy.where"))
    life.reply("buy.moved", item=item, new=day(new))
    yield False


def note(life: Life) -> Arc:
    """Write a question about a note."""
    pages, result = notes(life, life.rng.randint(6, 8))
    page = pages[0]
    life.user("note.ask", title=page.title)
    (message,) = life.call_tools(("notes_search", {"query": page.title}, result))
    for other in pages:
        life.record(Subject("note", other.question), "value", message, other.value)
    life.reply("note.answer", title=page.title, value=page.value, others=life.write.bullets("note.more", 3))
    yield False


def howto(life: Life) -> Arc:
    """Write a question on the wider world, with a long answer."""
    write = life.write
    topic = write("howto.topics")
    fact = f"howto.{topic}.fact"
    life.user(f"howto.{topic}.ask")
    pages = [
        f"{write('howto.source')}\n{write.sentences(fact, 3)}\n{write.sentences('howto.filler', 2)}" for _ in range(6)
    ]
    life.call_tools(("web_search", {"query": write(f"howto.{topic}.query")}, "\n\n".join(pages)))
    life.reply("howto.answer", list=write.bullets(fact, 6), close=write.sentences("howto.close", 2))
    yield False


# Towards a day: a present, a dinner, a race; and the day, or the aim, is changed.


def gift(life: Life) -> Arc:
    """Write a present for somebody's day; the day turns out to be another."""
    write, day, money = life.write, life.language.day, life.language.money
    label, when, limit = write("gift.label"), life.day_ahead(20, 60), 5 * life.price(6, 40)
    subject = life.ledger.subject("gift", label)
    message = life.user("gift.ask", label=label, day=day(when), limit=money(limit))
    life.record_day(subject, "day", message, when)
    life.record_price(subject, "limit", message, limit)
    query = write("gift.query")
    offers, result = presents(life, query, limit)
    life.call_tools(("web_search", {"query": query}, result))
    options = _options(life, "gift.idea", offers[:3])
    present = offers[life.rng.randrange(3)].name
    life.reply("gift.offer", label=label, list=options, more=write.bullets("gift.advice", 3))
    yield True

    message = life.user("gift.choose", present=present, label=label)
    life.record(subject, "present", message, present)
    life.save_note(write("gift.note", label=label, present=present))
    life.reply("gift.chosen", present=present, label=label)
    yield False

    if life.today > when - timedelta(days=5):
        return
    new = when + timedelta(days=life.rng.choice((-2, -1, 1, 2, 3, 7)))
    message = life.user("gift.wrong", label=label, old=day(when), new=day(new))
    life.record_day(subject, "day", message, new)
    life.schedule(subject, label, new, "18:00", write("event.place"))
    life.reply("gift.corrected", label=label, old=day(when), new=day(new))
    yield False


def dinner(life: Life) -> Arc:
    """Write a dinner: guests, what one of them cannot eat, the shopping; and the day is changed."""
    write, day = life.write, life.language.day
    label, when, count = write("dinner.label"), life.day_ahead(12, 35), life.rng.randint(4, 11)
    guest, allergen = write("friend"), write.fields("dinner.allergen")
    subject = life.ledger.subject("dinner", label)
    facts: dict[str, object] = {"label": label, "guest": guest, "allergen": allergen[0]}
    message = life.user("dinner.ask", day=day(when), count=count, **facts)
    life.record_day(subject, "day", message, when)
    life.record(subject, "allergen", message, *allergen)
    life.call_tools(("calendar_search", {"from": str(when), "to": str(when)}, agenda(life, when, when)[1]))
    facts |= {"starter": write("dish.starter"), "main": write("dish.main"), "dessert": write("dish.dessert")}
    life.reply("dinner.menu", diet=life.taste("diet"), advice=write.bullets("dinner.advice", 4), **facts)
    yield True

    life.user("dinner.shop", count=count, **facts)
    life.reply("dinner.list", list=write.bullets("dinner.item", 9), groceries=life.taste("groceries"), **facts)
    yield False

    if life.today > when - timedelta(days=3):
        return
    new = when + timedelta(days=life.rng.choice((1, 2, 6, 7, 8)))
    message = life.user("dinner.move", old=day(when), new=day(new), reason=write("move.why"), **facts)
    life.record_day(subject, "day", message, new)
    life.schedule(subject, label, new, life.time(18, 19), write("dinner.where"))
    life.reply("dinner.moved", new=day(new), **facts)
    yield False


def race(life: Life) -> Arc:
    """Write the training for a race, and a target that is corrected."""
    write, day = life.write, life.language.day
    label, when = write("race.label"), life.day_ahead(60, 130)
    minutes = life.rng.randint(100, 150)
    subject = life.ledger.subject("race", label)
    target = write.fields("race.time", h=minutes // 60, m=f"{minutes % 60:02d}")
    message = life.user("race.tell", label=label, day=day(when), target=target[0])
    life.record_day(subject, "day", message, when)
    life.record(subject, "target", message, *target)
    today, next_week = life.today, life.today + timedelta(days=7)
    life.call_tools(("calendar_search", {"from": str(today), "to": str(next_week)}, agenda(life, today, next_week)[1]))
    weeks = "\n".join(f"{n}. {write('race.week')}" for n in range(1, 9))
    exercise, advice = life.taste("exercise"), write.sentences("race.advice", 3)
    life.reply("race.plan", label=label, list=weeks, exercise=exercise, advice=advice)
    yield False

    if life.today > when - timedelta(days=20):
        return
    life.user("race.log", label=label)
    life.reply("race.answer", label=label, advice=write.bullets("race.advice", 4))
    yield False

    if life.today > when:
        return
    minutes += life.rng.choice((-6, -4, 5, 8, 12))
    new = write.fields("race.time", h=minutes // 60, m=f"{minutes % 60:02d}")
    message = life.user("race.change", label=label, old=target[0], new=new[0])
    life.record(subject, "target", message, *new)
    life.save_note(write("race.note", label=label, new=new[0]))
    life.reply("race.changed", label=label, new=new[0], advice=write.bullets("race.advice", 2))
    yield False


def _options(life: Life, key: str, offers: list[Offer]) -> str:
    """Return the offers as a list, worded by forms under the key."""
    return "\n".join(
        "- " + life.write(key, name=o.name, price=life.language.money(o.price), detail=o.detail, about=o.description)
        for o in offers
    )


ARCS: tuple[ArcMaker, ...] = (
    *(trip, trip, visit, visit, week, project, project),
    *(taste, taste, taste, bill, bill, month, moving, gift),
    *(dinner, race, purchase, note, howto, howto),
)
"""Arcs of a few months. An arc in the list twice occurs twice as often."""

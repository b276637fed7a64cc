"""Arcs of the user's life: a trip, a bill, a dinner, a new home.

An arc is a generator that writes the user's turns with all that answers them. Each `yield` ends a turn: True if the
arc's next turn follows at once, False if it comes another day, and a day if it comes another day, up to that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta

from .language import bullets
from .life import Life, Offer, Subject, headline, to_json

Arc = Iterator[bool | date]
ArcMaker = Callable[[Life], Arc]


# Out of the house: trips, appointments, weeks, work.


def trip(life: Life) -> Arc:
    """Write a trip: a flight, perhaps a room, and then the date is moved."""
    write = life.write
    city, purpose, companion = write("city"), write("trip.purpose"), write("companion")
    subject = life.ledger.subject("trip", write("trip.label", city=city, purpose=purpose))
    out = life.day_ahead(35, 90)
    back = out + timedelta(days=life.rng.randint(2, 6))
    facts: dict[str, object] = {"city": city, "purpose": purpose, "companion": companion}
    life.record(subject, life.user("trip.ask", out=out, back=back, **facts), out=out, companion=companion)
    offers, result = life.flights(city, out)
    life.call_tools(
        ("calendar_search", {"from": str(out), "to": str(back)}, life.agenda(out, back)[1]),
        ("web_search", {"query": write("trip.query", city=city), "date": str(out)}, result),
    )
    best = life.rng.choice(offers)
    options = _options(life, "trip.option", offers[1:4] if best in offers[1:4] else [best, *offers[2:4]])
    life.reply("trip.offer", list=options, best=best.name, seat=life.taste("seat"), **facts)
    yield True

    life.user("trip.book", flight=best.name, carrier=best.description, **facts)
    reference, total = life.code(6, 0), life.language.text(best.price)
    ticket = {"status": "confirmed", "reference": reference, "flight": best.name, "date": str(out), "total": total}
    ticket |= {"seat": life.taste("seat"), "rules": write.sentences("fare.rule", 5)}
    request = {"flight": best.name, "date": str(out), "seat": life.taste("seat")}
    message = life.call_tool("book_travel", to_json(ticket), **request)
    life.record(subject, message, ref=reference, flight=best.name, fare=best.price)
    life.schedule(subject, subject.label, out, best.detail[:5], write("airport"))
    facts |= {"flight": best.name, "ref": reference, "fare": best.price}
    life.reply("trip.booked", out=out, seat=life.taste("seat"), **facts)
    yield life.rng.random() < 0.7

    if life.today > out - timedelta(days=3):
        return
    yield from _stay(life, city, subject)
    if life.today > out - timedelta(days=8):
        return
    new = out + timedelta(days=life.rng.choice((-3, -2, 2, 3, 4, 5)))
    message = life.user("trip.move", old=out, new=new, reason=write("move.why"), label=subject.label, **facts)
    life.record(subject, message, out=new)
    change, fee = {"reference": reference, "date": str(new)}, life.language.text(life.price(12, 70))
    answer = {**change, "status": "rebooked", "fee": fee, "rules": write.sentences("fare.rule", 3)}
    life.call_tool("book_travel", to_json(answer), **change)
    life.schedule(subject, subject.label, new, best.detail[:5], write("airport"))
    life.reply("trip.moved", new=new, fee=fee, **facts)
    yield False


def _stay(life: Life, city: str, subject: Subject) -> Arc:
    limit = 10 * life.price(11, 26)
    life.user("room.ask", city=city, limit=limit)
    offers, result = life.rooms(city, limit)
    life.call_tool("web_search", result, query=life.write("room.query", city=city), type="hotel")
    life.reply("room.offer", list=_options(life, "room.option", offers), city=city, room=life.taste("room"))
    yield True

    choice = life.rng.choice([offer for offer in offers if offer.price <= limit])
    message = life.user("room.book", hotel=choice.name, rate=choice.price, city=city)
    life.record(subject, message, hotel=choice.name, rate=choice.price)
    number = life.code(2, 5)
    booking = {"status": "confirmed", "hotel": choice.name, "confirmation": number}
    booking |= {"room": life.taste("room"), "policy": life.write.sentences("room.rule", 4)}
    message = life.call_tool("book_travel", to_json(booking), hotel=choice.name, request=life.taste("room"))
    life.record(subject, message, number=number)
    life.reply("room.booked", hotel=choice.name, number=number, room=life.taste("room"), city=city)
    yield False


def visit(life: Life) -> Arc:
    """Write an appointment that is moved, and the things to bring."""
    write = life.write
    label, place = write("visit.label"), write("address")
    subject = life.ledger.subject("visit", label)
    when, time = life.day_ahead(12, 60), life.time(8, 17)
    life.record(subject, life.user("visit.ask", label=label, day=when, time=time, place=place), day=when, place=place)
    lines, result = life.agenda(when - timedelta(days=1), when + timedelta(days=1))
    life.call_tool("calendar_search", result, **{"from": str(when), "to": str(when)})
    life.schedule(subject, label, when, time, place)
    life.reply("visit.noted", label=label, day=when, time=time, place=place, near="\n".join(lines[:4]))
    yield life.rng.random() < 0.4

    if life.today > when - timedelta(days=1):
        return
    item, *spellings = write.fields("visit.bring")
    life.user("visit.prepare", label=label)
    letter = write("visit.letter", item=item, label=label)
    result = life.letters(write("firm"), headline(label), letter, 5)
    life.record(subject, life.call_tool("email_search", result, query=headline(label)), bring=(item, *spellings))
    life.reply("visit.ready", item=item, label=label)
    yield when - timedelta(days=2)

    new, time = when + timedelta(days=life.rng.randint(2, 16)), life.time(8, 17)
    message = life.user("visit.move", label=label, old=when, new=new, time=time, reason=write("move.why"))
    life.record(subject, message, day=new)
    life.schedule(subject, label, new, time, place)
    life.reply("visit.moved", label=label, new=new, time=time, place=place)
    yield False


def week(life: Life) -> Arc:
    """Write a question about the calendar."""
    first = life.day_ahead(0, 4)
    last = first + timedelta(days=6)
    life.user("week.ask", first=first, last=last)
    lines = _look_up(life, first, last)
    remark = life.write.sentences("week.remark", 3)
    life.reply("week.sum", list="\n".join(lines), remark=remark, first=first, last=last)
    yield False


def project(life: Life) -> Arc:
    """Write a project at work: lead, budget, deadline, mails, and a change of plan."""
    write = life.write
    label, lead = write("project.label"), write("colleague")
    subject, title = life.ledger.subject("project", label), headline(label)
    first, other = lead.split()[0], next(name for name in (write("colleague") for _ in range(9)) if name != lead)
    budget, deadline = 500 * life.price(12, 180), life.day_ahead(40, 120)
    life.record(subject, life.user("project.tell", label=label, lead=lead, budget=budget), lead=lead, budget=budget)
    life.save_note("project.note", label=label, lead=lead, budget=budget)
    life.reply("project.plan", label=label, lead=lead, advice=write.bullets("project.advice", 5, colleague=other))
    yield True

    life.record(subject, life.user("project.mail", label=label, lead=lead, day=deadline), deadline=deadline)
    life.call_tool("email_search", life.thread(title, 5), query=title)
    body = write.sentences("project.body", 4, label=label, colleague=other)
    life.reply("project.draft", label=label, first=first, day=deadline, body=body, signoff=life.taste("signoff"))
    yield True

    life.user("project.tweak", lead=lead)
    final = life.language.finish(write("project.final", first=first, day=deadline, label=label))
    receipt = {"status": "sent", "message_id": life.code(3, 9)}
    receipt |= {"preview": write.sentences("project.body", 2, colleague=other)}
    life.call_tool("send_email", to_json(receipt), to=lead, subject=title, body=final)
    life.reply("project.sent", lead=lead, label=label)
    yield deadline - timedelta(days=2)

    if life.rng.random() < 0.6:
        new = deadline + timedelta(days=life.rng.randint(6, 30))
        message = life.user("project.later", label=label, old=deadline, new=new, reason=write("project.why"))
        life.record(subject, message, deadline=new)
        life.call_tool("email_search", life.thread(title, 5), query=title)
        life.save_note("project.note.later", label=label, new=new)
        advice = write.bullets("project.advice", 3, colleague=other)
        life.reply("project.moved", label=label, new=new, advice=advice)
    else:
        message = life.user("project.handed", label=label, old=lead, new=other, reason=write("project.why"))
        life.record(subject, message, lead=other)
        life.save_note("project.note.handed", label=label, new=other)
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
        life.save_note("taste.note", value=new[0], **facts)
        life.reply("taste.noted", value=new[0], **facts)
        yield False

    old, new = life.tastes[topic], _other_taste(life, topic)
    message = life.user("taste.change", old=old[0], value=new[0], reason=write(f"taste.{topic}.why"), **facts)
    _set_taste(life, topic, message, new)
    life.save_note("taste.note", value=new[0], **facts)
    life.reply("taste.changed", old=old[0], value=new[0], **facts)
    when = life.language.text(life.today)
    yield False

    if life.tastes[topic] != new or life.rng.random() < 0.5:
        return
    life.user("taste.slip", value=old[0], **facts)
    lines = f"- {when}: {write('taste.note', value=new[0], **facts)}\n{write.bullets('note.more', 3)}"
    life.call_tool("notes_search", lines, query=facts["topic"])
    life.reply("taste.doubt", old=old[0], value=new[0], **facts)
    yield True

    value, other = (old, new) if life.rng.random() < 0.5 else (new, old)
    message = life.user("taste.settle", value=value[0], other=other[0], **facts)
    _set_taste(life, topic, message, value)
    life.reply("taste.settled", value=value[0], **facts)
    yield False


def _other_taste(life: Life, topic: str) -> tuple[str, ...]:
    while (new := tuple(life.write.fields(f"taste.{topic}.value"))) == life.tastes.get(topic):
        pass
    return new


def _set_taste(life: Life, topic: str, message: str, value: tuple[str, ...]) -> None:
    life.tastes[topic] = value
    life.record(Subject("taste", topic), message, **{topic: value})


def bill(life: Life) -> Arc:
    """Write a bill that is paid every month, and then costs another amount."""
    write = life.write
    label, price = write("bill.label"), life.price(14, 140)
    subject = life.ledger.subject("bill", label)
    life.record(subject, life.user("bill.tell", label=label, price=price), price=price)
    number, notice = life.code(2, 7), write.fields("bill.notice")
    letter = write("bill.letter", label=label, number=number, notice=notice[0])
    result = life.letters(write("firm"), headline(label), letter, 5)
    life.record(subject, life.call_tool("email_search", result, query=headline(label)), number=number, notice=notice)
    life.reply("bill.noted", label=label, price=price, year=12 * price, notice=notice[0])
    yield False

    new = price + life.rng.choice((-7, -4, -2, 2, 3, 5, 6, 9, 12))
    life.record(subject, life.user("bill.change", label=label, old=price, new=new), price=new)
    life.save_note("bill.note", label=label, new=new)
    life.reply("bill.changed", label=label, new=new, gap=12 * abs(new - price), year=12 * new)
    yield False


def month(life: Life) -> Arc:
    """Write a look at where the money went last month, once for every month."""
    first = (life.today.replace(day=1) - timedelta(days=1)).replace(day=1)
    name = life.language.month(first)
    if name in life.months:
        return
    life.months.add(name)
    life.user("month.ask", month=name)
    sums, table = life.payments(first)
    life.call_tool("list_transactions", table, month=str(first)[:7])
    ranking = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    lines = bullets([f"{category}: {life.language.text(amount)}" for category, amount in ranking])
    remark = life.write.sentences("month.remark", 3)
    message = life.reply("month.sum", list=lines, total=sum(sums.values()), month=name, remark=remark)
    for category, amount in ranking[1:4]:
        subject = life.ledger.subject("month", life.write("month.label", category=category.lower(), month=name))
        life.record(subject, message, total=amount)
    yield False


def moving(life: Life) -> Arc:
    """Write a new home: its address, rent and keys, the movers, and the keys come later than promised."""
    write = life.write
    address, rent, keys = write("address"), 10 * life.price(95, 240), life.day_ahead(45, 80)
    subject = life.ledger.subject("flat", write("flat.label", address=address))
    life.record(subject, life.user("flat.tell", address=address, rent=rent, day=keys), rent=rent, keys=keys)
    life.save_note("flat.note", address=address, rent=rent, day=keys)
    life.schedule(subject, write("flat.event"), keys, life.time(9, 15), address)
    life.reply("flat.plan", address=address, day=keys, advice=write.bullets("flat.advice", 6))
    yield keys - timedelta(days=10)

    quotes = [(write("firm"), 10 * life.price(48, 160)) for _ in range(3)]
    life.user("flat.quotes", address=address)
    for firm, price in quotes:
        letter = write("flat.quote", firm=firm, price=price, address=address)
        query = f"{write('flat.query')} {firm}"
        life.call_tool("email_search", life.letters(firm, write("flat.query"), letter, 3), query=query)
    life.reply("flat.compared", list=bullets([write("flat.compare", firm=firm, price=price) for firm, price in quotes]))
    yield True

    mover, price = life.rng.choice(quotes)
    life.record(subject, life.user("flat.mover", firm=mover, price=price), mover=mover)
    life.reply("flat.hired", firm=mover, price=price, advice=write.bullets("flat.advice", 4))
    yield keys - timedelta(days=3)

    new = keys + timedelta(days=life.rng.randint(4, 20))
    life.record(subject, life.user("flat.later", old=keys, new=new, address=address), keys=new)
    life.schedule(subject, write("flat.event"), new, life.time(9, 15), address)
    life.reply("flat.moved", new=new, firm=mover, advice=write.bullets("flat.advice", 3))
    yield False


def purchase(life: Life) -> Arc:
    """Write a purchase for the house: compared, ordered, delivered on another day."""
    write = life.write
    item, limit = write("buy.item"), 10 * life.price(30, 140)
    subject = life.ledger.subject("buy", write("buy.label", item=item))
    life.user("buy.ask", item=item, limit=limit)
    offers, result = life.products(item, limit)
    life.call_tool("web_search", result, query=item, max_price=limit)
    options = _options(life, "buy.option", offers[:4])
    life.reply("buy.offer", item=item, list=options, advice=write.sentences("buy.advice", 3))
    yield True

    choice, delivery = life.rng.choice(offers[:4]), life.day_ahead(14, 40)
    message = life.user("buy.choose", item=item, name=choice.name, price=choice.price, day=delivery)
    life.record(subject, message, model=choice.name, price=choice.price, day=delivery)
    life.schedule(subject, subject.label, delivery, life.time(8, 12), write("buy.where"))
    life.reply("buy.noted", item=item, name=choice.name, day=delivery, advice=write.sentences("buy.advice", 2))
    yield delivery

    new = delivery + timedelta(days=life.rng.randint(2, 13))
    life.record(subject, life.user("buy.move", item=item, old=delivery, new=new), day=new)
    life.schedule(subject, subject.label, new, life.time(8, 12), write("buy.where"))
    life.reply("buy.moved", item=item, new=new)
    yield False


def note(life: Life) -> Arc:
    """Write a question about a note."""
    pages, result = life.notes(life.rng.randint(6, 8))
    page = pages[0]
    life.user("note.ask", title=page.title)
    message = life.call_tool("notes_search", result, query=page.title)
    for other in pages:
        life.record(Subject("note", other.question), message, value=other.value)
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
    life.call_tool("web_search", "\n\n".join(pages), query=write(f"howto.{topic}.query"))
    life.reply("howto.answer", list=write.bullets(fact, 6), close=write.sentences("howto.close", 2))
    yield False


# Towards a day: a present, a dinner, a race; and the day, or the aim, is changed.


def gift(life: Life) -> Arc:
    """Write a present for somebody's day; the day turns out to be another."""
    write = life.write
    label, when, limit = write("gift.label"), life.day_ahead(20, 60), 5 * life.price(6, 40)
    subject = life.ledger.subject("gift", label)
    life.record(subject, life.user("gift.ask", label=label, day=when, limit=limit), day=when, limit=limit)
    query = write("gift.query")
    offers, result = life.presents(query, limit)
    life.call_tool("web_search", result, query=query)
    options = _options(life, "gift.idea", offers[:3])
    present = offers[life.rng.randrange(3)].name
    life.reply("gift.offer", label=label, list=options, more=write.bullets("gift.advice", 3))
    yield True

    life.record(subject, life.user("gift.choose", present=present, label=label), present=present)
    life.save_note("gift.note", label=label, present=present)
    life.reply("gift.chosen", present=present, label=label)
    yield when - timedelta(days=5)

    new = when + timedelta(days=life.rng.choice((-2, -1, 1, 2, 3, 7)))
    life.record(subject, life.user("gift.wrong", label=label, old=when, new=new), day=new)
    life.schedule(subject, label, new, "18:00", write("event.place"))
    life.reply("gift.corrected", label=label, old=when, new=new)
    yield False


def dinner(life: Life) -> Arc:
    """Write a dinner: guests, what a guest cannot eat, the shopping, and a new date."""
    write = life.write
    label, when, count = write("dinner.label"), life.day_ahead(12, 35), str(life.rng.randint(4, 11))
    guest, allergen = write("friend"), write.fields("dinner.allergen")
    subject = life.ledger.subject("dinner", label)
    facts: dict[str, object] = {"label": label, "guest": guest, "allergen": allergen[0]}
    life.record(subject, life.user("dinner.ask", day=when, count=count, **facts), day=when, allergen=allergen)
    _look_up(life, when, when)
    facts |= {"starter": write("dish.starter"), "main": write("dish.main"), "dessert": write("dish.dessert")}
    life.reply("dinner.menu", diet=life.taste("diet"), advice=write.bullets("dinner.advice", 4), **facts)
    yield True

    life.user("dinner.shop", count=count, **facts)
    life.reply("dinner.list", list=write.bullets("dinner.item", 9), groceries=life.taste("groceries"), **facts)
    yield when - timedelta(days=3)

    new = when + timedelta(days=life.rng.choice((1, 2, 6, 7, 8)))
    life.record(subject, life.user("dinner.move", old=when, new=new, reason=write("move.why"), **facts), day=new)
    life.schedule(subject, label, new, life.time(18, 19), write("dinner.where"))
    life.reply("dinner.moved", new=new, **facts)
    yield False


def race(life: Life) -> Arc:
    """Write the training for a race, and a target that is corrected."""
    write = life.write
    label, when = write("race.label"), life.day_ahead(60, 130)
    minutes = life.rng.randint(100, 150)
    subject = life.ledger.subject("race", label)
    target = write.fields("race.time", h=str(minutes // 60), m=f"{minutes % 60:02d}")
    life.record(subject, life.user("race.tell", label=label, day=when, target=target[0]), day=when, target=target)
    _look_up(life, life.today, life.today + timedelta(days=7))
    weeks = "\n".join(f"{n}. {write('race.week')}" for n in range(1, 9))
    exercise, advice = life.taste("exercise"), write.sentences("race.advice", 3)
    life.reply("race.plan", label=label, list=weeks, exercise=exercise, advice=advice)
    yield when - timedelta(days=20)

    life.user("race.log", label=label)
    life.reply("race.answer", label=label, advice=write.bullets("race.advice", 4))
    yield when

    minutes += life.rng.choice((-6, -4, 5, 8, 12))
    new = write.fields("race.time", h=str(minutes // 60), m=f"{minutes % 60:02d}")
    life.record(subject, life.user("race.change", label=label, old=target[0], new=new[0]), target=new)
    life.save_note("race.note", label=label, new=new[0])
    life.reply("race.changed", label=label, new=new[0], advice=write.bullets("race.advice", 2))
    yield False


def _look_up(life: Life, first: date, last: date) -> list[str]:
    """Let the assistant search the calendar between two days; return the events as lines."""
    lines, result = life.agenda(first, last)
    life.call_tool("calendar_search", result, **{"from": str(first), "to": str(last)})
    return lines


def _options(life: Life, key: str, offers: list[Offer]) -> str:
    """Return the offers as a list, worded by forms under the key."""
    return bullets([life.write(key, name=o.name, price=o.price, detail=o.detail, about=o.description) for o in offers])


ARCS: tuple[ArcMaker, ...] = (
    *(trip, trip, visit, visit, week, project, project),
    *(taste, taste, taste, bill, bill, month, moving, gift),
    *(dinner, race, purchase, note, howto, howto),
)
"""Arcs of a few months. An arc in the list twice occurs twice as often."""

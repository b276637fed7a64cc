"""Arcs out of the house: trips, appointments, work. Each `yield` ends a user's turn.

True = the next turn of the arc follows at once; False = it comes another day.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from .ledger import Thing
from .life import Life, as_json, titled
from .results import Offer, agenda, flights, letters, rooms, thread

Arc = Iterator[bool]


def _offered(life: Life, key: str, offers: list[Offer]) -> str:
    return "\n".join(
        "- " + life.write(key, name=o.name, price=life.tongue.money(o.price), detail=o.detail, about=o.description)
        for o in offers
    )


def trip(life: Life) -> Arc:
    """A flight, perhaps a room, and then the date is moved."""
    write, day = life.write, life.tongue.day
    city, purpose, companion = write("city"), write("trip.purpose"), write("companion")
    thing = life.ledger.thing("trip", write("trip.label", city=city, purpose=purpose))
    out = life.ahead(35, 90)
    back = out + timedelta(days=life.rng.randint(2, 6))
    words = {"city": city, "purpose": purpose, "companion": companion}
    asked = life.user("trip.ask", out=day(out), back=day(back), **words)
    life.tell_day(thing, "out", asked, out)
    life.tell(thing, "companion", asked, companion)
    offers, found = flights(life, city, out)
    life.use(
        ("calendar_search", {"from": str(out), "to": str(back)}, agenda(life, out, back)[1]),
        ("web_search", {"query": write("trip.query", city=city), "date": str(out)}, found),
    )
    best = life.rng.choice(offers)
    listed = _offered(life, "trip.option", offers[1:4] if best in offers[1:4] else [best, *offers[2:4]])
    life.reply("trip.offer", list=listed, best=best.name, seat=life.taste("seat"), **words)
    yield True

    life.user("trip.book", flight=best.name, carrier=best.description, **words)
    reference = life.code(6, 0)
    fare = life.tongue.money(best.price)
    ticket = {"status": "confirmed", "reference": reference, "flight": best.name, "date": str(out), "total": fare}
    ticket |= {"seat": life.taste("seat"), "rules": write.some("fare.rule", 5)}
    request = {"flight": best.name, "date": str(out), "seat": life.taste("seat")}
    booked = life.use(("book_travel", request, as_json(ticket)))[0]
    life.tell(thing, "ref", booked, reference)
    life.tell(thing, "flight", booked, best.name)
    life.tell(thing, "fare", booked, *life.tongue.moneys(best.price))
    life.put(thing, thing.label, out, best.detail[:5], write("airport"))
    words |= {"flight": best.name, "ref": reference, "fare": fare}
    life.reply("trip.booked", out=day(out), seat=life.taste("seat"), **words)
    yield life.rng.random() < 0.7

    if life.today > out - timedelta(days=3):
        return
    yield from _stay(life, city, thing)
    if life.today > out - timedelta(days=8):
        return
    moved = out + timedelta(days=life.rng.choice((-3, -2, 2, 3, 4, 5)))
    said = life.user("trip.move", old=day(out), new=day(moved), reason=write("move.why"), label=thing.label, **words)
    life.tell_day(thing, "out", said, moved)
    change = {"reference": reference, "date": str(moved)}
    fee, rules = life.tongue.money(life.price(12, 70)), write.some("fare.rule", 3)
    life.use(("book_travel", change, as_json(change | {"status": "rebooked", "fee": fee, "rules": rules})))
    life.put(thing, thing.label, moved, best.detail[:5], write("airport"))
    life.reply("trip.moved", new=day(moved), fee=fee, **words)
    yield False


def _stay(life: Life, city: str, thing: Thing) -> Arc:
    limit = 10 * life.price(11, 26)
    life.user("room.ask", city=city, limit=life.tongue.money(limit))
    offers, found = rooms(life, city, limit)
    life.use(("web_search", {"query": life.write("room.query", city=city), "type": "hotel"}, found))
    life.reply("room.offer", list=_offered(life, "room.option", offers), city=city, room=life.taste("room"))
    yield True

    chosen = life.rng.choice([offer for offer in offers if offer.price <= limit])
    rate = life.tongue.money(chosen.price)
    said = life.user("room.book", hotel=chosen.name, rate=rate, city=city)
    life.tell(thing, "hotel", said, chosen.name)
    life.tell(thing, "rate", said, *life.tongue.moneys(chosen.price))
    deal = {"status": "confirmed", "hotel": chosen.name, "confirmation": (number := life.code(2, 5))}
    deal |= {"room": life.taste("room"), "policy": life.write.some("room.rule", 4)}
    booked = life.use(("book_travel", {"hotel": chosen.name, "request": life.taste("room")}, as_json(deal)))[0]
    life.tell(thing, "number", booked, number)
    life.reply("room.booked", hotel=chosen.name, number=number, room=life.taste("room"), city=city)
    yield False


def visit(life: Life) -> Arc:
    """An appointment, which is moved, and what to bring."""
    write, day = life.write, life.tongue.day
    label, place = write("visit.label"), write("address")
    thing = life.ledger.thing("visit", label)
    when, time = life.ahead(12, 60), life.time(8, 17)
    asked = life.user("visit.ask", label=label, day=day(when), time=time, place=place)
    life.tell_day(thing, "day", asked, when)
    life.tell(thing, "place", asked, place)
    lines, found = agenda(life, when - timedelta(days=1), when + timedelta(days=1))
    life.use(("calendar_search", {"from": str(when), "to": str(when)}, found))
    life.put(thing, label, when, time, place)
    life.reply("visit.noted", label=label, day=day(when), time=time, place=place, near="\n".join(lines[:4]))
    yield life.rng.random() < 0.4

    if life.today > when - timedelta(days=1):
        return
    item, *_ = bring = write.parts("visit.bring")
    life.user("visit.prepare", label=label)
    letter = write("visit.letter", item=item, label=label)
    told = life.use(("email_search", {"query": titled(label)}, letters(life, write("firm"), titled(label), letter, 5)))[
        0
    ]
    life.tell(thing, "bring", told, *bring)
    life.reply("visit.ready", item=item, label=label)
    yield False

    if life.today > when - timedelta(days=2):
        return
    later, hour = when + timedelta(days=life.rng.randint(2, 16)), life.time(8, 17)
    said = life.user("visit.move", label=label, old=day(when), new=day(later), time=hour, reason=write("move.why"))
    life.tell_day(thing, "day", said, later)
    life.put(thing, label, later, hour, place)
    life.reply("visit.moved", label=label, new=day(later), time=hour, place=place)
    yield False


def week(life: Life) -> Arc:
    """What stands in the calendar."""
    first = life.ahead(0, 4)
    last = first + timedelta(days=6)
    words = {"first": life.tongue.day(first), "last": life.tongue.day(last)}
    life.user("week.ask", **words)
    lines, found = agenda(life, first, last)
    life.use(("calendar_search", {"from": str(first), "to": str(last)}, found))
    life.reply("week.sum", list="\n".join(lines), remark=life.write.some("week.remark", 3), **words)
    yield False


def project(life: Life) -> Arc:
    """A project at work: who leads it, what it may cost, by when; mails, and a change of plan."""
    write, day, money = life.write, life.tongue.day, life.tongue.money
    label, lead = write("project.label"), write("colleague")
    thing = life.ledger.thing("project", label)
    first, other = lead.split()[0], next(name for name in (write("colleague") for _ in range(9)) if name != lead)
    budget, deadline = 500 * life.price(12, 180), life.ahead(40, 120)
    told = life.user("project.tell", label=label, lead=lead, budget=money(budget))
    life.tell(thing, "lead", told, lead)
    life.tell_price(thing, "budget", told, budget)
    life.keep(write("project.note", label=label, lead=lead, budget=money(budget)))
    life.reply("project.plan", label=label, lead=lead, advice=write.lines("project.advice", 5, colleague=other))
    yield True

    said = life.user("project.mail", label=label, lead=lead, day=day(deadline))
    life.tell_day(thing, "deadline", said, deadline)
    life.use(("email_search", {"query": titled(label)}, thread(life, titled(label), 5)))
    body = write.some("project.body", 4, label=label, colleague=other)
    life.reply("project.draft", label=label, first=first, day=day(deadline), body=body, signoff=life.taste("signoff"))
    yield True

    life.user("project.tweak", lead=lead)
    final = life.tongue.finish(write("project.final", first=first, day=day(deadline), label=label))
    mail = {"to": lead, "subject": titled(label), "body": final}
    receipt = {
        "status": "sent",
        "message_id": life.code(3, 9),
        "preview": write.some("project.body", 2, colleague=other),
    }
    life.use(("send_email", mail, as_json(receipt)))
    life.reply("project.sent", lead=lead, label=label)
    yield False

    if life.today > deadline - timedelta(days=2):
        return
    if life.rng.random() < 0.6:
        later = deadline + timedelta(days=life.rng.randint(6, 30))
        said = life.user("project.later", label=label, old=day(deadline), new=day(later), reason=write("project.why"))
        life.tell_day(thing, "deadline", said, later)
        life.use(("email_search", {"query": titled(label)}, thread(life, titled(label), 5)))
        life.keep(write("project.note.later", label=label, new=day(later)))
        life.reply(
            "project.moved", label=label, new=day(later), advice=write.lines("project.advice", 3, colleague=other)
        )
    else:
        said = life.user("project.handed", label=label, old=lead, new=other, reason=write("project.why"))
        life.tell(thing, "lead", said, other)
        life.keep(write("project.note.handed", label=label, new=other))
        life.reply(
            "project.over", label=label, new=other, old=lead, advice=write.lines("project.advice", 3, colleague=other)
        )
    yield False

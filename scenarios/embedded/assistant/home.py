"""Arcs at home: what the user likes, pays, buys, reads up on; moving house."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from .ledger import Thing
from .life import Life, titled
from .results import letters, notes, payments, products

Arc = Iterator[bool]
TASTES = ("seat", "room", "diet", "meetings", "reminder", "signoff", "coffee", "groceries", "exercise", "transport")


def taste(life: Life) -> Arc:
    """The user says what they like, changes their mind, and is asked when they contradict themselves."""
    write = life.write
    topic = write("taste.topics")
    words = {"topic": write(f"taste.{topic}.name")}
    if topic not in life.tastes:
        new = _other(life, topic)
        said = life.user("taste.first", value=new[0], reason=write(f"taste.{topic}.why"), **words)
        _settle(life, topic, said, new)
        life.keep(write("taste.note", value=new[0], **words))
        life.reply("taste.noted", value=new[0], **words)
        yield False

    old, new = life.tastes[topic], _other(life, topic)
    said = life.user("taste.change", old=old[0], value=new[0], reason=write(f"taste.{topic}.why"), **words)
    _settle(life, topic, said, new)
    life.keep(write("taste.note", value=new[0], **words))
    life.reply("taste.changed", old=old[0], value=new[0], **words)
    when = life.tongue.day(life.today)
    yield False

    if life.tastes[topic] != new or life.rng.random() < 0.5:
        return
    life.user("taste.slip", value=old[0], **words)
    kept = [f"- {when}: {write('taste.note', value=new[0], **words)}", write.lines("note.more", 3)]
    life.use(("notes_search", {"query": words["topic"]}, "\n".join(kept)))
    life.reply("taste.doubt", old=old[0], value=new[0], **words)
    yield True

    holds, other = (old, new) if life.rng.random() < 0.5 else (new, old)
    said = life.user("taste.settle", value=holds[0], other=other[0], **words)
    _settle(life, topic, said, holds)
    life.reply("taste.settled", value=holds[0], **words)
    yield False


def _other(life: Life, topic: str) -> tuple[str, ...]:
    while True:
        new = tuple(life.write.parts(f"taste.{topic}.value"))
        if new != life.tastes.get(topic):
            return new


def _settle(life: Life, topic: str, said: str, value: tuple[str, ...]) -> None:
    life.tastes[topic] = value
    life.tell(Thing("taste", topic), topic, said, *value)


def bill(life: Life) -> Arc:
    """Something paid every month, and then it costs another amount."""
    write, money = life.write, life.tongue.money
    label, price = write("bill.label"), life.price(14, 140)
    thing = life.ledger.thing("bill", label)
    said = life.user("bill.tell", label=label, price=money(price))
    life.tell_price(thing, "price", said, price)
    number, notice = life.code(2, 7), write.parts("bill.notice")
    letter = write("bill.letter", label=label, number=number, notice=notice[0])
    found = life.use(
        ("email_search", {"query": titled(label)}, letters(life, write("firm"), titled(label), letter, 5))
    )[0]
    life.tell(thing, "number", found, number)
    life.tell(thing, "notice", found, *notice)
    life.reply("bill.noted", label=label, price=money(price), year=money(12 * price), notice=notice[0])
    yield False

    now = price + life.rng.choice((-7, -4, -2, 2, 3, 5, 6, 9, 12))
    said = life.user("bill.change", label=label, old=money(price), new=money(now))
    life.tell_price(thing, "price", said, now)
    life.keep(write("bill.note", label=label, new=money(now)))
    life.reply("bill.changed", label=label, new=money(now), gap=money(12 * abs(now - price)), year=money(12 * now))
    yield False


def month(life: Life) -> Arc:
    """Where the money went."""
    first = (life.today.replace(day=1) - timedelta(days=1)).replace(day=1)
    name = life.tongue.month(first)
    if name in life.months:
        return
    life.months.add(name)
    life.user("month.ask", month=name)
    sums, table = payments(life, first)
    life.use(("list_transactions", {"month": str(first)[:7]}, table))
    ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    listed = "\n".join(f"- {category}: {life.tongue.money(amount)}" for category, amount in ranked)
    total = life.tongue.money(sum(sums.values()))
    told = life.reply("month.sum", list=listed, total=total, month=name, remark=life.write.some("month.remark", 3))
    for category, amount in ranked[1:4]:
        thing = life.ledger.thing("month", life.write("month.label", category=category.lower(), month=name))
        life.tell_price(thing, "total", told, amount)
    yield False


def moving(life: Life) -> Arc:
    """A new home: its address, rent and keys, the movers, and the keys come later than promised."""
    write, day, money = life.write, life.tongue.day, life.tongue.money
    address, rent, keys = write("address"), 10 * life.price(95, 240), life.ahead(45, 80)
    thing = life.ledger.thing("flat", write("flat.label", address=address))
    said = life.user("flat.found", address=address, rent=money(rent), day=day(keys))
    life.tell_price(thing, "rent", said, rent)
    life.tell_day(thing, "keys", said, keys)
    life.keep(write("flat.note", address=address, rent=money(rent), day=day(keys)))
    life.put(thing, write("flat.event"), keys, life.time(9, 15), address)
    life.reply("flat.plan", address=address, day=day(keys), advice=write.lines("flat.advice", 6))
    yield False

    if life.today > keys - timedelta(days=10):
        return
    firms = [(write("firm"), 10 * life.price(48, 160)) for _ in range(3)]
    life.user("flat.quotes", address=address)
    for firm, price in firms:
        quote = write("flat.quote", firm=firm, price=money(price), address=address)
        query = {"query": f"{write('flat.query')} {firm}"}
        life.use(("email_search", query, letters(life, firm, write("flat.query"), quote, 3)))
    listed = "\n".join("- " + write("flat.compare", firm=firm, price=money(price)) for firm, price in firms)
    life.reply("flat.compared", list=listed)
    yield True

    mover, price = life.rng.choice(firms)
    said = life.user("flat.mover", firm=mover, price=money(price))
    life.tell(thing, "mover", said, mover)
    life.reply("flat.hired", firm=mover, price=money(price), advice=write.lines("flat.advice", 4))
    yield False

    if life.today > keys - timedelta(days=3):
        return
    later = keys + timedelta(days=life.rng.randint(4, 20))
    said = life.user("flat.later", old=day(keys), new=day(later), address=address)
    life.tell_day(thing, "keys", said, later)
    life.put(thing, write("flat.event"), later, life.time(9, 15), address)
    life.reply("flat.moved", new=day(later), firm=mover, advice=write.lines("flat.advice", 3))
    yield False


def buy(life: Life) -> Arc:
    """Something for the house: compared, ordered, delivered on another day."""
    write, day, money = life.write, life.tongue.day, life.tongue.money
    item, limit = write("buy.item"), 10 * life.price(30, 140)
    thing = life.ledger.thing("buy", write("buy.label", item=item))
    life.user("buy.ask", item=item, limit=money(limit))
    offers, found = products(life, item, limit)
    life.use(("web_search", {"query": item, "max_price": limit}, found))
    rows = [
        "- " + write("buy.option", name=o.name, price=money(o.price), detail=o.detail, about=o.description)
        for o in offers[:4]
    ]
    life.reply("buy.offer", item=item, list="\n".join(rows), advice=write.some("buy.advice", 3))
    yield True

    chosen, comes = life.rng.choice(offers[:4]), life.ahead(14, 40)
    said = life.user("buy.choose", item=item, name=chosen.name, price=money(chosen.price), day=day(comes))
    life.tell(thing, "model", said, chosen.name)
    life.tell_price(thing, "price", said, chosen.price)
    life.tell_day(thing, "day", said, comes)
    life.put(thing, thing.label, comes, life.time(8, 12), write("buy.where"))
    life.reply("buy.noted", item=item, name=chosen.name, day=day(comes), advice=write.some("buy.advice", 2))
    yield False

    if life.today > comes:
        return
    later = comes + timedelta(days=life.rng.randint(2, 13))
    said = life.user("buy.move", item=item, old=day(comes), new=day(later))
    life.tell_day(thing, "day", said, later)
    life.put(thing, thing.label, later, life.time(8, 12), write("buy.where"))
    life.reply("buy.moved", item=item, new=day(later))
    yield False


def lookup(life: Life) -> Arc:
    """Something that stands in the notes."""
    found, text = notes(life, life.rng.randint(6, 8))
    wanted = found[0]
    life.user("note.ask", title=wanted.title)
    told = life.use(("notes_search", {"query": wanted.title}, text))[0]
    for note in found:
        life.tell(Thing("note", note.question), "value", told, note.value)
    life.reply("note.found", title=wanted.title, value=wanted.value, others=life.write.lines("note.more", 3))
    yield False


def howto(life: Life) -> Arc:
    """A question on the wider world, with a long answer."""
    write = life.write
    topic = write("howto.topics")
    life.user(f"howto.{topic}.ask")
    pages = [
        f"{write('howto.source')}\n{write.some(f'howto.{topic}.fact', 3)}\n{write.some('howto.filler', 2)}"
        for _ in range(6)
    ]
    life.use(("web_search", {"query": write(f"howto.{topic}.query")}, "\n\n".join(pages)))
    life.reply("howto.answer", list=write.lines(f"howto.{topic}.fact", 6), close=write.some("howto.close", 2))
    yield False

"""What the assistant's tools find: offers, events, mails, notes, payments, each as the rows it is made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date, datetime, time, timedelta

from .life import Life, as_json


@dataclass(frozen=True, slots=True)
class Offer:
    """Something one can book or buy."""

    name: str
    price: int
    detail: str
    description: str


def flights(life: Life, city: str, day: date) -> tuple[list[Offer], str]:
    """Seven flights, cheapest last, and the tool's answer. An offer's name is its flight number."""
    offers, rows = [], []
    for fare in sorted((life.price(64, 420) for _ in range(7)), reverse=True):
        carrier, code = life.write.parts("carrier")
        number = f"{code}{life.rng.randint(210, 9890)}"
        leaves = datetime.combine(day, time(life.rng.randint(6, 18), 5 * life.rng.randrange(12)))
        lands = leaves + timedelta(minutes=5 * life.rng.randint(17, 44))
        offers.append(Offer(number, fare, f"{leaves:%H:%M}-{lands:%H:%M}", carrier))
        row = {"flight": number, "carrier": carrier, "departs": f"{leaves:%H:%M}", "arrives": f"{lands:%H:%M}"}
        rows.append(row | {"fare": life.tongue.money(fare), "remarks": life.write.some("flight.remark", 3)})
    found = {"from": life.write("home"), "to": city, "date": str(day), "options": rows}
    return offers, as_json(found | {"conditions": life.write.some("fare.rule", 2)})


def rooms(life: Life, city: str, limit: int) -> tuple[list[Offer], str]:
    """Six hotels, the first within the limit, and the tool's answer."""
    offers = [
        Offer(
            life.write("hotel"),
            life.rng.randint(limit // 2, limit if n == 0 else limit + limit // 6),
            life.write("hotel.where"),
            life.write.some("hotel.text", 3),
        )
        for n in range(6)
    ]
    rows = [asdict(offer) | {"price": life.tongue.money(offer.price)} for offer in offers]
    reviews = [{"by": life.write("reviewer"), "text": life.write.some("hotel.review", 3)} for _ in range(4)]
    return offers, as_json({"city": city, "hotels": rows, "reviews": reviews})


def presents(life: Life, brief: str, limit: int) -> tuple[list[Offer], str]:
    """Seven presents under a price, and the tool's answer."""
    offers = []
    for _ in range(7):
        price = life.rng.randint(limit // 3, limit)
        offers.append(
            Offer(life.write("gift.present"), price, life.write("gift.shop"), life.write.some("gift.text", 3))
        )
    rows = [asdict(offer) | {"price": life.tongue.money(offer.price)} for offer in offers]
    return offers, as_json({"query": brief, "results": rows})


def products(life: Life, brief: str, ceiling: int) -> tuple[list[Offer], str]:
    """Seven products under a price, and the tool's answer."""
    offers = [
        Offer(
            f"{life.write('brand')} {life.code(1, 0)}{life.rng.randint(12, 980)}",
            life.rng.randint(ceiling // 3, ceiling),
            life.write("product.detail"),
            life.write.some("product.text", 3),
        )
        for _ in range(7)
    ]
    rows = [asdict(offer) | {"price": life.tongue.money(offer.price)} for offer in offers]
    return offers, as_json({"query": brief, "results": rows, "sponsored": life.write("product.text")})


def agenda(life: Life, first: date, last: date) -> tuple[list[str], str]:
    """The events between two days as lines, and the tool's answer: what was put there, and daily life."""
    length = (last - first).days + 1
    rows: list[tuple[date, str, str, str, str]] = [
        (event.day, event.time, event.title, event.place, "")
        for event in life.events.values()
        if first <= event.day <= last
    ][:6]
    for title, place in life.usual(life.rng.randint(12, 17)):
        day = first + timedelta(days=life.rng.randrange(length))
        rows.append((day, life.time(8, 19), title, place, life.write.some("remark", 3)))
    rows.sort(key=lambda row: row[:2])
    events = [
        {"start": f"{day}T{time}", "title": title, "location": place, "notes": note}
        for day, time, title, place, note in rows
    ]
    lines = [
        life.write("event.line", day=life.tongue.day(day), time=time, title=title, place=place)
        for day, time, title, place, _ in rows
    ]
    return lines, as_json({"from": str(first), "to": str(last), "events": events})


def thread(life: Life, subject: str, count: int) -> str:
    """The tool's answer to a search for a thread at work."""
    texts = [life.write.some("mail.body", life.rng.randint(8, 11)) for _ in range(count)]
    return _inbox(life, [(life.write("sender"), subject, text) for text in texts])


def letters(life: Life, sender: str, subject: str, body: str, count: int) -> str:
    """The tool's answer to a search for this letter: it, and others that match as well."""
    write = life.write
    others = [(write("firm"), write("post.subject"), write.some("post.body", 6)) for _ in range(count)]
    found = [(sender, subject, body), *others]
    life.rng.shuffle(found)
    return _inbox(life, found)


def _inbox(life: Life, found: list[tuple[str, str, str]]) -> str:
    day, rows = life.today, []
    for sender, subject, body in found:
        day -= timedelta(days=life.rng.randint(0, 4))
        rows.append({"date": f"{day}T{life.time(8, 18)}", "from": sender, "subject": subject, "body": body})
    return as_json({"matches": len(rows), "mails": rows})


@dataclass(frozen=True, slots=True)
class Note:
    """A note that holds one value."""

    title: str
    question: str
    value: str
    body: str


def notes(life: Life, count: int) -> tuple[list[Note], str]:
    """Some notes and the tool's answer, as text."""
    found: list[Note] = []
    for _ in range(count):
        title, question, value, body = life.write.parts("note.page")
        if any(note.title == title for note in found):
            continue
        known = life.notes.setdefault(title, (question, value, body.replace("%", value)))
        found.append(Note(title, *known))
    pages = []
    for note in found:
        saved = life.today - timedelta(days=life.rng.randint(20, 400))
        pages.append(f"## {note.title}\n({saved})\n{note.body}{life.tongue.glue}{life.write.some('note.more', 3)}\n")
    return found, "\n".join(pages)


def payments(life: Life, month: date) -> tuple[dict[str, int], str]:
    """What was spent by category in whole money, and the CSV of it."""
    sums: dict[str, int] = {}
    rows: list[tuple[int, str]] = []
    for _ in range(life.rng.randint(36, 56)):
        category, merchant, low, high = life.write.parts("payment")
        amount = life.rng.randint(int(low), int(high))
        sums[category] = sums.get(category, 0) + amount
        day = life.rng.randint(1, 28)
        reference = f"{life.code(2, 6)}"
        rows.append(
            (
                day,
                f"{month.replace(day=day)},{merchant},{category},{amount}.00,{reference},{life.write('payment.note')}",
            )
        )
    rows.sort()
    return sums, "date,merchant,category,amount,reference,note\n" + "\n".join(row for _, row in rows)

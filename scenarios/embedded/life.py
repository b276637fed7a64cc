"""One person's life as the assistant sees it: the messages of both sides, the facts so far, and the tools' results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from random import Random
from typing import NamedTuple

import msgspec

from ..files import shipped
from ..model import Tool
from .language import Language, Writer
from .script import Script

TOOLS = tuple(Tool(name, about, '{"type":"object"}') for name, about in shipped("generated")["tools"].items())


class Note(NamedTuple):
    """Note that holds one value."""

    title: str
    question: str
    value: str
    body: str


class Offer(NamedTuple):
    """Flight, room or thing on offer. Its price is in whole units of the currency."""

    name: str
    price: int
    detail: str
    description: str


class Subject(NamedTuple):
    """Subject of facts: a trip, an appointment. Its label names it and nothing else."""

    kind: str
    label: str


class FactValue(NamedTuple):
    """Value of a fact: the accepted answers, and the id of the message that says so."""

    answers: tuple[str, ...]
    source: str
    value: date | int | None = None  # the day, or the amount of money, that it is


class FactLedger:
    """Every value that each aspect of each subject has had, oldest first."""

    def __init__(self) -> None:
        self.facts: dict[tuple[Subject, str], list[FactValue]] = {}
        self.ambiguous: set[Subject] = set()
        """Subjects whose label another one has: nothing is asked about them."""

    def subject(self, kind: str, label: str) -> Subject:
        """Return a new subject."""
        subject = Subject(kind, label)
        if any(other == subject for other, _ in self.facts):
            self.ambiguous.add(subject)
        return subject

    def record(self, subject: Subject, aspect: str, value: FactValue) -> None:
        """Let this hold from now on; the value before becomes history."""
        values = self.facts.setdefault((subject, aspect), [])
        if not values or values[-1].answers != value.answers:
            values.append(value)


class Life:
    """Person with a calendar, notes and tastes, whom the arcs write about."""

    def __init__(self, script: Script, rng: Random, language: Language) -> None:
        self.script, self.rng, self.language, self.ledger = script, rng, language, FactLedger()
        cast = {
            role: tuple(rng.sample(language.forms[role], count)) for role, count in shipped("generated")["cast"].items()
        }
        self.write = Writer(rng, language, cast, lambda: self.today)
        self.tastes: dict[str, tuple[str, ...]] = {}
        """Preferences by topic, in all accepted spellings."""
        self.events: dict[Subject, tuple[date, str, str, str, str]] = {}
        """Day, time, title and place of what the conversation has put into the calendar, and no remark."""
        self._shown: dict[str, Note] = {}
        """Notes that a search has shown, by title: they read the same the next time."""
        self.months: set[str] = set()
        """Months whose payments have been summed up."""

    @property
    def today(self) -> date:
        """Day on the script's clock."""
        return self.script.now.date()

    def day_ahead(self, low: int, high: int) -> date:
        """Return a day between `low` and `high` days from now."""
        return self.today + timedelta(days=self.rng.randint(low, high))

    def price(self, low: int, high: int) -> int:
        """Return an amount of money, of `low` to `high` pounds' worth."""
        return self.rng.randint(low * self.language.pound, high * self.language.pound)

    def time(self, low: int, high: int) -> str:
        """Return a time of day whose hour is between `low` and `high`."""
        return f"{self.rng.randint(low, high):02d}:{5 * self.rng.randrange(12):02d}"

    def code(self, letters: int, digits: int) -> str:
        """Return a reference as firms print them, without letters that look like digits."""
        head = "".join(self.rng.choices("ABCDEFGHJKLMNPQRTUVWXYZ", k=letters))
        return head + "".join(self.rng.choices("0123456789", k=digits))

    def taste(self, topic: str) -> str:
        """Return the user's current preference, or a neutral word if there is none."""
        return self.tastes[topic][0] if topic in self.tastes else self.write(f"taste.{topic}.default")

    def user(self, key: str, **facts: object) -> str:
        """Let the user say something, some of the time after a word of small talk; return the message's id."""
        text = self.write(key, **facts)
        if self.rng.random() < 0.25:
            text = self.write("aside") + self.language.space + text
        return self.script.user(self.language.finish(text))

    def reply(self, key: str, **facts: object) -> str:
        """Let the assistant answer; return the message's id."""
        return self.script.assistant(self.language.finish(self.write(key, **facts)))

    def call_tools(self, *uses: tuple[str, Mapping[str, object], str]) -> str:
        """Write one model call that uses tools, each (tool, arguments, result); return the id of the last result."""
        calls = [self.script.call(tool, arguments) for tool, arguments, _ in uses]
        is_search = any("search" in tool for tool, _, _ in uses)
        text = self.write("lookup") if is_search and self.rng.random() < 0.4 else ""
        self.script.assistant(text, calls)
        return [self.script.result(call, result) for call, (_, _, result) in zip(calls, uses, strict=True)][-1]

    def call_tool(self, tool: str, result: str, **arguments: object) -> str:
        """Write a model call that uses one tool; return the id of its result."""
        return self.call_tools((tool, arguments, result))

    def schedule(self, subject: Subject, title: str, day: date, time: str, place: str) -> None:
        """Let the assistant put the event into the calendar, or move it there."""
        tool = "update_event" if subject in self.events else "create_event"
        title = headline(title)
        self.events[subject] = (day, time, title, place, "")
        entry = {"title": title, "start": f"{day}T{time}", "location": place}
        answer: dict[str, object] = {"status": "ok", "event_id": f"ev-{self.code(2, 5)}", **entry}
        answer |= {"reminder": self.taste("reminder")}
        others = [self.write.fields("event") for _ in range(6)]
        answer |= {"same_week": [self.write("event.brief", title=title, place=place) for title, place in others]}
        self.call_tools((tool, entry, to_json(answer | {"hint": self.write.sentences("calendar.hint", 3)})))

    def save_note(self, key: str, **facts: object) -> None:
        """Let the assistant save a note."""
        text = self.language.finish(self.write(key, **facts))
        answer: dict[str, object] = {"saved": str(self.today), "id": f"n-{self.code(1, 4)}"}
        answer |= {"related": self.write.fields("note.related")}
        answer |= {"last_notes": self.write.bullets("note.more", 6).split("\n")}
        self.call_tool("save_note", to_json(answer), text=text)

    def record(self, subject: Subject, message: str, **values: date | int | str | Sequence[str]) -> None:
        """Record that aspects of the subject are so, as the message with this id says.

        A value is a day, an amount of money, a text, or the spellings of one.
        """
        for aspect, value in values.items():
            if isinstance(value, (date, int)):
                self.ledger.record(subject, aspect, FactValue(self.language.spellings(value), message, value))
            else:
                answers = (value,) if isinstance(value, str) else tuple(value)
                self.ledger.record(subject, aspect, FactValue(answers, message))

    def flights(self, city: str, day: date) -> tuple[list[Offer], str]:
        """Return seven flights, cheapest last, and the tool's result. An offer's name is its flight number."""
        offers, rows = [], []
        for fare in sorted((self.price(64, 420) for _ in range(7)), reverse=True):
            carrier, code = self.write.fields("carrier")
            number = f"{code}{self.rng.randint(210, 9890)}"
            departure = datetime.combine(day, time(self.rng.randint(6, 18), 5 * self.rng.randrange(12)))
            arrival = departure + timedelta(minutes=5 * self.rng.randint(17, 44))
            offers.append(Offer(number, fare, f"{departure:%H:%M}-{arrival:%H:%M}", carrier))
            row = {"flight": number, "carrier": carrier, "departs": f"{departure:%H:%M}", "arrives": f"{arrival:%H:%M}"}
            rows.append(row | {"fare": self.language.text(fare), "remarks": self.write.sentences("flight.remark", 3)})
        answer = {"from": self.write("home"), "to": city, "date": str(day), "options": rows}
        return offers, to_json(answer | {"conditions": self.write.sentences("fare.rule", 2)})

    def rooms(self, city: str, limit: int) -> tuple[list[Offer], str]:
        """Return six hotels, the first within the limit, and the tool's result."""
        offers = [
            Offer(
                self.write("hotel"),
                self.rng.randint(limit // 2, limit if n == 0 else limit + limit // 6),
                self.write("hotel.where"),
                self.write.sentences("hotel.text", 3),
            )
            for n in range(6)
        ]
        reviews = [{"by": self.write("reviewer"), "text": self.write.sentences("hotel.review", 3)} for _ in range(4)]
        return offers, to_json({"city": city, "hotels": self._rows(offers), "reviews": reviews})

    def presents(self, query: str, limit: int) -> tuple[list[Offer], str]:
        """Return seven presents under a price, and the tool's result."""
        prices, write = (self.rng.randint(limit // 3, limit) for _ in range(7)), self.write
        offers = [
            Offer(write("gift.present"), price, write("gift.shop"), write.sentences("gift.text", 3)) for price in prices
        ]
        return offers, to_json({"query": query, "results": self._rows(offers)})

    def products(self, query: str, limit: int) -> tuple[list[Offer], str]:
        """Return seven products under a price, and the tool's result."""
        offers = [
            Offer(
                f"{self.write('brand')} {self.code(1, 0)}{self.rng.randint(12, 980)}",
                self.rng.randint(limit // 3, limit),
                self.write("product.detail"),
                self.write.sentences("product.text", 3),
            )
            for _ in range(7)
        ]
        return offers, to_json({"query": query, "results": self._rows(offers), "sponsored": self.write("product.text")})

    def _rows(self, offers: list[Offer]) -> list[dict[str, object]]:
        return [offer._asdict() | {"price": self.language.text(offer.price)} for offer in offers]

    def agenda(self, first: date, last: date) -> tuple[list[str], str]:
        """Return the events between two days as lines, and the tool's result, which adds events of daily life."""
        length, write = (last - first).days + 1, self.write
        rows = [event for event in self.events.values() if first <= event[0] <= last][:6]
        for title, place in [write.fields("event") for _ in range(self.rng.randint(12, 17))]:
            day = first + timedelta(days=self.rng.randrange(length))
            rows.append((day, self.time(8, 19), title, place, write.sentences("remark", 3)))
        rows.sort(key=lambda row: row[:2])
        events = [
            {"start": f"{day}T{time}", "title": title, "location": place, "notes": notes}
            for day, time, title, place, notes in rows
        ]
        lines = [
            write("event.line", day=day, time=time, title=title, place=place) for day, time, title, place, _ in rows
        ]
        return lines, to_json({"from": str(first), "to": str(last), "events": events})

    def thread(self, subject: str, count: int) -> str:
        """Return the tool's result of a search for a thread at work."""
        bodies = [self.write.sentences("mail.body", self.rng.randint(8, 11)) for _ in range(count)]
        return self._inbox([(self.write("sender"), subject, body) for body in bodies])

    def letters(self, sender: str, subject: str, body: str, count: int) -> str:
        """Return the tool's result of a search for this letter: it, and `count` others that match as well."""
        write = self.write
        others = [(write("firm"), write("post.subject"), write.sentences("post.body", 6)) for _ in range(count)]
        mails = [(sender, subject, body), *others]
        self.rng.shuffle(mails)
        return self._inbox(mails)

    def _inbox(self, mails: list[tuple[str, str, str]]) -> str:
        day, rows = self.today, []
        for sender, subject, body in mails:
            day -= timedelta(days=self.rng.randint(0, 4))
            rows.append({"date": f"{day}T{self.time(8, 18)}", "from": sender, "subject": subject, "body": body})
        return to_json({"matches": len(rows), "mails": rows})

    def notes(self, count: int) -> tuple[list[Note], str]:
        """Return up to `count` notes, and the tool's result as text."""
        write, matches = self.write, dict[str, Note]()
        for _ in range(count):
            # Field by field, because the body quotes the value.
            title, question, value, body = write.draw("note.page").split(" = ")
            question, value = write.fill(question, {}), write.fill(value, {})
            note = Note(title, question, value, write.fill(body, {"value": value}))
            if title not in matches:
                matches[title] = self._shown.setdefault(title, note)
        pages = []
        for note in matches.values():
            saved = self.today - timedelta(days=self.rng.randint(20, 400))
            more = write.sentences("note.more", 3)
            pages.append(f"## {note.title}\n({saved})\n{note.body}{self.language.space}{more}\n")
        return [*matches.values()], "\n".join(pages)

    def payments(self, month: date) -> tuple[dict[str, int], str]:
        """Return the month's spending by category, in whole units of money, and as CSV."""
        sums: dict[str, int] = {}
        rows: list[tuple[int, str]] = []
        for _ in range(self.rng.randint(36, 56)):
            category, merchant, low, high = self.write.fields("payment")
            amount = self.rng.randint(int(low), int(high))
            sums[category] = sums.get(category, 0) + amount
            day = self.rng.randint(1, 28)
            reference, note = self.code(2, 6), self.write("payment.note")
            rows.append((day, f"{month.replace(day=day)},{merchant},{category},{amount}.00,{reference},{note}"))
        rows.sort()
        return sums, "date,merchant,category,amount,reference,note\n" + "\n".join(row for _, row in rows)


def headline(label: str) -> str:
    """Return a subject's label as the title of an event or a mail."""
    label = label.removeprefix("the ")
    return label[0].upper() + label[1:]


def to_json(answer: object) -> str:
    """Return a tool's answer as the text of its result."""
    return msgspec.json.format(msgspec.json.encode(answer), indent=1).decode()

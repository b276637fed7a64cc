"""One person's life as the assistant sees it: a voice for each side, the tools, and what was told so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

import msgspec

from ...model import Tool
from ..script import Script
from .ledger import Ledger, Thing, Value
from .text import Tongue, Writer

TOOLS = tuple(
    Tool(name, description, '{"type":"object"}')
    for name, description in (
        ("calendar_search", "Events of the calendar between two days."),
        ("create_event", "Puts an event into the calendar."),
        ("update_event", "Changes an event of the calendar."),
        ("book_travel", "Books or changes a flight or a room."),
        ("send_email", "Sends a mail."),
        ("email_search", "Mails that match a query, newest first."),
        ("web_search", "Offers and pages from the web."),
        ("notes_search", "Notes that match a query."),
        ("save_note", "Keeps a note."),
        ("list_transactions", "Payments of the household account in one month, as CSV."),
    )
)
CAST = {
    "me": 1, "partner": 1, "child": 1, "sibling": 1, "boss": 1, "friend": 5, "colleague": 5,
    "home": 1, "company": 1, "job": 1,
}  # fmt: skip
"""How many of each the world of one seed has, out of all that the language offers."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the conversation has put into the calendar."""

    title: str
    day: date
    time: str
    place: str


class Life:
    """What the arcs write with."""

    def __init__(self, script: Script, rng: Random, tongue: Tongue) -> None:
        self.script, self.rng, self.tongue, self.ledger = script, rng, tongue, Ledger()
        cast = {role: tuple(rng.sample(tongue.frames[role], count)) for role, count in CAST.items()}
        self.write = Writer(rng, tongue, cast, lambda: self.today)
        self.tastes: dict[str, tuple[str, ...]] = {}
        self.events: dict[Thing, Event] = {}
        self.months: set[str] = set()
        """The months that have been summed up."""
        self.notes: dict[str, tuple[str, str, str]] = {}
        """The notes that have been found, by title (question, value, body): they read the same the next time."""

    @property
    def today(self) -> date:
        """The day on the script's clock."""
        return self.script.now.date()

    def ahead(self, low: int, high: int) -> date:
        """A day between so many days from now."""
        return self.today + timedelta(days=self.rng.randint(low, high))

    def price(self, low: int, high: int) -> int:
        """An amount of money, of so many pounds' worth."""
        return self.rng.randint(low * self.tongue.dear, high * self.tongue.dear)

    def time(self, low: int, high: int) -> str:
        """A time of day."""
        return f"{self.rng.randint(low, high):02d}:{5 * self.rng.randrange(12):02d}"

    def code(self, letters: int, digits: int) -> str:
        """A reference as firms print them, without letters that look like digits."""
        head = "".join(self.rng.choices("ABCDEFGHJKLMNPQRTUVWXYZ", k=letters))
        return head + "".join(self.rng.choices("0123456789", k=digits))

    def user(self, key: str, **given: object) -> str:
        """The user says something; some of the time they lead in with a word of small talk."""
        said = self.write(key, **given)
        if self.rng.random() < 0.25:
            said = self.write("aside") + self.tongue.glue + said
        return self.script.user(self.tongue.finish(said))

    def reply(self, key: str, **given: object) -> str:
        """The assistant's answer."""
        return self.script.assistant(self.tongue.finish(self.write(key, **given)))

    def use(self, *calls: tuple[str, Mapping[str, object], str]) -> list[str]:
        """One model call that uses tools, then their results: (tool, arguments, result) each. Ids of the results."""
        made = [self.script.call(name, arguments) for name, arguments, _ in calls]
        looks = any("search" in name for name, _, _ in calls)
        saying = self.write("lookup") if looks and self.rng.random() < 0.4 else ""
        self.script.assistant(saying, made)
        return [self.script.result(call, result) for call, (_, _, result) in zip(made, calls, strict=True)]

    def put(self, thing: Thing, title: str, day: date, time: str, place: str) -> str:
        """The event goes into the calendar, or moves there; the id of the tool's answer."""
        tool = "update_event" if thing in self.events else "create_event"
        title = titled(title)
        self.events[thing] = Event(title, day, time, place)
        entry = {"title": title, "start": f"{day}T{time}", "location": place}
        answer = {
            "status": "ok",
            "event_id": f"ev-{self.code(2, 5)}",
            **entry,
            "reminder": self.taste("reminder"),
            "same_week": [self.write("event.brief", title=title, place=place) for title, place in self.usual(6)],
            "hint": self.write.some("calendar.hint", 3),
        }
        return self.use((tool, entry, as_json(answer)))[0]

    def keep(self, text: str) -> str:
        """The assistant saves a note."""
        stored = {"saved": str(self.today), "id": f"n-{self.code(1, 4)}", "related": self.write.parts("note.related")}
        stored["last_notes"] = self.write.lines("note.more", 6).split("\n")
        return self.use(("save_note", {"text": self.tongue.finish(text)}, as_json(stored)))[0]

    def usual(self, count: int) -> list[tuple[str, str]]:
        """Events of daily life, each a title and a place."""
        return [(title, place) for title, place in (self.write.parts("event") for _ in range(count))]

    def taste(self, topic: str) -> str:
        """What the user prefers by now, in the words of the language; a neutral word if they never said."""
        return self.tastes[topic][0] if topic in self.tastes else self.write(f"taste.{topic}.open")

    def tell(self, thing: Thing, aspect: str, told: str, *answers: str) -> None:
        """The message `told` says that this aspect of the thing is so."""
        self.ledger.tell(thing, aspect, Value(answers, told))

    def tell_day(self, thing: Thing, aspect: str, told: str, day: date) -> None:
        """The same for a day."""
        self.ledger.tell(thing, aspect, Value(self.tongue.days(day), told, day=day))

    def tell_price(self, thing: Thing, aspect: str, told: str, amount: int) -> None:
        """The same for an amount of money."""
        self.ledger.tell(thing, aspect, Value(self.tongue.moneys(amount), told, amount=amount))


def titled(label: str) -> str:
    """A thing's label as the title of an event or a mail."""
    label = label.removeprefix("the ")
    return label[0].upper() + label[1:]


def as_json(value: object) -> str:
    """A tool's answer."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()

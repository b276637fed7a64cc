"""The invented product behind a docs_qa conversation: what is true in one world.

A number, a role or a page that a sentence form names is drawn once for each form and subject and then stays, so the
documentation never contradicts itself however often a subject comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from .pack import Area, Aspect, Pack, Thing


@dataclass(frozen=True, slots=True)
class Setting:
    """One configuration key of the product."""

    area: Area
    thing: Thing
    aspect: Aspect

    @property
    def key(self) -> str:
        return f"{self.area.slug}.{self.thing.slug}.{self.aspect.suffix}"


_NUMBERS: Mapping[str, tuple[int, ...]] = {
    "few": (2, 3, 4, 5, 6),
    "n": (3, 4, 5, 6, 8, 12, 16, 20, 24, 32, 40, 64),
    "hundreds": tuple(range(150, 2000, 50)),
    "minutes": (2, 3, 4, 5, 7, 8, 12, 15, 18, 20, 25, 35, 45),
    "seconds": (5, 8, 10, 15, 20, 40, 45, 75, 90),
    "hours": (2, 3, 4, 6, 8, 9, 12, 18, 36, 48, 72),
    "days": (2, 3, 5, 7, 9, 10, 14, 21, 28, 45, 60, 75, 120),
    "percent": (2, 4, 5, 12, 15, 35, 60, 70, 75, 80, 85, 95),
}
_AN = ("a", "e", "i", "o", "up")
_RESERVED = 40
"""Keys that exist in no page: near misses for questions that cannot be answered. One a thing at most."""


class World:
    """What is true of one product: its name, its versions, its settings, and every number once it has been said."""

    def __init__(self, pack: Pack, rng: Random, today: datetime) -> None:
        self.pack, self.rng = pack, rng
        names = pack.names
        self.product, self.company = rng.choice(names["products"]), rng.choice(names["companies"])
        self.roles = rng.sample(names["roles"], 8)
        self.sites = rng.sample(names["sites"], 7)
        self.teams = rng.sample(names["teams"], 7)
        self.people = rng.sample(names["people"], 9)
        self.cli = rng.choice(names["commands"])
        self.versions = _versions(rng, today)
        settings = [
            Setting(area, thing, aspect)
            for area in pack.areas
            for thing in area.things
            for aspect in pack.aspects
            if thing.kind in aspect.kinds
        ]
        rng.shuffle(settings)
        last = {(setting.area.slug, setting.thing.slug): setting for setting in settings}
        self.reserved = list(last.values())[:_RESERVED]
        self.settings = [setting for setting in settings if setting not in self.reserved]
        self.keys_of: dict[tuple[str, str], list[Setting]] = {}
        for setting in self.settings:
            self.keys_of.setdefault((setting.area.slug, setting.thing.slug), []).append(setting)
        self.values = {setting.key: rng.choice(setting.aspect.values) for setting in settings}
        self._since: dict[str, int] = {}
        self._said: dict[tuple[str, str, str], str] = {}
        self._decks: dict[str, list[str]] = {}
        self._late: dict[str, list[str]] = {}

    def value(self, setting: Setting) -> str:
        """The default of a setting as the pages print it: 45 days."""
        return f"{self.values[setting.key]} {setting.aspect.unit}".rstrip()

    def accepted(self, setting: Setting) -> list[str]:
        """Ways to answer with the default of a setting."""
        return self.spellings(self.values[setting.key], setting.aspect.unit)

    def spellings(self, number: int, unit: str) -> list[str]:
        """Ways to write a number with its unit; without a blank only where the language has it so."""
        value = f"{number} {unit}".rstrip()
        return [value, *([] if self.pack.joint else [value.replace(" ", "")]), str(number)]

    def since(self, setting: Setting) -> int:
        """Which of `versions` brought a setting."""
        return self._since.setdefault(setting.key, self.rng.randrange(len(self.versions) - 4))

    def release(self, day: datetime) -> str:
        """A new version is released on this day, with the next number."""
        major, minor, *_ = self.versions[-1][0].split(".")
        self.versions.append((f"{major}.{int(minor) + 1}", day.strftime("%Y-%m-%d")))
        return self.versions[-1][0]

    def deal(self, group: str) -> str:
        """A sentence form for this place: all once before any comes twice, and none soon again."""
        deck = self._decks.get(group)
        if not deck:
            late = self._late.get(group, [])
            early = [frame for frame in self.pack.frames[group] if frame not in late]
            late, early = (self.rng.sample(half, len(half)) for half in (late, early))
            deck = self._decks[group] = late + early
            self._late[group] = deck[: len(deck) // 2]
        return deck.pop()

    def say(self, group: str, area: Area, thing: Thing, **given: str) -> str:
        """A sentence for this place about this thing."""
        return self.fill(self.deal(group), area, thing, **given)

    def fill(self, frame: str, area: Area, thing: Thing, **given: str) -> str:
        """A whole sentence: a form with its gaps filled; `given` goes before what the world would say."""
        text = self.clause(frame, area, thing, **given)
        return capital(text)

    def clause(self, frame: str, area: Area, thing: Thing, **given: str) -> str:
        """The same as part of a sentence, without the capital."""
        return frame.format_map(_Gaps(self, frame, area, thing, given))

    def page(self, area: Area, thing: Thing) -> str:
        """Where a thing is found in the product's menu."""
        return f"{self.once('menu', area.slug, 'menu', self.pack.names['menus'])} › {area.title} › {title(thing)}"

    def code(self, area: Area, trouble: int) -> str:
        """The error code of one of the troubles of an area."""
        code = f"{self.cli.upper()}-{100 * (self.pack.areas.index(area) + 11) + 7 * trouble + 4}"
        return self.once("code", area.slug, str(trouble), (code,))

    def gap(self, name: str, frame: str, area: Area, thing: Thing) -> str:
        """What stands in the gap `name` of a sentence form."""
        kind = name.rstrip("0123456789")
        if kind in _NUMBERS:
            return self.once(frame, f"{area.slug}.{thing.slug}", name, tuple(map(str, _NUMBERS[kind])))
        if kind == "role":
            at = int(self.once(frame, thing.slug, "role", tuple("01234567")))
            role = self.roles[(at + 3 * (name != "role")) % len(self.roles)]
            return self.pack.labels["role"].format(role=role)
        if kind == "version":
            return self.once(frame, thing.slug, name, tuple(v for v, _ in self.versions[:12]))
        return self._passing(kind, area, thing)

    def _passing(self, kind: str, area: Area, thing: Thing) -> str:
        """What may be different each time without a contradiction."""
        rng = self.rng
        match kind:
            case "other" | "others":
                other = rng.choice([one for one in area.things if one is not thing])
                return other.name if kind == "other" else other.plural
            case "page":
                return self.page(area, thing)
            case "goal":
                return rng.choice(area.goals)
            case "site":
                return rng.choice(self.sites)
            case "team":
                return rng.choice(self.teams)
            case "person":
                return rng.choice(self.people)
            case "host":
                return f"{area.slug}-{rng.randint(1, 9):02d}.{rng.choice(self.pack.names['zones'])}.{self.cli}.internal"
            case "cli":
                verb = rng.choice(("list", "show", "check", "export", "diff", "describe"))
                return f"{self.cli} {area.slug} {verb} {thing.slug.replace('_', '-')}"
            case "job":
                return f"{area.slug}-{thing.slug.replace('_', '-')}-{rng.choice(('sweep', 'sync', 'verify', 'merge'))}"
        raise KeyError(kind)

    def once(self, frame: str, subject: str, name: str, choices: tuple[str, ...]) -> str:
        known = (frame, subject, name)
        if known not in self._said:
            self._said[known] = self.rng.choice(choices)
        return self._said[known]


class _Gaps(dict[str, str]):
    """The gaps of one sentence form, filled as they are met."""

    def __init__(self, world: World, frame: str, area: Area, thing: Thing, given: Mapping[str, str]) -> None:
        super().__init__(
            given, thing=thing.name, things=thing.plural, area=area.title, product=world.product, company=world.company
        )
        self._world, self._frame, self._area, self._thing = world, frame, area, thing

    def __missing__(self, name: str) -> str:
        if name in ("key", "value"):
            setting = self._world.rng.choice(self._world.keys_of[self._area.slug, self._thing.slug])
            self["key"], self["value"] = setting.key, self._world.value(setting)
            return self[name]
        if name.startswith("a_"):
            noun = self[name[2:]].removeprefix("the ")
            return f"{'an' if noun.startswith(_AN) else 'a'} {noun}"
        if name[0].isupper():
            return capital(self[name.lower()])
        return self._world.gap(name, self._frame, self._area, self._thing)


def capital(text: str) -> str:
    """With a capital at the start, unless it starts with a path, a key or the name of a host."""
    start = text.split(" ", 1)[0].rstrip(".:,")
    return text if any(mark in start for mark in "/._") else text[:1].upper() + text[1:]


def title(thing: Thing) -> str:
    """The plural as a heading."""
    return capital(thing.plural)


def _versions(rng: Random, today: datetime) -> list[tuple[str, str]]:
    """Sixteen releases, the last one some weeks before today."""
    major, day, made = rng.randint(4, 8), today - timedelta(days=rng.randint(20, 50)), []
    for minor in range(15, -1, -1):
        made.append((f"{major}.{minor}", day.strftime("%Y-%m-%d")))
        day -= timedelta(days=rng.randint(31, 77))
    return made[::-1]

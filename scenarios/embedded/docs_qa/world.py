"""The invented product behind a docs_qa conversation: the forms of a language, and the facts of one world.

`load_language` reads the data files; a `World` draws a product from them and fills sentence forms. A number, a role or
a page that a form names is drawn once for each form and subject and then stays, so the documentation never contradicts
itself however often a subject is mentioned.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from random import Random
from typing import Literal

from ..forms import Forms, Parts, fill, load, one, say

Kind = Literal["record", "job", "file"]
KINDS: tuple[Kind, ...] = ("record", "job", "file")

# Values of a number by the name of its slot; `n2` is another number of the kind `n`.
_NUMBERS: Mapping[str, Sequence[int]] = {
    "few": (2, 3, 4, 5, 6),
    "n": (3, 4, 5, 6, 8, 12, 16, 20, 24, 32, 40, 64),
    "hundreds": range(150, 2000, 50),
    "minutes": (2, 3, 4, 5, 7, 8, 12, 15, 18, 20, 25, 35, 45),
    "seconds": (5, 8, 10, 15, 20, 40, 45, 75, 90),
    "hours": (2, 3, 4, 6, 8, 9, 12, 18, 36, 48, 72),
    "days": (2, 3, 5, 7, 9, 10, 14, 21, 28, 45, 60, 75, 120),
    "percent": (2, 4, 5, 12, 15, 35, 60, 70, 75, 80, 85, 95),
}
_NUMERALS = {kind: tuple(map(str, numbers)) for kind, numbers in _NUMBERS.items()}
_AN = ("a", "e", "i", "o", "up")
# Characters of paths, keys and names of hosts.
_MARKS = frozenset("/._")
# Keys that exist in no page, for questions that cannot be answered: one a thing at most.
_NEAR_MISSES = 40


@dataclass(frozen=True, slots=True)
class Thing:
    """A record, job or file of the product. `slug` is its name in keys, paths and commands."""

    name: str
    plural: str
    slug: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter of the documentation with the phrases that only it has.

    `goals` complete "how do I …"; `steps` are in the order in which they are done; `troubles` are
    (symptom, cause, remedy); `notes` are whole sentences.
    """

    slug: str
    title: str
    things: tuple[Thing, ...]
    goals: tuple[str, ...]
    steps: tuple[str, ...]
    troubles: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Aspect:
    """A kind of setting: the end of its key, the values it may have, and how one speaks of it."""

    suffix: str
    kinds: tuple[Kind, ...]
    values: tuple[int, ...]
    unit: str
    meanings: tuple[str, ...]
    question: str
    statement: str
    search: str
    """Search terms for it."""


@dataclass(frozen=True, slots=True)
class Language:
    """Chapters, settings and sentence forms of one language."""

    code: str
    chapters: tuple[Chapter, ...]
    aspects: tuple[Aspect, ...]
    forms: Forms
    joint: str
    """The characters between two sentences."""
    extra_sentences: int
    """How many sentences more than in English make a paragraph of the same length."""


@dataclass(frozen=True, slots=True)
class ProductSetting:
    """One configuration key of the product."""

    chapter: Chapter
    thing: Thing
    aspect: Aspect

    @property
    def key(self) -> str:
        return f"{self.chapter.slug}.{self.thing.slug}.{self.aspect.suffix}"


@cache
def load_language(code: str) -> Language:
    """Read the data files of `en` or `zh`."""
    forms: dict[str, tuple[str, ...]] = {}
    for name in ("technical", f"product_{code}", f"pages_{code}", f"talk_{code}"):
        forms |= load(__package__, name)
    joint, extra_sentences = {"en": (" ", 0), "zh": ("", 1)}[code]
    return Language(code, _chapters(code), _aspects(code), forms, joint, extra_sentences)


def _chapters(code: str) -> tuple[Chapter, ...]:
    forms = load(__package__, f"chapters_{code}")
    chapters = []
    for slug in (key for key in forms if "." not in key):
        things = tuple(_thing(code, name, kind) for kind in KINDS for name in forms[f"{slug}.{kind}"])
        goals, steps, notes = (forms[f"{slug}.{part}"] for part in ("goals", "steps", "notes"))
        troubles = []
        for form in forms[f"{slug}.troubles"]:
            symptom, cause, remedy = form.split("\n")
            troubles.append((symptom, cause, remedy))
        chapters.append(Chapter(slug, forms[slug][0], things, goals, steps, tuple(troubles), notes))
    return tuple(chapters)


def _thing(code: str, text: str, kind: Kind) -> Thing:
    name, _, rest = text.partition("/")
    if code == "zh":
        return Thing(name, name, rest, kind)
    regular = name[:-1] + "ies" if name.endswith("y") and not name.endswith("ey") else name + "s"
    return Thing(name, rest or regular, name.replace(" ", "_").replace("-", "_"), kind)


def _aspects(code: str) -> tuple[Aspect, ...]:
    table = tomllib.loads((files(__package__) / "data" / "settings.toml").read_text(encoding="utf-8"))
    return tuple(
        Aspect(
            suffix,
            tuple(aspect["things"]),
            tuple(aspect["values"]),
            aspect[code]["unit"],
            tuple(aspect[code]["meanings"]),
            aspect[code]["question"],
            aspect[code]["statement"],
            aspect[code].get("search", suffix.replace("_", " ")),
        )
        for suffix, aspect in table.items()
    )


class World:
    """Facts about one product: its name, versions and settings, and every number once it has been used."""

    def __init__(self, language: Language, rng: Random, today: datetime) -> None:
        """Draw a product whose last version was released some weeks before today."""
        self.language, self.rng = language, rng
        names = language.forms
        self.product, self.company = rng.choice(names["products"]), rng.choice(names["companies"])
        self.roles = rng.sample(names["roles"], 8)
        self.sites = rng.sample(names["sites"], 7)
        self.teams = rng.sample(names["teams"], 7)
        self.people = rng.sample(names["people"], 9)
        self.cli = rng.choice(names["commands"])
        self.versions = _versions(rng, today)
        """Releases as (number, ISO date), oldest first."""
        settings = [
            ProductSetting(chapter, thing, aspect)
            for chapter in language.chapters
            for thing in chapter.things
            for aspect in language.aspects
            if thing.kind in aspect.kinds
        ]
        rng.shuffle(settings)
        # One a thing, the last of its settings in this order: no thing loses more than one.
        last = {(setting.chapter.slug, setting.thing.slug): setting for setting in settings}
        self.near_misses = list(last.values())[:_NEAR_MISSES]
        self.settings = [setting for setting in settings if setting not in self.near_misses]
        self.settings_of: dict[tuple[str, str], list[ProductSetting]] = {}
        for setting in self.settings:
            self.settings_of.setdefault((setting.chapter.slug, setting.thing.slug), []).append(setting)
        self.defaults = {setting.key: rng.choice(setting.aspect.values) for setting in settings}
        self._first_versions: dict[str, int] = {}
        self._draws: dict[tuple[str, str, str], str] = {}
        self._decks: dict[str, list[str]] = {}
        self._recent: dict[str, list[str]] = {}

    def value(self, setting: ProductSetting) -> str:
        """Return the default of a setting as the pages print it: 45 days."""
        return f"{self.defaults[setting.key]} {setting.aspect.unit}".rstrip()

    def answers(self, setting: ProductSetting) -> list[str]:
        """Return the ways to answer with the default of a setting."""
        return self.spellings(self.defaults[setting.key], setting.aspect.unit)

    def spellings(self, number: int, unit: str) -> list[str]:
        """Return the ways to write a number with its unit; without a blank only where the language has it so."""
        value = f"{number} {unit}".rstrip()
        return [value, *([] if self.language.joint else [value.replace(" ", "")]), str(number)]

    def first_version(self, setting: ProductSetting) -> tuple[str, str]:
        """Return the version that brought a setting, with its date."""
        return self.versions[self._first_versions.setdefault(setting.key, self.rng.randrange(len(self.versions) - 4))]

    def release(self, day: datetime) -> str:
        """Release a new version on this day, and return its number: the next minor one."""
        major, minor, *_ = self.versions[-1][0].split(".")
        self.versions.append((f"{major}.{int(minor) + 1}", day.strftime("%Y-%m-%d")))
        return self.versions[-1][0]

    def deal(self, key: str) -> str:
        """Return a form under this key. All are used once before any is used again, and none twice in short order."""
        deck = self._decks.get(key)
        if not deck:
            recent = self._recent.get(key, [])
            others = [form for form in self.language.forms[key] if form not in recent]
            recent, others = (self.rng.sample(half, len(half)) for half in (recent, others))
            # Those dealt last are at the start, and so come last again.
            deck = self._decks[key] = recent + others  # dealt from the end
            self._recent[key] = deck[: len(deck) // 2]
        return deck.pop()

    def say(self, key: str, chapter: Chapter, thing: Thing, /, **facts: str) -> str:
        """Return a sentence of the forms under this key about this thing."""
        return self.sentence(self.deal(key), chapter, thing, **facts)

    def sentence(self, form: str, chapter: Chapter, thing: Thing, /, **facts: str) -> str:
        """Return a whole sentence: a form with its slots filled from `facts` first, then from the world."""
        return capital(self.clause(form, chapter, thing, **facts))

    def clause(self, form: str, chapter: Chapter, thing: Thing, /, **facts: str) -> str:
        """Return the same as part of a sentence, without the capital."""
        return fill(form, self._choose, _Facts(self, form, chapter, thing, facts).__getitem__)

    def text(self, key: str, /, **facts: str) -> str:
        """Return the one text under this key, filled with `facts` alone."""
        return say(self.rng, self.language.forms[key][0], facts)

    def page(self, chapter: Chapter, thing: Thing) -> str:
        """Return where a thing is found in the product's menu."""
        menu = self.once("menu", chapter.slug, "menu", self.language.forms["menus"])
        return f"{menu} › {chapter.title} › {title(thing)}"

    def error_code(self, chapter: Chapter, trouble: int) -> str:
        """Return the error code of one of the troubles of a chapter."""
        number = 100 * (self.language.chapters.index(chapter) + 11) + 7 * trouble + 4
        return self.once("code", chapter.slug, str(trouble), (f"{self.cli.upper()}-{number}",))

    def draw(self, name: str, form: str, chapter: Chapter, thing: Thing) -> str:
        """Return the value of the slot `name` of a form. Raises KeyError for an unknown name."""
        kind = name.rstrip("0123456789")
        if kind in _NUMERALS:
            return self.once(form, f"{chapter.slug}.{thing.slug}", name, _NUMERALS[kind])
        if kind == "role":
            index = int(self.once(form, thing.slug, "role", "01234567"))
            # A second role in the same sentence is never the first one.
            return self.text("role_name", role=self.roles[(index + 3 * (name != "role")) % len(self.roles)])
        if kind == "version":
            return self.once(form, thing.slug, name, tuple(number for number, _ in self.versions[:12]))
        return self._draw_anew(kind, chapter, thing)

    def _draw_anew(self, kind: str, chapter: Chapter, thing: Thing) -> str:
        """Return a fact that may be different each time without a contradiction."""
        rng, forms = self.rng, self.language.forms
        match kind:
            case "other" | "others":
                other = rng.choice([sibling for sibling in chapter.things if sibling is not thing])
                return other.name if kind == "other" else other.plural
            case "page":
                return self.page(chapter, thing)
            case "goal":
                return rng.choice(chapter.goals)
            case "site":
                return rng.choice(self.sites)
            case "team":
                return rng.choice(self.teams)
            case "person":
                return rng.choice(self.people)
            case "host":
                return f"{chapter.slug}-{rng.randint(1, 9):02d}.{rng.choice(forms['zones'])}.{self.cli}.internal"
            case "cli":
                return f"{self.cli} {chapter.slug} {rng.choice(forms['verbs'])} {thing.slug.replace('_', '-')}"
            case "job":
                return f"{chapter.slug}-{thing.slug.replace('_', '-')}-{rng.choice(forms['job_suffixes'])}"
        raise KeyError(kind)

    def once(self, form: str, subject: str, name: str, choices: Sequence[str]) -> str:
        """Return one of the choices, the same whenever form, subject and name are the same."""
        key = (form, subject, name)
        if key not in self._draws:
            self._draws[key] = self.rng.choice(choices)
        return self._draws[key]

    def _choose(self, options: Sequence[Parts]) -> Parts:
        return one(self.rng, options)


class _Facts(dict[str, str]):
    """Facts of one sentence: the caller's, then its subject's, then facts drawn when the sentence names them."""

    def __init__(self, world: World, form: str, chapter: Chapter, thing: Thing, facts: Mapping[str, str]) -> None:
        super().__init__(
            facts,
            thing=thing.name,
            things=thing.plural,
            chapter=chapter.title,
            product=world.product,
            company=world.company,
        )
        self._world, self._form, self._chapter, self._thing = world, form, chapter, thing

    def __missing__(self, name: str) -> str:
        if name in ("key", "value"):  # a sentence that names both means one setting
            setting = self._world.rng.choice(self._world.settings_of[self._chapter.slug, self._thing.slug])
            self["key"], self["value"] = setting.key, self._world.value(setting)
            return self[name]
        if name.startswith("a_"):
            noun = self[name[2:]].removeprefix("the ")
            return f"{'an' if noun.startswith(_AN) else 'a'} {noun}"
        if name[0].isupper():
            return capital(self[name.lower()])
        return self._world.draw(name, self._form, self._chapter, self._thing)


def capital(text: str) -> str:
    """Return the text with a capital, unless it starts with a path, a key or the name of a host."""
    start = text.split(" ", 1)[0].rstrip(".:,")
    return text[:1].upper() + text[1:] if _MARKS.isdisjoint(start) else text


def title(thing: Thing) -> str:
    """Return the plural as a heading."""
    return capital(thing.plural)


def _versions(rng: Random, today: datetime) -> list[tuple[str, str]]:
    """Return sixteen releases, the last one some weeks before today."""
    major, day, versions = rng.randint(4, 8), today - timedelta(days=rng.randint(20, 50)), []
    for minor in range(15, -1, -1):
        versions.append((f"{major}.{minor}", day.strftime("%Y-%m-%d")))
        day -= timedelta(days=rng.randint(31, 77))
    return versions[::-1]

"""The library of the research scenario: fields of research, and the invented papers on them.

`load_language` reads the data files in one language; a `PaperLibrary` draws papers from them, each with facts that all
of its texts share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, NamedTuple

from ..forms import Forms, load, one, say, table

_SECTIONS = ("aims", "method", "results", "subgroups", "course", "robust", "why", "limits")
_GAP = re.compile(r" +([,.;:)])")


class StudyOutcome(NamedTuple):
    """Something measured. `falls` = an effect lowers it; the effect is between low and high, in the unit."""

    name: str
    unit: str
    low: float
    high: float
    falls: bool


class Moderator(NamedTuple):
    """Something that an effect depends on, with a cut between low and high, in the unit."""

    name: str
    unit: str
    low: int
    high: int


class Criterion(NamedTuple):
    """A criterion of the review that people change their minds about; its values go from low to high in steps."""

    name: str
    unit: str
    low: int
    high: int
    step: int


class Field(NamedTuple):
    """One research question."""

    question: str
    units: str
    outcomes: tuple[StudyOutcome, ...]
    moderators: tuple[Moderator, ...]
    treatments: tuple[str, ...]
    places: tuple[str, ...]
    mechanisms: tuple[str, ...]
    instruments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Language:
    """Forms, fields and names of one language."""

    chinese: bool
    joint: str
    """The characters between two sentences."""
    speech: Forms
    papers: Forms
    fields: tuple[Field, ...]
    criteria: tuple[Criterion, ...]
    authors: tuple[str, ...]
    journals: tuple[str, ...]


@cache
def load_language(code: str) -> Language:
    """Read the data files of `en` or `zh`."""
    side = ("en", "zh").index(code)
    fields, authors = table(__package__, "fields"), table(__package__, "authors")
    names = authors["surnames"]
    if code == "zh":
        names = [
            family + given for family in authors["chinese_family_names"] for given in authors["chinese_given_names"]
        ]
    return Language(
        chinese=code == "zh",
        joint=(" ", "")[side],
        speech=load(__package__, f"speech_{code}"),
        papers=load(__package__, f"papers_{code}"),
        fields=tuple(_field(record, side) for record in fields["fields"]),
        criteria=tuple(Criterion(**_one_side(record, side)) for record in fields["criteria"]),
        authors=tuple(names),
        journals=tuple(pair[side] for pair in authors["journals"]),
    )


def _field(record: Mapping[str, Any], side: int) -> Field:
    lists = {key: tuple(pair[side] for pair in record[key]) for key in Field._fields[-4:]}
    return Field(
        record["question"][side],
        record["units"][side],
        tuple(StudyOutcome(**_one_side(outcome, side)) for outcome in record["outcomes"]),
        tuple(Moderator(**_one_side(moderator, side)) for moderator in record["moderators"]),
        **lists,
    )


def _one_side(record: Mapping[str, Any], side: int) -> dict[str, Any]:
    """Return a record in one language: of each pair the one text."""
    return {key: value[side] if isinstance(value, list) else value for key, value in record.items()}


def tidy(text: str) -> str:
    """Return the text without the gaps that an empty unit leaves, and with one mark after a title that asks."""
    text = _GAP.sub(r"\1", text).replace("  ", " ").replace(" %", "%")
    return text.replace("?.", "?").replace("\uff1f\u3002", "\uff1f")


@dataclass
class Topic:
    """One side of the question: an outcome and a factor. The dialogue leaves it and returns to it."""

    outcome: StudyOutcome
    moderator: Moderator
    name: str
    papers: list[Paper] = field(default_factory=list)
    reading: list[Paper] = field(default_factory=list)
    """Opened papers, in order."""
    last: int = 0
    """Last turn about this topic."""


@dataclass
class Paper:
    """A study. `facts` holds everything that its texts say, ready to print."""

    id: str
    label: str
    year: int
    sample: int
    effect: float
    """Signed, in the unit of the outcome; 0 = no effect found."""
    facts: dict[str, str]
    message: str = ""
    """The id of the message that showed it whole."""


class PaperLibrary:
    """The source of papers on one field; keeps ids and labels unique."""

    def __init__(self, rng: Random, subject: Field, language: Language) -> None:
        self._rng, self._subject, self._language = rng, subject, language
        self._forms = language.papers
        self._labels: set[str] = set()
        self._number = 1000 + int(rng.random() * 5000)
        self._shelf = one(rng, ("hx", "qv", "lr", "ob", "tk"))

    def paper(self, topic: Topic) -> Paper:
        """Return a new study on the topic."""
        rng, subject = self._rng, self._subject
        self._number += 1 + int(rng.random() * 9)
        first, second, year = self._authors()
        outcome, moderator = topic.outcome, topic.moderator
        size = outcome.low + rng.random() * (outcome.high - outcome.low)
        sign = 0 if (luck := rng.random()) < 0.2 else -1 if luck < 0.32 else 1
        effect = round(sign * size * (-1 if outcome.falls else 1), 1)
        spread = round(size * (0.2 + 0.9 * rng.random()) + 0.1, 1)
        estimate = abs(effect) if sign else round(spread * 0.7 * rng.random() + 0.1, 1)
        cut = moderator.low + int(rng.random() * (moderator.high - moderator.low + 1))
        sample = 24 + int(rng.expovariate(1 / 190))
        significant = estimate > spread
        other = one(rng, [candidate for candidate in subject.outcomes if candidate is not outcome])
        facts = {
            "id": f"{self._shelf}-{self._number}",
            "first": first,
            "second": second,
            "year": str(year),
            "journal": one(rng, self._language.journals),
            "pages": f"{20 + int(rng.random() * 700)}",
            "treatment": one(rng, subject.treatments),
            "outcome": outcome.name,
            "unit": outcome.unit,
            "moderator": moderator.name,
            "munit": moderator.unit,
            "cut": str(cut),
            "n": str(sample),
            "units": subject.units,
            "sites": str(3 + int(rng.random() * 22)),
            "place": one(rng, subject.places),
            "mechanism": one(rng, subject.mechanisms),
            "instrument": one(rng, subject.instruments),
            "effect": f"{estimate:.1f}",
            "low": f"{estimate - spread:.1f}",
            "high": f"{estimate + spread:.1f}",
            "spread": f"{spread:.1f}",
            "lower": self._forms["lower" if effect < 0 else "higher"][0],
            "below": f"{estimate * (0.2 + 0.4 * rng.random()):.1f}",
            "above": f"{estimate * (1.1 + 0.6 * rng.random()):.1f}",
            "other": other.name,
            "other_effect": f"{other.low + rng.random() * (other.high - other.low):.1f}",
            "other_unit": other.unit,
            "dropout": str(3 + int(rng.random() * 33)),
            "months": str(3 + int(rng.random() * 30)),
            "controls": str(12 + int(sample * (0.3 + 0.5 * rng.random()))),
            "p": f"0.{(1 if significant else 60) + int(rng.random() * (44 if significant else 700)):03d}",
            "share": str(21 + int(rng.random() * 60)),
            "start": str(year - 3 - int(rng.random() * 3)),
            "between": f"0.{10 + int(rng.random() * 80)}",
        }
        facts["label"] = say(rng, self._forms["label"][0], facts)
        facts["title"] = say(rng, one(rng, self._forms["title"]), facts)
        return Paper(facts["id"], facts["label"], year, sample, effect, facts)

    def abstract(self, paper: Paper) -> str:
        """Return the passage that a search shows, some 700–1100 characters of English."""
        head = self._say(paper, "head")
        parts = [self._section(paper, "abstract"), self._finding(paper), self._say(paper, "end")]
        return f"{head}\n{self._language.joint.join(parts)}"

    def whole(self, paper: Paper) -> str:
        """Return the text of the paper: sections with findings, a table of subgroups, limits."""
        parts = [self._say(paper, "head")]
        for key in _SECTIONS:
            title = self._say(paper, f"{key}_title")
            body = self._section(paper, key)
            rows = self._places(paper) if key == "subgroups" else self._periods(paper) if key == "course" else ""
            parts.append(f"## {title}\n\n{body}" + (f"\n\n{rows}" if rows else ""))
        return "\n\n".join(parts)

    def _section(self, paper: Paper, key: str) -> str:
        forms = self._forms[key]
        count = len(forms) if key != "abstract" else 4
        texts = [tidy(say(self._rng, form, paper.facts)) for form in self._rng.sample(forms, count)]
        if key == "results":
            texts.insert(0, self._finding(paper))
        joint = self._language.joint
        half = (len(texts) + 1) // 2
        return joint.join(texts) if len(texts) < 5 else f"{joint.join(texts[:half])}\n\n{joint.join(texts[half:])}"

    def _finding(self, paper: Paper) -> str:
        return self._say(paper, "finding" if paper.effect else "no_finding")

    def _places(self, paper: Paper) -> str:
        rng, facts = self._rng, paper.facts
        lines = [self._say(paper, "table_head")]
        total, middle = int(facts["n"]), float(facts["effect"])
        for place in rng.sample(self._subject.places, len(self._subject.places)):
            count = max(4, int(total * (0.1 + 0.3 * rng.random())))
            mean = middle * (0.4 + 1.2 * rng.random()) + 0.1
            width = 0.2 + mean * rng.random()
            row = f"{place} | {count} | {mean:.2f} | [{mean - width:.2f}, {mean + width:.2f}] | "
            typical = int(facts["cut"]) * (0.5 + rng.random())
            typical = min(typical, 97) if facts["munit"] in ("%", "percent") else typical
            lines.append(tidy(row + f"{typical:.0f} {facts['munit']}").rstrip())
        return "\n".join(lines)

    def _periods(self, paper: Paper) -> str:
        rng, facts = self._rng, paper.facts
        lines, count = [self._say(paper, "course_head")], int(facts["n"])
        months, effect = int(facts["months"]), float(facts["effect"])
        for at in range(1, 5):
            mean = effect * (0.1 + 0.35 * at) * (0.8 + 0.4 * rng.random())
            period = f"{months * (at - 1) // 4 + 1}-{max(months * at // 4, 1)}"
            spread = 0.1 + mean * rng.random()
            other = float(facts["other_effect"]) * rng.random() * 2
            lines.append(f"{period} | {count} | {mean:.2f} | {spread:.2f} | {other:.1f}")
            count -= int(count * int(facts["dropout"]) / 400)
        return "\n".join(lines)

    def _say(self, paper: Paper, key: str) -> str:
        return tidy(say(self._rng, one(self._rng, self._forms[key]), paper.facts))

    def _authors(self) -> tuple[str, str, int]:
        """Return two authors and a year that no paper has yet."""
        while True:
            first, second = self._rng.sample(self._language.authors, 2)
            year = 2003 + int(self._rng.random() * 22)
            key = f"{first}/{second}/{year}"
            if key not in self._labels:
                self._labels.add(key)
                return first, second, year

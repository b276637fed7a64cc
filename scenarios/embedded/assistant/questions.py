"""Questions on what has been said: the ledger of facts, the questions that it allows, and the exam that asks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations
from math import sqrt
from random import Random

from ..script import CATEGORIES, Script
from .language import Language, Writer

_RECENT = 8
"""Number of latest subjects that are combined in questions: older ones would make too many."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of facts: a trip, an appointment. Its label names it and nothing else."""

    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Value:
    """Value of a fact: the accepted answers, and the id of the message that says so."""

    answers: tuple[str, ...]
    source: str
    day: date | None = None
    amount: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Question that can be asked as a probe."""

    text: str
    answers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    computed: bool = False


@dataclass(slots=True)
class Ledger:
    """Every value that each aspect of each subject has had, oldest first."""

    facts: dict[tuple[Subject, str], list[Value]] = field(default_factory=dict)
    _ambiguous: set[Subject] = field(default_factory=set)

    def subject(self, kind: str, label: str) -> Subject:
        """Return a new subject. If the label is taken, nothing is asked about either: one could not tell them apart."""
        subject = Subject(kind, label)
        if any(other == subject for other, _ in self.facts):
            self._ambiguous.add(subject)
        return subject

    def record(self, subject: Subject, aspect: str, value: Value) -> None:
        """Let this hold from now on; the value before becomes history."""
        values = self.facts.setdefault((subject, aspect), [])
        if not values or values[-1].answers != value.answers:
            values.append(value)

    def certain(self) -> Iterator[tuple[Subject, str, list[Value]]]:
        """Return the facts that may be asked about: subject, aspect, and values from the oldest on."""
        return (
            (subject, aspect, values)
            for (subject, aspect), values in self.facts.items()
            if subject not in self._ambiguous
        )


class Examiner:
    """Source of the questions of each category that the ledger allows now."""

    def __init__(self, ledger: Ledger, write: Writer, language: Language) -> None:
        self._ledger, self._write, self._language = ledger, write, language

    def questions(self, category: str) -> list[Question]:
        """Return all questions of a category, in the order in which their facts were recorded."""
        match category:
            case "single_hop":
                return list(self._facts(updated=False))
            case "updated_fact":
                return list(self._facts(updated=True))
            case "preference":
                return list(self._tastes())
            case "multi_hop":
                return [*self._clues(), *self._sums()]
            case "temporal":
                return [*self._first_values(), *self._gaps()]
            case _:
                return list(self._unknown())

    def _text(self, form: str, subject: Subject, aspect: str, label: str = "") -> str:
        return self._write(f"{form}.{subject.kind}.{aspect}", it=label or subject.label)

    def _facts(self, *, updated: bool) -> Iterator[Question]:
        for subject, aspect, values in self._ledger.certain():
            if subject.kind != "taste" and updated == (len(values) > 1):
                newest = values[-1]
                yield Question(self._text("current", subject, aspect), newest.answers, (newest.source,))

    def _tastes(self) -> Iterator[Question]:
        for subject, aspect, values in self._ledger.certain():
            if subject.kind == "taste":
                yield Question(self._text("current", subject, aspect), values[-1].answers, (values[-1].source,))

    def _first_values(self) -> Iterator[Question]:
        for subject, aspect, values in self._ledger.certain():
            if len(values) > 1 and self._write.has(f"first.{subject.kind}.{aspect}"):
                yield Question(self._text("first", subject, aspect), values[0].answers, (values[0].source,))

    def _clues(self) -> Iterator[Question]:
        """Name a subject by one of its facts, and ask for another."""
        aspects: dict[Subject, list[tuple[str, Value]]] = {}
        holders = Counter(value.answers[0] for values in self._ledger.facts.values() for value in values)
        for subject, aspect, values in self._ledger.certain():
            aspects.setdefault(subject, []).append((aspect, values[-1]))
        for subject, facts in aspects.items():
            for (by, clue), (aspect, value) in ((a, b) for a in facts for b in facts):
                key = f"clue.{subject.kind}.{by}"
                unique = holders[clue.answers[0]] == 1
                if unique and by != aspect and clue.source != value.source and self._write.has(key):
                    text = self._text("current", subject, aspect, self._write(key, v=clue.answers[0]))
                    yield Question(text, value.answers, (clue.source, value.source))

    def _sums(self) -> Iterator[Question]:
        prices = [
            (subject.label, amount, values[-1].source)
            for subject, aspect, values in self._ledger.certain()
            if (subject.kind, aspect) == ("bill", "price") and (amount := values[-1].amount) is not None
        ]
        for (a, price, source), (b, other_price, other_source) in combinations(prices[-_RECENT:], 2):
            text, total = self._write("sum.bill", a=a, b=b), self._language.money_spellings(price + other_price)
            yield Question(text, total, (source, other_source), computed=True)

    def _gaps(self) -> Iterator[Question]:
        days = [
            (self._text("date", subject, aspect), day, values[-1].source)
            for subject, aspect, values in self._ledger.certain()
            if (day := values[-1].day) is not None and self._write.has(f"date.{subject.kind}.{aspect}")
        ]
        for (a, day, source), (b, other_day, other_source) in combinations(days[-_RECENT:], 2):
            gap = abs((other_day - day).days)
            if 1 < gap < 200 and source != other_source:
                text, count = self._write("gap", a=a, b=b), self._language.day_count(gap)
                yield Question(text, count, (source, other_source), computed=True)

    def _unknown(self) -> Iterator[Question]:
        for _ in range(4):
            yield Question(self._write("unknown"))
        subjects = {
            subject: None for subject, _, _ in self._ledger.certain() if self._write.has(f"unknown.{subject.kind}")
        }
        for subject in [*subjects][-_RECENT:]:
            yield Question(self._write(f"unknown.{subject.kind}", it=subject.label))


class Exam:
    """Probes of one conversation, asked all along it, each category in turn."""

    def __init__(self, script: Script, rng: Random, examiner: Examiner, turns: int) -> None:
        self._script, self._rng, self._examiner, self._turns = script, rng, examiner, turns
        count = min(60, max(1, round(2.05 * sqrt(turns))))
        self._missing = [CATEGORIES[n % len(CATEGORIES)] for n in range(count)]
        self._due = [round(turns * (0.25 + 0.75 * (n + 1) / count)) for n in range(count)]
        self._texts: set[str] = set()

    def after(self, turn: int) -> None:
        """Ask what is due after this turn, counted from 1.

        A category that has no question yet waits for a later turn; after the last turn, one of the others takes its
        place.
        """
        while self._due and self._due[0] <= turn:
            category = next((category for category in self._missing if self._ask(category)), None)
            if category is None:
                break
            self._missing.remove(category)
            self._due.pop(0)
        if turn == self._turns:
            for missing in self._missing:
                any(self._ask(category) for category in (missing, *CATEGORIES))

    def _ask(self, category: str) -> bool:
        new = [question for question in self._examiner.questions(category) if question.text not in self._texts]
        if not new:
            return False
        question = self._rng.choice(new)
        self._texts.add(question.text)
        self._script.probe(question.text, question.answers, question.evidence, category, computed=question.computed)
        return True

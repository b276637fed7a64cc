"""What has been said so far that one could ask about, and the questions on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations

from .text import Tongue, Writer


@dataclass(frozen=True, slots=True)
class Thing:
    """Something with facts: a trip, an appointment. Its label names it and nothing else."""

    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Value:
    """What holds of a thing, and the message that said so."""

    answers: tuple[str, ...]
    told: str
    day: date | None = None
    amount: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A probe to be."""

    text: str
    answers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    computed: bool = False


@dataclass(slots=True)
class Ledger:
    """Every value that each aspect of each thing has had, oldest first."""

    facts: dict[tuple[Thing, str], list[Value]] = field(default_factory=dict)
    _spoilt: set[Thing] = field(default_factory=set)

    def thing(self, kind: str, label: str) -> Thing:
        """A new thing. If the label is taken, nothing is asked about either: one could not tell them apart."""
        thing = Thing(kind, label)
        if any(known == thing for known, _ in self.facts):
            self._spoilt.add(thing)
        return thing

    def tell(self, thing: Thing, aspect: str, value: Value) -> None:
        """From now on this holds; what held before is history."""
        values = self.facts.setdefault((thing, aspect), [])
        if not values or values[-1].answers != value.answers:
            values.append(value)

    def known(self) -> Iterator[tuple[Thing, str, list[Value]]]:
        """All that may be asked about."""
        return ((thing, aspect, values) for (thing, aspect), values in self.facts.items() if thing not in self._spoilt)


class Examiner:
    """Finds the questions of each category that the ledger allows now."""

    def __init__(self, ledger: Ledger, write: Writer, tongue: Tongue) -> None:
        self._ledger, self._write, self._tongue = ledger, write, tongue

    def questions(self, category: str) -> list[Question]:
        """All questions of a category, in the order in which their facts were told."""
        match category:
            case "single_hop":
                return list(self._held(updated=False))
            case "updated_fact":
                return list(self._held(updated=True))
            case "preference":
                return list(self._tastes())
            case "multi_hop":
                return [*self._described(), *self._sums()]
            case "temporal":
                return [*self._former(), *self._gaps()]
            case _:
                return list(self._never())

    def _ask(self, what: str, thing: Thing, aspect: str, label: str = "") -> str:
        return self._write(f"{what}.{thing.kind}.{aspect}", it=label or thing.label)

    def _held(self, *, updated: bool) -> Iterator[Question]:
        for thing, aspect, values in self._ledger.known():
            if thing.kind != "taste" and updated == (len(values) > 1):
                newest = values[-1]
                yield Question(self._ask("ask", thing, aspect), newest.answers, (newest.told,))

    def _tastes(self) -> Iterator[Question]:
        for thing, aspect, values in self._ledger.known():
            if thing.kind == "taste":
                yield Question(self._ask("ask", thing, aspect), values[-1].answers, (values[-1].told,))

    def _former(self) -> Iterator[Question]:
        for thing, aspect, values in self._ledger.known():
            if len(values) > 1 and self._write.has(f"was.{thing.kind}.{aspect}"):
                yield Question(self._ask("was", thing, aspect), values[0].answers, (values[0].told,))

    def _described(self) -> Iterator[Question]:
        """The thing is named by one of its facts, another is asked for."""
        aspects: dict[Thing, list[tuple[str, Value]]] = {}
        holders = Counter(value.answers[0] for values in self._ledger.facts.values() for value in values)
        for thing, aspect, values in self._ledger.known():
            aspects.setdefault(thing, []).append((aspect, values[-1]))
        for thing, known in aspects.items():
            for (by, clue), (aspect, value) in ((a, b) for a in known for b in known):
                unique = holders[clue.answers[0]] == 1
                if unique and by != aspect and clue.told != value.told and self._write.has(f"by.{thing.kind}.{by}"):
                    label = self._write(f"by.{thing.kind}.{by}", v=clue.answers[0])
                    yield Question(self._ask("ask", thing, aspect, label), value.answers, (clue.told, value.told))

    def _sums(self) -> Iterator[Question]:
        prices = [
            (t, values[-1]) for t, aspect, values in self._ledger.known() if (t.kind, aspect) == ("bill", "price")
        ]
        for (one, first), (other, second) in combinations(prices[-8:], 2):
            if first.amount is not None and second.amount is not None:
                text = self._write("sum.bill", a=one.label, b=other.label)
                total = self._tongue.moneys(first.amount + second.amount)
                yield Question(text, total, (first.told, second.told), computed=True)

    def _gaps(self) -> Iterator[Question]:
        days = [
            (self._ask("event", thing, aspect), values[-1], values[-1].day)
            for thing, aspect, values in self._ledger.known()
            if values[-1].day is not None and self._write.has(f"event.{thing.kind}.{aspect}")
        ]
        for (one, first, start), (other, second, end) in combinations(days[-8:], 2):
            if start and end and 1 < (gap := abs((end - start).days)) < 200 and first.told != second.told:
                text, count = self._write("gap", a=one, b=other), self._tongue.count(gap)
                yield Question(text, count, (first.told, second.told), computed=True)

    def _never(self) -> Iterator[Question]:
        for _ in range(4):
            yield Question(self._write("never"))
        things = {thing: None for thing, _, _ in self._ledger.known() if self._write.has(f"never.{thing.kind}")}
        for thing in [*things][-8:]:
            yield Question(self._write(f"never.{thing.kind}", it=thing.label))

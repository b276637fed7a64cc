"""Personal assistant over months: preferences that change, dates that move, prices that rise.

The work comes as arcs (a trip, an appointment, a bill …), each a generator that writes one user's turn at a time.
Arcs overlap as they do in life: one is left open, days pass, another one starts in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import combinations
from math import sqrt
from random import Random
from typing import NamedTuple

from ..model import Conversation
from .arcs import ARCS, Arc, ArcMaker, taste
from .language import LANGUAGES, Language, Writer
from .life import TOOLS, FactLedger, FactValue, Life, Subject
from .script import CATEGORIES, Script

Fact = tuple[Subject, str, list[FactValue]]
# The latest subjects that questions combine: with all of them there would be too many pairs.
_RECENT = 8


def make(seed: int, turns: int, language: str) -> Conversation:
    """Return a conversation of `turns` user turns, in "en" or "zh"."""
    rng = Random(f"assistant/{seed}/{language}")
    start = date(2025, 1, 6) + timedelta(days=rng.randrange(300))
    script = Script(f"assistant/{language}-{seed}-{turns}", language=language, start=f"{start}T07:30:00", tools=TOOLS)
    script.meta["version"] = 2  # questions use other words than the answers
    life = Life(script, rng, LANGUAGES[language])
    script.system(life.write("system"))
    schedule, exam = Schedule(life, turns), Exam(life, turns)
    for turn in range(1, turns + 1):
        schedule.turn()
        exam.after(turn)
    return script.done()


class Schedule:
    """Order of the arcs: the present one goes on, an older one is taken up, or a new one starts."""

    def __init__(self, life: Life, turns: int) -> None:
        self._life, self._rng, self._script = life, life.rng, life.script
        self._pace = min(1.0, 250 / turns)
        # Each arc has the last day on which it goes on.
        self._present: tuple[Arc, date] | None = None
        # Arcs that wait, each with the session in which it may go on.
        self._waiting: list[tuple[int, tuple[Arc, date]]] = []
        self._deck: list[ArcMaker] = []
        self._session = self._turns_left = 0

    def turn(self) -> None:
        """Write one user's turn and all that answers it."""
        goes_on: bool | date | None = None
        while goes_on is None:
            arc, last_day = self._present or self._next_arc()
            self._script.wait(minutes=self._rng.choice((0.5, 1, 2, 3, 7, 16)))
            goes_on = next(arc, None) if self._life.today <= last_day else None
            self._present = (arc, date.max) if goes_on is True else None
        self._turns_left -= 1
        if goes_on is not True:
            self._waiting.append((self._session + self._rng.randint(1, 2), (arc, goes_on or date.max)))

    def _next_arc(self) -> tuple[Arc, date]:
        if self._turns_left <= 0:
            self._start_session()
            self._turns_left = self._rng.randint(2, 5)
        ready = [entry for entry in self._waiting if entry[0] <= self._session]
        if ready and self._rng.random() < 0.7:
            self._waiting.remove(ready[0])
            return ready[0][1]
        if not self._deck:
            self._deck.extend(ARCS)
            self._rng.shuffle(self._deck)
            self._deck.append(taste)
        return self._deck.pop()(self._life), date.max

    def _start_session(self) -> None:
        """Let hours to weeks go by. A long conversation has its sessions closer together."""
        self._session += 1
        if self._session == 1:
            return
        days = self._pace * self._rng.choice((0.3, 1, 3, 5, 8, 12, 18, 25))
        self._script.wait(days=days, minutes=self._rng.randint(40, 200))
        if not 6 <= self._script.now.hour < 22:
            self._script.wait(hours=9)


class LifeQuestion(NamedTuple):
    """Question that can be asked as a probe."""

    text: str
    answers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    computed: bool = False


class Questions:
    """The questions of each category that the facts so far allow."""

    def __init__(self, ledger: FactLedger, write: Writer, language: Language) -> None:
        self._ledger, self._write, self._language = ledger, write, language

    def of(self, category: str) -> list[LifeQuestion]:
        """Return all questions of a category, in the order in which their facts were recorded."""
        facts = list(self._ledger.certain())
        if category == "multi_hop":
            return [*self._clues(facts), *self._sums(facts)]
        if category == "temporal":
            changed = (fact for fact in facts if len(fact[2]) > 1 and self._has("first", *fact[:2]))
            return [*(self._simple("first", *fact) for fact in changed), *self._gaps(facts)]
        if category == "unanswerable":
            return list(self._unknown(facts))
        if category == "preference":
            asked = (fact for fact in facts if fact[0].kind == "taste")
        else:
            is_update = category == "updated_fact"
            asked = (fact for fact in facts if fact[0].kind != "taste" and (len(fact[2]) > 1) == is_update)
        return [self._simple("current", *fact) for fact in asked]

    def _has(self, form: str, subject: Subject, aspect: str) -> bool:
        return f"{form}.{subject.kind}.{aspect}" in self._write.forms

    def _text(self, form: str, subject: Subject, aspect: str, label: str = "") -> str:
        return self._write(f"{form}.{subject.kind}.{aspect}", it=label or subject.label)

    def _simple(self, form: str, subject: Subject, aspect: str, values: list[FactValue]) -> LifeQuestion:
        value = values[0 if form == "first" else -1]
        return LifeQuestion(self._text(form, subject, aspect), value.answers, (value.source,))

    def _clues(self, all_facts: list[Fact]) -> Iterator[LifeQuestion]:
        """Name a subject by one of its facts, and ask for another."""
        aspects: dict[Subject, list[tuple[str, FactValue]]] = {}
        holders = Counter(value.answers[0] for values in self._ledger.facts.values() for value in values)
        for subject, aspect, values in all_facts:
            aspects.setdefault(subject, []).append((aspect, values[-1]))
        for subject, facts in aspects.items():
            for (by, clue), (aspect, value) in ((a, b) for a in facts for b in facts):
                unique = holders[clue.answers[0]] == 1
                if unique and by != aspect and clue.source != value.source and self._has("clue", subject, by):
                    label = self._write(f"clue.{subject.kind}.{by}", v=clue.answers[0])
                    text = self._text("current", subject, aspect, label)
                    yield LifeQuestion(text, value.answers, (clue.source, value.source))

    def _sums(self, facts: list[Fact]) -> Iterator[LifeQuestion]:
        bills = [
            (subject.label, price, values[-1].source)
            for subject, aspect, values in facts
            if (subject.kind, aspect) == ("bill", "price") and isinstance(price := values[-1].value, int)
        ]
        for (a, price, source), (b, other_price, other_source) in combinations(bills[-_RECENT:], 2):
            total = self._language.spellings(price + other_price)
            yield LifeQuestion(self._write("sum.bill", a=a, b=b), total, (source, other_source), computed=True)

    def _gaps(self, facts: list[Fact]) -> Iterator[LifeQuestion]:
        days = [
            (self._text("date", subject, aspect), day, values[-1].source)
            for subject, aspect, values in facts
            if isinstance(day := values[-1].value, date) and self._has("date", subject, aspect)
        ]
        for (a, day, source), (b, other_day, other_source) in combinations(days[-_RECENT:], 2):
            gap = abs((other_day - day).days)
            if 1 < gap < 200 and source != other_source:
                text, count = self._write("gap", a=a, b=b), self._language.day_count(gap)
                yield LifeQuestion(text, count, (source, other_source), computed=True)

    def _unknown(self, facts: list[Fact]) -> Iterator[LifeQuestion]:
        for _ in range(4):
            yield LifeQuestion(self._write("unknown"))
        subjects = dict.fromkeys(subject for subject, *_ in facts if f"unknown.{subject.kind}" in self._write.forms)
        for subject in [*subjects][-_RECENT:]:
            yield LifeQuestion(self._write(f"unknown.{subject.kind}", it=subject.label))


class Exam:
    """Probes of one conversation, asked all along it, each category in turn."""

    def __init__(self, life: Life, turns: int) -> None:
        self._script, self._rng, self._turns = life.script, life.rng, turns
        self._questions = Questions(life.ledger, life.write, life.language)
        count = min(60, max(1, round(2.05 * sqrt(turns))))
        self._missing = [CATEGORIES[n % len(CATEGORIES)] for n in range(count)]
        self._due = [round(turns * (0.25 + 0.75 * (n + 1) / count)) for n in range(count)]
        self._texts: set[str] = set()

    def after(self, turn: int) -> None:
        """Ask the probes that are due after this turn, counted from 1.

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
        new = [question for question in self._questions.of(category) if question.text not in self._texts]
        if not new:
            return False
        question = self._rng.choice(new)
        self._texts.add(question.text)
        self._script.probe(question.text, question.answers, question.evidence, category, computed=question.computed)
        return True

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

from ..model import Conversation
from .arcs import ARCS, Arc, ArcMaker, taste
from .language import LANGUAGES, Language, Writer
from .life import TOOLS, FactLedger, FactValue, Life, LifeQuestion, Subject
from .script import CATEGORIES, Script

# The latest subjects that questions combine: with all of them there would be too many pairs.
_RECENT = 8


def make(seed: int, turns: int, language: str) -> Conversation:
    """Return a conversation of `turns` user turns, in "en" or "zh"."""
    rng = Random(f"assistant/{seed}/{language}")
    start = date(2025, 1, 6) + timedelta(days=rng.randrange(300))
    script = Script(f"assistant/{language}-{seed}-{turns}", language=language, start=f"{start}T07:30:00", tools=TOOLS)
    # 2: questions use other words than the answers.
    script.note("version", 2)
    life = Life(script, rng, LANGUAGES[language])
    script.system(life.write("system"))
    schedule = Schedule(life, turns)
    exam = Exam(script, rng, Examiner(life.ledger, life.write, life.language), turns)
    for turn in range(1, turns + 1):
        schedule.turn()
        exam.after(turn)
    return script.done()


class Schedule:
    """Order of the arcs: the present one goes on, an older one is taken up, or a new one starts."""

    def __init__(self, life: Life, turns: int) -> None:
        self._life = life
        self._pace = min(1.0, 250 / turns)
        self._arc: Arc | None = None
        # Arcs that wait, each with the session in which it may go on.
        self._waiting: list[tuple[int, Arc]] = []
        self._deck: list[ArcMaker] = []
        self._session = self._turns_left = 0

    def turn(self) -> None:
        """Write one user's turn and all that answers it."""
        rng = self._life.rng
        while True:
            arc = self._arc or self._next_arc()
            self._life.script.wait(minutes=rng.choice((0.5, 1, 2, 3, 7, 16)))
            goes_on = next(arc, None)
            if goes_on is None:
                self._arc = None
                continue
            self._arc = arc if goes_on else None
            self._turns_left -= 1
            if not goes_on:
                self._waiting.append((self._session + rng.randint(1, 2), arc))
            return

    def _next_arc(self) -> Arc:
        rng = self._life.rng
        if self._turns_left <= 0:
            self._start_session()
            self._turns_left = rng.randint(2, 5)
        ready = [entry for entry in self._waiting if entry[0] <= self._session]
        if ready and rng.random() < 0.7:
            self._waiting.remove(ready[0])
            return ready[0][1]
        if not self._deck:
            self._deck.extend(ARCS)
            rng.shuffle(self._deck)
            self._deck.append(taste)
        return self._deck.pop()(self._life)

    def _start_session(self) -> None:
        """Let hours to weeks go by. A long conversation has its sessions closer together."""
        script, rng = self._life.script, self._life.rng
        self._session += 1
        if self._session == 1:
            return
        days = self._pace * rng.choice((0.3, 1, 3, 5, 8, 12, 18, 25))
        script.wait(days=days, minutes=rng.randint(40, 200))
        if not 6 <= script.now.hour < 22:
            script.wait(hours=9)


class Examiner:
    """Source of the questions of each category that the ledger allows now."""

    def __init__(self, ledger: FactLedger, write: Writer, language: Language) -> None:
        self._ledger, self._write, self._language = ledger, write, language

    def questions(self, category: str) -> list[LifeQuestion]:
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

    def _facts(self, *, updated: bool) -> Iterator[LifeQuestion]:
        for subject, aspect, values in self._ledger.certain():
            if subject.kind != "taste" and updated == (len(values) > 1):
                newest = values[-1]
                yield LifeQuestion(self._text("current", subject, aspect), newest.answers, (newest.source,))

    def _tastes(self) -> Iterator[LifeQuestion]:
        for subject, aspect, values in self._ledger.certain():
            if subject.kind == "taste":
                yield LifeQuestion(self._text("current", subject, aspect), values[-1].answers, (values[-1].source,))

    def _first_values(self) -> Iterator[LifeQuestion]:
        for subject, aspect, values in self._ledger.certain():
            if len(values) > 1 and self._write.has(f"first.{subject.kind}.{aspect}"):
                yield LifeQuestion(self._text("first", subject, aspect), values[0].answers, (values[0].source,))

    def _clues(self) -> Iterator[LifeQuestion]:
        """Name a subject by one of its facts, and ask for another."""
        aspects: dict[Subject, list[tuple[str, FactValue]]] = {}
        holders = Counter(value.answers[0] for values in self._ledger.facts.values() for value in values)
        for subject, aspect, values in self._ledger.certain():
            aspects.setdefault(subject, []).append((aspect, values[-1]))
        for subject, facts in aspects.items():
            for (by, clue), (aspect, value) in ((a, b) for a in facts for b in facts):
                key = f"clue.{subject.kind}.{by}"
                unique = holders[clue.answers[0]] == 1
                if unique and by != aspect and clue.source != value.source and self._write.has(key):
                    text = self._text("current", subject, aspect, self._write(key, v=clue.answers[0]))
                    yield LifeQuestion(text, value.answers, (clue.source, value.source))

    def _sums(self) -> Iterator[LifeQuestion]:
        prices = [
            (subject.label, amount, values[-1].source)
            for subject, aspect, values in self._ledger.certain()
            if (subject.kind, aspect) == ("bill", "price") and (amount := values[-1].amount) is not None
        ]
        for (a, price, source), (b, other_price, other_source) in combinations(prices[-_RECENT:], 2):
            text, total = self._write("sum.bill", a=a, b=b), self._language.money_spellings(price + other_price)
            yield LifeQuestion(text, total, (source, other_source), computed=True)

    def _gaps(self) -> Iterator[LifeQuestion]:
        days = [
            (self._text("date", subject, aspect), day, values[-1].source)
            for subject, aspect, values in self._ledger.certain()
            if (day := values[-1].day) is not None and self._write.has(f"date.{subject.kind}.{aspect}")
        ]
        for (a, day, source), (b, other_day, other_source) in combinations(days[-_RECENT:], 2):
            gap = abs((other_day - day).days)
            if 1 < gap < 200 and source != other_source:
                text, count = self._write("gap", a=a, b=b), self._language.day_count(gap)
                yield LifeQuestion(text, count, (source, other_source), computed=True)

    def _unknown(self) -> Iterator[LifeQuestion]:
        for _ in range(4):
            yield LifeQuestion(self._write("unknown"))
        subjects = {
            subject: None for subject, _, _ in self._ledger.certain() if self._write.has(f"unknown.{subject.kind}")
        }
        for subject in [*subjects][-_RECENT:]:
            yield LifeQuestion(self._write(f"unknown.{subject.kind}", it=subject.label))


class Exam:
    """Probes of one conversation, asked all along it, each category in turn."""

    def __init__(self, script: Script, rng: Random, examiner: Examiner, turns: int) -> None:
        self._script, self._rng, self._examiner, self._turns = script, rng, examiner, turns
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
        new = [question for question in self._examiner.questions(category) if question.text not in self._texts]
        if not new:
            return False
        question = self._rng.choice(new)
        self._texts.add(question.text)
        self._script.probe(question.text, question.answers, question.evidence, category, computed=question.computed)
        return True

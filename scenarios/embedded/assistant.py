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
    """Return a conversation of `turns` user turns, in "en" or "zh", with probes all along it, each category in turn."""
    rng = Random(f"assistant/{seed}/{language}")
    start = date(2025, 1, 6) + timedelta(days=rng.randrange(300))
    script = Script(f"assistant/{language}-{seed}-{turns}", language=language, start=f"{start}T07:30:00", tools=TOOLS)
    script.meta["version"] = 2  # questions use other words than the answers
    life = Life(script, rng, LANGUAGES[language])
    script.system(life.write("system"))
    questions, texts, written = Questions(life.ledger, life.write, life.language), set[str](), _turns(life, turns)
    count = min(60, max(1, round(2.05 * sqrt(turns))))
    missing = [CATEGORIES[n % len(CATEGORIES)] for n in range(count)]
    due = [round(turns * (0.25 + 0.75 * (n + 1) / count)) for n in range(count)]

    def ask(category: str) -> bool:
        """Ask a new question of the category; return whether there is one."""
        if new := [question for question in questions.of(category) if question.text not in texts]:
            one = rng.choice(new)
            texts.add(one.text)
            script.probe(one.text, one.answers, one.evidence, category, computed=one.computed)
        return bool(new)

    for turn in range(1, turns + 1):
        next(written)
        # A category that has no question yet waits for a later turn.
        while due and due[0] <= turn and (category := next(filter(ask, missing), None)):
            missing.remove(category)
            due.pop(0)
    for category in missing:  # after the last turn, one of the others takes its place
        any(map(ask, (category, *CATEGORIES)))
    return script.done()


def _turns(life: Life, turns: int) -> Iterator[None]:
    """Write one user's turn and all that answers it, again and again.

    The present arc goes on, an older one is taken up, or a new one starts. Hours to weeks go by between two sessions; a
    long conversation has them closer together.
    """
    rng, script, pace = life.rng, life.script, min(1.0, 250 / turns)
    present: tuple[Arc, date] | None = None  # the arc with the last day on which it goes on
    waiting: list[tuple[int, tuple[Arc, date]]] = []  # each with the session in which it may go on
    deck: list[ArcMaker] = []
    session = turns_left = 0
    while True:
        goes_on: bool | date | None = None
        while goes_on is None:
            if present is None and turns_left <= 0:
                session += 1
                if session > 1:
                    days = pace * rng.choice((0.3, 1, 3, 5, 8, 12, 18, 25))
                    script.wait(days=days, minutes=rng.randint(40, 200))
                    if not 6 <= script.now.hour < 22:
                        script.wait(hours=9)
                turns_left = rng.randint(2, 5)
            ready = [entry for entry in waiting if entry[0] <= session]
            if present is None and ready and rng.random() < 0.7:
                waiting.remove(ready[0])
                present = ready[0][1]
            elif present is None:
                if not deck:
                    deck.extend(ARCS)
                    rng.shuffle(deck)
                    deck.append(taste)
                present = deck.pop()(life), date.max
            arc, last_day = present
            script.wait(minutes=rng.choice((0.5, 1, 2, 3, 7, 16)))
            goes_on = next(arc, None) if life.today <= last_day else None
            present = (arc, date.max) if goes_on is True else None
        turns_left -= 1
        if goes_on is not True:
            waiting.append((session + rng.randint(1, 2), (arc, goes_on or date.max)))
        yield


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
        known, ambiguous = self._ledger.facts.items(), self._ledger.ambiguous
        facts = [(subject, aspect, values) for (subject, aspect), values in known if subject not in ambiguous]
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
                days_apart = tuple(form.format(gap) for form in self._language.counts)
                yield LifeQuestion(self._write("gap", a=a, b=b), days_apart, (source, other_source), computed=True)

    def _unknown(self, facts: list[Fact]) -> Iterator[LifeQuestion]:
        for _ in range(4):
            yield LifeQuestion(self._write("unknown"))
        subjects = dict.fromkeys(subject for subject, *_ in facts if f"unknown.{subject.kind}" in self._write.forms)
        for subject in [*subjects][-_RECENT:]:
            yield LifeQuestion(self._write(f"unknown.{subject.kind}", it=subject.label))

"""A personal assistant over months: preferences that change, dates that move, prices that rise.

The work comes as arcs (a trip, an appointment, a bill …), each a generator that writes one user's turn at a time.
Arcs wait for each other as they do in life: one is left open, days pass, another comes in between.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from math import sqrt
from random import Random

from ...model import Conversation
from ..script import CATEGORIES, Script
from . import away, home, occasions
from .en import ENGLISH
from .ledger import Examiner, Question
from .life import TOOLS, Life
from .zh import CHINESE

ARCS: tuple[Callable[[Life], home.Arc], ...] = (
    *(away.trip, away.trip, away.visit, away.visit, away.week, away.project, away.project),
    *(home.taste, home.taste, home.taste, home.bill, home.bill, home.month, home.moving, occasions.gift),
    *(occasions.dinner, occasions.race, home.buy, home.lookup, home.howto, home.howto),
)
"""What a few months are made of."""


def make(seed: int, turns: int, language: str) -> Conversation:
    """A conversation of so many user turns, in "en" or "zh"."""
    rng = Random(f"assistant/{seed}/{language}")
    tongue = {"en": ENGLISH, "zh": CHINESE}[language]
    start = date(2025, 1, 6) + timedelta(days=rng.randrange(300))
    script = Script(f"assistant/{language}-{seed}-{turns}", language=language, start=f"{start}T07:30:00", tools=TOOLS)
    life = Life(script, rng, tongue)
    script.system(life.write("system"))
    days, exam = Days(life, turns), Exam(life, turns)
    for turn in range(1, turns + 1):
        days.turn()
        exam.after(turn)
    return script.done()


class Days:
    """Decides what comes next: the open arc goes on, an older one is taken up, or a new one starts."""

    def __init__(self, life: Life, turns: int) -> None:
        self._life = life
        self._pace = min(1.0, 250 / turns)
        self._open: list[tuple[int, home.Arc]] = []
        """Arcs that wait, each with the session in which it may go on."""
        self._deck: list[Callable[[Life], home.Arc]] = []
        self._now: home.Arc | None = None
        self._session = self._left = 0

    def turn(self) -> None:
        """Write one user's turn and all that answers it."""
        rng = self._life.rng
        while True:
            arc = self._now or self._next()
            self._life.script.wait(minutes=rng.choice((0.5, 1, 2, 3, 7, 16)))
            goes_on = next(arc, None)
            if goes_on is None:
                self._now = None
                continue
            self._now = arc if goes_on else None
            self._left -= 1
            if not goes_on:
                self._open.append((self._session + rng.randint(1, 2), arc))
            return

    def _next(self) -> home.Arc:
        rng = self._life.rng
        if self._left <= 0:
            self._sleep()
            self._left = rng.randint(2, 5)
        waiting = [entry for entry in self._open if entry[0] <= self._session]
        if waiting and rng.random() < 0.7:
            self._open.remove(waiting[0])
            return waiting[0][1]
        if not self._deck:
            self._deck.extend(ARCS)
            rng.shuffle(self._deck)
            self._deck.append(home.taste)
        return self._deck.pop()(self._life)

    def _sleep(self) -> None:
        """Hours to weeks go by. A long conversation has its sessions closer together."""
        script, rng = self._life.script, self._life.rng
        self._session += 1
        if self._session == 1:
            return
        days = self._pace * rng.choice((0.3, 1, 3, 5, 8, 12, 18, 25))
        script.wait(days=days, minutes=rng.randint(40, 200))
        if not 6 <= script.now.hour < 22:
            script.wait(hours=9)


class Exam:
    """Asks its probes all along the conversation, each category in turn."""

    def __init__(self, life: Life, turns: int) -> None:
        self._life = life
        self._examiner = Examiner(life.ledger, life.write, life.tongue)
        self._turns = turns
        count = min(60, max(1, round(2.05 * sqrt(turns))))
        self._wanted = [CATEGORIES[n % len(CATEGORIES)] for n in range(count)]
        self._due = [round(turns * (0.25 + 0.75 * (n + 1) / count)) for n in range(count)]
        self._asked: set[str] = set()

    def after(self, turn: int) -> None:
        """Ask what is due now; what cannot be asked yet waits, and at the end gives way to what can."""
        while self._due and self._due[0] <= turn:
            category = next((c for c in self._wanted if self._ask(c)), None)
            if category is None:
                break
            self._wanted.remove(category)
            self._due.pop(0)
        if turn == self._turns:
            for wanted in self._wanted:
                any(self._ask(category) for category in (wanted, *CATEGORIES))

    def _ask(self, category: str) -> bool:
        new = [q for q in self._examiner.questions(category) if q.text not in self._asked]
        if not new:
            return False
        chosen: Question = self._life.rng.choice(new)
        self._asked.add(chosen.text)
        self._life.script.probe(chosen.text, chosen.answers, chosen.evidence, category, computed=chosen.computed)
        return True

"""Personal assistant over months: preferences that change, dates that move, prices that rise.

The work comes as arcs (a trip, an appointment, a bill …), each a generator that writes one user's turn at a time.
Arcs wait for each other as they do in life: one is left open, days pass, another comes in between.
"""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from ...model import Conversation
from ..script import Script
from .arcs import ARCS, Arc, ArcMaker, taste
from .language import LANGUAGES
from .life import TOOLS, Life
from .questions import Exam, Examiner


def make(seed: int, turns: int, language: str) -> Conversation:
    """Return a conversation of so many user turns, in "en" or "zh"."""
    rng = Random(f"assistant/{seed}/{language}")
    start = date(2025, 1, 6) + timedelta(days=rng.randrange(300))
    script = Script(f"assistant/{language}-{seed}-{turns}", language=language, start=f"{start}T07:30:00", tools=TOOLS)
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
        self._waiting: list[tuple[int, Arc]] = []
        """Arcs that wait, each with the session in which it may go on."""
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

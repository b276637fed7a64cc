"""Which of the questions that a scenario could ask are asked, and how long after their facts were said.

A writer offers a probe whenever something worth asking about has been said. The quiz takes as many of each category
as the length of the conversation calls for, spread over it, and asks each one some turns later: at once, soon, or
much later. A fact behind a probe must therefore stay true to the end; `wants` says before whether one is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import pow
from random import Random

from .script import Script

_SHARES: Mapping[str, float] = {
    "single_hop": 0.28,
    "multi_hop": 0.18,
    "temporal": 0.18,
    "updated_fact": 0.18,
    "unanswerable": 0.18,
}


def size(turns: int) -> int:
    """How many probes a conversation of so many user turns should have: 11 at 12 turns, 26 at 100, 60 at most."""
    return round(min(60, 11 * pow(turns / 12, 0.4)))


class Quiz:
    """The probes of one script, asked when their time has come."""

    def __init__(self, script: Script, rng: Random, turns: int) -> None:
        self._script, self._rng, self._turns, self._turn = script, rng, turns, 0
        self._wanted = {category: max(1, round(share * size(turns))) for category, share in _SHARES.items()}
        self._taken = dict.fromkeys(_SHARES, 0)
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self._asked: set[str] = set()

    def wants(self, category: str) -> bool:
        """Whether another probe of this category is due by now."""
        taken, wanted = self._taken[category], self._wanted[category]
        return taken < wanted and taken <= 1 + wanted * (self._turn + 1) / self._turns

    def ask(
        self,
        category: str,
        question: str,
        answers: Sequence[str] = (),
        evidence: Sequence[str] = (),
        *,
        computed: bool = False,
    ) -> None:
        """Ask this at the end of the present turn or of a later one, unless it is asked already."""
        if question in self._asked:
            return
        self._asked.add(question)
        left = max(0, self._turns - 1 - self._turn)
        delay = self._rng.choice((0, min(left, self._rng.randint(1, 4)), self._rng.randint(0, left), left))
        self._taken[category] += 1
        accepted, shown = tuple(dict.fromkeys(answers)), tuple(dict.fromkeys(evidence))
        self._waiting.append(
            (self._turn + delay, lambda: self._script.probe(question, accepted, shown, category, computed=computed)),
        )

    def turn_over(self) -> None:
        """Ask what is due after this turn."""
        due = [ask for turn, ask in self._waiting if turn <= self._turn]
        self._waiting = [(turn, ask) for turn, ask in self._waiting if turn > self._turn]
        for ask in due:
            ask()
        self._turn += 1

"""When a scenario's probes are asked: what was said offers candidates, and they are asked a few at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import sqrt
from random import Random
from typing import NamedTuple

from .script import Script

_SHARES = {"updated_fact": 0.21, "multi_hop": 0.21, "temporal": 0.21, "single_hop": 0.22, "unanswerable": 0.15}


class _Candidate(NamedTuple):
    question: str
    answers: tuple[str, ...]
    evidence: tuple[str, ...]
    about: frozenset[str]
    computed: bool


class Questions:
    """Candidates by category. A fact that changes takes the candidates about it away (`forget`)."""

    def __init__(self, rng: Random, turns: int, nowhere: Callable[[], str]) -> None:
        """`nowhere` makes a question that nothing in the conversation answers."""
        self._rng, self._turns, self._nowhere = rng, turns, nowhere
        self._waiting: dict[str, list[_Candidate]] = {category: [] for category in _SHARES}
        self._asked: Counter[str] = Counter()
        self._seen: set[str] = set()
        self.total = min(60, round(3.2 * sqrt(turns)))
        """How many probes there will be: 3 for one turn, 11 for 12, 60 from 350 on."""

    def offer(
        self,
        category: str,
        question: str,
        answers: Sequence[str],
        evidence: Sequence[str],
        *,
        about: Sequence[str] = (),
        computed: bool = False,
    ) -> None:
        """A question that can be asked from now on. `computed`: its answer is worked out from the evidence."""
        if question not in self._seen:
            made = _Candidate(
                question, tuple(dict.fromkeys(answers)), tuple(dict.fromkeys(evidence)), frozenset(about), computed
            )
            waiting = self._waiting[category]
            waiting.append(made)
            if len(waiting) > 200:  # old ones stay askable, but not all of them
                waiting.pop(int(self._rng.random() * 100))

    def forget(self, about: str) -> None:
        """This fact is not what it was: ask nothing about it that was true before."""
        for category, waiting in self._waiting.items():
            self._waiting[category] = [one for one in waiting if about not in one.about]

    def ask(self, script: Script, turn: int) -> None:
        """Ask what is due after this turn (counted from 1)."""
        due = round(self.total * turn / self._turns) - self._asked.total()
        for _ in range(due):
            category = self._next_category()
            if category == "unanswerable":
                self._ask_nowhere(script)
                continue
            waiting = self._waiting[category]
            one = waiting.pop(int(self._rng.random() * len(waiting)))
            if one.question in self._seen:
                continue
            self._seen.add(one.question)
            self._asked[category] += 1
            script.probe(one.question, one.answers, one.evidence, category, computed=one.computed)

    def _ask_nowhere(self, script: Script) -> None:
        for _ in range(30):
            question = self._nowhere()
            if question not in self._seen:
                self._seen.add(question)
                self._asked["unanswerable"] += 1
                script.probe(question, [], [], "unanswerable")
                return

    def _next_category(self) -> str:
        """The category furthest behind its share that has something to ask."""
        open_ = [category for category in _SHARES if category == "unanswerable" or self._waiting[category]]
        total = self._asked.total() + 1
        return max(open_, key=lambda category: _SHARES[category] * total - self._asked[category])

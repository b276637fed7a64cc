"""What claims are measured on: a stored run, what is run beside it, scenarios, recordings, and traces.

Each is made once, when the first claim asks for it. What a claim needs and the run has not is run on the run's own
conversations, into a folder that is removed again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from ...metrics.tokens import TokenCounter
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation
from ...scenarios.source import Problems
from ..bill.bill import bill
from ..bill.simulation import Scheme
from ..compare.figures import MeasuredRun as Figures
from ..compare.figures import Rows, measured
from ..engine.plan import Plan, execute
from ..engine.plan import RunInputs as Named
from ..folder.run import Run, load

T = TypeVar("T")

MODELS = ("gpt-5.6", "claude-sonnet-5", "deepseek/deepseek-chat")
"""Of the three providers that document 000 names, those that are billed under."""
SEEDS, QUICK_SEEDS = 5, 3
"""Samples of what is made with a seed."""


@dataclass
class ClaimInputs:
    """What claims may ask for."""

    open: Callable[[], Run]
    """The run: opened, or made, when the first claim asks for it."""
    rows: Rows
    """The rows of a run's table, with the columns that figures need."""
    folder: Path
    """Where what is run beside it goes."""
    wanted: tuple[str, ...] = ()
    """Strategies that claims ask for: those that the run has not are run together, once."""
    recordings: tuple[str, ...] = ()
    """Files and folders of recordings, for the claims that can use them."""
    quick: bool = False
    slow: bool = False
    """Whether what takes many minutes is measured too."""
    notes: list[str] = field(default_factory=list)
    """What of the recordings could not be read."""
    say: Callable[[str], None] = lambda _: None
    _made: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def run(self) -> Run:
        """What most claims are measured on."""
        return self.open()

    @property
    def seeds(self) -> int:
        """Samples of what is made with a seed."""
        return QUICK_SEEDS if self.quick else SEEDS

    @cached_property
    def figures(self) -> Figures:
        """Every figure of the run by conversation and strategy."""
        return measured(self.run, self.rows)

    @cached_property
    def beside(self) -> Run | None:
        """The strategies that are wanted and not in the run, on its own conversations."""
        have = set(self.run.manifest["plan"]["strategies"])
        missing = [each for each in _printed(self.wanted) if each not in have]
        if not missing:
            return None
        return self.executed("beside", tuple(missing), self.said)

    @cached_property
    def figures_beside(self) -> Figures | None:
        """The figures of those."""
        return None if self.beside is None else measured(self.beside, self.rows)

    def run_of(self, strategy: str) -> Run:
        """The run that has a strategy. Raises RunError if no claim said that it wants it."""
        (name,) = _printed((strategy,))
        for run in (self.run, self.beside):
            if run is not None and name in run.manifest["plan"]["strategies"]:
                return run
        raise RunError(f"{strategy} was not run for the claims")

    @cached_property
    def said(self) -> list[Conversation]:
        """The conversations of the run."""
        return list(self.run.conversations())

    @cached_property
    def recorded(self) -> list[Conversation]:
        """Those of the recordings that were given; none if none were. Raises RunError if none can be read."""
        if not self.recordings:
            return []
        problems = Problems()
        found = list(Named(self.recordings).open(problems).conversations())
        if not found:
            why = problems.found[0] if problems.found else "nothing there is a recording"
            raise RunError(str(why))
        self.notes += [f"left out: {problem}" for problem in problems.found]
        return found

    @cached_property
    def counter(self) -> TokenCounter:
        """Of the run's encoding."""
        return TokenCounter(self.run.manifest["plan"]["encoding"])

    def bills(self, strategy: str) -> pd.DataFrame:
        """The bills of a strategy under MODELS: a row for each conversation and model (`Billed.conversations`)."""
        run = self.run_of(strategy)
        every = self.once(f"bills {run.folder}", lambda: bill(run, [Scheme(each) for each in MODELS]).conversations())
        return every[every.strategy.astype(str) == strategy]

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What several claims share, made by the first."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]  # type: ignore[no-any-return]

    @property
    def of(self) -> str:
        """Over what the run's intervals are."""
        size = len(self.figures.digests)
        return f"{size:,} conversation{'s' if size != 1 else ''}"

    def executed(
        self, name: str, strategies: tuple[str, ...], said: Sequence[Conversation], *, answers: bool = False
    ) -> Run:
        """Run strategies on conversations now, into a folder of their own."""
        self.say(f"running {len(strategies)} strategies on {len(said)} conversations ({name})")
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{name}.jsonl"
        file.write_bytes(b"".join(each.to_json() + b"\n" for each in said))
        plan = Plan(Named((str(file),), form="ctxbench"), strategies, self.counter.encoding, answers=answers)
        execute(plan, self.folder / name, jobs=os.cpu_count() or 1)
        return load(self.folder / name)


def _printed(strategies: Sequence[str]) -> list[str]:
    """As a run has them, each once."""
    from ...strategies.chain import parse, spec

    return list(dict.fromkeys(spec(parse(each)) for each in strategies))

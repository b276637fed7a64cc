"""Provide what the benchmarks of tiers share: how recordings are read and run, where progress is shown, timing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.source import Problems

from ..engine.plan import Plan, RunInputs, Watcher, execute, written_to
from ..engine.shard import no_cycles
from ..folder.run import Run, load
from ..models import Settings

ROUNDS = 5  # rounds of which the fastest counts: a shared machine only ever makes it slower


def fastest(do: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the least seconds that it takes."""
    least = math.inf
    with no_cycles():  # as in a run
        for _ in range(rounds):
            began = perf_counter()
            do()
            least = min(least, perf_counter() - began)
    return least


Counting = Callable[[int, str], AbstractContextManager[Callable[[], None]]]


def uncounted(_: int, __: str) -> AbstractContextManager[Callable[[], None]]:
    """Show nothing of the work that goes on."""
    return nullcontext(lambda: None)


@dataclass
class BenchSetup:
    """The surroundings of a measurement."""

    folder: Path  # for runs and archives
    models: Settings = Settings()  # noqa: RUF009
    problems: Problems = field(default_factory=Problems)
    counting: Counting = uncounted
    watching: Callable[[], AbstractContextManager[Watcher | None]] = nullcontext
    _read: dict[tuple[tuple[str, ...], str], list[Conversation]] = field(default_factory=dict)

    def read(self, recordings: str | Sequence[str], form: str = "") -> list[Conversation]:
        """Return the conversations of files, folders and scenarios. Raises RunError if there are none."""
        names = (recordings,) if isinstance(recordings, str) else tuple(recordings)
        if (names, form) not in self._read:
            self._read[names, form] = RunInputs(names, form or None).conversations(self.problems)
        return self._read[names, form]

    def run(self, conversations: Iterable[Conversation], strategies: Sequence[str]) -> Run:
        """Run strategies without probes into a folder of their own. Raises UserError as `ctxbench run` does."""
        folder = self.folder / f"run{len(list(self.folder.glob('run*.jsonl')))}"
        inputs = written_to(folder.with_suffix(".jsonl"), conversations)
        plan = Plan(inputs, tuple(strategies), models=self.models, probes=False, answers=False)
        with self.watching() as watcher:
            execute(plan, folder, watcher=watcher)
        return load(folder)

"""What a run reads: files and folders of recordings, or the names of embedded scenarios."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ..scenarios.embedded import SCENARIOS, scenario
from ..scenarios.errors import Place, RecordingError, RunError
from ..scenarios.model import Conversation
from ..scenarios.read import Batch, find, parse_format, read
from ..scenarios.source import Problems
from ..scenarios.spec import nearest


@dataclass(frozen=True, slots=True)
class Inputs:
    """Scenario names and paths; the scenarios come first. `form` reads every file as that format."""

    names: tuple[str, ...]
    form: str | None = None
    turns: int | None = None
    """User turns of generated conversations; None = the scenario's own."""
    seed: int = 0

    def open(self, problems: Problems) -> Opened:
        """Find the files, and say at once what is not there."""
        if "" in self.names:
            raise RunError("an input is an empty text (an unset variable?): name a file, a folder or a scenario")
        for name in self.scenarios():
            if self.names.count(name) > 1:
                problems.notes.append(f"{name}: named more than once, measured once")
        paths = [Path(name) for name in self.names if not self._is_scenario(name)]
        for path in [path for path in paths if not os.path.exists(path)]:
            close = nearest(str(path), SCENARIOS)
            what = f"there is no such file or folder, and no scenario of that name{close}"
            problems.add(RecordingError(Place(str(path)), what, "`ctxbench list scenarios` has the names"))
            paths.remove(path)
        batches = find(paths, problems, self.form)
        if self.form and not self.names:
            batches = [Batch(parse_format(self.form), ())]
        return Opened(self, batches, problems)

    def _is_scenario(self, name: str) -> bool:
        """A run folder of that name, made by this very command maybe, is no recording: the scenario is meant."""
        return name in SCENARIOS and (not os.path.exists(name) or os.path.isfile(f"{name}/manifest.json"))

    def scenarios(self) -> list[str]:
        """The names that are scenarios, each once."""
        return list(dict.fromkeys(name for name in self.names if self._is_scenario(name)))


@dataclass(frozen=True, slots=True)
class Opened:
    """Inputs whose files have been found."""

    inputs: Inputs
    batches: list[Batch]
    problems: Problems

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(path.stat().st_size for batch in self.batches for path in batch.files)

    def conversations(self) -> Iterator[Conversation]:
        """Every conversation: the scenarios' first, then the files'."""
        inputs = self.inputs
        made = chain.from_iterable(scenario(name, inputs.turns, inputs.seed) for name in inputs.scenarios())
        return read(self.batches, self.problems, made)

"""The answers and grades of a run folder, by who answered and who graded.

Those of a shard that were made of other contexts than the run has now do not count. Figures are of whole runs: where a
shard lacks answers, or grades, those of that answerer and grader are left out, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa

from ..loading import Run
from .parts import contexts_of, folder_of, graded_of, made_by, read, shards

USUAL = "offline", "rules"
"""Who answers and who grades in every run."""


@dataclass(frozen=True)
class Answered:
    """What one answerer answered to all probes of a run, and how one grader graded that."""

    answerer: str
    grader: str
    identity: str
    """The answerer with all else that the answers depend on."""
    answers: pd.DataFrame
    grades: pd.DataFrame
    """Rows in the same order."""

    @property
    def is_usual(self) -> bool:
        """Whether it is what every run has."""
        return self.answerer == USUAL[0] and self.grader.startswith(USUAL[1])

    @property
    def asks_itself(self) -> bool:
        """Whether a model graded its own answers."""
        return f"model={self.answerer!r}" in self.grader

    def metric(self, name: str) -> str:
        """What a figure of these answers is called where there are others: `correct(openai/gpt-4o, logit)`."""
        return name if self.is_usual else f"{name}({self.answerer}, {self.grader})"

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Answers with their grades: the rows of the figures whose table is `answers`."""
        return self.answers.assign(correct=self.grades.correct.to_numpy(), not_graded=self.grades.missing.to_numpy())


@dataclass(frozen=True)
class Found:
    """What is in a run."""

    whole: tuple[Answered, ...]
    """Models before the embedded reader, the rules before other graders."""
    left: tuple[str, ...]
    """What is left out, and why."""


def answered(run: Run) -> Found:
    """All that answered and graded this run."""
    asked = _asked(run)
    whole, left = [], []
    for answers in _folders(run.folder / "answers"):
        by = _first(answers)
        for grades in _folders(run.folder / "grades" / answers.name):
            grader = _first(grades)
            made = _read(run.folder, asked, by, grader) if by and grader else 0
            if isinstance(made, Answered):
                whole.append(made)
            elif by and grader:
                left.append(
                    f"Answers by {by}, graded by {grader}, are of {made:,} of {len(asked):,} parts of this run: "
                    "`ctxbench answer` makes the rest."
                )
    return Found(tuple(sorted(whole, key=_rank)), tuple(left))


def answered_by(run: Run, answerer: str, grader: str) -> Answered | None:
    """What these two made of a run; None if that is not there, or not whole."""
    found = _read(run.folder, _asked(run), answerer, grader)
    return found if isinstance(found, Answered) else None


def _rank(found: Answered) -> tuple[bool, bool, str, str]:
    return found.answerer == USUAL[0], not found.grader.startswith(USUAL[1]), found.answerer, found.grader


def _asked(run: Run) -> dict[str, str]:
    """By shard, the digest of what was to be answered from."""
    return {name: contexts_of(run.folder, name) for name in shards(run.folder)}


def _read(folder: Path, asked: dict[str, str], answerer: str, grader: str) -> Answered | int:
    """All parts together; if some are not there, how many are."""
    where = folder / "answers" / folder_of(answerer)
    beside = folder / "grades" / folder_of(answerer) / folder_of(grader)
    identities = [made_by(where / f"{shard}.parquet").get("as", "") for shard in asked]
    identity = max(identities, key=identities.count, default="")
    tables: list[tuple[pa.Table, pa.Table]] = []
    for shard, of in asked.items():
        path = where / f"{shard}.parquet"
        answers = read(path, "answers", {"by": answerer, "as": identity, "of": of})
        if answers is None:
            continue
        grades = read(beside / f"{shard}.parquet", "grades", graded_of(grader, path))
        if grades is not None:
            tables.append((answers, grades))
    if len(tables) < len(asked) or not tables:
        return len(tables)
    answers, grades = (pa.concat_tables(each).unify_dictionaries().to_pandas() for each in zip(*tables, strict=True))
    return Answered(answerer, grader, identity, answers, grades)


def _folders(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*")) if path.is_dir())


def _first(folder: Path) -> str:
    """By whom the parts of a folder were made; empty if none can be read."""
    return next((by for path in sorted(folder.glob("*.parquet")) if (by := made_by(path).get("by", ""))), "")

"""The answers and grades of a run folder.

    answers/ANSWERER/SHARD.parquet          the answer to each probe, under every strategy of the shard
    grades/ANSWERER/GRADER/SHARD.parquet    the grade of each answer

The names are those of the answer model and the grader, made fit for a folder. The metadata of each part says by whom
and from what it was made, and it counts only as long as that is still so. A part is whole or not there at all. One that
is damaged, by the digest in it, is an error for whoever reads all answers, and made again by whoever makes them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ctxbench.metrics.grading.rules import RulesGrader
from ctxbench.scenarios.errors import RunError

from ..folder.files import is_intact, write_table
from ..folder.run import Run
from ..folder.schema import columns_in, schemas_of
from ..folder.store import ANSWERS
from ..models.local import NAME

SCHEMAS = schemas_of(columns_in(__package__))


def folder_of(name: str) -> str:
    """Return a folder name for an answer model or a grader. No two share one."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def digest_of(*parts: str | bytes) -> str:
    """Return the SHA-256 over some texts and files' bytes, in order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def shards(run: Path, shard: str = "*") -> list[str]:
    """Return the names of the shards of a run, or of the one shard, in which probes were asked."""
    paths = sorted(path for path in (run / "probes").glob(f"{shard}.parquet") if path.stem.isdecimal())
    return [path.stem for path in paths if pq.read_metadata(path).num_rows]


def contexts_of(run: Path, shard: str) -> str:
    """Return the digest of all that the answers to a shard's probes depend on, except the answer model."""
    # `conversations` has the digest of each recording, which stands for its texts; `steps` and `contexts` what was
    # sent, in a file of the shard and one of the shard under each strategy.
    paths = [
        path
        for table in ("conversations", "steps", "contexts", "probes")
        for path in sorted([*(run / table).glob(f"{shard}.parquet"), *(run / table).glob(f"{shard}-*.parquet")])
    ]
    return digest_of(*(path.read_bytes() for path in paths))


def part_paths(run: Path, answerer: str, grader: str, shard: str) -> tuple[Path, Path]:
    """Return the files of a shard's answers and of their grades."""
    by, name = folder_of(answerer), f"{shard}.parquet"
    return run / "answers" / by / name, run / "grades" / by / folder_of(grader) / name


def answers_of(answerer: str, identity: str, contexts: str) -> dict[str, str]:
    """Return the metadata of a part's answers: the answer model with its settings, and the digest of its input."""
    return {"by": answerer, "as": identity, "of": contexts}


def grades_of(grader: str, answers: Path) -> dict[str, str]:
    """Return the metadata of the grades of a part: the grader, the answers, and the rules that grade UNKNOWN."""
    return {"by": grader, "of": digest_of(answers.read_bytes()), "unknown by": RulesGrader().name}


def made_by(path: Path) -> dict[str, str]:
    """Return the metadata of a part; empty if it is missing or damaged."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        return {key.decode(): value.decode() for key, value in metadata.items()}
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return {}


def write(path: Path, table: str, rows: Sequence[Mapping[str, Any]], metadata: Mapping[str, str]) -> None:
    """Write a part, whole or not at all. `metadata` says by whom it is made, and from what."""
    written = pa.Table.from_pylist(rows, SCHEMAS[table].with_metadata(dict(metadata)))
    write_table(path, written)


def read(path: Path, table: str, metadata: Mapping[str, str]) -> pa.Table | None:
    """Return a part with this metadata; None if it is missing, damaged, or made by or from something else."""
    if made_by(path) != dict(metadata) or not is_intact(path):
        return None
    try:
        return pq.read_table(path, schema=SCHEMAS[table])
    except (OSError, pa.ArrowException):
        return None


USUAL = "offline", "rules"  # the answerer and the grader of every run


@dataclass(frozen=True)
class Answered:
    """The answers of one answer model to all probes of a run, and one grader's grades of them, read when needed."""

    answerer: str
    grader: str
    identity: str  # the answerer with all else that the answers depend on
    answer_files: tuple[Path, ...]
    grade_files: tuple[Path, ...]

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The table of answers."""
        return _table("answers", self.answer_files)

    @cached_property
    def grades(self) -> pd.DataFrame:
        """The table of grades: rows in the same order."""
        return _table("grades", self.grade_files)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Answers with their grades: the rows of the figures whose table is `answers`."""
        return self.answers.assign(correct=self.grades.correct.to_numpy(), not_graded=self.grades.missing.to_numpy())

    @property
    def is_usual(self) -> bool:
        """Whether every run has these: the extractive baseline, graded by rules."""
        return self.answerer == USUAL[0] and self.grader.startswith(USUAL[1])

    def metric(self, name: str) -> str:
        """Return the name of a figure of these answers, told from others' as `answer_quality(openai/gpt-4o, logit)`."""
        return name if self.is_usual else f"{name}({self.answerer}, {self.grader})"


def grades_itself(answerer: str, grader: str) -> bool:
    """Return whether a model graded its own answers."""
    return f"model={answerer!r}" in grader


def _table(table: str, paths: Sequence[Path]) -> pd.DataFrame:
    rows = pa.concat_tables([pq.read_table(path, schema=SCHEMAS[table]) for path in paths])
    frame: pd.DataFrame = rows.unify_dictionaries().to_pandas()
    return frame


class AnswerSet(NamedTuple):
    """All answers and grades in a run."""

    whole: tuple[Answered, ...]
    """Models of the user first, then the one whose replies come along, the baseline last; of each, rules first."""
    left_out: tuple[str, ...]  # answers that are not whole, and why they are in no figure


def answered(run: Run) -> AnswerSet:
    """Return all answers and grades of this run. Raises RunError if any part is damaged."""
    for path in (path for table in ANSWERS for path in sorted((run.folder / table).rglob("*.parquet"))):
        if not is_intact(path):
            remedy = "give the command that made it once more (`run` or `lab answer`), or delete this file"
            raise RunError(f"{run.folder}: {path.relative_to(run.folder)} is not as it was written: {remedy}")
    digests, whole, left_out = _digests(run), list[Answered](), list[str]()
    for grades in sorted((run.folder / "grades").glob("*/*/")):
        answers = run.folder / "answers" / grades.parent.name
        if unread := next((folder for folder in (answers, grades) if not _first(folder)), None):
            left_out.append(f"{unread}: nothing is in it: `ctxbench lab answer` makes it again.")
            continue
        by, grader = _first(answers), _first(grades)
        stored = _find(run.folder, digests, by, grader)
        if isinstance(stored, Answered):
            whole.append(stored)
            continue
        count = len(digests) - len(stored)
        why = f"Answers by {by}, graded by {grader}, are of {count:,} of {len(digests):,} parts of this run"
        if other := next(filter(Path.exists, stored), None):
            why += f" ({other.relative_to(run.folder)} is made from something else)"
        left_out.append(f"{why}: `ctxbench lab answer` makes the rest.")
    order = {NAME: 1, USUAL[0]: 2}
    whole.sort(key=lambda of: (order.get(of.answerer, 0), of.answerer, not of.grader.startswith(USUAL[1]), of.grader))
    return AnswerSet(tuple(whole), tuple(left_out))


def answered_by(run: Run, answerer: str, grader: str) -> Answered | None:
    """Return the answers of a model with the grades of a grader; None if they are missing or not whole."""
    stored = _find(run.folder, _digests(run), answerer, grader)
    return stored if isinstance(stored, Answered) else None


def _digests(run: Run) -> dict[str, str]:
    """Map each shard to the digest of its contexts."""
    return {name: contexts_of(run.folder, name) for name in shards(run.folder)}


def _first(folder: Path) -> str:
    """Return who made the parts of a folder; empty if none can be read."""
    return next((by for path in sorted(folder.glob("*.parquet")) if (by := made_by(path).get("by", ""))), "")


def _find(folder: Path, digests: dict[str, str], answerer: str, grader: str) -> Answered | list[Path]:
    """Return the answers and grades if all their parts are there, else for each that is not the file that lacks."""
    parts = {part_paths(folder, answerer, grader, shard): contexts for shard, contexts in digests.items()}
    # Shards answered under other settings are stale: those of most shards count.
    identities = [by for answers, _ in parts if (by := made_by(answers).get("as"))]
    identity = max(identities, key=identities.count, default="")
    lacking = []
    for (answers, grades), contexts in parts.items():
        if made_by(answers) != answers_of(answerer, identity, contexts):
            lacking.append(answers)
        elif made_by(grades) != grades_of(grader, answers):
            lacking.append(grades)
    return lacking if lacking or not parts else Answered(answerer, grader, identity, *zip(*parts, strict=True))

"""LoCoMo: four recorded runs of models' answers, each voted on three times by a model. CC BY-NC 4.0.

    {total_questions, correct, accuracy, detailed_results: {USER: [{question_id, question, golden_answer,
      generated_answer, category, llm_judgments: {judgment_1: true, …}}]}}
    [{question_id, question, golden_answer, correct_answer, error_type, …}]                        # corrections

Source: github.com/dial481/locomo-audit, `fc-baseline/results/` and `errors.json`. The labels are a *model's* votes, and
are marked so; `correct` is the majority, `rating` the share of the votes.

The corrections are those that `readers/locomo.py` applies. They name golden answers that are wrong. A vote was cast
beside the golden answer as published, so it says nothing of another one: where the correction says something else, the
answer is left out, and counted in a note. Where it only mends the evidence, the answer stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..errors import RecordingError
from ..source import Problems, head, key_paths
from .labelled import Format, Kind, Labelled, parts, rows

_SHAPE = frozenset({".total_questions", ".accuracy", ".detailed_results"})
_CORRECTIONS = frozenset({"[].question_id", "[].golden_answer", "[].correct_answer", "[].error_type"})
_KINDS: dict[str, Kind] = {"2": "temporal", "5": "unanswerable"}


class _Correction(msgspec.Struct):
    question_id: str
    golden_answer: str | int | float
    correct_answer: str | int | float


class _Answer(msgspec.Struct):
    question_id: str
    question: str
    generated_answer: str
    llm_judgments: dict[str, bool]
    golden_answer: str | int | float | None = None
    category: str | int = ""


class _Run(msgspec.Struct):
    detailed_results: dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Corrections:
    """An audit of the golden answers, from the files that hold one."""

    files: tuple[Path, ...] = ()
    answers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By question, the answer as published and the right one."""

    @classmethod
    def among(cls, files: Sequence[Path], problems: Problems) -> Corrections:
        """Those that stand in any of the files. What cannot be read is left to whoever reads the file."""
        found = tuple(path for path in files if _is_corrections(path))
        answers: dict[str, tuple[str, str]] = {}
        for path in found:
            for _, _, row in rows(path, _Correction, problems):
                answers[row.question_id] = str(row.golden_answer), str(row.correct_answer)
        return cls(found, answers)

    def has(self, path: Path) -> bool:
        """Whether the file is one of corrections."""
        return path in self.files

    def overturn(self, question: str) -> bool:
        """Whether the golden answer of this question is wrong."""
        published, right = self.answers.get(question, ("", ""))
        return published.strip() != right.strip()


def _is_corrections(path: Path) -> bool:
    try:
        return key_paths(head(path)) >= _CORRECTIONS
    except RecordingError:
        return False


def _read(path: Path, problems: Problems, corrections: Corrections) -> Iterator[Labelled]:
    system, overturned = path.parent.name, 0
    for _at, place, run in rows(path, _Run, problems):
        for user, answers in run.detailed_results.items():
            for _number, where, row in parts(answers, _Answer, place.at(f"detailed_results.{user}"), problems):
                if corrections.overturn(row.question_id):
                    overturned += 1
                    continue
                kind, votes = _KINDS.get(str(row.category), "plain"), list(row.llm_judgments.values())
                gold = "" if row.golden_answer is None else str(row.golden_answer).strip()
                if not votes or not (gold or kind == "unanswerable"):
                    what, key = ("no golden answer", "golden_answer") if votes else ("no votes", "llm_judgments")
                    problems.add(RecordingError(where.at(f"{where.field}.{key}"), what, "give it, or leave this out"))
                    continue
                yield Labelled(
                    id=f"{row.question_id}-{system}",
                    set="locomo",
                    question=row.question,
                    accepted=(gold,) if gold and kind != "unanswerable" else (),
                    candidate=row.generated_answer,
                    correct=2 * sum(votes) > len(votes),
                    group=row.question_id,
                    system=system,
                    kind=kind,
                    labelled_by="model",
                    rating=sum(votes) / len(votes),
                    votes=tuple(map(int, votes)),
                )
    if overturned:
        problems.notes.append(f"{path}: {overturned} answers voted on beside a golden answer that the audit corrects")


FORMAT = Format("LoCoMo's recorded answers with a model's votes (eval_results.json)", (_SHAPE,), _read)

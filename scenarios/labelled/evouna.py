"""EVOUNA: five systems' answers to questions of Natural Questions and TriviaQA, each judged by people. Apache-2.0.

    [{question, golden_answer: "a/b", improper, answer_fid, judge_fid: true | false | null, …}]

Source: github.com/wangcunxiang/QA-Eval, `EVOUNA/NQ.json`, `TQ.json` (Wang et al. 2023, arXiv 2305.12421). Accepted
answers are what stands between the slashes. Left out, and counted in a note: questions that people found improper,
answers without a label, answers that are null. Empty answers are kept: they were judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..source import Problems, convert
from .labelled import Format, Labelled, language_of, rows

_SHAPE = frozenset({"[].question", "[].golden_answer", "[].improper"})


class _Question(msgspec.Struct):
    question: str
    improper: bool
    golden_answer: str | None = None


def _read(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    name = f"evouna-{path.stem.lower()}"
    first: dict[str, str] = {}
    improper = unlabelled = 0
    for at, place, row in rows(path, dict[str, Any], problems):
        try:
            asked = convert(row, _Question, place)
            group = first.setdefault(asked.question, f"q{at}")
            systems = [key.removeprefix("judge_") for key in row if key.startswith("judge_")]
            if asked.improper:
                improper += len(systems)
                continue
            accepted = _accepted(asked, place)
            for system in systems:
                correct = convert(row[f"judge_{system}"], bool | None, place.at(f"judge_{system}"))  # type: ignore[arg-type]
                candidate = convert(row.get(f"answer_{system}"), str | None, place.at(f"answer_{system}"))  # type: ignore[arg-type]
                if correct is None or candidate is None:
                    unlabelled += 1
                    continue
                yield Labelled(
                    id=f"q{at}-{system}",
                    set=name,
                    question=asked.question,
                    accepted=accepted,
                    candidate=candidate,
                    correct=correct,
                    group=group,
                    system=system,
                    language=language_of(asked.question),
                )
        except RecordingError as error:
            problems.add(error)
    problems.notes.append(f"{path}: {improper} answers to improper questions, {unlabelled} without answer or label")


def _accepted(asked: _Question, place: Place) -> tuple[str, ...]:
    accepted = tuple(part for each in (asked.golden_answer or "").split("/") if (part := each.strip()))
    if not accepted:
        raise RecordingError(place.at("golden_answer"), "no accepted answer", "give one, or mark the row improper")
    return accepted


FORMAT = Format("EVOUNA's answers with human labels (NQ.json)", (_SHAPE,), _read)

"""MT-RAG's human ratings: two models' answers to questions to a document-grounded assistant. Apache-2.0.

    {documents: [{document_id, text}], tasks: [{task_id, input: [{speaker, text}], contexts, targets: [{text}]}],
     evaluations: [{task_id, model_id, model_response, annotations: {faithfulness: {RATER: {value: "4"}}, …}}]}

Source: github.com/IBM/mt-rag-benchmark, `reference_subset_with_human_evaluations.json` (Katsis et al. 2025, arXiv
2501.03468). Two or three people rated each answer from 1 ("no") to 4 ("yes"). **Right** is an answer whose median
rating is at least 3 ("mostly yes") in all of `DECISIVE`: it says what the documents say, all of it, and answers what
was asked. Naturalness is style and is left out. `rating` is the mean of these ratings, 1 to 4 taken as 0 to 1; a
rater's vote is the lowest of the three.

The question is the last one of its conversation, the reference the accepted answer, the documents the evidence. Left
out: the model `reference`, whose answers are the accepted ones. Questions that cannot be answered have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

import msgspec

from ..errors import Place, RecordingError
from ..source import Problems
from .labelled import Format, Labelled, language_of, parts, rows

DECISIVE = ("faithfulness", "appropriateness", "completeness")
LEAST = 3

_SHAPE = frozenset({".tasks[].task_id", ".evaluations[].model_response", ".evaluations[].annotations"})
_SHORT = frozenset({".models[].model_id", ".metrics[].aggregator", ".documents[].document_id"})
"""What comes first in the file: the evaluations are past the start that is looked at."""


class _Text(msgspec.Struct):
    text: str


class _Document(msgspec.Struct):
    document_id: str
    text: str | None = None


class _Task(msgspec.Struct, rename={"answers": "Answerability"}):
    task_id: str
    input: list[_Text]
    targets: list[_Text]
    contexts: list[_Document] = []
    answers: list[str] = []


class _Rating(msgspec.Struct):
    value: Literal["1", "2", "3", "4"]


class _Evaluation(msgspec.Struct):
    task_id: str
    model_id: str
    model_response: str
    annotations: dict[str, Any]


class _File(msgspec.Struct):
    tasks: list[Any]
    evaluations: list[Any]
    documents: list[_Document] = []


def _read(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    for _at, place, file in rows(path, _File, problems):
        documents = {each.document_id: each.text or "" for each in file.documents}
        tasks = {task.task_id: task for _, _, task in parts(file.tasks, _Task, place.at("tasks"), problems)}
        for _number, where, given in parts(file.evaluations, _Evaluation, place.at("evaluations"), problems):
            if given.model_id == "reference":
                continue
            try:
                yield _labelled(given, tasks, documents, where)
            except RecordingError as error:
                problems.add(error)


def _labelled(given: _Evaluation, tasks: Mapping[str, _Task], documents: Mapping[str, str], place: Place) -> Labelled:
    task = tasks.get(given.task_id)
    if task is None or not task.input or not task.targets:
        what = f"{given.task_id!r} names no task with a question and a reference"
        raise RecordingError(place.at(f"{place.field}.task_id"), what, "add it to tasks, or leave this record out")
    ratings = [_ratings(given.annotations.get(name), name, place) for name in DECISIVE]
    unanswerable = "UNANSWERABLE" in task.answers
    question = task.input[-1].text
    return Labelled(
        id=f"{given.task_id}-{given.model_id}",
        set="mtrag",
        question=question,
        accepted=() if unanswerable else tuple(target.text for target in task.targets),
        candidate=given.model_response,
        correct=all(median(each.values()) >= LEAST for each in ratings),
        group=given.task_id,
        system=given.model_id,
        language=language_of(question),
        kind="unanswerable" if unanswerable else "plain",
        rating=(fmean(one for each in ratings for one in each.values()) - 1) / 3,
        votes=tuple(
            min(each[rater] for each in ratings) for rater in ratings[0] if all(rater in each for each in ratings)
        ),
        passing=LEAST,
        evidence=tuple(documents.get(each.document_id) or each.text or "" for each in task.contexts),
    )


def _ratings(given: Any, name: str, place: Place) -> dict[str, int]:
    where = place.at(f"{place.field}.annotations.{name}")
    try:
        found = msgspec.convert(given, dict[str, _Rating])
    except msgspec.ValidationError:
        found = {}
    if not found:
        raise RecordingError(where, "no ratings from 1 to 4", "give some, or leave this record out")
    return {rater: int(each.value) for rater, each in found.items()}


FORMAT = Format("MT-RAG's human ratings of models' answers", (_SHAPE, _SHORT), _read)

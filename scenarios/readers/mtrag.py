"""MT-RAG: questions to a document-grounded assistant, each with the turns before it and a reference answer.

    {documents: [{document_id, text}], tasks: [{task_id, input: [{speaker, text}], contexts: [{document_id}], targets}]}
    {task_id, input: [{speaker, text, metadata}], contexts: [{document_id, text}], targets: [{text}]}     on each line

Source: github.com/IBM/mt-rag-benchmark (Katsis et al. 2025, arXiv 2501.03468), Apache-2.0: the first is
`mtrag-human/evaluations/reference_subset_with_human_evaluations.json`, the second `mtragun-human/generation_tasks/
reference.jsonl`. A task is a conversation: its input, then the reference answer as the last message. Its one probe is
the last question, asked right after it: the references are the accepted answers, the documents the passages.

`UNANSWERABLE` tasks have no accepted answer; partial, underspecified and conversational ones have (meta says which).
The category is the kinds of question. Tasks of one original conversation repeat its start, and share `conversation` in
meta. A time that runs behind an earlier one is dropped and counted. Not read: the models' answers and their human
ratings (`scenarios/labelled.py` reads these), and the documents' titles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message, Probe, Role
from ..source import Problems, convert, decode, records
from . import Recordings
from .messages import forward

_ROLES: dict[str, Role] = {"user": "user", "agent": "assistant"}


class _Author(msgspec.Struct):
    author_type: str = ""
    author_id: str = ""
    created_at: float | None = None


class _Turn(msgspec.Struct):
    speaker: str
    text: str
    metadata: _Author | None = None


class _Target(msgspec.Struct):
    text: str
    metadata: _Author | None = None


class _Document(msgspec.Struct):
    document_id: str
    text: str | None = None


class _Task(
    msgspec.Struct,
    rename={
        "kinds": "Question Type",
        "multi_turn": "Multi-Turn",
        "collection": "Collection",
        "answers": "Answerability",
    },
):
    task_id: str
    input: list[_Turn]
    targets: list[_Target]
    contexts: list[_Document] = []
    kinds: list[str] = []
    multi_turn: list[str] = []
    collection: str = ""
    answers: list[str] = []
    answerability: list[str] = []


class _Subset(msgspec.Struct):
    documents: list[_Document]
    tasks: list[Any]


@dataclass(frozen=True, slots=True)
class Mtrag:
    """MT-RAG's tasks; each is a conversation."""

    about: ClassVar[str] = "MT-RAG tasks (the human evaluations' subset, or JSON Lines of tasks)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".task_id", ".input[].speaker", ".targets[].text"}),
        frozenset({".models[].model_id", ".metrics[].aggregator", ".documents[].document_id"}),
        frozenset({".documents[].document_id", ".tasks[].task_id", ".tasks[].input[].speaker"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, task, documents in _tasks(path, problems):
                with problems.collect():
                    yield place, _conversation(convert(task, _Task, place), documents, place)


def _tasks(path: Path, problems: Problems) -> Iterator[tuple[Place, Any, Mapping[str, str]]]:
    """Yield every task with its place, and the texts of the documents beside it by id."""
    for place, raw in records(path, problems):
        try:
            record = decode(raw, dict[str, Any], place)
            subset = convert(record, _Subset, place) if "tasks" in record else _Subset([], [])
        except RecordingError as error:
            problems.add(error)
            continue
        if "tasks" not in record:
            yield place, record, {}
        documents = {document.document_id: document.text or "" for document in subset.documents}
        for at, task in enumerate(subset.tasks):
            yield place.at(f"tasks[{at}]"), task, documents


def _conversation(task: _Task, documents: Mapping[str, str], place: Place) -> Conversation:
    start = f"{place.field}." if place.field else ""
    if not task.targets:
        raise RecordingError(place.at(f"{start}targets"), "there is no reference answer", "give one, or drop the task")
    turns = [*task.input, _Turn("agent", task.targets[0].text, task.targets[0].metadata)]
    times, dropped = forward(turn.metadata.created_at if turn.metadata else None for turn in turns)
    messages = tuple(
        _message(turn, f"m{at}", time, place.at(f"{start}input[{at}].speaker"))
        for at, (turn, time) in enumerate(zip(turns, times, strict=True))
    )
    questions = [message for message in messages if message.role == "user"]
    if not questions:
        raise RecordingError(place.at(f"{start}input"), "nobody asks anything", "let the last turn be the user's")
    labels = task.answerability or task.answers
    answerable = "UNANSWERABLE" not in labels
    probe = Probe(
        id="q",
        question=questions[-1].text,
        answers=tuple(target.text for target in task.targets) if answerable else (),
        category=", ".join(task.kinds),
        after=questions[-1].id,
        answerable=answerable,
        passages=tuple(_passages(task.contexts, documents, place.at(f"{start}contexts"))),
    )
    return Conversation(
        id=task.task_id,
        messages=messages,
        probes=(probe,),
        licence="Apache-2.0",
        language="en",
        meta={
            "conversation": task.task_id.partition("<::>")[0],
            "collection": task.collection,
            "domain": task.collection.removeprefix("mt-rag-").partition("-")[0],
            "answerability": ", ".join(labels),
            "multi_turn": ", ".join(task.multi_turn),
            "times_dropped": dropped,
        },
    )


def _message(turn: _Turn, name: str, time: float | None, place: Place) -> Message:
    if turn.speaker not in _ROLES:
        raise RecordingError(place, f"unknown speaker {turn.speaker!r}", "use user or agent")
    role, author = _ROLES[turn.speaker], turn.metadata or _Author()
    call = Call(model=author.author_id) if role == "assistant" and author.author_type == "model" else None
    return Message(id=name, role=role, text=turn.text, time=time, call=call)


def _passages(contexts: Sequence[_Document], documents: Mapping[str, str], place: Place) -> Iterator[str]:
    for at, context in enumerate(contexts):
        text = documents.get(context.document_id) if context.text is None else context.text
        if text is None:
            field = place.at(f"{place.field}[{at}].document_id")
            raise RecordingError(field, f"{context.document_id!r} names no document", "add it to documents")
        yield text

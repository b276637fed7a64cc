from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import Batch, detect, read
from ctxbench.scenarios.readers.question_sets import Mtrag
from ctxbench.scenarios.source import Problems

SUBSET = "reference_subset_with_human_evaluations.json"


def written(second: int, author: str = "") -> dict[str, Any]:
    kind = "model" if author else "human"
    return {"author_type": kind, "author_id": author or "someone", "created_at": 1723118000 + second}


TASK: dict[str, Any] = {
    "task_id": "abc<::>2",
    "task_type": "rag",
    "input": [
        {"speaker": "user", "text": "Cash?", "metadata": written(0)},
        {"speaker": "agent", "text": "A check.", "metadata": written(5, "mixtral")},
        {"speaker": "user", "text": "Which bank?", "metadata": written(60)},
    ],
    "contexts": [{"document_id": "d1", "text": "Banks.", "title": "B"}],
    "targets": [{"speaker": "agent", "text": "Any.", "metadata": written(65, "mixtral")}],
    "answerability": ["ANSWERABLE"],
    "Question Type": ["Factoid", "Comparative"],
    "Multi-Turn": ["Follow-up"],
    "Collection": "fiqa",
}


def load(file: Path) -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    return list(read([Batch(Mtrag(), (file,))], problems)), problems.errors


def lines(folder: Path, *tasks: object) -> Path:
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return folder / "tasks.jsonl"


def test_a_task_is_a_conversation_with_one_probe(tmp_path: Path) -> None:
    """The reference answer is the last message; the probe is the last question, with the documents as passages."""
    file = lines(tmp_path, TASK)
    [conversation], problems = load(file)
    assert not problems
    assert conversation.id == "abc<::>2"
    assert [(message.id, message.role, message.text) for message in conversation.messages] == [
        ("m0", "user", "Cash?"),
        ("m1", "assistant", "A check."),
        ("m2", "user", "Which bank?"),
        ("m3", "assistant", "Any."),
    ]
    assert conversation.messages[3].time == 1723118065
    assert conversation.messages[3].call is not None
    assert conversation.messages[3].call.model == "mixtral"
    [probe] = conversation.probes
    assert (probe.question, probe.answers, probe.passages) == ("Which bank?", ("Any.",), ("Banks.",))
    assert (probe.after, probe.category) == ("m2", "Factoid, Comparative")
    assert conversation.meta["domain"] == "fiqa"
    assert conversation.meta["conversation"] == "abc"
    assert detect(file) == Mtrag()


def test_the_subset_keeps_documents_apart(tmp_path: Path) -> None:
    """In the one-object file, contexts name documents, and the collection names the domain among other things."""
    task = {key: value for key, value in TASK.items() if key != "answerability"}
    task |= {"Answerability": ["PARTIAL"], "contexts": [{"document_id": "d1"}], "Collection": "mt-rag-govt-elser-512"}
    subset = {"documents": [{"document_id": "d1", "text": "Banks."}], "tasks": [task], "evaluations": []}
    (tmp_path / SUBSET).write_text(json.dumps(subset))
    [conversation], problems = load(tmp_path / SUBSET)
    assert not problems
    assert conversation.probes[0].passages == ("Banks.",)
    assert conversation.probes[0].answerable
    assert (conversation.meta["domain"], conversation.meta["answerability"]) == ("govt", "PARTIAL")
    assert detect(tmp_path / SUBSET) == Mtrag()


def test_tasks_that_cannot_be_answered(tmp_path: Path) -> None:
    """They have no accepted answer, though the refusal is still what was said."""
    [conversation], _ = load(lines(tmp_path, {**TASK, "answerability": ["UNANSWERABLE"]}))
    assert (conversation.probes[0].answers, conversation.probes[0].answerable) == ((), False)
    assert conversation.messages[-1].text == "Any."


def test_a_time_that_runs_backwards_is_dropped(tmp_path: Path) -> None:
    """The message stays, without its time, and meta counts it."""
    late = {"speaker": "user", "text": "Cash?", "metadata": written(1000)}
    [conversation], problems = load(lines(tmp_path, {**TASK, "input": [late]}))
    assert not problems
    assert [message.time for message in conversation.messages] == [1723119000, None]
    assert conversation.meta["times_dropped"] == 1


def test_damaged_tasks_cost_only_themselves(tmp_path: Path) -> None:
    """A speaker, a type, no reference, a document that is not there, a cut line: one problem each."""
    wrong = [
        {**TASK, "input": [{"speaker": "robot", "text": "a"}]},
        {**TASK, "input": [{"speaker": "user", "text": 5}]},
        {**TASK, "targets": []},
        {**TASK, "contexts": [{"document_id": "d9"}]},
        {**TASK, "input": []},
    ]
    file = lines(tmp_path, TASK, *wrong, TASK, TASK)
    file.write_text(file.read_text()[:-30])
    conversations, problems = load(file)
    assert [conversation.id for conversation in conversations] == ["abc<::>2", "abc<::>2~2"]
    assert [(problem.place.line, problem.place.field) for problem in problems] == [
        (2, "input[0].speaker"),
        (3, "input[0].text"),
        (4, "targets"),
        (5, "contexts[0].document_id"),
        (6, "input"),
        (8, ""),
    ]


def test_a_damaged_task_of_the_subset_is_named(tmp_path: Path) -> None:
    """The field says which of the tasks."""
    wrong = {**TASK, "input": [{"speaker": "robot", "text": "a"}]}
    (tmp_path / SUBSET).write_text(json.dumps({"documents": [], "tasks": [TASK, wrong]}))
    conversations, [problem] = load(tmp_path / SUBSET)
    assert len(conversations) == 1
    assert problem.place.field == "tasks[1].input[0].speaker"


def test_the_subset_that_people_rated(recordings: Path) -> None:
    """159 tasks, 7 of them unanswerable; no times, 395 passages."""
    file = recordings / "mtrag" / SUBSET
    assert detect(file) == Mtrag()
    conversations, problems = load(file)
    assert not problems
    assert len(conversations) == len({conversation.id for conversation in conversations}) == 159
    assert sum(len(conversation.messages) for conversation in conversations) == 1480
    assert sum(len(list(conversation.calls())) for conversation in conversations) == 740
    probes = [probe for conversation in conversations for probe in conversation.probes]
    assert (len(probes), sum(not probe.answerable for probe in probes)) == (159, 7)
    assert sum(len(probe.passages) for probe in probes) == 395
    assert {conversation.meta["domain"] for conversation in conversations} == {"clapnq", "fiqa", "govt", "ibmcloud"}


def test_the_second_collection(recordings: Path) -> None:
    """507 tasks, 97 of them unanswerable; two conversations have clocks that ran backwards."""
    file = recordings / "mtrag" / "mtragun_reference.jsonl"
    assert detect(file) == Mtrag()
    conversations, problems = load(file)
    assert not problems
    assert len(conversations) == len({conversation.id for conversation in conversations}) == 507
    assert sum(len(conversation.messages) for conversation in conversations) == 4382
    assert sum(len(list(conversation.calls())) for conversation in conversations) == 2191
    probes = [probe for conversation in conversations for probe in conversation.probes]
    assert (len(probes), sum(not probe.answerable for probe in probes)) == (507, 97)
    assert sum(len(probe.passages) for probe in probes) == 1180
    assert [
        conversation.meta["times_dropped"] for conversation in conversations if conversation.meta["times_dropped"]
    ] == [
        1,
        2,
    ]
    assert {conversation.meta["domain"] for conversation in conversations} == {"clapnq", "fiqa", "govt", "ibmcloud"}

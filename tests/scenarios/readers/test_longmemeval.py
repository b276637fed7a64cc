from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import Batch, detect, read
from ctxbench.scenarios.readers.question_sets import LongMemEval
from ctxbench.scenarios.source import Problems

RECORD: dict[str, Any] = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "Which degree?",
    "answer": "Business",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:57"],
    "haystack_session_ids": ["s1", "s2"],
    "haystack_sessions": [
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        [{"role": "user", "content": "My degree", "has_answer": True}, {"role": "assistant", "content": "d"}],
    ],
    "answer_session_ids": ["s2"],
}


def load(folder: Path, *changed: dict[str, Any]) -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    text = ",\n".join(json.dumps({**RECORD, **each}) for each in changed)
    (folder / "longmemeval_s.json").write_text(f"[\n{text}\n]")
    return list(read([Batch(LongMemEval(), (folder / "longmemeval_s.json",))], problems)), problems.errors


def test_a_question_and_its_haystack(tmp_path: Path) -> None:
    """Messages are named by session, evidence is what has the answer, and the probe has the question's date."""
    [conversation], problems = load(tmp_path, {})
    assert not problems
    assert [message.id for message in conversation.messages] == ["s1:0", "s1:1", "s2:0", "s2:1"]
    assert conversation.messages[1].time == datetime(2023, 5, 20, 2, 21, tzinfo=UTC).timestamp()
    [probe] = conversation.probes
    assert (probe.answers, probe.evidence, probe.category) == (("Business",), ("s2:0",), "single-session-user")
    assert probe.time == datetime(2023, 5, 30, 23, 40, tzinfo=UTC).timestamp()
    assert conversation.meta["sessions_reordered"] is False


def test_several_questions_to_one_haystack(tmp_path: Path) -> None:
    """Each is a probe with the evidence of its own sessions; one that is damaged is named and costs only itself."""
    fields = ("question_id", "question", "answer", "question_type", "question_date", "answer_session_ids")
    first = {field: RECORD[field] for field in fields}
    second = {"question_id": "q2_abs", "question": "My cat?", "answer": "Not said", "answer_session_ids": []}
    late = {**first, "question_id": "q3", "question_date": "noon"}
    record = {field: value for field, value in RECORD.items() if field not in fields}
    path = tmp_path / "several.json"
    path.write_text(json.dumps([{**record, "questions": [first, second, late, {"question": "?"}]}]))
    assert detect(path) == LongMemEval()
    problems = Problems()
    [conversation] = read([Batch(LongMemEval(), (path,))], problems)
    assert [(p.id, p.answers, p.evidence, p.answerable) for p in conversation.probes] == [
        ("q1", ("Business",), ("s2:0",), True),
        ("q2_abs", (), (), False),
    ]
    assert conversation.meta["answer_sessions"] == "s2"
    assert [error.place.field for error in problems.errors] == ["questions[2].question_date", "questions[3]"]


def test_a_haystack_without_questions(tmp_path: Path) -> None:
    """A list of no questions is a problem, and no conversation."""
    conversations, [error] = load(tmp_path, {"questions": []})
    assert not conversations
    assert error.what == "no question is in it"


def test_it_is_known_by_its_content(tmp_path: Path) -> None:
    """The haystack's fields tell it."""
    load(tmp_path, {})
    assert detect(tmp_path / "longmemeval_s.json") == LongMemEval()


def test_questions_that_cannot_be_answered(tmp_path: Path) -> None:
    """An id ending in `_abs` has no accepted answer; what it is refused with is its rubric."""
    [conversation], _ = load(tmp_path, {"question_id": "q1_abs", "answer": "You did not say"})
    [probe] = conversation.probes
    assert (probe.answerable, probe.answers, probe.rubric) == (False, (), ("You did not say",))


def test_an_answer_may_be_a_number(tmp_path: Path) -> None:
    """Answers are text for every reader after this one."""
    [conversation], _ = load(tmp_path, {"answer": 3})
    assert conversation.probes[0].answers == ("3",)


def test_sessions_out_of_order_are_sorted_by_date(tmp_path: Path) -> None:
    """The order is the recorded one unless dates go backwards; meta says which."""
    [conversation], problems = load(tmp_path, {"haystack_dates": list(reversed(RECORD["haystack_dates"]))})
    assert not problems
    assert [message.id for message in conversation.messages] == ["s2:0", "s2:1", "s1:0", "s1:1"]
    assert conversation.meta["sessions_reordered"] is True


def test_a_session_id_that_stands_twice(tmp_path: Path) -> None:
    """Message ids stay unique, and evidence names the right one."""
    [conversation], problems = load(tmp_path, {"haystack_session_ids": ["s1", "s1"]})
    assert not problems
    assert conversation.probes[0].evidence == ("s1~2:0",)


def test_damaged_records_cost_only_themselves(tmp_path: Path) -> None:
    """A role, a type, a date, a missing date: one problem each with line and field."""
    wrong: list[dict[str, Any]] = [
        {"haystack_sessions": [[{"role": "robot", "content": "a"}], []]},
        {"haystack_sessions": [[{"role": "user", "content": 5}], []]},
        {"haystack_dates": ["today", "2023/05/21 (Sun) 02:57"]},
        {"haystack_dates": ["2023/05/20 (Sat) 02:21"]},
        {"question_date": "tomorrow"},
    ]
    conversations, problems = load(tmp_path, *wrong, {})
    assert len(conversations) == 1
    assert [(problem.place.line, problem.place.field) for problem in problems] == [
        (2, "haystack_sessions[0][0].role"),
        (3, "haystack_sessions[0][0].content"),
        (4, "haystack_dates[0]"),
        (5, "haystack_dates"),
        (6, "question_date"),
    ]


def test_what_stands_before_a_cut_is_read(tmp_path: Path) -> None:
    """A file that was cut off gives its whole records and one problem."""
    load(tmp_path, {}, {})
    file = tmp_path / "longmemeval_s.json"
    file.write_text(file.read_text()[:-60])
    problems = Problems()
    assert len(list(read([Batch(LongMemEval(), (file,))], problems))) == 1
    assert "ends in the middle" in problems.errors[0].what

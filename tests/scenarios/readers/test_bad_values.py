"""A wrong value in a recording of each format: the error names line and field, and the rest is read."""

import json
from pathlib import Path

import pytest

from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import SAMPLES
from tests.scenarios.readers.test_fuzz import changed

ROWS = [row.strip("| ").split(" | ") for row in Path(__file__).with_name("bad_values.md").read_text().splitlines()[2:]]


@pytest.mark.parametrize(("name", "path", "value", "fault", "left"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_a_wrong_value_is_named_by_line_and_field(
    name: str, path: str, value: str, fault: str, left: str, tmp_path: Path
) -> None:
    """It is one problem, whose place is that of the value or of what it spoils; the other conversations are read."""
    sample = SAMPLES[name]
    steps = tuple(int(step) if step.isdecimal() else step for step in path.split("."))
    records = changed(sample.records(2), steps, "replace", json.loads(value))
    file = sample.write(tmp_path, sample.text(records))
    problems = Problems()
    found = list(read(find([file], problems, name), problems))
    [error] = problems.errors
    assert f"{error.place.line}: {error.place.field}: {error.what}".startswith(fault)
    assert error.place.file == str(file)
    assert error.remedy
    assert len(found) == int(left)


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("memdaily", ["0.message_list.0.message"]),
        ("memdaily", ["0.question_list.0.answer"]),
        ("atif", ["steps.2.tool_calls.0.tool_call_id", "steps.2.observation.results.0.source_call_id"]),
        ("gemini_cli", ["3.toolCalls.0.id"]),
        ("inspect", ["samples.0.message_pool.1.tool_calls.0.id", "samples.0.message_pool.2.tool_call_id"]),
    ],
)
def test_an_empty_text_is_a_value(name: str, paths: list[str], tmp_path: Path) -> None:
    """An empty message, answer or id of a tool call costs nothing of what stands beside it."""
    sample = SAMPLES[name]

    def sizes(*paths: str) -> list[int]:
        records, problems = sample.records(2), Problems()
        for path in paths:
            steps = tuple(int(step) if step.isdecimal() else step for step in path.split("."))
            records = changed(records, steps, "replace", "")
        found = list(read(find([sample.write(tmp_path, sample.text(records))], problems, name), problems))
        assert not problems.errors
        return [len(each.messages) for each in found]

    assert sizes(*paths) == sizes()


def test_a_damaged_question_is_not_counted(tmp_path: Path) -> None:
    """Evidence that is dropped is counted of questions that are read."""
    sample = SAMPLES["beam"]
    file = sample.write(tmp_path, sample.text(sample.records(1)))
    cited = {"question": "Flask?", "answer": 2, "source_chat_ids": [0, 9]}
    questions = {"contradiction": [cited, {**cited, "question": 5}]}
    (tmp_path / "probing_questions" / "probing_questions.json").write_text(json.dumps(questions))
    problems = Problems()
    [chat] = read(find([file], problems, "beam"), problems)
    assert (len(chat.probes), chat.meta["evidence_dropped"], len(problems.errors)) == (1, 1, 1)

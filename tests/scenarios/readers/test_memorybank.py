from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import Batch, detect, find, read
from ctxbench.scenarios.readers.question_sets import MemoryBank
from ctxbench.scenarios.source import Problems

EMILY: dict[str, Any] = {
    "name": "Emily",
    "summary": {},
    "personality": {},
    "overall_history": "",
    "history": {
        "2023-04-27": [{"query": "Hi", "response": "Hello"}, {"query": "Sun!", "response": "Yes"}],
        "2023-04-28": [{"query": "Back", "response": "Welcome"}],
    },
    "meta_information": {"name": "Emily", "hobbies": "painting"},
}


def load(folder: Path, bank: object, questions: str = "") -> tuple[list[Conversation], list[RecordingError]]:
    (folder / "memory_bank_en.json").write_text(json.dumps(bank))
    if questions:
        (folder / "probing_questions_en.jsonl").write_text(questions)
    problems = Problems()
    return list(read([Batch(MemoryBank(), (folder / "memory_bank_en.json",))], problems)), problems.errors


def test_days_of_one_person(tmp_path: Path) -> None:
    """A user is a conversation; a day's messages have its noon; what the user was played from is in meta."""
    [conversation], problems = load(tmp_path, {"Emily": EMILY})
    assert not problems
    assert conversation.id == "memory_bank_en/Emily"
    assert [message.id for message in conversation.messages][:3] == ["2023-04-27:0", "2023-04-27:1", "2023-04-27:2"]
    assert [message.role for message in conversation.messages] == ["user", "assistant"] * 3
    assert conversation.messages[3].time == datetime(2023, 4, 27, 12, tzinfo=UTC).timestamp()
    assert conversation.meta == {"name": "Emily", "hobbies": "painting", "days": 2}
    assert conversation.language == "en"
    assert detect(tmp_path / "memory_bank_en.json") == MemoryBank()


def test_questions_have_no_gold(tmp_path: Path) -> None:
    """They are found by name beside the bank, also where one of the two has blanks around a user's name."""
    [conversation], problems = load(tmp_path, {" Emily ": EMILY}, '{"Emily": ["Which film?", "When?"]}\n')
    assert not problems
    assert [(probe.id, probe.question) for probe in conversation.probes] == [("q0", "Which film?"), ("q1", "When?")]
    assert {(probe.answers, probe.evidence, probe.answerable, probe.category) for probe in conversation.probes} == {
        ((), (), True, "no_gold")
    }


def test_days_are_put_in_order(tmp_path: Path) -> None:
    """A later day may stand first in the object."""
    history = dict(reversed(EMILY["history"].items()))
    [conversation], problems = load(tmp_path, {"Emily": {**EMILY, "history": history}})
    assert not problems
    assert conversation.messages[0].text == "Hi"


def test_damaged_users_and_questions_cost_only_themselves(tmp_path: Path) -> None:
    """A type, a day, questions about nobody, a cut line: one problem each with its field or line."""
    bank = {
        "A": {"history": {"2023-04-27": [{"query": 5, "response": "b"}]}},
        "B": {"history": {"Monday": [{"query": "a", "response": "b"}]}},
        "Emily": EMILY,
    }
    questions = '{"Nobody": ["?"]}\n{"Emily": ["When?"]}\n{"Emily": ["Wh'
    [conversation], problems = load(tmp_path, bank, questions)
    assert len(conversation.probes) == 1
    assert [(problem.place.line, problem.place.field) for problem in problems] == [
        (1, "Nobody"),
        (3, ""),
        (0, "A.history[...][0].query"),
        (0, "B.history.Monday"),
    ]


def test_a_bank_that_was_cut_off(tmp_path: Path) -> None:
    """One object is one record: nothing of it is read, and the problem says why."""
    (tmp_path / "memory_bank_en.json").write_text(json.dumps({"Emily": EMILY})[:-20])
    problems = Problems()
    assert not list(read([Batch(MemoryBank(), (tmp_path / "memory_bank_en.json",))], problems))
    assert "ends in the middle" in problems.errors[0].what


@pytest.mark.parametrize(("folder", "language", "name"), [("cn", "zh", "张曼婷"), ("en", "en", "Emily")])
def test_the_sample_recordings(recordings: Path, folder: str, language: str, name: str) -> None:
    """15 users each in Chinese and English, all with their questions."""
    problems = Problems()
    batches = find([recordings / "memorybank" / "eval_data" / folder], problems)
    conversations = list(read(batches, problems))
    assert not problems.errors
    assert not problems.ignored
    assert len(conversations) == 15
    assert {conversation.language for conversation in conversations} == {language}
    assert conversations[0].meta["name"] == name
    assert sum(len(conversation.messages) for conversation in conversations) == 1132
    assert sum(len(list(conversation.calls())) for conversation in conversations) == 566
    assert sum(len(conversation.probes) for conversation in conversations) == 100
    assert all(conversation.probes for conversation in conversations)

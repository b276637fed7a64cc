from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.question_sets import Beam
from ctxbench.scenarios.source import Problems


def turn(name: int, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "id": name, "content": f"text {name}", **more}


CHAT: list[dict[str, Any]] = [
    {
        "batch_number": 1,
        "turns": [
            [turn(0, time_anchor="March-15-2024", index="1,1"), turn(1, "assistant")],
            [turn(2), turn(3, "assistant")],
        ],
    },
    {"batch_number": 2, "time_anchor": "April-01-2024", "turns": [[turn(4), turn(5, "assistant")]]},
]
QUESTIONS: dict[str, list[dict[str, Any]]] = {
    "abstention": [{"question": "My cat?", "ideal_response": "Not said.", "rubric": ["not said"]}],
    "event_ordering": [{"question": "Order?", "answer": "1, 2", "source_chat_ids": [0, 4, 4], "rubric": ["1", "2"]}],
    "contradiction_resolution": [
        {"question": "Flask?", "ideal_answer": "Both.", "source_chat_ids": {"first": [2], "second": [4]}, "rubric": []}
    ],
    "instruction_following": [
        {"question": "Show me", "expected_compliance": "…", "source_chat_ids": [0], "rubric": ["x"]}
    ],
    "summarization": [{"question": "All?", "ideal_summary": "All.", "source_chat_ids": [99, 0], "rubric": ["x"]}],
}


def write(folder: Path, chat: object = CHAT, questions: object = QUESTIONS) -> Path:
    home = folder / "100K" / "1"
    (home / "probing_questions").mkdir(parents=True)
    (home / "chat.json").write_text(json.dumps(chat, indent=2))
    if questions is not None:
        (home / "probing_questions" / "probing_questions.json").write_text(json.dumps(questions, indent=2))
    return home


def load(path: Path) -> tuple[list[Any], Problems]:
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def test_a_chat_and_its_questions(tmp_path: Path) -> None:
    """The published folders: the questions stand one folder below the chat, and belong to it."""
    write(tmp_path)
    [conversation], problems = load(tmp_path)
    assert not problems.errors
    assert conversation.id == "100K/1"
    assert [message.id for message in conversation.messages] == ["0", "1", "2", "3", "4", "5"]
    assert conversation.messages[3].time == datetime(2024, 3, 15, 12, tzinfo=UTC).timestamp()
    assert conversation.messages[4].time == datetime(2024, 4, 1, 12, tzinfo=UTC).timestamp()
    assert len(conversation.probes) == 5


def test_what_the_abilities_hold(tmp_path: Path) -> None:
    """Answers have a name per ability or none, sources are lists or lists under names, abstention has no answer."""
    [conversation], _ = load(write(tmp_path))
    probes = {probe.category: probe for probe in conversation.probes}
    assert {name: probe.answers for name, probe in probes.items()} == {
        "abstention": (),
        "event_ordering": ("1, 2",),
        "contradiction_resolution": ("Both.",),
        "instruction_following": (),
        "summarization": ("All.",),
    }
    assert {name: probe.evidence for name, probe in probes.items()} == {
        "abstention": (),
        "event_ordering": ("0", "4"),
        "contradiction_resolution": ("2", "4"),
        "instruction_following": ("0",),
        "summarization": ("0",),
    }
    assert [name for name, probe in probes.items() if not probe.answerable] == ["abstention"]
    assert probes["event_ordering"].rubric == ("1", "2")
    assert conversation.meta["evidence_dropped"] == 1


def test_message_ids_that_stand_twice(tmp_path: Path) -> None:
    """They are told apart, and evidence that could mean either is dropped and counted."""
    chat = [{"batch_number": 1, "turns": [[turn(0), turn(0, "assistant"), turn(4), turn(2)]]}]
    [conversation], problems = load(write(tmp_path, chat, {"event_ordering": QUESTIONS["event_ordering"]}))
    assert not problems.errors
    assert [message.id for message in conversation.messages] == ["0", "0~2", "4", "2"]
    assert conversation.probes[0].evidence == ("4",)
    assert conversation.meta["evidence_dropped"] == 1


def test_a_chat_without_questions(tmp_path: Path) -> None:
    """It is a conversation without probes."""
    [conversation], problems = load(write(tmp_path, CHAT, None))
    assert not problems.errors
    assert conversation.probes == ()


def test_questions_beside_the_chat(tmp_path: Path) -> None:
    """Both files in one folder are one conversation too."""
    home = write(tmp_path, CHAT, None)
    (home / "probing_questions.json").write_text(json.dumps(QUESTIONS))
    [conversation], problems = load(home)
    assert not problems.errors
    assert len(conversation.probes) == 5


def test_copies_beside_the_chat_are_ignored_by_name(tmp_path: Path) -> None:
    """BEAM keeps a shortened chat and the user's half beside some: the same conversation is not read twice."""
    home = write(tmp_path)
    half = [{"batch": 1, "time_anchor": "March-15-2024", "messages": [{"role": "user", "content": "a"}]}]
    (home / "chat_trunecated.json").write_text(json.dumps(CHAT))
    (home / "user_messages.json").write_text(json.dumps(half))
    conversations, problems = load(home)
    assert len(conversations) == 1
    assert [Path(name).name for name in problems.ignored] == ["chat_trunecated.json", "user_messages.json"]


def test_it_is_known_by_its_content(tmp_path: Path) -> None:
    """Chat and questions are both told; the files beside them are not."""
    home = write(tmp_path)
    (home / "topic.json").write_text('{"topic": "x"}')
    assert detect(home / "chat.json") == Beam()
    assert detect(home / "probing_questions" / "probing_questions.json") == Beam()
    assert detect(home / "topic.json") is None


def test_a_damaged_chat_is_no_conversation(tmp_path: Path) -> None:
    """A role, a type, a date, a cut: one problem with its field each."""
    for n, (chat, field) in enumerate(
        [
            ([{"batch_number": 1, "turns": [[turn(0, "robot")]]}], "[0].turns[0][0].role"),
            ([{"batch_number": 1, "turns": [[{"role": "user", "id": 0, "content": 5}]]}], "[0].turns[0][0].content"),
            ([{"batch_number": 1, "turns": [[turn(0, time_anchor="soon")]]}], "[0].turns[0][0].time_anchor"),
        ]
    ):
        conversations, problems = load(write(tmp_path / str(n), chat, None))
        assert not conversations
        assert [problem.place.field for problem in problems.errors] == [field]
    home = write(tmp_path / "cut", CHAT, None)
    (home / "chat.json").write_text((home / "chat.json").read_text()[:-20])
    conversations, problems = load(home)
    assert not conversations
    assert "ends in the middle" in problems.errors[0].what


def test_damaged_questions_cost_only_themselves(tmp_path: Path) -> None:
    """The chat and the other questions are read."""
    wrong = [{"question": 5}, {"question": "a", "source_chat_ids": [True]}, {"question": "b"}]
    [conversation], problems = load(write(tmp_path, CHAT, {"event_ordering": wrong}))
    assert [probe.id for probe in conversation.probes] == ["event_ordering:2"]
    assert [problem.place.field for problem in problems.errors] == [
        "event_ordering[0].question",
        "event_ordering[1].source_chat_ids",
    ]

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation, Fact
from ctxbench.scenarios.read import Batch, detect, find, read
from ctxbench.scenarios.readers.question_sets import Locomo
from ctxbench.scenarios.source import Problems

SPOKEN: dict[str, Any] = {
    "speaker_a": "Ann",
    "speaker_b": "Bob",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Look!", "img_url": ["u"], "blip_caption": "a photo of a dog"},
        {"speaker": "Bob", "dia_id": "D1:2", "text": "Nice"},
    ],
    "session_2_date_time": "12:09 am on 13 September, 2023",
    "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Hi"}],
    "session_3_date_time": "12:10 am on 13 September, 2023",
}


def question(evidence: list[str], **more: Any) -> dict[str, Any]:
    return {"question": "Whose dog?", "answer": "Ann's", "evidence": evidence, "category": 4, **more}


def sample(*questions: dict[str, Any], **spoken: Any) -> dict[str, Any]:
    return {"sample_id": "conv-1", "conversation": {**SPOKEN, **spoken}, "qa": list(questions)}


def load(file: Path, corrections: Path | str = "") -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    return list(read([Batch(Locomo(str(corrections)), (file,))], problems)), problems.errors


def write(folder: Path, *samples: object) -> Path:
    (folder / "locomo.json").write_text("[\n" + ",\n".join(json.dumps(each) for each in samples) + "\n]")
    return folder / "locomo.json"


def test_two_people_in_dated_sessions(tmp_path: Path) -> None:
    """Speaker A is the user; a shared photo is a line of text and an image; a session's messages have its time."""
    [conversation], problems = load(write(tmp_path, sample(question(["D1:1"]))))
    assert not problems
    first, second, third = conversation.messages
    assert (first.id, first.role, first.name, len(first.media)) == ("D1:1", "user", "Ann", 1)
    assert first.text == "Look!\n[shares a photo: a photo of a dog]"
    assert (second.role, len(second.media)) == ("assistant", 0)
    assert first.time == second.time == datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
    assert third.time == datetime(2023, 9, 13, 0, 9, tzinfo=UTC).timestamp()
    assert conversation.licence == "CC BY-NC 4.0"


def test_observations_are_facts(tmp_path: Path) -> None:
    """Each is known once the last message that it cites is said; those that cite none are counted."""
    observed = {
        "session_1_observation": {"Ann": [["Ann has a dog.", "D1:1"]], "Bob": [["Both like dogs.", ["D1:1", "D1:2"]]]},
        "session_2_observation": {"Bob": [["Bob moved.", "D9:9"]]},
    }
    [conversation], problems = load(write(tmp_path, {**sample(), "observation": observed}))
    assert not problems
    assert conversation.facts == (Fact("Ann has a dog.", "D1:1"), Fact("Both like dogs.", "D1:2"))
    assert conversation.meta["facts_dropped"] == 1


def test_questions(tmp_path: Path) -> None:
    """Answers are text; of category 5 nothing is accepted, whatever it comes with."""
    five = question([], category=5, answer="No", adversarial_answer="Yes")
    [conversation], _ = load(write(tmp_path, sample(question([], answer=2022, category=2), five)))
    dated, unanswerable = conversation.probes
    assert (dated.id, dated.answers, dated.category, dated.answerable) == ("qa0", ("2022",), "temporal", True)
    assert (unanswerable.answers, unanswerable.category, unanswerable.answerable) == ((), "unanswerable", False)
    assert dated.after == ""


@pytest.mark.parametrize(
    ("cited", "evidence", "repaired", "dropped"),
    [
        (["D1:1", "D2:1"], ("D1:1", "D2:1"), 0, 0),
        (["D1:1; D2:1"], ("D1:1", "D2:1"), 1, 0),
        (["D1:1 D1:2 D2:1"], ("D1:1", "D1:2", "D2:1"), 1, 0),
        (["D:1:2"], ("D1:2",), 1, 0),
        (["D1:02"], ("D1:2",), 1, 0),
        (["D1:1", "D", "D1:9"], ("D1:1",), 0, 2),
        (["D1:1; D1:9"], ("D1:1",), 1, 1),
        (["D1:1", "D1:1"], ("D1:1",), 0, 0),
    ],
)
def test_damaged_evidence(
    tmp_path: Path, cited: list[str], evidence: tuple[str, ...], repaired: int, dropped: int
) -> None:
    """What has one reading is repaired, what names no message is dropped, and both are counted."""
    [conversation], problems = load(write(tmp_path, sample(question(cited))))
    assert not problems
    assert conversation.probes[0].evidence == evidence
    assert conversation.meta["evidence_repaired"] == repaired
    assert conversation.meta["evidence_dropped"] == dropped


def test_a_session_dated_before_the_last_one(tmp_path: Path) -> None:
    """Its messages have no time, and meta says so."""
    [conversation], problems = load(write(tmp_path, sample(session_2_date_time="1:55 pm on 8 May, 2023")))
    assert not problems
    assert [message.time is None for message in conversation.messages] == [False, False, True]
    assert conversation.meta["session_times_dropped"] == 1


def correct(**more: Any) -> dict[str, Any]:
    mended = {"correct_answer": "Bob's", "correct_evidence": ["D1:2"]}
    return {"question_id": "locomo_1_qa0", "question": "Whose dog?", **mended, **more}


def test_corrections_stand_in_place_of_the_published(tmp_path: Path) -> None:
    """The audit's answer and evidence are taken for the question that it names, and no other."""
    (tmp_path / "errors.json").write_text(json.dumps([correct()]))
    file = write(tmp_path, sample(question(["D1:1"])), sample(question(["D1:1"])))
    (first, second), problems = load(file, tmp_path / "errors.json")
    assert not problems
    assert (first.probes[0].answers, first.probes[0].evidence) == (("Ann's",), ("D1:1",))
    assert (second.probes[0].answers, second.probes[0].evidence) == (("Bob's",), ("D1:2",))
    assert [each.meta["corrections_applied"] for each in (first, second)] == [0, 1]


@pytest.mark.parametrize("wrong", [correct(question="Whose cat?"), correct(question_id="locomo_1_qa7")])
def test_corrections_of_another_file(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A correction that does not fit the question it names is a problem of that conversation."""
    (tmp_path / "errors.json").write_text(json.dumps([wrong]))
    file = write(tmp_path, sample(question(["D1:1"])), sample(question(["D1:1"])))
    conversations, [problem] = load(file, tmp_path / "errors.json")
    assert len(conversations) == 1
    assert "that was audited" in str(problem)


def test_corrections_that_are_not_there(tmp_path: Path) -> None:
    """Nothing is read uncorrected in silence."""
    conversations, [problem] = load(write(tmp_path, sample()), tmp_path / "none.json")
    assert not conversations
    assert "none.json" in str(problem)


def test_damaged_samples_cost_only_themselves(tmp_path: Path) -> None:
    """A speaker, a type, a date, a category, a cut: one problem each, with line and field."""
    wrong = [
        sample(session_2=[{"speaker": "Eve", "dia_id": "D2:1", "text": "Hi"}]),
        sample(session_2=[{"speaker": "Ann", "dia_id": "D2:1", "text": 5}]),
        sample(session_2_date_time="yesterday"),
        sample(question([], category=6)),
    ]
    file = write(tmp_path, *wrong, sample(), sample())
    file.write_text(file.read_text()[:-50])
    conversations, [*problems, cut] = load(file)
    assert len(conversations) == 1
    assert [(problem.place.line, problem.place.field) for problem in problems] == [
        (2, "conversation.session_2[0].speaker"),
        (3, "conversation.session_2[0].text"),
        (4, "conversation.session_2_date_time"),
        (5, "qa[0].category"),
    ]
    assert "ends in the middle" in cut.what


def test_a_message_id_that_stands_twice(tmp_path: Path) -> None:
    """Evidence could not name one of the two, so the conversation is refused."""
    twice = [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi"}]
    conversations, [problem] = load(write(tmp_path, sample(session_2=twice)))
    assert not conversations
    assert "'D1:1' stands twice" in problem.what


def test_the_sample_recordings_as_published(recordings: Path) -> None:
    """Ten conversations, 1 986 questions; six evidence strings are repaired, three references dropped."""
    conversations, problems = load(recordings / "locomo" / "data" / "locomo10.json")
    assert not problems
    assert [len(conversation.messages) for conversation in conversations] == [
        419, 369, 663, 629, 680, 675, 689, 681, 509, 568,
    ]  # fmt: skip
    probes = [probe for conversation in conversations for probe in conversation.probes]
    counts = {name: sum(probe.category == name for probe in probes) for name in {probe.category for probe in probes}}
    assert counts == {
        "multi_hop": 282,
        "temporal": 321,
        "open_domain": 96,
        "single_hop": 841,
        "unanswerable": 446,
    }
    assert sum(len(probe.evidence) for probe in probes) == 2820
    assert sum(len(probe.answers) for probe in probes) == 1540
    assert sum(len(conversation.facts) for conversation in conversations) == 2541
    assert sum(len(message.media) for conversation in conversations for message in conversation.messages) == 1226
    assert sum(len(list(conversation.calls())) for conversation in conversations) == 2925
    for name, count in [
        ("evidence_repaired", 6),
        ("evidence_dropped", 3),
        ("facts_dropped", 0),
        ("session_times_dropped", 0),
    ]:
        assert sum(int(conversation.meta[name] or 0) for conversation in conversations) == count


def test_the_sample_recordings_corrected(recordings: Path) -> None:
    """All 156 corrections find their question, and no evidence is lost any more."""
    folder = recordings / "locomo"
    conversations, problems = load(folder / "data" / "locomo10.json", folder / "errors.json")
    assert not problems
    assert sum(int(conversation.meta["corrections_applied"] or 0) for conversation in conversations) == 156
    assert sum(len(probe.evidence) for conversation in conversations for probe in conversation.probes) == 2860
    assert sum(int(conversation.meta["evidence_dropped"] or 0) for conversation in conversations) == 0
    assert conversations[0].probes[1].evidence == ("D1:14",)


def test_only_the_conversations_of_its_folder_are_taken(recordings: Path) -> None:
    """The audit and the recorded answers beside them are not conversations."""
    assert detect(recordings / "locomo" / "data" / "locomo10.json") == Locomo()
    batches = find([recordings / "locomo"], Problems())
    assert [file.name for batch in batches for file in batch.files] == ["locomo10.json"]


def test_a_session_with_a_padded_number(tmp_path: Path) -> None:
    """`session_02` is the second session, under the name that it has in the file."""
    spoken = {key.replace("session_2", "session_02"): value for key, value in SPOKEN.items()}
    [conversation], problems = load(write(tmp_path, {"sample_id": "conv-1", "conversation": spoken}))
    assert not problems
    assert [message.id for message in conversation.messages] == ["D1:1", "D1:2", "D2:1"]
    assert conversation.messages[2].time == datetime(2023, 9, 13, 0, 9, tzinfo=UTC).timestamp()

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import Batch, read
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


def test_the_sample_recordings_corrected(recordings: Path) -> None:
    """All 156 corrections find their question, and no evidence is lost any more."""
    folder = recordings / "locomo"
    conversations, problems = load(folder / "data" / "locomo10.json", folder / "errors.json")
    assert not problems
    assert sum(int(conversation.meta["corrections_applied"] or 0) for conversation in conversations) == 156
    assert sum(len(probe.evidence) for conversation in conversations for probe in conversation.probes) == 2860
    assert sum(int(conversation.meta["evidence_dropped"] or 0) for conversation in conversations) == 0
    assert conversations[0].probes[1].evidence == ("D1:14",)

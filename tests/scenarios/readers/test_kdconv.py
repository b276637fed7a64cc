from __future__ import annotations

import json
from pathlib import Path

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import Batch, detect, find, read
from ctxbench.scenarios.readers.question_sets import KdConv
from ctxbench.scenarios.source import Problems

TURNS = [{"message": "看过吗？"}, {"message": "看过。", "attrs": [{"attrname": "a", "attrvalue": "b", "name": "c"}]}]


def load(*files: Path) -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    return list(read([Batch(KdConv(), files)], problems)), problems.errors


def write(folder: Path, *dialogues: object) -> Path:
    (folder / "film").mkdir()
    (folder / "film" / "test.json").write_text("[\n" + ",\n".join(json.dumps(each) for each in dialogues) + "\n]")
    return folder / "film" / "test.json"


def test_turns_alternate(tmp_path: Path) -> None:
    """Who begins is the user; the domain is the folder's name."""
    file = write(tmp_path, {"name": "我是山姆", "messages": [*TURNS, {"message": "好"}]})
    [conversation], problems = load(file)
    assert not problems
    assert [message.role for message in conversation.messages] == ["user", "assistant", "user"]
    assert (conversation.id, conversation.language) == ("film/test/0", "zh")
    assert conversation.meta == {"topic": "我是山姆", "domain": "film"}
    assert detect(file) == KdConv()


def test_damaged_dialogues_cost_only_themselves(tmp_path: Path) -> None:
    """A type, a missing field, no messages at all: one problem each; the ids of the others do not move."""
    wrong = [{"name": "a", "messages": [{"message": 5}]}, {"name": "a"}, {"name": "a", "messages": []}]
    conversations, problems = load(write(tmp_path, *wrong, {"name": "b", "messages": TURNS}))
    assert [conversation.id for conversation in conversations] == ["film/test/3"]
    assert [(problem.place.line, problem.place.field) for problem in problems] == [
        (2, "messages[0].message"),
        (3, ""),
        (4, "messages"),
    ]


def test_what_stands_before_a_cut_is_read(tmp_path: Path) -> None:
    """A file that was cut off gives its whole dialogues and one problem."""
    file = write(tmp_path, {"name": "a", "messages": TURNS}, {"name": "b", "messages": TURNS})
    file.write_text(file.read_text()[:-30])
    conversations, [problem] = load(file)
    assert len(conversations) == 1
    assert "ends in the middle" in problem.what


def test_the_sample_recordings(recordings: Path) -> None:
    """450 dialogues in three files, found in their folder."""
    problems = Problems()
    batches = find([recordings / "kdconv-zh"], problems)
    assert [batch.reader for batch in batches] == [KdConv()] * 3
    conversations = list(read(batches, problems))
    assert not problems.errors
    assert len(conversations) == 450
    assert len({conversation.id for conversation in conversations}) == 450
    assert sum(len(conversation.messages) for conversation in conversations) == 9737
    assert sum(len(list(conversation.calls())) for conversation in conversations) == 4868
    assert (conversations[0].id, conversations[-1].id) == ("film/test/0", "travel/test/149")

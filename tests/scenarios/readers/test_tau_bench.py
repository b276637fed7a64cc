from __future__ import annotations

import json
from pathlib import Path

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import Batch, read
from ctxbench.scenarios.readers.trials import TauBench
from ctxbench.scenarios.source import Problems

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
TRIAL = {
    "task_id": 3,
    "trial": 1,
    "reward": 1.0,
    "info": {"task": {"instruction": "…"}},
    "traj": [
        {"role": "system", "content": "policy"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "found"},
        {"role": "assistant", "content": "done"},
    ],
}


def load(file: Path) -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    return list(read([Batch(TauBench(), (file,))], problems)), problems.errors


def write(folder: Path, *trials: object) -> Path:
    (folder / "run.json").write_text("[\n" + ",\n".join(json.dumps(trial) for trial in trials) + "\n]")
    return folder / "run.json"


def test_a_trial_becomes_a_conversation(tmp_path: Path) -> None:
    """Calls keep their arguments as they were written, results name their call, and the reward stands in meta."""
    [conversation], problems = load(write(tmp_path, TRIAL))
    assert not problems
    assert conversation.id == "run/3.1"
    assert [message.role for message in conversation.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert conversation.messages[2].calls[0].arguments == '{"q": 1}'
    assert conversation.messages[3].answers == "c1"
    assert conversation.meta["reward"] == 1.0
    assert list(conversation.calls()) == [2, 4]


def test_an_unknown_role_costs_its_own_trial_only(tmp_path: Path) -> None:
    """The problem names line and field, and the trials around it are read."""
    wrong = {**TRIAL, "traj": [{"role": "robot", "content": "hello"}]}
    conversations, [problem] = load(write(tmp_path, TRIAL, wrong, {**TRIAL, "trial": 2}))
    assert [conversation.id for conversation in conversations] == ["run/3.1", "run/3.2"]
    assert (problem.place.line, problem.place.field) == (3, "traj[0].role")
    assert "robot" in problem.what


def test_a_wrong_type_is_named_by_its_field(tmp_path: Path) -> None:
    """A number where text belongs is one problem with the path to it."""
    _, [problem] = load(write(tmp_path, {**TRIAL, "traj": [{"role": "user", "content": 5}]}))
    assert problem.place.field == "traj[0].content"


def test_a_result_without_a_call_is_refused(tmp_path: Path) -> None:
    """A tool result has to follow its call."""
    lone = {"role": "tool", "tool_call_id": "c9", "content": "found"}
    _, [problem] = load(write(tmp_path, {**TRIAL, "traj": [lone]}))
    assert "c9" in problem.what


def test_what_stands_before_a_cut_is_read(tmp_path: Path) -> None:
    """A file that was cut off gives its whole trials, and one problem."""
    file = write(tmp_path, TRIAL, {**TRIAL, "trial": 2})
    file.write_text(file.read_text()[:-40])
    conversations, [problem] = load(file)
    assert [conversation.id for conversation in conversations] == ["run/3.1"]
    assert "ends in the middle" in problem.what


def test_the_sample_recordings(recordings: Path) -> None:
    """The airline runs of gpt-4o: 50 tasks, 4 trials each."""
    conversations, problems = load(recordings / "tau-bench" / "gpt-4o-airline.json")
    assert not problems
    assert len(conversations) == 200
    assert len({conversation.meta["task"] for conversation in conversations}) == 50
    assert sum(len(conversation.messages) for conversation in conversations) == 5308
    assert sum(len(list(conversation.calls())) for conversation in conversations) == 2454
    assert sum(len(m.calls) for conversation in conversations for m in conversation.messages) == 1164
    assert (conversations[0].id, conversations[-1].id) == ("gpt-4o-airline/0.0", "gpt-4o-airline/49.3")

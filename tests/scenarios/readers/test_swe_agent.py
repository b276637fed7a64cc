"""SWE-agent trajectories: the history as it was, totals of a run, demonstrations that are no calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Call, Conversation, ToolCall
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.trials import SweAgent
from ctxbench.scenarios.source import Problems

CONFIG = {"agent": {"model": {"name": "gpt-4o", "api_key": None}}}


def turn(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "agent": "main", **fields}


def load(path: Path, *history: Any, **fields: Any) -> tuple[list[Conversation], Problems]:
    info = {"exit_status": "submitted", "model_stats": {"api_calls": 2, "tokens_sent": 0, "instance_cost": 0.5}}
    path.write_text(json.dumps({"trajectory": [], "history": history, "info": info, **fields}))
    assert isinstance(detect(path), SweAgent)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


@pytest.mark.parametrize("config", [CONFIG, json.dumps(CONFIG)])
def test_a_run(tmp_path: Path, config: Any) -> None:
    """Answers are calls of the configured model; a tool's message answers the calls that it names; totals are kept."""
    calls = [{"id": name, "function": {"name": "bash", "arguments": "{}"}} for name in ("c1", "c2")]
    [told], problems = load(
        tmp_path / "a__b-1.traj",
        turn("system", "Be careful."),
        turn("user", "Demonstration", is_demo=True),
        turn("assistant", "shown", is_demo=True),
        turn("user", [{"type": "text", "text": "Fix it."}]),
        turn("assistant", "Looking.", thought="Looking.", action="ls", tool_calls=calls),
        turn("tool", "a", tool_call_ids=["c1", "c2"]),
        turn("assistant", "Done"),
        replay_config=config,
    )
    assert not problems.errors
    assert (told.id, told.meta) == ("a__b-1", {"exit_status": "submitted", "api_calls": 2, "instance_cost": 0.5})
    assert [(m.id, m.role, m.text, m.answers) for m in told.messages] == [
        ("m0", "system", "Be careful.", None),
        ("m1", "user", "Demonstration", None),
        ("m2", "assistant", "shown", None),
        ("m3", "user", "Fix it.", None),
        ("m4", "assistant", "Looking.", None),
        ("m5", "tool", "a", "c1"),
        ("m5.1", "tool", "a", "c2"),
        ("m6", "assistant", "Done", None),
    ]
    assert told.messages[4].calls == (ToolCall("c1", "bash"), ToolCall("c2", "bash"))
    assert [m.call for m in told.messages if m.role == "assistant"] == [None, Call("gpt-4o"), Call("gpt-4o")]


def test_several_agents_are_several_conversations(tmp_path: Path) -> None:
    """The first agent has the instance's name, the others a name below it."""
    told, problems = load(
        tmp_path / "i.traj", turn("user", "One"), turn("user", "Two", agent="helper"), turn("assistant", "1")
    )
    assert not problems.errors
    assert [(one.id, len(one.messages)) for one in told] == [("i", 2), ("i/helper", 1)]
    assert told[1].meta == {"parent": "i"}


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (turn("oracle", "x"), "history[1].role", "unknown role 'oracle'"),
        (turn("user", 5), "history[1].content", "expected"),
        (turn("tool", "x", tool_call_ids=["c9"]), "history[1]", "tool result for 'c9'"),
    ],
)
def test_a_bad_message_is_one_clear_error(tmp_path: Path, bad: Any, field: str, what: str) -> None:
    """It is named by its field, and its neighbours are read."""
    [told], problems = load(tmp_path / "i.traj", turn("user", "one"), bad, turn("user", "two"))
    assert [m.text for m in told.messages] == ["one", "two"]
    [error] = problems.errors
    assert error.place.field == field
    assert what in error.what


def test_a_bad_configuration_costs_the_model_alone(tmp_path: Path) -> None:
    """It is one problem, and the messages are there."""
    [told], problems = load(tmp_path / "i.traj", turn("user", "one"), turn("assistant", "1"), replay_config="{")
    assert told.messages[1].call == Call("")
    [error] = problems.errors
    assert error.place.field == "replay_config"


# File: messages, calls, tool calls, tokens sent in total.
RUNS = {
    "ctf_i_got_id": (43, 21, 0, None),
    "marshmallow-1867_function-calling": (24, 11, 11, None),
    "pydicom-1458_gpt4": (26, 12, 0, 122_612),
}


@pytest.mark.parametrize("name", RUNS)
def test_recorded_runs(recordings: Path, name: str) -> None:
    """Three runs, two of them replays of demonstrations, which sent nothing."""
    problems = Problems()
    [told] = read(find([recordings / "swe-agent" / f"{name}.traj"], problems), problems)
    assert not problems.errors
    assert not problems.notes
    assert (
        len(told.messages),
        sum(m.call is not None for m in told.messages),
        sum(len(m.calls) for m in told.messages),
        told.meta.get("tokens_sent"),
    ) == RUNS[name]

"""ATIF trajectories: results stand in the step of their call, and history of other files is no call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Call, Compaction, Conversation, ToolCall, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.trials import Atif
from ctxbench.scenarios.source import Problems

START = 1_700_000_000
METRICS = {"prompt_tokens": 900, "completion_tokens": 40, "cached_tokens": 600, "cost_usd": 0.5}


def step(number: int, source: str, message: Any, **fields: Any) -> dict[str, Any]:
    stamp = f"2023-11-14T22:13:{20 + number}Z"
    return {"step_id": number, "source": source, "message": message, "timestamp": stamp, **fields}


def use(*names: str) -> list[dict[str, Any]]:
    return [{"tool_call_id": name, "function_name": "bash", "arguments": {"cmd": "ls"}} for name in names]


def results(*given: tuple[str | None, str]) -> dict[str, Any]:
    return {"results": [{"source_call_id": name, "content": text} for name, text in given]}


def trajectory(*steps: Any, **fields: Any) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "bash", "description": "Runs"}}
    agent = {"name": "terminus", "version": "1", "model_name": "openai/gpt-4o", "tool_definitions": [tool]}
    return {"schema_version": "ATIF-v1.6", "session_id": "s1", "agent": agent, "steps": steps, **fields}


def load(path: Path, recorded: Any) -> tuple[list[Conversation], Problems]:
    path.write_text(json.dumps(recorded))
    assert isinstance(detect(path), Atif)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def test_what_agents_put_among_the_extras(tmp_path: Path) -> None:
    """Stop reasons and tokens written for an hour are read from `extra`; a reason that is no text is passed over."""
    written = {"cache_creation_input_tokens": 90, "cache_creation": {"ephemeral_1h_input_tokens": 30}}
    [told], problems = load(
        tmp_path / "some.json",
        trajectory(
            step(0, "user", "Go."),
            step(1, "agent", "Yes.", metrics={**METRICS, "extra": written}, extra={"stop_reason": "end_turn"}),
            step(2, "agent", "And.", extra={"stop_reason": 7}),
        ),
    )
    assert not problems.errors
    assert told.messages[1].call == Call("gpt-4o", "openai", Usage(900, 40, 600, 90, 30, 0.5), stop="end_turn")
    assert told.messages[2].call == Call("gpt-4o", "openai")


def test_a_step_of_the_agent_is_a_call(tmp_path: Path) -> None:
    """Its results follow it; a cached prompt is part of the prompt; what was written stands among the extras."""
    [told], problems = load(
        tmp_path / "some.json",
        trajectory(
            step(0, "system", "Be short."),
            step(1, "user", [{"type": "text", "text": "List."}, {"type": "image", "source": {}}]),
            step(
                2,
                "agent",
                "Listing.",
                reasoning_content="hm",
                reasoning_effort="low",
                tool_calls=use("c1", "c2"),
                observation=results(("c1", "a"), ("c2", "b")),
                metrics={**METRICS, "extra": {"cache_creation_input_tokens": 200}},
            ),
            step(4, "agent", "Done", model_name="anthropic/claude", metrics=METRICS),
        ),
    )
    assert not problems.errors
    assert not problems.notes
    assert (told.id, told.meta) == ("s1", {"agent": "terminus"})
    assert [(m.role, m.text, m.answers, m.time) for m in told.messages] == [
        ("system", "Be short.", None, START),
        ("user", "List.", None, START + 1),
        ("assistant", "Listing.", None, START + 2),
        ("tool", "a", "c1", None),
        ("tool", "b", "c2", None),
        ("assistant", "Done", None, START + 4),
    ]
    said = told.messages[2]
    assert (said.thinking, said.calls[0]) == ("hm", ToolCall("c1", "bash", '{"cmd":"ls"}'))
    assert said.call == Call("gpt-4o", "openai", Usage(900, 40, 600, 200, cost=0.5), effort="low")
    assert told.messages[5].call == Call("claude", "anthropic", Usage(900, 40, 600, cost=0.5))
    assert len(told.messages[1].media) == 1
    assert [tool.name for tool in told.tools] == ["bash"]


def test_a_result_that_names_no_call(tmp_path: Path) -> None:
    """It answers the only call of its step; without one, or with several, it is a user's message."""
    [told], problems = load(
        tmp_path / "some.json",
        trajectory(
            step(1, "user", "Go"),
            step(2, "agent", "one", tool_calls=use("c1"), observation=results((None, "A"))),
            step(3, "agent", "none", observation=results((None, "B"))),
            step(4, "agent", "two", tool_calls=use("c2", "c3"), observation=results((None, "C"))),
        ),
    )
    assert not problems.errors
    assert [(m.role, m.text) for m in told.messages if m.role != "assistant"] == [
        *(("user", "Go"), ("tool", "A"), ("user", "B"), ("user", "C")),
    ]


def test_copied_context_is_no_call(tmp_path: Path) -> None:
    """Steps of another trajectory are messages; what they reported is counted there."""
    [told], problems = load(
        tmp_path / "some.json",
        trajectory(
            step(1, "user", "Go", is_copied_context=True),
            step(2, "agent", "one", metrics=METRICS, is_copied_context=True),
            step(3, "user", "On"),
            step(4, "agent", "two", metrics=METRICS),
            continued_trajectory_ref="next.json",
        ),
    )
    assert not problems.errors
    assert [m.call is not None for m in told.messages] == [False, False, False, True]
    assert told.meta["continued_in"] == "next.json"


def test_a_summary_by_other_agents_is_a_compaction(tmp_path: Path) -> None:
    """A system step that refers to their trajectories is no message; one that does not is counted."""
    started = {"results": [{"subagent_trajectory_ref": [{"session_id": "s2", "trajectory_path": "s2.json"}]}]}
    [told, other], problems = load(
        tmp_path / "some.json",
        trajectory(
            step(1, "user", "Go"),
            step(2, "agent", "one"),
            step(3, "system", "Summarised.", observation=started),
            step(4, "system", "Waiting."),
            step(5, "user", "In short: one"),
            subagent_trajectories=[trajectory(step(1, "user", "Sum up"), step(2, "agent", "one"), session_id="s2")],
        ),
    )
    assert not problems.errors
    assert told.compactions == (Compaction("m1", "Summarised.", time=START + 3, hidden="another trajectory has it"),)
    assert [m.text for m in told.messages] == ["Go", "one", "In short: one"]
    assert (other.id, other.meta["parent"], len(other.messages)) == ("s1/terminus", "s1", 2)
    [note] = problems.notes
    assert note.startswith("atif: step of the system behind the first answer: 1 not read")


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (step(2, "oracle", "x"), "steps[1].source", "unknown source 'oracle'"),
        (step(2, "agent", 5), "steps[1].message", "expected"),
        ({**step(2, "agent", "x"), "timestamp": "noon"}, "steps[1].timestamp", "'noon' is no time"),
        (step(2, "agent", "x", observation=results(("c9", "A"))), "steps[1]", "tool result for 'c9'"),
        (step(2, "agent", "x", metrics={"prompt_tokens": -1}), "steps[1].metrics.prompt_tokens", "-1 is no number"),
    ],
)
def test_a_bad_step_is_one_clear_error(tmp_path: Path, bad: Any, field: str, what: str) -> None:
    """It is named by its field, and its neighbours are read."""
    [told], problems = load(tmp_path / "some.json", trajectory(step(1, "user", "one"), bad, step(3, "user", "two")))
    assert [m.text for m in told.messages if m.role == "user"] == ["one", "two"]
    [error] = problems.errors
    assert error.place.field == field
    assert what in error.what


# File: messages, calls, tokens in, out, tool calls, compactions.
TRAJECTORIES = {
    "openhands": (7, 2, 220, 80, 2, 0),
    "terminus2_continuation": (7, 3, 2_252, 160, 0, 1),
    "terminus2_continuation_cont1": (12, 4, 4_250, 530, 0, 0),
    "terminus2_sub_answers": (9, 1, 700, 120, 2, 0),
    "terminus2_sub_questions": (2, 1, 100, 20, 0, 0),
    "terminus2_sub_summary": (7, 1, 500, 200, 2, 0),
    "terminus2_summarization": (16, 7, 6_502, 690, 7, 1),
    "terminus2_timeout": (7, 3, 882, 115, 3, 0),
}


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_recorded_trajectories(recordings: Path, name: str) -> None:
    """Eight trajectories; with those of the three agents that summarise, the sums are those of `final_metrics`."""
    problems = Problems()
    [told] = read(find([recordings / "atif" / f"harbor_{name}.json"], problems), problems)
    assert not problems.errors
    assert not problems.notes
    used = [m.call.usage for m in told.messages if m.call and m.call.usage]
    assert (
        len(told.messages),
        len(used),
        sum(one.input or 0 for one in used),
        sum(one.output or 0 for one in used),
        sum(len(m.calls) for m in told.messages),
        len(told.compactions),
    ) == TRAJECTORIES[name]

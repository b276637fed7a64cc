"""OpenHands 1: events in files of their own, actions of one response as one call, usage from the state beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Call, Compaction, Conversation, Tool, ToolCall, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.call_logs import LitellmLog
from ctxbench.scenarios.readers.openhands import OpenHands
from ctxbench.scenarios.source import Problems

START = 1_700_000_000


def event(second: int, kind: str, source: str = "agent", **fields: Any) -> dict[str, Any]:
    """An event of that second, whose id is the second as text."""
    return {"id": str(second), "timestamp": f"2023-11-14T22:13:{20 + second}", "source": source, "kind": kind, **fields}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def system(second: int = 0) -> dict[str, Any]:
    tools = [{"kind": "TerminalTool", "title": "terminal", "description": "Runs"}]
    about = {"system_prompt": text("You are OpenHands."), "dynamic_context": text("Skills: none")}
    return event(second, "SystemPromptEvent", **about, tools=tools)


def user(second: int, *words: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": [text(word) for word in words]}
    return event(second, "MessageEvent", "user", llm_message=message, **fields)


def said(second: int, words: str, response: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": [text(words)], "reasoning_content": "hm"}
    return event(second, "MessageEvent", llm_message=message, llm_response_id=response)


def action(second: int, name: str, response: str, *thought: str) -> dict[str, Any]:
    call = {"id": name, "name": "terminal", "arguments": '{"command": "ls"}', "origin": "completion"}
    thoughts = [text(word) for word in thought]
    return event(second, "ActionEvent", thought=thoughts, tool_call=call, tool_call_id=name, llm_response_id=response)


def result(second: int, name: str, words: str) -> dict[str, Any]:
    shown = {"content": [text(words)], "is_error": False, "kind": "TerminalObservation"}
    return event(second, "ObservationEvent", "environment", tool_call_id=name, tool_name="terminal", observation=shown)


def load(folder: Path, *events: Any, state: Any = None) -> tuple[list[Conversation], Problems]:
    """What is read of a conversation's folder."""
    files = folder / "c1" / "events"
    files.mkdir(parents=True)
    for at, one in enumerate(events):
        path = files / f"event-{at:05}-x.json"
        path.write_text(one if isinstance(one, str) else json.dumps(one))
    if state is not None:
        (folder / "c1" / "base_state.json").write_text(json.dumps(state))
    problems = Problems()
    return list(read(find([folder / "c1"], problems), problems)), problems


def test_a_command_is_read_as_the_model_reads_it(tmp_path: Path) -> None:
    """Folder, interpreter and exit code follow the output, and a failure stands before it, as the SDK writes them."""
    done = result(3, "t1", "hello")
    done["observation"]["metadata"] = {
        "exit_code": 1,
        "pid": -1,
        "working_dir": "/src",
        "py_interpreter_path": "/bin/python",
        "prefix": "",
        "suffix": "\n[The command completed with exit code 1.]",
    }
    done["observation"]["is_error"] = True
    [told], problems = load(tmp_path, system(), user(1, "Say hello."), action(2, "t1", "r1"), done)
    assert not problems.errors
    assert told.messages[-1].text == (
        "[An error occurred during execution.]\nhello\n[The command completed with exit code 1.]\n"
        "[Current working directory: /src]\n[Python interpreter: /bin/python]\n[Command finished with exit code 1]"
    )


def test_a_conversation(tmp_path: Path) -> None:
    """Actions of one response are one call; usage is found by its id; errors and refusals are results."""
    counts = {"model": "claude", "prompt_tokens": 900, "completion_tokens": 7, "cache_read_tokens": 600}
    usages = [{**counts, "response_id": "r1"}, {**counts, "response_id": "r9"}]
    failed = event(5, "AgentErrorEvent", tool_call_id="t2", tool_name="terminal", error="no such tool")
    refused = event(8, "UserRejectObservation", tool_call_id="t3", rejection_reason="not now")
    [told], problems = load(
        tmp_path,
        system(),
        user(1, "List.", extended_content=[text("Be careful.")]),
        event(2, "ConversationStateUpdateEvent", "environment", key="x", value=1),
        action(3, "t1", "r1", "Listing."),
        action(4, "t2", "r1"),
        failed,
        result(6, "t1", "a"),
        action(7, "t3", "r2"),
        refused,
        said(9, "Done", "r3"),
        state={"stats": {"usage_to_metrics": {"agent": {"token_usages": usages}}}},
    )
    assert not problems.errors
    assert not problems.notes
    assert told.id == "c1"
    assert [(m.role, m.text, m.answers) for m in told.messages] == [
        ("system", "You are OpenHands.\n\nSkills: none", None),
        ("user", "List.\nBe careful.", None),
        ("assistant", "Listing.", None),
        ("tool", "no such tool", "t2"),
        ("tool", "a", "t1"),
        ("assistant", "", None),
        ("tool", "not now", "t3"),
        ("assistant", "Done", None),
    ]
    first = told.messages[2]
    arguments = '{"command": "ls"}'
    assert first.calls == (ToolCall("t1", "terminal", arguments), ToolCall("t2", "terminal", arguments))
    assert first.call == Call("claude", usage=Usage(900, 7, 600), request_id="r1")
    assert first.time == START + 3
    assert [m.call.usage is None for m in told.messages if m.call] == [False, True, True]
    assert told.messages[7].thinking == "hm"
    assert told.tools == (Tool("terminal", "Runs"),)


def test_a_condensation_is_a_compaction(tmp_path: Path) -> None:
    """What follows the last forgotten event is kept, and the history stays complete."""
    [told], problems = load(
        tmp_path,
        system(),
        user(1, "One"),
        action(2, "t1", "r1"),
        result(3, "t1", "a"),
        said(4, "1", "r2"),
        event(5, "Condensation", "environment", forgotten_event_ids=["1", "2", "3"], summary="In short: a"),
        user(6, "Two"),
    )
    assert not problems.errors
    assert told.compactions == (Compaction("m4", "In short: a", "m4", time=START + 5),)
    assert len(told.messages) == 6


def test_what_is_unknown_is_counted(tmp_path: Path) -> None:
    """Events of another kind are notes by name."""
    _, problems = load(tmp_path, user(1, "One"), event(2, "SmellEvent"))
    [note] = problems.notes
    assert note.startswith("openhands: event of kind 'SmellEvent': 1 not read")


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (json.dumps(user(2))[:-1], "", "the JSON ends in the middle"),
        (event(2, "MessageEvent", llm_message={"role": "oracle"}), "llm_message.role", "unknown role 'oracle'"),
        (user(2) | {"timestamp": "noon"}, "timestamp", "'noon' is no time"),
        (event(2, "ActionEvent", tool_call=5), "tool_call", "expected object"),
        (result(2, "t9", "x"), "", "tool result for 't9'"),
    ],
)
def test_a_bad_event_is_one_clear_error(tmp_path: Path, bad: Any, field: str, what: str) -> None:
    """It is named by its file and field, and its neighbours are read."""
    [told], problems = load(tmp_path, user(1, "one"), bad, user(3, "two"))
    assert [m.text for m in told.messages] == ["one", "two"]
    [error] = problems.errors
    assert error.place.file.endswith("event-00001-x.json")
    assert error.place.field == field
    assert what in error.what


def test_a_damaged_state_costs_the_usage_alone(tmp_path: Path) -> None:
    """It is one problem, and the conversation is there."""
    [told], problems = load(tmp_path, user(1, "one"), said(2, "1", "r1"), state={"stats": 5})
    assert len(told.messages) == 2
    [error] = problems.errors
    assert error.place.field == "stats"


# Folder: messages, calls, tool calls.
CONVERSATIONS = {
    "cli447_hi_followup_iterative_case_a": (14, 6, 3),
    "confirmation_mode": (13, 6, 3),
    "simple_echo_hello_world": (5, 2, 1),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_recorded_conversations(recordings: Path, name: str) -> None:
    """Three recorded conversations; their state, which has the usage, was not published."""
    folder = recordings / "openhands-v1-events" / name
    assert isinstance(detect(next(folder.iterdir())), OpenHands)
    problems = Problems()
    [told] = read(find([folder], problems), problems)
    assert not problems.errors
    assert not problems.notes
    calls = [m.call for m in told.messages if m.call]
    assert (len(told.messages), len(calls), sum(len(m.calls) for m in told.messages)) == CONVERSATIONS[name]
    assert all(call.usage is None for call in calls)


def test_recorded_requests_of_the_same_sdk(recordings: Path) -> None:
    """Logs of requests are another format: six calls of one conversation, with usage and cost."""
    folder = recordings / "openhands-v1-llm-logs"
    assert isinstance(detect(next(folder.glob("*.json"))), LitellmLog)
    problems = Problems()
    [told] = read(find([folder], problems), problems)
    assert not problems.errors
    used = [m.call.usage for m in told.messages if m.call and m.call.usage]
    assert [one.input for one in used] == [4_812, 5_002, 6_123, 6_277, 6_485, 6_729]
    assert [one.cost for one in used] == pytest.approx([0.016626, 0.016431, 0.020169, 0.020796, 0.02115, 0.023172])
    assert (len(told.messages), len(told.tools)) == (13, 3)

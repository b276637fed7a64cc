"""GitHub Copilot CLI sessions: rows of one call are one answer; agents that a tool call started stand apart."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Call, Compaction, Conversation, ToolCall, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.copilot_cli import CopilotCli
from ctxbench.scenarios.source import Problems

START = 1_700_000_000
NAMES = count()


def row(second: int, kind: str, **data: Any) -> dict[str, Any]:
    about = {"id": f"i{next(NAMES)}", "parentId": None, "timestamp": f"2023-11-14T22:13:{20 + second}.000Z"}
    return {"type": kind, "data": data, **about}


def user(second: int, content: str, **data: Any) -> dict[str, Any]:
    return row(second, "user.message", content=content, **data)


def said(second: int, content: str, call: str, *requests: Any, **data: Any) -> dict[str, Any]:
    return row(second, "assistant.message", content=content, model="gpt", apiCallId=call, toolRequests=requests, **data)


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"toolCallId": name, "name": "task", "arguments": arguments, "type": "function"}


def done(second: int, name: str, **data: Any) -> dict[str, Any]:
    return row(second, "tool.execution_complete", toolCallId=name, **{"success": True, **data})


def load(path: Path, *rows: Any) -> tuple[list[Conversation], Problems]:
    start = row(0, "session.start", sessionId="s1", copilotVersion="1.0")
    path.write_text("\n".join(json.dumps(one) for one in [start, *rows]))
    assert isinstance(detect(path), CopilotCli)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def test_rows_of_one_call_are_one_answer(tmp_path: Path) -> None:
    """Texts and tool calls of all its rows, the tokens of the last; prompts as they are sent; errors are results."""
    [told], problems = load(
        tmp_path / "events.jsonl",
        row(0, "session.model_change", newModel="gpt", reasoningEffort="high"),
        row(0, "system.message", role="system", content="You are Copilot."),
        user(1, "Look", transformedContent="<now>\n\nLook"),
        row(1, "hook.start", hookType="x"),
        row(2, "assistant.turn_start", turnId="0"),
        said(3, "Looking.", "a1", use("t1"), turnId="0"),
        said(4, "More.", "a1", use("t2"), turnId="0", outputTokens=30, reasoningText="hm"),
        done(5, "t1", result={"content": "A", "detailedContent": "long"}),
        done(6, "t2", success=False, error={"message": "no b"}),
        row(7, "system.message", role="system", content="You are Copilot."),
        said(8, "Done", "a2", outputTokens=5),
    )
    assert not problems.errors
    assert not problems.notes
    assert (told.id, told.meta) == ("s1", {"version": "1.0"})
    assert [(m.role, m.text, m.time) for m in told.messages] == [
        ("system", "You are Copilot.", START),
        ("user", "<now>\n\nLook", START + 1),
        ("assistant", "Looking.\nMore.", START + 4),
        ("tool", "A", START + 5),
        ("tool", "no b", START + 6),
        ("assistant", "Done", START + 8),
    ]
    first = told.messages[2]
    assert (first.calls, first.thinking) == ((ToolCall("t1", "task"), ToolCall("t2", "task")), "hm")
    assert first.call == Call("gpt", usage=Usage(output=30), started=START + 2, effort="high")


def test_an_agent_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    """It begins with the prompt of the call that started it."""
    main, agent = load(
        tmp_path / "events.jsonl",
        user(1, "Go"),
        said(2, "", "a1", use("t1", prompt="Find it.")),
        row(2, "subagent.started", toolCallId="t1", agentName="explore"),
        said(3, "", "b1", use("t2"), parentToolCallId="t1"),
        done(4, "t2", result={"content": "B"}, parentToolCallId="t1"),
        said(5, "Found", "b2", parentToolCallId="t1"),
        done(6, "t1", result={"content": "Found"}),
    )[0]
    assert [m.text for m in main.messages] == ["Go", "", "Found"]
    assert (agent.id, agent.meta["parent"]) == ("s1/explore", "s1")
    assert [(m.role, m.text) for m in agent.messages] == [
        *(("user", "Find it."), ("assistant", ""), ("tool", "B"), ("assistant", "Found")),
    ]


def test_a_compaction(tmp_path: Path) -> None:
    """One that succeeded replaces what stands before it; one that failed does not."""
    done_row = {"preCompactionTokens": 900, "summaryContent": "In short"}
    [told], problems = load(
        tmp_path / "events.jsonl",
        user(1, "One"),
        row(2, "session.compaction_start"),
        row(3, "session.compaction_complete", success=True, **done_row),
        row(4, "session.compaction_complete", success=False),
        user(5, "Two"),
    )
    assert not problems.errors
    assert told.compactions == (Compaction("m0", "In short", None, 900, START + 3),)


@pytest.mark.parametrize(
    ("counts", "call"),
    [
        ({"input": 900, "output": 70, "cachedInput": 600}, Call(usage=Usage(900, 70, 600))),
        ({"inputTokens": 900, "outputTokens": 70, "model": "gpt"}, Call("gpt", usage=Usage(900, 70))),
    ],
)
def test_the_call_of_a_compaction(tmp_path: Path, counts: dict[str, object], call: Call) -> None:
    """Both names of its tokens mean the whole prompt; a summary that is not recorded is hidden."""
    [told], problems = load(
        tmp_path / "events.jsonl",
        user(1, "One"),
        row(3, "session.compaction_complete", success=True, compactionTokensUsed=counts),
    )
    assert not problems.errors
    assert told.compactions == (Compaction("m0", "", time=START + 3, hidden="it is not recorded", call=call),)


def test_what_is_unknown_is_counted(tmp_path: Path) -> None:
    """Rows of another type are notes by name."""
    _, problems = load(tmp_path / "events.jsonl", user(1, "One"), row(2, "smell.sensed"))
    [note] = problems.notes
    assert note.startswith("copilot_cli: row of type 'smell.sensed': 1 not read")


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (user(2, "x") | {"timestamp": "noon"}, "timestamp", "invalid RFC3339"),
        (row(2, "user.message", content=5), "data.content", "expected str"),
        (done(2, "t9", result={"content": "x"}), "data", "tool result for 't9'"),
        (said(2, "x", "a1", outputTokens=-1), "data.outputTokens", "-1 is no number"),
    ],
)
def test_a_bad_row_is_one_clear_error(tmp_path: Path, bad: Any, field: str, what: str) -> None:
    """It is named by line and field, and its neighbours are read."""
    [told], problems = load(tmp_path / "events.jsonl", user(1, "one"), bad, user(3, "two"))
    assert [m.text for m in told.messages if m.role == "user"] == ["one", "two"]
    [error] = problems.errors
    assert (error.place.line, error.place.field) == (3, field)
    assert what in error.what


def test_a_recorded_session(recordings: Path) -> None:
    """29 calls in 35 rows, to the token."""
    problems = Problems()
    [told] = read(find([recordings / "copilot-cli"], problems), problems)
    assert not problems.errors
    [note] = problems.notes
    assert note.startswith("copilot_cli: row of type 'system.notification': 1 not read")
    calls = [m.call for m in told.messages if m.call]
    assert (len(calls), sum((call.usage and call.usage.output) or 0 for call in calls)) == (29, 18_112)
    assert (sum(m.role == "user" for m in told.messages), sum(len(m.calls) for m in told.messages)) == (4, 108)
    assert {call.model for call in calls} == {"gpt-5.6-sol"}

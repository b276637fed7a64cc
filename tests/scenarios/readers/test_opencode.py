"""OpenCode sessions, as an export, as tables and as a storage folder: the same conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Call, Compaction, Conversation, ToolCall, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.opencode import OpenCode
from ctxbench.scenarios.source import Problems

START = 1_700_000_000
TOKENS = {"input": 100, "output": 5, "reasoning": 2, "cache": {"read": 600, "write": 300}}
SESSION = {"id": "ses_1", "projectID": "p", "directory": "/a", "version": "1.1", "time": {"created": START * 1000}}


def ms(second: float) -> float:
    return (START + second) * 1000


def user(second: float, *parts: Any) -> dict[str, Any]:
    return {"info": {"role": "user", "time": {"created": ms(second)}, "summary": {"diffs": []}}, "parts": parts}


def said(second: float, *parts: Any, **info: Any) -> dict[str, Any]:
    time = {"created": ms(second), "completed": ms(second + 2)}
    return {"info": {"role": "assistant", "modelID": "m", "providerID": "p", "time": time, **info}, "parts": parts}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def tool(name: str, status: str, start: float, **state: Any) -> dict[str, Any]:
    times = {"start": ms(start), "end": ms(start + 0.5)}
    return {
        "type": "tool",
        "callID": name,
        "tool": "read",
        "state": {"status": status, "input": {}, "time": times, **state},
    }


def finish(tokens: Any = TOKENS, reason: str = "stop") -> dict[str, Any]:
    return {"type": "step-finish", "reason": reason, "tokens": tokens, "cost": 0.5}


def as_export(folder: Path, session: dict[str, Any], messages: list[Any]) -> None:
    (folder / "some.json").write_text(json.dumps({"info": session, "messages": messages}))


def as_tables(folder: Path, session: dict[str, Any], messages: list[Any]) -> None:
    """Rows of the three tables, and one of what the screen shows."""
    row = {"session_id": session["id"], "time_created": 1}
    infos, parts = [], []
    for at, one in enumerate(messages):
        infos.append({**row, "id": f"msg_{at}", "data": json.dumps(one["info"])})
        for number, part in enumerate(one["parts"]):
            about = {**row, "id": f"prt_{at}{number}", "message_id": f"msg_{at}"}
            parts.append({**about, "data": json.dumps(part)})
    head = {"id": session["id"], "project_id": "p", "directory": "/a", "version": session["version"], "time_created": 1}
    shown = {**row, "id": "msg_9", "type": "agent-switched", "seq": 1, "data": "{}"}
    rows = {"sessions": [head], "messages": infos, "parts": parts, "session_messages": [shown]}
    for name, table in rows.items():
        (folder / f"{name}.json").write_text(json.dumps(table))


def as_storage(folder: Path, session: dict[str, Any], messages: list[Any]) -> None:
    def write(value: Any, *path: str) -> None:
        file = folder.joinpath("storage", *path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))

    write(session, "session", "p", f"{session['id']}.json")
    for at, one in enumerate(messages):
        write(one["info"], "message", session["id"], f"msg_{at}.json")
        for number, part in enumerate(one["parts"]):
            write(part, "part", f"msg_{at}", f"prt_{at}{number}.json")


FORMS = {"export": as_export, "tables": as_tables, "storage": as_storage}


def load(folder: Path, form: str, *messages: Any, **session: Any) -> tuple[Conversation, Problems]:
    FORMS[form](folder, {**SESSION, **session}, list(messages))
    assert all(isinstance(detect(path), OpenCode) for path in folder.rglob("*.json"))
    problems = Problems()
    [told] = read(find([folder], problems), problems)
    return told, problems


@pytest.mark.parametrize("form", FORMS)
def test_a_session(tmp_path: Path, form: str) -> None:
    """A step is a call, and results of its tools follow it; a message of older versions has several steps."""
    told, problems = load(
        tmp_path,
        form,
        user(0, text("Read a and b"), text("Not sent", ignored=True), {"type": "file", "mime": "image/png"}),
        said(
            1,
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm"},
            text("Reading."),
            tool("t1", "completed", 2, output="A"),
            tool("t2", "error", 3, error="no b"),
            tool("t3", "running", 3),
            finish(reason="tool-calls"),
            {"type": "step-start"},
            text("Done"),
            finish(dict.fromkeys(("input", "output", "reasoning"), 0)),
            {"type": "patch"},
            system=["You are OpenCode."],
        ),
    )
    assert not problems.errors
    assert not problems.notes
    assert not problems.ignored
    assert (told.id, told.meta) == ("ses_1", {"version": "1.1"})
    assert [(m.role, m.text, m.answers, m.time) for m in told.messages] == [
        ("system", "You are OpenCode.", None, None),
        ("user", "Read a and b", None, START),
        ("assistant", "Reading.", None, START + 3),
        ("tool", "A", "t1", None),
        ("tool", "no b", "t2", START + 3.5),
        ("assistant", "Done", None, None),
    ]
    first, last = told.messages[2], told.messages[5]
    assert (first.calls[0], first.thinking) == (ToolCall("t1", "read"), "hm")
    used = Usage(1000, 7, 600, 300, cost=0.5, reasoning=2)
    assert first.call == Call("m", "p", used, START + 1, stop="tool-calls")
    assert last.call == Call("m", "p", Usage(cost=0.5), stop="stop")


def test_a_summary_is_a_compaction(tmp_path: Path) -> None:
    """Neither the request for it nor the summary is a message; its prompt was the whole context, and it has a call."""
    told, problems = load(
        tmp_path,
        "export",
        user(0, text("One")),
        said(1, text("1"), finish()),
        user(4, {"type": "compaction", "auto": True}),
        said(5, text("In short: 1"), finish(), summary=True),
        user(9, text("Two")),
    )
    assert not problems.errors
    assert [m.text for m in told.messages] == ["One", "1", "Two"]
    call = Call("m", "p", Usage(1000, 7, 600, 300, cost=0.5, reasoning=2), START + 5)
    assert told.compactions == (Compaction("m1", "In short: 1", None, 1000, START + 7, call=call),)


def test_a_session_of_another(tmp_path: Path) -> None:
    """A session that another one started has it as its parent; a call that failed has no usage."""
    told, _ = load(tmp_path, "storage", user(0, text("Go")), said(1, error={"name": "APIError"}), parentID="ses_0")
    assert told.meta["parent"] == "ses_0"
    assert told.messages[1].call == Call("m", "p", started=START + 1, stop="error", error="APIError")


def test_what_is_unknown_is_counted(tmp_path: Path) -> None:
    """Parts of another type are notes by name."""
    _, problems = load(tmp_path, "export", user(0, text("Go"), {"type": "smell"}))
    assert problems.notes == [
        f"opencode: part of type 'smell': 1 not read ({tmp_path / 'some.json'}:1: messages[0].parts[1])"
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        ({"info": {"role": "oracle"}, "parts": []}, "role", "unknown role 'oracle'"),
        ({"info": {"role": 5}, "parts": []}, "role", "expected str"),
        (user(1, {"type": "text", "text": 5}), "text", "expected str"),
        (said(1, finish({"input": -1})), "tokens.input", "-1 is no number"),
    ],
)
def test_a_bad_part_is_one_clear_error(tmp_path: Path, form: str, bad: Any, field: str, what: str) -> None:
    """It is named by its field, and its neighbours are read."""
    told, problems = load(tmp_path, form, user(0, text("one")), bad, user(3, text("two")))
    assert [m.text for m in told.messages if m.role == "user" and m.text] == ["one", "two"]
    [error] = problems.errors
    assert error.place.field.endswith(field)
    assert what in error.what


def test_a_part_without_its_message(tmp_path: Path) -> None:
    """A row that is left over is one error."""
    as_tables(tmp_path, SESSION, [user(0, text("one")), user(1, text("two"))])
    rows = json.loads((tmp_path / "messages.json").read_text())
    (tmp_path / "messages.json").write_text(json.dumps(rows[:1]))
    problems = Problems()
    [told] = read(find([tmp_path], problems), problems)
    assert [m.text for m in told.messages] == ["one"]
    [error] = problems.errors
    assert "a part of 'msg_1', which is not among the messages" in error.what


# Folder: calls, usage, tool calls.
SESSIONS = {
    "khala-head-to-head-gem": (8, 0, 23),
    "khala-internal-dogfood": (5, 0, 11),
    "opencode-usage-audit-inventory": (5, 0, 18),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_recorded_sessions(recordings: Path, name: str) -> None:
    """Three sessions whose provider sent no usage: zeros are no counts."""
    problems = Problems()
    [told] = read(find([recordings / "opencode" / name], problems), problems)
    assert not problems.errors
    assert not problems.notes
    calls = [m.call for m in told.messages if m.call]
    used = [call.usage for call in calls if call.usage]
    assert (len(calls), len(used), sum(len(m.calls) for m in told.messages)) == SESSIONS[name]
    assert sum(m.role == "tool" for m in told.messages) == SESSIONS[name][2]
    assert {call.model for call in calls} == {"openagents/khala"}

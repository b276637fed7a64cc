"""Gemini CLI sessions: a reply with the results of its tools in it, and thoughts that are billed as output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Call, Conversation, ToolCall, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.gemini import GeminiCli
from ctxbench.scenarios.source import Problems

START = 1_700_000_000
TOKENS = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 0, "total": 112}


def message(second: int, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    """A message written at 22:13:20 plus so many seconds."""
    stamp = f"2023-11-14T22:13:{20 + second}.000Z"
    return {"id": f"i{second}", "timestamp": stamp, "type": kind, "content": content, **fields}


def reply(second: int, content: Any, tokens: Any = TOKENS, **fields: Any) -> dict[str, Any]:
    return message(second, "gemini", content, model="gemini-2.5-flash", tokens=tokens, **fields)


def load(path: Path, *messages: object) -> tuple[Conversation, Problems]:
    path.write_text(json.dumps({"sessionId": "s1", "projectHash": "h", "messages": messages}))
    assert isinstance(detect(path), GeminiCli)
    problems = Problems()
    [conversation] = read(find([path], problems), problems)
    return conversation, problems


def test_the_results_of_a_reply_follow_it(tmp_path: Path) -> None:
    """Tool calls stand in the reply, their results are messages behind it; thoughts are thinking and output."""
    answered = [{"functionResponse": {"id": "t1", "response": {"output": "A"}}}]
    failed = [{"functionResponse": {"id": "t2", "response": {"error": "no b"}}}]
    stamp = "2023-11-14T22:13:24.000Z"
    calls = [
        {"id": "t1", "name": "read_file", "args": {"path": "a"}, "result": answered, "timestamp": stamp},
        {"id": "t2", "name": "read_file", "args": {"path": "b"}, "result": failed},
        {"id": "t3", "name": "read_file", "args": {}, "status": "cancelled"},
    ]
    chat, problems = load(
        tmp_path / "s.json",
        message(1, "user", "Read a and b"),
        message(1, "info", "Update available"),
        reply(3, "", toolCalls=calls, thoughts=[{"subject": "Read", "description": "both"}]),
        reply(5, [{"text": "Done"}, "."]),
    )
    assert not problems.errors
    assert not problems.notes
    assert [(m.role, m.text, m.answers, m.time) for m in chat.messages] == [
        ("user", "Read a and b", None, START + 1),
        ("assistant", "", None, START + 3),
        ("tool", "A", "t1", START + 4),
        ("tool", "no b", "t2", None),
        ("assistant", "Done\n.", None, START + 5),
    ]
    said = chat.messages[1]
    assert said.calls[0] == ToolCall("t1", "read_file", '{"path":"a"}')
    assert said.thinking == "Read\nboth"
    assert said.call == Call("gemini-2.5-flash", usage=Usage(100, 12, 60, reasoning=7))


def test_zeros_are_no_usage(tmp_path: Path) -> None:
    """A reply whose tokens are all zero reported nothing."""
    chat, problems = load(tmp_path / "s.json", message(1, "user", "Go"), reply(2, "x", dict.fromkeys(TOKENS, 0)))
    assert chat.messages[1].call == Call("gemini-2.5-flash")
    assert not problems.errors


def test_what_is_unknown_is_counted(tmp_path: Path) -> None:
    """Messages and parts of another kind are notes by name; files are counted as images."""
    parts = [{"text": "See"}, {"inlineData": {"mimeType": "image/png"}}, {"smell": 1}]
    chat, problems = load(tmp_path / "s.json", message(1, "user", parts), message(2, "oracle", "hm"))
    assert (chat.messages[0].text, len(chat.messages[0].media), len(chat.messages)) == ("See", 1, 1)
    path = tmp_path / "s.json"
    assert problems.notes == [
        f"gemini: part without a text, a call, a result or a file: 1 not read ({path}:1: messages[0].content)",
        f"gemini_cli: message of type 'oracle': 1 not read ({path}:1: messages[1])",
    ]


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (message(2, "user", 5), "messages[1].content", "expected"),
        (message(2, "user", [{"text": 5}]), "messages[1].content[0].text", "expected str | null, got int"),
        ({**message(2, "user", "x"), "timestamp": "noon"}, "messages[1].timestamp", "invalid RFC3339"),
        (reply(2, "x", tokens={"input": "many"}), "messages[1].tokens.input", "expected int, got str"),
    ],
)
def test_a_bad_message_is_one_clear_error(tmp_path: Path, bad: object, field: str, what: str) -> None:
    """A bad message is named by its field, and its neighbours are read."""
    chat, problems = load(tmp_path / "s.json", message(1, "user", "one"), bad, message(3, "user", "two"))
    assert [m.text for m in chat.messages if m.role == "user"] == ["one", "two"]
    [error] = problems.errors
    assert error.place.field == field
    assert what in error.what


# File: calls, calls that read, tokens in, read from the cache, out with thoughts, tool calls.
SESSIONS = {
    "12cbfeaa512b": (4, 3, 48_965, 35_330, 70 + 232, 2),
    "9c53780d06b7": (6, 5, 62_895, 50_471, 309 + 464, 4),
    "ab2b9748b105": (11, 10, 131_375, 113_854, 717 + 1_095, 9),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_recorded_sessions(recordings: Path, name: str) -> None:
    """Three recorded sessions, to the token; two of their replies reported zeros, which are no usage."""
    problems = Problems()
    [chat] = read(find([recordings / "gemini-cli" / f"session-{name}.json"], problems), problems)
    assert not problems.errors
    assert not problems.notes
    used = [m.call.usage for m in chat.messages if m.call and m.call.usage]
    assert (
        sum(m.call is not None for m in chat.messages),
        sum(bool(one.cache_read) for one in used),
        sum(one.input or 0 for one in used),
        sum(one.cache_read or 0 for one in used),
        sum(one.output or 0 for one in used),
        sum(len(m.calls) for m in chat.messages),
    ) == SESSIONS[name]
    assert {m.call.model for m in chat.messages if m.call} == {"gemini-2.5-flash"}

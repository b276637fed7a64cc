"""Claude Code sessions: lines of one response are one message, and only the branch to the last line counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.claude_code import ClaudeCode
from ctxbench.scenarios.readers.requests import response_usage
from ctxbench.scenarios.source import Problems

START = 1_700_000_000


def line(second: int, kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    """A line written at 22:13:20 plus so many seconds."""
    minutes, rest = divmod(20 + second, 60)
    stamp = f"2023-11-14T22:{13 + minutes:02}:{rest:02}.000Z"
    ids = {"uuid": uuid, "parentUuid": parent, "sessionId": "s1", "isSidechain": False, "cwd": "/home/someone"}
    return {"type": kind, **ids, "timestamp": stamp, **fields}


def user(second: int, uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    return line(second, "user", uuid, parent, message={"role": "user", "content": content}, **fields)


def said(
    second: int, uuid: str, parent: str, response: str, block: Any, output: int = 1, **fields: Any
) -> dict[str, Any]:
    usage = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15},
        "output_tokens": output,
    }
    message = {"id": f"msg_{response}", "role": "assistant", "model": "opus", "content": [block], "usage": usage}
    return line(second, "assistant", uuid, parent, requestId=f"req_{response}", message=message, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {"path": "a"}}


def result(name: str, words: str = "R") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": words}


def load(path: Path, *lines: object) -> tuple[list[Conversation], list[RecordingError]]:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    assert isinstance(detect(path), ClaudeCode)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems.errors


def test_lines_of_one_response_are_one_message(tmp_path: Path) -> None:
    """Three lines with one requestId are one message in order, with the last line's usage and time."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    [chat], found = load(
        tmp_path / "s.jsonl",
        {"type": "summary", "summary": "A title", "leafUuid": "z"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        user(1, "u1", None, "Go"),
        said(2, "a1", "u1", "1", thinking),
        said(3, "a2", "a1", "1", text("Reading.")),
        said(4, "a3", "a2", "1", use("t1"), output=50),
        user(5, "u2", "a3", [result("t1")]),
        said(6, "a4", "u2", "2", text("Done.")),
    )
    assert not found
    assert [(m.id, m.role, m.text) for m in chat.messages] == [
        ("u1", "user", "Go"),
        ("a1", "assistant", "Reading."),
        ("u2", "tool", "R"),
        ("a4", "assistant", "Done."),
    ]
    answer = chat.messages[1]
    assert (answer.thinking, answer.calls[0].id, answer.time) == ("hm", "t1", START + 4)
    assert answer.call is not None
    assert answer.call.usage == Usage(input=321, output=50, cache_read=300, cache_write=20, cache_write_1h=15)
    assert (chat.id, chat.meta) == ("s1", {"off_branch": 0})
    assert b"/home/someone" not in chat.to_json().replace(str(tmp_path).encode(), b"")


def test_results_of_parallel_calls_are_on_the_branch(tmp_path: Path) -> None:
    """Each result hangs on its own call's line; all of them belong to the conversation, after the one answer."""
    [chat], found = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "Go"),
        said(2, "a1", "u1", "1", use("t1")),
        user(3, "u2", "a1", [result("t1", "first")]),
        said(4, "a2", "a1", "1", use("t2")),
        user(5, "u3", "a2", [result("t2", "second")]),
        said(6, "a3", "u3", "2", text("Done.")),
    )
    assert not found
    assert [m.text for m in chat.messages] == ["Go", "", "first", "second", "Done."]
    assert [call.id for call in chat.messages[1].calls] == ["t1", "t2"]
    assert [m.time for m in chat.messages] == [START + 1, START + 4, None, START + 5, START + 6]


def test_what_a_rewind_left_behind_is_counted(tmp_path: Path) -> None:
    """Only the branch to the last line is the conversation."""
    [chat], _ = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "one"),
        said(2, "a1", "u1", "1", text("1")),
        user(3, "u2", "a1", "dropped"),
        said(4, "a2", "u2", "2", text("dropped")),
        user(5, "u3", "a1", "two"),
        said(6, "a3", "u3", "3", text("2")),
    )
    assert [message.text for message in chat.messages] == ["one", "1", "two", "2"]
    assert chat.meta == {"off_branch": 2}


def test_a_folder_of_agents_files(tmp_path: Path) -> None:
    """A session and its agents in a folder of their own are conversations of one run, by their ids."""
    side: dict[str, Any] = {"isSidechain": True, "agentId": "ag"}
    (tmp_path / "s1" / "subagents").mkdir(parents=True)
    session = [user(1, "u1", None, "Go"), said(2, "a1", "u1", "1", text("ok"))]
    agent = [user(1, "x1", None, "Look", **side), said(2, "x2", "x1", "x", text("ok"), **side)]
    (tmp_path / "s1.jsonl").write_text("\n".join(map(json.dumps, session)))
    (tmp_path / "s1" / "subagents" / "agent-ag.jsonl").write_text("\n".join(map(json.dumps, agent)))
    problems = Problems()
    chats = list(read(find([tmp_path], problems), problems))
    assert not problems.errors
    assert {(chat.id, chat.meta.get("parent")) for chat in chats} == {("s1", None), ("s1/ag", "s1")}


@pytest.mark.parametrize("shape", ["one root each", "agents", "lost parents", "one chain"])
def test_many_lines_of_agents(tmp_path: Path, shape: str) -> None:
    """20,000 lines of agents are read in time that grows with their number, however they hang together."""
    side: dict[str, Any] = {"isSidechain": True}
    number = 20_000
    parents = {"one root each": None, "agents": None, "lost parents": "nowhere", "one chain": ""}
    lines = [user(1, "u1", None, "Go"), said(2, "a1", "u1", "1", text("ok"))]
    for at in range(number):
        parent = parents[shape] if shape != "one chain" or not at else f"x{at - 1}"
        named = {"agentId": f"g{at % 5_000}"} if shape == "agents" else {}
        lines.append(user(3, f"x{at}", parent or None, "Look", **side, **named))
    chats, found = load(tmp_path / "s.jsonl", *lines)
    assert not found
    conversations = {"one root each": number, "agents": 5_000, "lost parents": 1, "one chain": 1}
    assert len(chats) == 1 + conversations[shape]
    # an agent's lines without parents are branches of which the last one counts
    assert sum(len(chat.messages) for chat in chats[1:]) == (5_000 if shape == "agents" else number)


ADVISED = {
    "input_tokens": 2,
    "cache_read_input_tokens": 219,
    "cache_creation_input_tokens": 30,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 30},
    "output_tokens": 70,
    "iterations": [
        {"type": "message", "input_tokens": 1, "cache_read_input_tokens": 109, "output_tokens": 30},
        {"type": "advisor_message", "model": "claude-opus-5", "input_tokens": 500, "output_tokens": 9},
        {
            "type": "message",
            "input_tokens": 1,
            "cache_read_input_tokens": 110,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 30},
            "output_tokens": 40,
        },
    ],
}


def test_a_response_of_several_requests(tmp_path: Path) -> None:
    """The call has the prompt of the last one and the output of all; each is billed, an advisor's under its model."""
    answer = said(2, "a1", "u1", "1", text("ok"))
    answer["message"]["usage"] = ADVISED
    [chat], found = load(tmp_path / "s.jsonl", user(1, "u1", None, "Go"), answer)
    assert not found
    call = chat.messages[1].call
    assert call is not None
    assert call.usage == Usage(input=141, output=70, cache_read=110, cache_write=30, cache_write_1h=30)
    assert [(model, used.input, used.output) for model, used in call.billed] == [
        ("opus", 110, 30),
        ("claude-opus-5", 500, 9),
        ("opus", 141, 40),
    ]


def test_a_compaction_on_demand() -> None:
    """The provider's example (D1): zeros for the response, and one iteration of 144 tokens read and 276 written."""
    part = {"type": "compaction", "input_tokens": 144, "output_tokens": 276}
    used, iterations = response_usage(
        {"input_tokens": 0, "output_tokens": 0, "iterations": [part]}, Place("answer.json"), Problems()
    )
    assert (used, iterations) == (Usage(144, 276), ())


def test_one_line_of_the_future(tmp_path: Path) -> None:
    """A time that is wrong costs that line its time, not all that come after it."""
    [chat], _ = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "Go"),
        said(500, "a1", "u1", "1", text("x")),
        user(3, "u2", "a1", "On"),
        said(4, "a2", "u2", "2", text("y")),
    )
    assert [m.time for m in chat.messages] == [START + 1, None, START + 3, START + 4]

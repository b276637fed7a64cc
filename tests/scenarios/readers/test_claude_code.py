"""Claude Code sessions: lines of one response are one message, and only the branch to the last line counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Compaction, Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.claude_code import ClaudeCode
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


def test_a_line_with_several_results_is_several_messages(tmp_path: Path) -> None:
    """Results of one line become tool messages, the text after them a user's, images are counted, meta lines kept."""
    image = {"type": "image", "source": {"data": "…"}}
    [chat], _ = load(
        tmp_path / "s.jsonl",
        user(1, "u0", None, "caveat", isMeta=True),
        said(2, "a1", "u0", "1", use("t1")),
        said(3, "a2", "a1", "1", use("t2")),
        user(4, "u1", "a2", [result("t1"), result("t2"), text("and see"), image]),
    )
    assert [(m.id, m.role, m.images) for m in chat.messages] == [
        ("u0", "user", 0),
        ("a1", "assistant", 0),
        ("u1", "tool", 0),
        ("u1.1", "tool", 0),
        ("u1.2", "user", 1),
    ]


def test_no_call_was_made_for_synthetic_answers(tmp_path: Path) -> None:
    """A message that Claude Code made up itself has no call."""
    made_up = said(2, "a1", "u1", "1", text("API error"))
    made_up["message"]["model"] = "<synthetic>"
    [chat], _ = load(tmp_path / "s.jsonl", user(1, "u1", None, "Go"), made_up)
    assert chat.messages[1].call is None


def test_side_agents_are_conversations_of_their_own(tmp_path: Path) -> None:
    """Agents in the session's file, by their id or by their root, name the session as their parent."""
    side: dict[str, Any] = {"isSidechain": True}
    chats, found = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "Go"),
        said(2, "a1", "u1", "1", use("t1")),
        user(3, "x1", None, "Look", **side),
        said(4, "x2", "x1", "x", text("Found"), **side),
        user(5, "y1", None, "Seek", agentId="ag", **side),
        said(6, "y2", "y1", "y", text("Nothing"), agentId="ag", **side),
        user(7, "u2", "a1", [result("t1")]),
    )
    assert not found
    assert [(chat.id, chat.meta.get("parent"), len(chat.messages)) for chat in chats] == [
        ("s1", None, 3),
        ("s1/x1", "s1", 2),
        ("s1/ag", "s1", 2),
    ]


def test_an_agents_own_file_names_its_session(tmp_path: Path) -> None:
    """A file that holds an agent alone is its conversation, with the session as parent."""
    side: dict[str, Any] = {"isSidechain": True, "agentId": "ag"}
    [chat], _ = load(
        tmp_path / "agent-ag.jsonl", user(1, "x1", None, "Look", **side), said(2, "x2", "x1", "x", text("ok"), **side)
    )
    assert (chat.id, chat.meta["parent"]) == ("s1/ag", "s1")


def test_another_session_in_the_file(tmp_path: Path) -> None:
    """A session that the next one continues is part of it; one that ends apart is a conversation of its own."""
    old = {"sessionId": "s0"}
    chats, _ = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "one", **old),
        said(2, "a1", "u1", "1", text("1"), **old),
        user(3, "u2", "a1", "two"),
    )
    assert [(chat.id, len(chat.messages)) for chat in chats] == [("s1", 3)]
    chats, _ = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "one", **old),
        said(2, "a1", "u1", "1", text("1"), **old),
        user(3, "u2", None, "two"),
    )
    assert [(chat.id, chat.meta.get("parent")) for chat in chats] == [("s1", None), ("s0", "s1")]


def test_a_compaction_is_not_a_message(tmp_path: Path) -> None:
    """The boundary and the summary after it become one compaction, across which the history goes on."""
    metadata = {"trigger": "auto", "preTokens": 99}
    boundary = {"subtype": "compact_boundary", "logicalParentUuid": "a1", "compactMetadata": metadata}
    [chat], found = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "one"),
        said(2, "a1", "u1", "1", text("1")),
        line(3, "system", "b", None, content="Conversation compacted", **boundary),
        user(4, "c", "b", "This session is being continued …", isCompactSummary=True),
        user(5, "u2", "c", "two"),
    )
    assert not found
    assert [message.id for message in chat.messages] == ["u1", "a1", "u2"]
    summary = "This session is being continued …"
    assert chat.compactions == (Compaction("a1", summary, None, 99, START + 3),)


def test_a_summary_that_begins_a_file_stands_for_what_is_not_there(tmp_path: Path) -> None:
    """Where the history before a compaction is in another file, the summary is the first message."""
    [chat], _ = load(
        tmp_path / "s.jsonl",
        line(1, "system", "b", None, subtype="compact_boundary", logicalParentUuid="elsewhere"),
        user(2, "c", "b", "Before: …", isCompactSummary=True),
        said(3, "a1", "c", "1", text("1")),
    )
    assert [message.text for message in chat.messages] == ["Before: …", "1"]
    assert not chat.compactions


def test_a_damaged_line_takes_its_results_along(tmp_path: Path) -> None:
    """A lost line is a problem, a result that has no call by that another, and the branch goes on past it."""
    cut = json.dumps(said(2, "a1", "u1", "1", use("t1")))[:-30]
    [chat], found = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "Go"),
        cut,
        user(3, "u2", "a1", [result("t1")]),
        said(4, "a2", "u2", "2", text("Done.")),
    )
    assert [message.id for message in chat.messages] == ["u1", "a2"]
    assert [(error.place.line, error.what[:25]) for error in found] == [
        (2, "the JSON ends in the midd"),
        (3, "tool result for 't1', whi"),
    ]


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (user(2, "b", "u1", 5), "message.content", "expected str | array, got int"),
        (user(2, "b", "u1", [{"text": "x"}]), "message.content[0]", "missing required field type"),
        (line(2, "user", "b", "u1"), "message", "without a message"),
        (user(2, "", "u1", "x"), "uuid", "without a uuid"),
        (said(2, "b", "u1", "1", {"type": "tool_use"}), "message.content[0]", "needs an id and a name"),
        ({**user(2, "b", "u1", "x"), "timestamp": "noon"}, "timestamp", "invalid RFC3339"),
    ],
)
def test_a_bad_line_is_one_clear_error(tmp_path: Path, bad: object, field: str, what: str) -> None:
    """A bad line is named by line, field and reason, and its neighbours are read."""
    [chat], [error] = load(tmp_path / "s.jsonl", user(1, "u1", None, "one"), bad, user(3, "u2", "b", "two"))
    assert [message.text for message in chat.messages] == ["one", "two"]
    assert (error.place.line, error.place.field) == (2, field)
    assert what in error.what


def test_a_usage_that_cannot_be(tmp_path: Path) -> None:
    """It is one problem with line and field; the message stays, its call reports nothing."""
    wrong = said(2, "a1", "u1", "1", text("x"))
    wrong["message"]["usage"]["cache_read_input_tokens"] = -1
    [chat], [problem] = load(tmp_path / "s.jsonl", user(1, "u1", None, "Go"), wrong)
    assert (problem.place.line, problem.place.field) == (2, "message.usage.cache_read_input_tokens")
    assert chat.messages[1].call
    assert chat.messages[1].call.usage is None


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

"""Claude Code sessions: lines of one response are one message, and only the branch to the last line counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Compaction, Conversation, Usage
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
    assert [(m.id, m.role, len(m.media)) for m in chat.messages] == [
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


def progress(second: int, uuid: str, parent: str | None, held: dict[str, Any], agent: str = "ag") -> dict[str, Any]:
    """A line of the session that reports a line of an agent, which has no parent and no session there."""
    for key in ("parentUuid", "sessionId", "isSidechain"):
        held.pop(key)
    return line(second, "progress", uuid, parent, data={"type": "agent_progress", "agentId": agent, "message": held})


def test_agents_whose_lines_are_reported_by_their_session(tmp_path: Path) -> None:
    """Lines within lines of progress are the agent's conversation; the session's own goes on over them."""
    chats, found = load(
        tmp_path / "s.jsonl",
        user(1, "u1", None, "Go"),
        said(2, "a1", "u1", "1", use("t1")),
        progress(3, "p1", "a1", user(3, "x1", None, "Look")),
        progress(4, "p2", "p1", said(4, "x2", "", "x", use("t2"), output=1)),
        progress(5, "p3", "p2", user(5, "x3", None, [result("t2", "first")])),
        progress(6, "p4", "p3", said(6, "x4", "", "x", use("t3"), output=9)),
        progress(7, "p5", "p4", user(7, "x5", None, [result("t3", "second")])),
        line(8, "progress", "p6", "p5", data={"type": "bash_progress", "output": "…"}),
        user(9, "u2", "p6", [result("t1")]),
        said(10, "a2", "u2", "2", text("Done.")),
    )
    assert not found
    assert [(chat.id, chat.meta.get("parent"), [m.id for m in chat.messages]) for chat in chats] == [
        ("s1", None, ["u1", "a1", "u2", "a2"]),
        ("s1/ag", "s1", ["x1", "x2", "x3", "x5"]),
    ]
    reply = chats[1].messages[1].call
    assert reply is not None
    assert reply.usage is not None
    assert (reply.usage.output, len(chats[1].messages[1].calls)) == (9, 2)


def test_a_bad_line_of_an_agent(tmp_path: Path) -> None:
    """It is named within the line that reports it."""
    bad = progress(2, "p1", "u1", user(2, "x1", None, 5))
    [chat], [error] = load(tmp_path / "s.jsonl", user(1, "u1", None, "Go"), bad, user(3, "u2", "p1", "On"))
    assert [m.id for m in chat.messages] == ["u1", "u2"]
    assert (error.place.line, error.place.field) == (2, "data.message.message.content")


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


@pytest.mark.parametrize("iterations", [[], None, [ADVISED["iterations"][0]], "none"])  # type: ignore[index]
def test_a_response_of_one_request(tmp_path: Path, iterations: Any) -> None:
    """Without several iterations the usage is that of the response."""
    answer = said(2, "a1", "u1", "1", text("ok"))
    answer["message"]["usage"]["iterations"] = iterations
    [chat], found = load(tmp_path / "s.jsonl", user(1, "u1", None, "Go"), answer)
    assert not found
    call = chat.messages[1].call
    assert call is not None
    assert call.iterations == ()
    assert call.billed == (("opus", call.usage),)


# File: calls, tool calls, calls that read, not cached, read, written, output, calls that write for 1 h, compactions.
SESSIONS = {
    "model-switch_resumed": (69, 62, 66, 602, 4_418_147, 353_046, 3_847, 0, 0),
    "opus-4-5_5m_compaction": (97, 119, 92, 8_211, 9_730_072, 877_567, 19_174, 0, 1),
    "opus-4-5_v2.0.64": (66, 66, 64, 70, 2_995_725, 99_805, 12_098, 0, 0),
    "opus-4-6_1h_subagent-usage": (36, 46, 36, 44, 2_939_758, 93_155, 2_834, 36, 0),
    "opus-4-6_1h_compaction": (50, 85, 49, 58, 4_251_079, 342_346, 2_413, 50, 1),
    "sonnet-4-5_small": (22, 23, 21, 499, 706_430, 40_271, 4_850, 0, 0),
}


def figures(chat: Conversation) -> tuple[int, ...]:
    """The counts of a conversation, in the order of SESSIONS."""
    used = [m.call.usage for m in chat.messages if m.call and m.call.usage]
    read, written = (
        sum(counts) for counts in zip(*((u.cache_read or 0, u.cache_write or 0) for u in used), strict=True)
    )
    return (
        len(used),
        sum(len(m.calls) for m in chat.messages),
        sum(bool(u.cache_read) for u in used),
        sum(u.input or 0 for u in used) - read - written,
        read,
        written,
        sum(u.output or 0 for u in used),
        sum(bool(u.cache_write_1h) for u in used),
        len(chat.compactions),
    )


@pytest.mark.parametrize("name", SESSIONS)
def test_recorded_sessions(recordings: Path, name: str) -> None:
    """Six recorded sessions, to the token; one of them has two objects on a line, another has an agent of its own."""
    problems = Problems()
    chat, *agents = read(find([recordings / "claude-code" / f"{name}.jsonl"], problems), problems)
    assert not problems.errors
    assert not problems.notes
    assert figures(chat) == SESSIONS[name]
    if name != "opus-4-6_1h_subagent-usage":
        assert not agents
        return
    [agent] = agents
    assert figures(agent)[:3] == (7, 26, 6)
    assert agent.id == f"{chat.id}/a669373"
    assert {m.call.model for m in agent.messages if m.call} == {"claude-sonnet-4-5-20250929"}
    assert not any(m.call.usage.cache_write_1h for m in agent.messages if m.call and m.call.usage)


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


def test_what_is_not_read_is_counted(tmp_path: Path) -> None:
    """Blocks without a text, attachments and unknown lines are notes by name; titles and snapshots are not."""
    path = tmp_path / "s.jsonl"
    rows = [
        {"type": "custom-title", "title": "T"},
        {"type": "attachment", "attachment": {}},
        {"type": "hologram"},
        user(1, "u1", None, [text("See"), {"type": "document", "source": {}}, {"type": "smell"}]),
        user(2, "u2", "u1", [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": 5}]}]),
        user(3, "u3", "u2", "On"),
    ]
    [chat], [error] = load(path, *rows)
    assert [m.text for m in chat.messages] == ["See", "On"]
    assert [medium.kind for medium in chat.messages[0].media] == ["file"]
    assert (error.place.line, error.place.field) == (5, "message.content[0].text")
    problems = Problems()
    list(read(find([path], problems), problems))
    assert problems.notes == [
        f"claude_code: line of type 'attachment': 1 not read ({path}:2)",
        f"claude_code: line of type 'hologram': 1 not read ({path}:3)",
        f"content block of type 'smell': 1 not read ({path}:4: message.content)",
    ]


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

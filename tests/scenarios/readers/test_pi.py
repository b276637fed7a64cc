"""pi sessions: old files in a row, newer ones as a tree, damaged ones as far as they go."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Compaction, Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.pi import Pi
from ctxbench.scenarios.readers.requests import usage
from ctxbench.scenarios.source import Problems

START = 1_700_000_000
HEADER = {"type": "session", "id": "s-1", "timestamp": "2023-11-14T22:13:20.000Z", "cwd": "/home/someone"}


def entry(second: float, kind: str = "message", **fields: Any) -> dict[str, Any]:
    """An entry complete at 22:13:20 plus so many seconds."""
    minutes, rest = divmod(20 + second, 60)
    return {"type": kind, "timestamp": f"2023-11-14T22:{13 + int(minutes):02}:{rest:06.3f}Z", **fields}


def user(second: float, text: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text, "timestamp": (START + second) * 1000}
    return entry(second, message=message, **fields)


def answer(second: float, *content: dict[str, Any], stop: str = "stop", **fields: Any) -> dict[str, Any]:
    usage = {"input": 1, "output": 2, "cacheRead": 30, "cacheWrite": 400, "cost": {"input": 9, "total": 0.5}}
    message = {
        "role": "assistant",
        "content": list(content),
        "provider": "anthropic",
        "model": "opus",
        "usage": fields.pop("usage", usage),
        "stopReason": stop,
        "timestamp": (START + second - 1) * 1000,
    }
    return entry(second, message=message, **fields)


def result(second: float, call: str, text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}, {"type": "image", "data": "…", "mimeType": "image/png"}]
    message = {"role": "toolResult", "toolCallId": call, "toolName": "read", "content": content}
    return entry(second, message={**message, "timestamp": (START + second) * 1000}, **fields)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(name: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": name, "name": "read", "arguments": {"path": "a"}}


def load(path: Path, *entries: object) -> tuple[Conversation, list[RecordingError]]:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in entries))
    assert isinstance(detect(path), Pi)
    problems = Problems()
    [conversation] = read(find([path], problems), problems)
    return conversation, problems.errors


def test_an_old_session_is_read_in_a_row(tmp_path: Path) -> None:
    """Every message keeps its parts; input is the whole prompt; a call starts at the message's own time."""
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}
    chat, found = load(
        tmp_path / "s.jsonl",
        HEADER,
        user(1, "read a"),
        answer(5, thinking, text("Reading."), call("t1"), stop="toolUse"),
        result(6, "t1", "A"),
        answer(9, text("Done.")),
    )
    assert not found
    assert (chat.id, chat.meta) == ("s-1", {"off_branch": 0})
    assert [(m.id, m.role, m.text) for m in chat.messages] == [
        ("e1", "user", "read a"),
        ("e2", "assistant", "Reading."),
        ("e3", "tool", "A"),
        ("e4", "assistant", "Done."),
    ]
    assert [message.time for message in chat.messages] == [START + second for second in (1, 5, 6, 9)]
    said = chat.messages[1]
    assert (said.thinking, said.calls[0].arguments) == ("hm", '{"path": "a"}')
    assert said.call is not None
    assert said.call.usage == Usage(input=431, output=2, cache_read=30, cache_write=400, cost=0.5)
    assert (said.call.started, said.call.stop, said.call.provider) == (START + 4, "toolUse", "anthropic")
    assert (chat.messages[2].answers, chat.messages[2].name, len(chat.messages[2].media)) == ("t1", "read", 1)


def test_a_command_of_the_person_is_what_the_model_was_shown(tmp_path: Path) -> None:
    """A bash command becomes the user's text with its output; one kept from the model is left out."""
    ran = {"role": "bashExecution", "command": "ls", "output": "a\nb", "exitCode": 2, "timestamp": 1}
    secret = {**ran, "command": "env", "excludeFromContext": True}
    chat, _ = load(tmp_path / "s.jsonl", HEADER, entry(1, message=ran), entry(2, message=secret), answer(3, text("ok")))
    assert [(m.role, m.text) for m in chat.messages] == [
        ("user", "Ran `ls`\n```\na\nb\n```\n\nCommand exited with code 2"),
        ("assistant", "ok"),
    ]


def test_a_stopped_answer_is_kept(tmp_path: Path) -> None:
    """An aborted answer stays with its word; with nothing reported its usage is unknown, not zero."""
    nothing = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}
    chat, _ = load(tmp_path / "s.jsonl", HEADER, user(1, "go"), answer(2, stop="aborted", usage=nothing))
    stopped = chat.messages[1].call
    assert stopped is not None
    assert (stopped.stop, stopped.usage) == ("aborted", None)


def test_a_compaction_names_what_was_kept(tmp_path: Path) -> None:
    """firstKeptEntryIndex counts lines from the header; an entry that is no message stands for the next that is."""
    compaction = entry(7, "compaction", summary="So far …", firstKeptEntryIndex=3, tokensBefore=99)
    chat, _ = load(
        tmp_path / "s.jsonl",
        HEADER,
        user(1, "one"),
        answer(2, text("1")),
        entry(3, "model_change", provider="anthropic", modelId="x"),
        user(4, "two"),
        answer(5, text("2")),
        compaction,
        user(8, "three"),
    )
    assert chat.compactions == (Compaction("e5", "So far …", "e4", 99, START + 7),)
    assert len(chat.messages) == 5


def test_the_conversation_is_the_branch_to_the_last_entry(tmp_path: Path) -> None:
    """In a tree the other branches are left out and counted; ids are the entries' own."""
    chat, found = load(
        tmp_path / "s.jsonl",
        {**HEADER, "version": 3, "parentSession": "/home/someone/2023_s-0.jsonl"},
        user(1, "one", id="a", parentId=None),
        answer(2, text("1"), id="b", parentId="a"),
        user(3, "dropped", id="c", parentId="b"),
        answer(4, text("dropped"), id="d", parentId="c"),
        entry(5, "branch_summary", id="e", parentId="b", fromId="d", summary="Tried c."),
        entry(6, "custom_message", id="f", parentId="e", customType="note", content="N", display=True),
        entry(7, "compaction", id="g", parentId="f", summary="S", firstKeptEntryId="e", tokensBefore=9),
        entry(8, "label", id="h", parentId="g", targetId="b", label="x"),
        user(9, "two", id="i", parentId="h"),
    )
    assert not found
    assert [(m.id, m.text) for m in chat.messages] == [
        ("a", "one"),
        ("b", "1"),
        ("e", "Tried c."),
        ("f", "N"),
        ("i", "two"),
    ]
    assert chat.meta == {"off_branch": 2, "parent": "s-0"}
    assert (chat.compactions[0].after, chat.compactions[0].first_kept) == ("f", "e")


def test_damaged_lines_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """A record with a remnant behind it and a cut line are problems, and so is the result whose call was lost."""
    together = json.dumps(answer(2, call("t1"), id="b", parentId="a")) + json.dumps(user(3, "x"))[:-9]
    chat, found = load(
        tmp_path / "s.jsonl",
        HEADER,
        user(1, "one", id="a", parentId=None),
        together,
        result(4, "t1", "lost", id="c", parentId="b"),
        answer(5, text("on"), id="d", parentId="c"),
        json.dumps(user(6, "cut"))[:50],
    )
    assert [message.id for message in chat.messages] == ["a", "d"]
    assert [error.place.line for error in found] == [3, 6, 4]
    assert "more than one JSON value" in found[0].what
    assert "ends in the middle" in found[1].what
    assert "'t1', which no message before it called" in found[2].what


def test_what_oh_my_pi_adds(tmp_path: Path) -> None:
    """The system prompt and the names of the tools, reminders of the developer, and titles, which are no part of it."""
    init = {"systemPrompt": "Be kind.", "tools": ["read", "grep"], "task": "Go"}
    remind = entry(4, id="d", parentId="c", message={"role": "developer", "content": [text("Call a tool.")]})
    chat, found = load(
        tmp_path / "s.jsonl",
        {"type": "title", "title": "", "pad": " "},
        HEADER,
        entry(1, "session_init", id="a", parentId=None, **init),
        user(2, "Go", id="b", parentId="a"),
        answer(3, text("ok"), id="c", parentId="b"),
        remind,
        entry(5, "credential_pin", id="e", parentId="d"),
        answer(6, text("yes"), id="f", parentId="e"),
    )
    assert not found
    assert [(m.role, m.text) for m in chat.messages] == [
        ("system", "Be kind."),
        ("user", "Go"),
        ("assistant", "ok"),
        ("system", "Call a tool."),
        ("assistant", "yes"),
    ]
    assert [tool.name for tool in chat.tools] == ["read", "grep"]
    assert chat.meta["off_branch"] == 0


def test_entries_of_an_unknown_type_are_counted(tmp_path: Path) -> None:
    """They are a note by name; settings, which are known and never sent, are not."""
    path = tmp_path / "s.jsonl"
    rows = [HEADER, user(1, "Go"), entry(2, "hologram"), entry(3, "hologram"), entry(4, "custom")]
    path.write_text("\n".join(map(json.dumps, rows)))
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert len(chat.messages) == 1
    assert problems.notes == [f"pi: entry of type 'hologram': 2 not read ({path}:3)"]


# File: messages, calls, calls that read, calls that wrote, not cached, read, written.
OH_MY_PI = {
    "claude-opus-5_KPGV14_6": (55, 16, 15, 16, 37_026, 1_063_752, 145_418),
    "deepseek-v4-flash_XQ37EX_6": (44, 14, 14, 0, 34_948, 468_224, 0),
    "gemini-3.1-flash-lite_KPGV14_2": (15, 7, 7, 0, 29_683, 97_700, 0),
    "gemini-3.1-flash-lite_KPGV14_3": (41, 20, 19, 0, 123_763, 529_787, 0),
}


@pytest.mark.parametrize("name", OH_MY_PI)
def test_oh_my_pi_recordings(recordings: Path, name: str) -> None:
    """Four recorded sessions of three providers, to the token, with their system prompts."""
    problems = Problems()
    [chat] = read(find([recordings / "oh-my-pi" / f"{name}.jsonl"], problems), problems)
    assert not problems.errors
    assert not problems.notes
    used = [message.call.usage for message in chat.messages if message.call and message.call.usage]
    read_, written = sum(u.cache_read or 0 for u in used), sum(u.cache_write or 0 for u in used)
    first, *others = chat.messages
    assert first.role == "system"
    assert len(first.text) > 1_000
    assert (
        sum(not message.name or message.role == "tool" for message in others),  # others are custom messages
        len(used),
        sum(bool(u.cache_read) for u in used),
        sum(bool(u.cache_write) for u in used),
        sum(u.input or 0 for u in used) - read_ - written,
        read_,
        written,
    ) == OH_MY_PI[name]


def test_two_records_on_one_line_are_both_read(tmp_path: Path) -> None:
    """A program that was stopped before a line end appends to the same line; braces within a text are no such place."""
    together = json.dumps(answer(2, text("a }{ b"), id="b", parentId="a")) + json.dumps(
        user(3, "x", id="c", parentId="b")
    )
    chat, found = load(tmp_path / "s.jsonl", HEADER, user(1, "one", id="a", parentId=None), together)
    assert not found
    assert [message.text for message in chat.messages] == ["one", "a }{ b", "x"]


def test_arguments_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    """Arguments are kept as their JSON text, so bytes in them that are no UTF-8 are named too."""
    path = tmp_path / "s.jsonl"
    lines = [json.dumps(one).encode() for one in (HEADER, user(1, "go"), answer(2, call("t1")))]
    path.write_bytes(b"\n".join(lines).replace(b'"path": "a"', b'"path": "\xff"'))
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert len(chat.messages) == 1
    [error] = problems.errors
    assert (error.place.line, error.place.field) == (3, "message.content[0]")
    assert "not UTF-8" in error.what


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (entry(2, message={"role": "wizard", "content": "hm"}), "message.role", "invalid value 'wizard'"),
        (entry(2, message={"role": "user", "content": 5}), "message.content", "expected str | array, got int"),
        (entry(2, message={"role": "user"}), "message", "missing required field content"),
        (entry(2), "", "an entry of type message needs a message"),
        ({**user(2, "x"), "timestamp": "noon"}, "timestamp", "invalid RFC3339"),
        ({**user(2, "x"), "timestamp": "2023-11-14T22:13:20"}, "timestamp", "timezone"),
    ],
)
def test_a_bad_entry_is_one_clear_error(tmp_path: Path, bad: object, field: str, what: str) -> None:
    """A bad entry is named by line, field and reason, and its neighbours are read."""
    chat, [error] = load(tmp_path / "s.jsonl", HEADER, user(1, "one"), bad, user(3, "two"))
    assert [message.text for message in chat.messages] == ["one", "two"]
    assert (error.place.line, error.place.field) == (3, field)
    assert what in error.what


@pytest.fixture(scope="module")
def sessions(recordings: Path) -> list[Conversation]:
    problems = Problems()
    found = list(read(find([recordings / "pi-sessions"], problems), problems))
    assert not problems.errors
    return found


def test_pi_recordings(sessions: list[Conversation]) -> None:
    """The two recorded sessions, to the token; 27 calls were stopped before anything was reported."""
    assert [(len(chat.messages), len(chat.compactions), chat.meta["off_branch"]) for chat in sessions] == [
        (990, 2, 0),
        (914, 0, 0),
    ]
    assert [(c.after, c.first_kept, c.tokens_before) for c in sessions[0].compactions] == [
        ("e358", "e293", 175_004),
        ("e627", "e551", 185_014),
    ]
    calls = [message.call for chat in sessions for message in chat.messages if message.call]
    usage = [one.usage for one in calls if one.usage]
    assert (len(calls), len(usage)) == (937, 910)
    assert {one.stop for one in calls if one.usage is None} == {"aborted", "error"}
    assert sum(used.input or 0 for used in usage) == 103_909_434
    assert sum(used.output or 0 for used in usage) == 271_051
    assert sum(used.cache_read or 0 for used in usage) == 97_923_144
    assert sum(used.cache_write or 0 for used in usage) == 5_981_552
    assert sum(used.cost or 0 for used in usage) == pytest.approx(72.9261, abs=5e-5)


def test_a_call_starts_right_after_what_it_answers(sessions: list[Conversation]) -> None:
    """The message's own time is the start of its request: before it is complete, within 20 ms of the one before."""
    late = 0
    for chat in sessions:
        for before, now in pairwise(chat.messages):
            if now.call and now.call.started and now.time and before.time:
                assert now.call.started <= now.time
                late += abs(now.call.started - before.time) > 0.02
    assert late == 5


def test_large_session_misses_the_cache_within_five_minutes(sessions: list[Conversation]) -> None:
    """33 calls of the large session read nothing though the call before wrote less than five minutes earlier."""
    used = [m for m in sessions[1].messages if m.call and m.call.usage and m.call.usage.input]
    gaps = [
        (now.call.started or 0) - (before.call.started or 0)
        for before, now in pairwise(used)
        if now.call and before.call and now.call.usage and now.call.usage.cache_read == 0
    ]
    assert sum(gap < 300 for gap in gaps) == 33


def test_the_thinking_level_of_each_call(tmp_path: Path) -> None:
    """It is the header's at first; one that is set while the model works counts from the person's next message on."""
    chat, _ = load(
        tmp_path / "s.jsonl",
        {**HEADER, "thinkingLevel": "off"},
        user(1, "one"),
        answer(2, call("t1"), stop="toolUse"),
        entry(3, "thinking_level_change", thinkingLevel="high"),
        result(4, "t1", "R"),
        answer(5, text("1")),
        user(6, "two"),
        answer(7, text("2")),
    )
    assert [message.call.effort for message in chat.messages if message.call] == ["off", "off", "high"]


@pytest.mark.parametrize(
    ("usage", "field"),
    [
        ({"input": -1, "output": 2, "cacheRead": 3, "cacheWrite": 4}, "message.usage.input"),
        ({"input": 1, "output": 2, "cost": {"total": "x"}}, "message.usage.cost.total"),
        ("none", "message.usage"),
    ],
)
def test_a_usage_that_cannot_be(tmp_path: Path, usage: Any, field: str) -> None:
    """It is one problem with line and field, and the message stays."""
    chat, [problem] = load(tmp_path / "s.jsonl", HEADER, user(1, "go"), answer(2, text("ok"), usage=usage))
    assert (problem.place.line, problem.place.field) == (3, field)
    assert chat.messages[1].text == "ok"


def test_b15_four_counts_add_up() -> None:
    """B15: input 1,000, output 500, read 200 and written 100 are the 1,800 tokens that pi compares with its window."""
    counts = {"input": 1_000, "output": 500, "cacheRead": 200, "cacheWrite": 100}
    used = usage(counts, Place("session.jsonl"), Problems())
    assert used is not None
    assert used.input is not None
    assert used.output is not None
    assert used.input + used.output == 1_800

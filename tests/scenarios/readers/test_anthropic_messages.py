"""Anthropic requests: blocks become messages, and logs of a conversation become one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation, Mark, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.call_logs import AnthropicMessages
from ctxbench.scenarios.source import Problems

IMAGE = {"type": "image", "source": {}}
CACHED = {"cache_control": {"type": "ephemeral"}}
USE = {"role": "assistant", "content": [
    {"type": "thinking", "thinking": "Two files.", "signature": "s"},
    {"type": "text", "text": "Reading."},
    {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
    {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}},
]}  # fmt: skip
RESULTS = {"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "t1", "content": "A"},
    {"type": "tool_result", "tool_use_id": "t2", **CACHED, "content": [{"type": "text", "text": "B"}, IMAGE]},
    {"type": "text", "text": "Go on."},
]}  # fmt: skip
TOOL = {"name": "read", "description": "Reads", "input_schema": {"type": "object"}}


def request(*turns: dict[str, Any]) -> dict[str, Any]:
    system = [{"type": "text", "text": "You read."}, {"type": "text", "text": "Files.", **CACHED}]
    return {"model": "claude", "max_tokens": 9, "system": system, "tools": [TOOL], "messages": list(turns)}


def response(*content: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15},
        "output_tokens": 7,
    }
    return {"type": "message", "model": "claude-x", "stop_reason": "end_turn", "content": list(content), "usage": usage}


ASK = {"role": "user", "content": "Read a and b."}
DONE = {"type": "text", "text": "Done."}


def load(path: Path, *records: object) -> tuple[list[Conversation], list[RecordingError]]:
    path.write_text("\n".join(json.dumps(record) for record in records))
    assert isinstance(detect(path), AnthropicMessages)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems.errors


def test_a_logged_response_is_the_answer_with_its_call(tmp_path: Path) -> None:
    """The answer carries the usage, where input is the whole prompt, and the breakpoints of its request."""
    [chat], _ = load(tmp_path / "r.json", {"request": request(ASK, USE, RESULTS), "response": response(DONE)})
    call = chat.messages[-1].call
    assert call is not None
    assert (chat.messages[-1].text, call.model, call.stop) == ("Done.", "claude-x", "end_turn")
    assert call.usage == Usage(input=130, output=7, cache_read=100, cache_write=20, cache_write_1h=15)
    assert call.marks == (Mark("m0"), Mark("m4"))


def test_requests_that_extend_each_other_are_one_conversation(tmp_path: Path) -> None:
    """Two logged calls, of which the second repeats the first, give each message once; a third begins anew."""
    first = {"request": request(ASK), "response": response(*USE["content"])}
    second = {"request": request(ASK, USE, RESULTS), "response": response(DONE)}
    chats, found = load(tmp_path / "r.jsonl", first, second, first)
    assert not found
    assert [(chat.id, [m.role[0] for m in chat.messages]) for chat in chats] == [
        ("r", list("suattua")),
        ("r.2", list("sua")),
    ]
    assert [m.id for m in chats[0].messages if m.call] == ["m2", "m6"]


def test_thinking_left_out_of_the_next_request_is_kept(tmp_path: Path) -> None:
    """Clients may drop thinking from what they send again; the conversation goes on and keeps it."""
    dropped = {"role": "assistant", "content": USE["content"][1:]}
    first = {"request": request(ASK), "response": response(*USE["content"])}
    second = {"request": request(ASK, dropped, RESULTS), "response": response(DONE)}
    [chat], _ = load(tmp_path / "r.jsonl", first, second)
    assert chat.messages[2].thinking == "Two files."

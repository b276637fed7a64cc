"""LiteLLM logs: a folder of calls becomes conversations in which every message stands once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation, Mark, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.call_logs import LitellmLog
from ctxbench.scenarios.source import Problems

S = {"role": "system", "content": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}]}
U = {"role": "user", "content": [{"type": "text", "text": "U"}]}
CALL = {"id": "t1", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}}
A = {"role": "assistant", "tool_calls": [CALL]}
T = {"role": "tool", "tool_call_id": "t1", "name": "run", "content": [{"type": "text", "text": "T"}]}


def log(at: float, asked: list[Any], answer: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 60},
        "cache_creation_input_tokens": 30,
    }
    choice = {"finish_reason": "stop", "message": {"content": None, **answer}}
    kwargs = {"tools": [{"type": "function", "function": {"name": "run"}}], "api_key": "k", "extra_headers": {"x": "h"}}
    response = {"model": "m", "created": int(at), "choices": [choice], "usage": usage}
    return {"messages": asked, "response": response, "kwargs": kwargs, "timestamp": at, "cost": 0.5, **more}


def load(folder: Path, *logs: object) -> tuple[list[Conversation], list[RecordingError]]:
    folder.mkdir()
    for at, record in enumerate(logs):
        path = folder / f"{at}.json"
        path.write_text(record if isinstance(record, str) else json.dumps(record))
    problems = Problems()
    return list(read(find([folder], problems), problems)), problems.errors


FINAL = {"role": "assistant", "content": "done"}


def test_calls_become_one_conversation(tmp_path: Path) -> None:
    """Requests that extend each other give every message once, whatever the order of the files."""
    later, first = log(20.5, [S, U, A, {**T, "cache_control": {"type": "ephemeral"}}], FINAL), log(10.5, [S, U], A)
    [chat], found = load(tmp_path / "task", later, first)
    assert not found
    assert chat.id == "task"
    assert chat.source == str(tmp_path / "task")
    assert [message.id for message in chat.messages] == ["m0", "m1", "m2", "m3", "m4"]
    assert [message.time for message in chat.messages] == [None, None, 10.5, None, 20.5]
    assert [tool.name for tool in chat.tools] == ["run"]
    call = chat.messages[4].call
    assert call is not None
    assert call.usage == Usage(input=100, output=5, cache_read=60, cache_write=30, cost=0.5)
    assert (call.model, call.stop, call.started) == ("m", "stop", None)
    assert call.marks == (Mark("m0"), Mark("m3"))


def test_a_list_that_starts_again_is_another_conversation(tmp_path: Path) -> None:
    """A second run in the same folder is numbered, also where the two take turns."""
    other = {"role": "user", "content": "other"}
    logs = [log(1, [S, U], A), log(2, [S, other], A), log(3, [S, U, A, T], FINAL), log(4, [S, other, A, T], FINAL)]
    chats, found = load(tmp_path / "task", *logs)
    assert not found
    assert [(chat.id, len(chat.messages)) for chat in chats] == [("task", 5), ("task.2", 5)]


def test_no_header_or_key_is_kept(tmp_path: Path) -> None:
    """Nothing of the request's headers and keys is in the conversation."""
    [chat], _ = load(tmp_path / "task", log(1, [S, U], A, headers={"authorization": "secret"}))
    assert b"secret" not in chat.to_json()
    assert b"api_key" not in chat.to_json()
    assert b"extra_headers" not in chat.to_json()


def test_detection_reads_past_long_messages(tmp_path: Path) -> None:
    """The response that tells the format from a plain chat may stand behind a long request."""
    path = tmp_path / "long.json"
    path.write_text(json.dumps(log(1, [S, {"role": "user", "content": "x" * 1_000_000}], A)))
    assert isinstance(detect(path), LitellmLog)

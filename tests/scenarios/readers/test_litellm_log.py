"""LiteLLM logs: no header or key is kept, and a long request hides no format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.call_logs import LitellmLog
from ctxbench.scenarios.source import Problems

S = {"role": "system", "content": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}]}
U = {"role": "user", "content": [{"type": "text", "text": "U"}]}
CALL = {"id": "t1", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}}
A = {"role": "assistant", "tool_calls": [CALL]}


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


def test_no_header_or_key_is_kept(tmp_path: Path) -> None:
    """Nothing of the request's headers and keys is in the conversation."""
    [chat], _ = load(tmp_path / "task", log(1, [S, U], A, headers={"authorization": "secret"}))
    assert b"secret" not in chat.to_json()
    assert b"api_key" not in chat.to_json()
    assert b"extra_headers" not in chat.to_json()


def test_what_is_wrong_with_a_repeated_response_is_said_once(tmp_path: Path) -> None:
    """The second record of a response is not read."""
    record = log(1, [S, U], A, cost="x")
    record["response"]["id"] = "r"
    _, problems = load(tmp_path / "task", record, record)
    assert [error.place.field for error in problems] == ["cost", "response.id"]


def test_detection_reads_past_long_messages(tmp_path: Path) -> None:
    """The response that tells the format from a plain chat may stand behind a long request."""
    path = tmp_path / "long.json"
    path.write_text(json.dumps(log(1, [S, {"role": "user", "content": "x" * 1_000_000}], A)))
    assert isinstance(detect(path), LitellmLog)

"""LiteLLM logs: no header or key is kept, and a long request hides no format."""

import json
from pathlib import Path
from typing import Any

from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.call_logs import LitellmLog
from ctxbench.scenarios.source import Problems

S = {"role": "system", "content": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}]}
U = {"role": "user", "content": [{"type": "text", "text": "U"}]}


def log(asked: list[Any], **more: Any) -> dict[str, Any]:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "A"}}
    kwargs = {"tools": [{"type": "function", "function": {"name": "run"}}], "api_key": "k", "extra_headers": {"x": "h"}}
    response = {"model": "m", "created": 1, "choices": [choice], "usage": {"prompt_tokens": 100}}
    return {"messages": asked, "response": response, "kwargs": kwargs, "timestamp": 1, "cost": 0.5, **more}


def test_no_header_or_key_is_kept(tmp_path: Path) -> None:
    """Nothing of the request's headers and keys is in the conversation."""
    (tmp_path / "0.json").write_text(json.dumps(log([S, U], headers={"authorization": "secret"})))
    [chat] = read(find([tmp_path], Problems()), Problems())
    assert b"secret" not in chat.to_json()
    assert b"api_key" not in chat.to_json()
    assert b"extra_headers" not in chat.to_json()


def test_detection_reads_past_long_messages(tmp_path: Path) -> None:
    """The response that tells the format from a plain chat may stand behind a long request."""
    path = tmp_path / "long.json"
    path.write_text(json.dumps(log([S, {"role": "user", "content": "x" * 1_000_000}])))
    assert isinstance(detect(path), LitellmLog)

"""LiteLLM logs: a folder of calls becomes conversations in which every message stands once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (log(2, [S, {"role": "wizard"}], A), "messages[1].role", "unknown role 'wizard'"),
        (log(2, [S, U], {"content": "x"}), "response.choices[0].message", "missing required field role"),
        (log(2, [S, U], {"role": "x"}), "response.choices[0].message.role", "unknown role 'x'"),
        ({**log(2, [S, U], A), "timestamp": "noon"}, "timestamp", "expected float | null, got str"),
        ({**log(2, [S, U], A), "response": {"choices": []}}, "response.choices", "no answer"),
        (json.dumps(log(2, [S, U], A))[:-20], "", "the JSON ends in the middle"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path: Path, bad: object, field: str, what: str) -> None:
    """A bad file of a folder is named with its field, and the others are read."""
    [chat], [error] = load(tmp_path / "task", log(1, [S, U], A), bad)
    assert len(chat.messages) == 3
    assert (error.place.file, error.place.field) == (str(tmp_path / "task" / "1.json"), field)
    assert what in error.what


def test_openhands_recordings(recordings: Path) -> None:
    """The 164 recorded calls of 7 tasks are 8 conversations (one task was run twice), to the token."""
    problems = Problems()
    batches = find([recordings / "openhands"], problems)
    assert [type(batch.reader) for batch in batches] == [LitellmLog] * 7
    chats = list(read(batches, problems))
    assert not problems.errors
    assert [(chat.id, len(chat.messages)) for chat in chats] == [
        ("astropy__astropy-12907", 21),
        ("astropy__astropy-13236", 19),
        ("astropy__astropy-13236.2", 33),
        ("astropy__astropy-14369", 45),
        ("django__django-11141", 19),
        ("django__django-11179", 65),
        ("django__django-11206", 33),
        ("django__django-11265", 101),
    ]
    calls = [message.call for chat in chats for message in chat.messages if message.call]
    assert len(calls) == sum(1 for chat in chats for _ in chat.calls()) == 164
    usage = [call.usage for call in calls if call.usage]
    assert len(usage) == 164
    assert sum(used.input or 0 for used in usage) == 3_085_266
    assert sum(used.output or 0 for used in usage) == 53_594
    assert sum(used.cache_read or 0 for used in usage) == 1_348_014
    assert sum(used.cache_write or 0 for used in usage) == 322_365
    assert sum(call.model == "litellm_proxy/claude-3-5-sonnet-20241022" for call in calls) == sum(
        used.cache_read is not None for used in usage
    )
    assert sum(len(call.marks) for call in calls) == 632
    assert all(len(chat.tools) == 3 for chat in chats)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"cost": "much"}, "cost"),
        (
            {"response": {**log(2, [S, U, A, T], FINAL)["response"], "usage": {"prompt_tokens": 1.5}}},
            "response.usage.prompt_tokens",
        ),
    ],
)
def test_a_usage_or_cost_that_cannot_be(tmp_path: Path, wrong: dict[str, Any], field: str) -> None:
    """It is one problem with file and field; the conversation is whole."""
    [chat], [problem] = load(tmp_path / "task", log(1, [S, U], A), {**log(2, [S, U, A, T], FINAL), **wrong})
    assert (problem.place.file, problem.place.field) == (str(tmp_path / "task" / "1.json"), field)
    assert len(chat.messages) == 5


def test_a_response_that_is_logged_twice(tmp_path: Path) -> None:
    """The second file is a problem that names the first, and the run stands once."""
    one = log(1, [S, U], A)
    one["response"]["id"] = "chatcmpl-1"
    chats, [problem] = load(tmp_path / "task", one, {**one, "timestamp": 2})
    assert len(chats) == 1
    assert str(problem).startswith(f"{tmp_path / 'task' / '1.json'}:1: response.id: response 'chatcmpl-1' stands at")


def test_how_much_a_model_was_to_think(tmp_path: Path) -> None:
    """It is kept with each call, as the request says it."""
    first, second = log(1, [S, U], A), log(2, [S, U, A, T], FINAL)
    first["kwargs"] |= {"reasoning_effort": "high"}
    [chat], _ = load(tmp_path / "task", first, second)
    assert [message.call.effort for message in chat.messages if message.call] == ["high", ""]

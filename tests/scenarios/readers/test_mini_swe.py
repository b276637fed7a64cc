"""mini-swe-agent: messages with what `extra` says of their calls, the exit apart."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Call, Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.trials import MiniSwe
from ctxbench.scenarios.source import Problems


def trajectory() -> dict[str, Any]:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_cache_hit_tokens": 64,
        "prompt_cache_miss_tokens": 36,
    }
    response = {"model": "deepseek-chat", "created": 10, "usage": usage, "choices": [{"finish_reason": "tool_calls"}]}
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
        {
            "role": "assistant",
            "content": "look",
            "tool_calls": [call],
            "extra": {"response": response, "cost": 0.25, "timestamp": 12.5},
        },
        {"role": "tool", "tool_call_id": "c1", "content": "out", "extra": {"timestamp": 13.5}},
        {"role": "user", "content": "Tool call error", "extra": {"interrupt_type": "FormatError"}},
        {"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": "diff"}},
    ]
    info = {
        "exit_status": "Submitted",
        "mini_version": "2",
        "config": {"model": {"model_name": "deepseek/deepseek-chat"}},
    }
    return {"info": info, "messages": messages, "instance_id": "task-1"}


def load(path: Path, record: object) -> tuple[list[Conversation], list[RecordingError]]:
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    assert isinstance(detect(path), MiniSwe)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems.errors


def test_a_trajectory_keeps_calls_and_times(tmp_path: Path) -> None:
    """Usage, model and times stand at the messages; the exit is no message, but its status is kept."""
    [chat], found = load(tmp_path / "x.traj.json", trajectory())
    assert not found
    assert chat.id == "task-1"
    assert chat.meta == {"task": "task-1", "exit_status": "Submitted", "agent_version": "2"}
    assert [message.role for message in chat.messages] == ["system", "user", "assistant", "tool", "user"]
    assert [message.time for message in chat.messages] == [None, None, 12.5, 13.5, None]
    usage = Usage(input=100, output=5, cache_read=64, cost=0.25)
    assert chat.messages[2].call == Call("deepseek-chat", "deepseek", usage, started=10, stop="tool_calls")


def test_a_result_that_seems_earlier_than_its_neighbour_loses_its_time(tmp_path: Path) -> None:
    """Where the clock went backwards the message stays and only its time is unknown."""
    record = trajectory()
    record["messages"][3]["extra"]["timestamp"] = 12.0
    [chat], found = load(tmp_path / "x.traj.json", record)
    assert not found
    assert [message.time for message in chat.messages] == [None, None, 12.5, None, None]


@pytest.mark.parametrize(
    ("message", "field", "what"),
    [
        ({"role": "wizard"}, "messages[1].role", "unknown role 'wizard'"),
        ({"role": "user", "content": True}, "messages[1].content", "expected str | array | null, got bool"),
        (
            {"role": "user", "extra": {"timestamp": "noon"}},
            "messages[1].extra.timestamp",
            "expected float | null, got str",
        ),
    ],
)
def test_a_bad_message_is_one_clear_error(tmp_path: Path, message: object, field: str, what: str) -> None:
    """A trajectory with a bad message is left out, and the error names the field."""
    record = trajectory()
    record["messages"][1] = message
    chats, [error] = load(tmp_path / "x.traj.json", record)
    assert not chats
    assert error.place.field == field
    assert what in error.what


def test_a_truncated_trajectory_is_named(tmp_path: Path) -> None:
    """A file that was cut off is one error."""
    chats, [error] = load(tmp_path / "x.traj.json", json.dumps(trajectory())[:-40])
    assert not chats
    assert "ends in the middle" in error.what


def test_mini_swe_recordings(recordings: Path) -> None:
    """The 14 recorded trajectories: 1080 calls, to the token, and every one was submitted."""
    problems = Problems()
    batches = find([recordings / "mini-swe-agent"], problems)
    assert [type(batch.reader) for batch in batches] == [MiniSwe] * 14
    chats = list(read(batches, problems))
    assert not problems.errors
    assert len(chats) == 14
    assert sum(len(chat.messages) for chat in chats) == 2175
    assert {chat.meta["exit_status"] for chat in chats} == {"Submitted"}
    calls = [message.call for chat in chats for message in chat.messages if message.call]
    assert len(calls) == sum(1 for chat in chats for _ in chat.calls()) == 1080
    usage = [call.usage for call in calls if call.usage]
    assert sum(used.input or 0 for used in usage) == 20_740_665
    assert sum(used.output or 0 for used in usage) == 215_258
    assert sum(used.cache_read or 0 for used in usage) == 20_471_424
    assert sum(used.cost or 0 for used in usage) == pytest.approx(0.7390, abs=5e-5)


def test_deepseek_caches_in_steps_of_64(recordings: Path) -> None:
    """In 1046 of the 1066 calls that follow another, the hit is floor64 of the prompt and completion before."""
    problems = Problems()
    steps = exact = 0
    for chat in read(find([recordings / "mini-swe-agent"], problems), problems):
        used = [message.call.usage for message in chat.messages if message.call and message.call.usage]
        for before, now in pairwise(used):
            steps += 1
            exact += now.cache_read == ((before.input or 0) + (before.output or 0)) // 64 * 64
    assert (steps, exact) == (1066, 1046)


def test_hits_and_misses_that_are_not_the_prompt(tmp_path: Path) -> None:
    """Such usage is one problem with its field; the message stays, its call reports nothing."""
    record = trajectory()
    record["messages"][2]["extra"]["response"]["usage"]["prompt_cache_miss_tokens"] = 35
    [chat], [problem] = load(tmp_path / "x.traj.json", record)
    assert problem.place.field == "messages[2].extra.response.usage"
    assert problem.what == "64 tokens hit and 35 missed are not the prompt's 100"
    assert chat.messages[2].call == Call("deepseek-chat", "deepseek", None, started=10, stop="tool_calls")


def test_a_stream_that_is_written_twice(tmp_path: Path) -> None:
    """Of two messages of one response the second is a message and no call."""
    record = trajectory()
    record["messages"][2]["extra"]["response"]["id"] = "r1"
    record["messages"].insert(3, {"role": "assistant", "content": "…", "extra": record["messages"][2]["extra"]})
    [chat], [problem] = load(tmp_path / "x.traj.json", record)
    assert problem.place.field == "messages[3]"
    assert "response 'r1' stands at" in problem.what
    assert [message.call is not None for message in chat.messages if message.role == "assistant"] == [True, False]

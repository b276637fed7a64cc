"""pi sessions: old files in a row, newer ones as a tree, damaged ones as far as they go."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Conversation
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


def test_arguments_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    """Arguments are kept as their JSON text, so bytes in them that are no UTF-8 are named too."""
    path = tmp_path / "s.jsonl"
    lines = [json.dumps(one).encode() for one in (HEADER, user(1, "go"), answer(2, call("t1")))]
    path.write_bytes(b"\n".join(lines).replace(b'"path": "a"', b'"path": "\xff"'))
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert len(chat.messages) == 1
    [error] = problems.errors
    assert error.place.line == 3
    assert "not UTF-8" in error.what


@pytest.fixture(scope="module")
def sessions(recordings: Path) -> list[Conversation]:
    problems = Problems()
    found = list(read(find([recordings / "pi-sessions"], problems), problems))
    assert not problems.errors
    return found


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


def test_b15_four_counts_add_up() -> None:
    """B15: input 1,000, output 500, read 200 and written 100 are the 1,800 tokens that pi compares with its window."""
    counts = {"input": 1_000, "output": 500, "cacheRead": 200, "cacheWrite": 100}
    used = usage(counts, Place("session.jsonl"), Problems())
    assert used is not None
    assert used.input is not None
    assert used.output is not None
    assert used.input + used.output == 1_800

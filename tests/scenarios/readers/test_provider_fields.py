"""Fields of a call that providers report beside its tokens: ids, tier, model asked for, first token, errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Call
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems


def calls_of(path: Path) -> list[Call]:
    problems = Problems()
    conversations = list(read(find([path], problems), problems))
    assert not problems.errors, problems.errors
    messages = (message for conversation in conversations for message in conversation.messages)
    return [message.call for message in messages if message.call is not None]


@pytest.mark.parametrize(
    ("folder", "calls", "with_field", "reasoning"),
    [
        ("claude-code", 347, {"request_id": 347, "tier": 347}, 0),
        ("codex", 747, {"tier": 356, "first_token": 12}, 65_739),
        ("gemini-cli", 21, {}, 1_791),
        ("oh-my-pi", 57, {"request_id": 30, "first_token": 57}, 7_582),
        ("pi-sessions", 937, {"error": 41}, 0),
        ("http-cassettes", 28, {"request_id": 28, "tier": 26, "requested": 20}, 2_973),
        ("mini-swe-agent", 1080, {"request_id": 1080}, 0),
        ("openhands", 164, {"request_id": 164}, 0),
    ],
)
def test_the_samples(folder: str, calls: int, with_field: dict[str, int], reasoning: int, recordings: Path) -> None:
    """As many calls have each field as a search of the files for its keys finds."""
    found = calls_of(recordings / folder)
    names = ("request_id", "tier", "requested", "first_token", "error")
    counts = Counter(name for call in found for name in names if getattr(call, name) not in ("", None))
    assert (len(found), counts) == (calls, with_field)
    assert sum((call.usage and call.usage.reasoning) or 0 for call in found) == reasoning

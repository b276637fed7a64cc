"""mini-swe-agent: messages with what `extra` says of their calls, the exit apart."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems


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

"""Recorded conversations made by hand, for tests of what is compared with them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.validation.comparison import CacheReplay, ComparedCall
from ctxbench.scenarios.model import Call, Conversation, Mark, Message, Usage

T0 = 1_790_000_000.0  # a day in September 2026
MODEL = "claude-sonnet-4-5"
COUNTER = TokenCounter()


def call(at: float | None, prompt: int | None, read: int | None, written: int | None, *marks: str, **more: Any) -> Call:
    """Build a call so many seconds after T0 (None = not recorded), with marks after messages of these names.

    `hour`: tokens written for an hour; `ttl` of all marks; anything else is a field of the call.
    """
    ttl, hour, cost = more.pop("ttl", "5m"), more.pop("hour", None), more.pop("cost", None)
    placed = tuple(Mark(each or None, ttl) for each in marks)
    usage = Usage(prompt, 10, read, written, hour, cost)
    return Call(**{"model": MODEL, "usage": usage, "started": None if at is None else T0 + at, "marks": placed, **more})


def said(name: str, *calls: Call, system: str = "", **fields: Any) -> Conversation:
    """Questions u0, u1 … and answers a0, a1 …, each there two seconds after its call began."""
    messages = [Message("s", "system", system)] if system else []
    for at, each in enumerate(calls):
        there = None if each.started is None else each.started + 2
        answer = Message(f"a{at}", "assistant", f"answer {at}", time=there, call=each)
        messages += [Message(f"u{at}", "user", f"question {at} of {fields.get('asks', name)}"), answer]
    fields.pop("asks", None)
    return Conversation(name, tuple(messages), source=f"{name}.jsonl:1", **fields)


def compared(*conversations: Conversation) -> list[ComparedCall]:
    """All their calls, in the order in which they began."""
    return replayed(*conversations)[1]


def replayed(*conversations: Conversation) -> tuple[CacheReplay, list[ComparedCall]]:
    """Return the same, with the assumptions and the calls left out."""
    made = CacheReplay(defaultdict(lambda: COUNTER))
    return made, list(made.compare(conversations))


def reads(rows: Iterable[ComparedCall]) -> list[int]:
    """Return what is predicted to be read."""
    return [row.predicted.read for row in rows]

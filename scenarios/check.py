"""What must be true of every conversation, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from .errors import Place, RecordingError
from .model import Conversation, Usage

_COUNTS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")


def check(conversation: Conversation, place: Place) -> None:
    """Raise a RecordingError for the first thing that is wrong with a conversation read from `place`."""
    for field, what, remedy in faults(conversation):
        raise RecordingError(place.at(field), f"conversation {conversation.id!r}: {what}", remedy)


def faults(conversation: Conversation) -> Iterator[tuple[str, str, str]]:
    """Each fault as (field, what, remedy), in the order of the messages."""
    if not conversation.messages:
        yield "messages", "it has no messages", "leave it out"
    seen: set[str] = set()
    calls: set[str] = set()
    clock = 0.0
    for at, message in enumerate(conversation.messages):
        field = f"messages[{at}]"
        if message.id in seen:
            yield f"{field}.id", f"message id {message.id!r} stands twice", "give every message an id of its own"
        seen.add(message.id)
        calls.update(call.id for call in message.calls)
        if message.role == "tool" and message.answers not in calls:
            yield (
                f"{field}.answers",
                f"tool result for {message.answers!r}, which no earlier message called",
                "name an earlier tool call, or leave the result out",
            )
        if message.role != "tool" and message.answers is not None:
            yield (
                f"{field}.answers",
                f"a message of role {message.role!r} answers a tool call",
                "give it the role 'tool'",
            )
        if message.role != "assistant" and message.calls:
            yield f"{field}.calls", f"a message of role {message.role!r} calls tools", "only the assistant calls tools"
        if message.time is not None:
            if not isfinite(message.time) or message.time < 0:
                yield f"{field}.time", f"time {message.time} is not a moment after 1970", "give seconds since 1970"
            elif message.time < clock:
                yield (
                    f"{field}.time",
                    f"time {message.time} is {clock - message.time:g} s before an earlier message's",
                    "put the messages in the order they were said",
                )
            clock = max(clock, message.time)
        if message.call is not None and message.call.usage is not None:
            yield from _usage_faults(message.call.usage, f"{field}.call.usage")
    yield from _reference_faults(conversation, seen)


def _usage_faults(usage: Usage, field: str) -> Iterator[tuple[str, str, str]]:
    for name in _COUNTS:
        count = getattr(usage, name)
        if count is not None and not 0 <= count < 2**53:
            yield f"{field}.{name}", f"{count} is no number of tokens", "leave it out where it is not known"


def _reference_faults(conversation: Conversation, ids: set[str]) -> Iterator[tuple[str, str, str]]:
    remedy = "name messages of this conversation"
    for at, probe in enumerate(conversation.probes):
        for name in probe.evidence:
            if name not in ids:
                yield f"probes[{at}].evidence", f"evidence {name!r} names no message", remedy
        if probe.after and probe.after not in ids:
            yield f"probes[{at}].after", f"{probe.after!r} names no message", remedy
    for at, fact in enumerate(conversation.facts):
        if fact.source not in ids:
            yield f"facts[{at}].source", f"{fact.source!r} names no message", remedy
        if not 0 <= fact.confidence <= 1:
            yield f"facts[{at}].confidence", f"{fact.confidence} is no confidence", "give one from 0 to 1"
    for at, compaction in enumerate(conversation.compactions):
        for named in (compaction.after, compaction.first_kept):
            if named is not None and named not in ids:
                yield f"compactions[{at}]", f"{named!r} names no message", remedy

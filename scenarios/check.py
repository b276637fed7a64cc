"""What must be true of every conversation, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from msgspec.structs import replace

from .errors import Place, RecordingError
from .model import Conversation, Message, Usage
from .source import Problems

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
    yield from _reference_faults(conversation, seen)


def without_bad_usage(conversation: Conversation, place: Place, problems: Problems) -> Conversation:
    """The conversation without the usage that cannot be; each such call is a problem. Nothing else is lost by it."""
    mended: dict[int, Message] = {}
    for at, message in enumerate(conversation.messages):
        if message.call is None or message.call.usage is None:
            continue
        fault = next(usage_faults(message.call.usage), None)
        if fault is not None:
            where = place.at(f"messages[{at}].call.usage{fault[0] and '.'}{fault[0]}")
            problems.add(RecordingError(where, fault[1], "correct it; the call counts as one that reported nothing"))
            mended[at] = replace(message, call=replace(message.call, usage=None))
    if not mended:
        return conversation
    messages = tuple(mended.get(at, message) for at, message in enumerate(conversation.messages))
    return replace(conversation, messages=messages)


def without_bad_probes(conversation: Conversation, place: Place, problems: Problems) -> Conversation:
    """The conversation without evidence that names no message, and without probes whose place does.

    Each of the two is one problem, with the first of them and how many there are. Nothing else is lost by it.
    """
    ids = {message.id for message in conversation.messages}
    lost = [(at, name) for at, probe in enumerate(conversation.probes) for name in probe.evidence if name not in ids]
    nowhere = [at for at, probe in enumerate(conversation.probes) if probe.after and probe.after not in ids]
    if not lost and not nowhere:
        return conversation
    if lost:
        what = f"evidence {lost[0][1]!r} names no message" + _and_more(len(lost))
        remedy = "correct it; the probes keep the evidence that is there"
        problems.add(RecordingError(place.at(f"probes[{lost[0][0]}].evidence"), what, remedy))
    if nowhere:
        what = f"{conversation.probes[nowhere[0]].after!r} names no message" + _and_more(len(nowhere))
        remedy = "correct it; probes with no place are left out"
        problems.add(RecordingError(place.at(f"probes[{nowhere[0]}].after"), what, remedy))
    kept = (
        replace(probe, evidence=tuple(name for name in probe.evidence if name in ids))
        for at, probe in enumerate(conversation.probes)
        if at not in nowhere
    )
    return replace(conversation, probes=tuple(kept))


def _and_more(number: int) -> str:
    return f", nor {'does' if number == 2 else 'do'} {number - 1} more" if number > 1 else ""


def usage_faults(usage: Usage) -> Iterator[tuple[str, str]]:
    """What cannot be in what a provider reported, each as (field, what). The field is empty for what several say."""
    for name in _COUNTS:
        count = getattr(usage, name)
        if count is not None and not 0 <= count < 2**53:
            yield name, f"{count} is no number of tokens"
    if usage.cost is not None and not (isfinite(usage.cost) and usage.cost >= 0):
        yield "cost", f"{usage.cost} is no cost in US dollars"
    read, written, hour = usage.cache_read or 0, usage.cache_write or 0, usage.cache_write_1h or 0
    if usage.input is not None and read + written > usage.input:
        yield "", f"{read:,} tokens read and {written:,} written are more than the prompt's {usage.input:,}"
    if usage.cache_write is not None and hour > written:
        yield "", f"{hour:,} tokens written for an hour are more than the {written:,} written"


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

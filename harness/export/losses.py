"""Count what a format did not carry, by comparing a conversation with the one that is read back from the file.

Counts come from reading back, not from what a format promises. Ids, sources and what a reader adds (the name of a
result's tool, a format's only provider) are no losses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from ctxbench.scenarios.model import Call, Conversation, Mark, Message, Tool, ToolCall, Usage
from ctxbench.scenarios.read import Batch, parse_format, read
from ctxbench.scenarios.source import Problems

Link = tuple[int, int] | None
"""The call that a result answers: the position of its message, and its number there."""


def read_back(file: Path, reader: str) -> Conversation | None:
    """Return the conversation that a reader makes of a file; None if it makes none."""
    return next(read([Batch(parse_format(reader), (file,))], Problems()), None)


def losses(original: Conversation, copy: Conversation | None) -> Counter[str]:
    """Count by kind what a conversation has and its copy has not, or has otherwise. Messages are compared in order."""
    copy = copy or Conversation(original.id, ())
    return Counter(_differences(original, copy))


def _differences(original: Conversation, copy: Conversation) -> Iterator[str]:
    links, copied_links = _links(original.messages), _links(copy.messages)
    places = {message.id: at for at, message in enumerate(original.messages)}
    copied_places = {message.id: at for at, message in enumerate(copy.messages)}
    for at, message in enumerate(original.messages):
        if at >= len(copy.messages):
            yield "message"
            continue
        copied = copy.messages[at]
        yield from _message(message, copied)
        if message.role == copied.role and links[at] != copied_links[at]:
            yield "tool result link"
        call, copied_call = message.call or Call(), copied.call or Call()
        yield from _call(call, copied_call)
        if _offered(call, original) != _offered(copied_call, copy) and call.tools is not None:
            yield "per-call tool list"
        yield from ["cache mark"] * len(_marks(call, places) - _marks(copied_call, copied_places))
    yield from _whole(original, copy)


def _message(message: Message, copied: Message) -> Iterator[str]:
    if message.role != copied.role:
        yield "role"
    if message.text != copied.text:
        yield "text"
    for made, copied_call in zip_longest(message.calls, copied.calls[: len(message.calls)]):
        yield from _tool_call(made, copied_call)
    if message.name not in ("", copied.name):
        yield "speaker name"
    if message.time not in (None, copied.time):
        yield "time"
    if message.thinking not in ("", copied.thinking):
        yield "thinking text"
    yield from (medium.kind for medium in (Counter(message.media) - Counter(copied.media)).elements())


def _tool_call(made: ToolCall, copied: ToolCall | None) -> Iterator[str]:
    if copied is None or made.name != copied.name:
        yield "tool call"
    elif made.arguments != copied.arguments:
        yield "argument format" if _is_same_json(made.arguments, copied.arguments) else "argument text"


def _is_same_json(one: str, other: str) -> bool:
    try:
        return bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except (msgspec.DecodeError, RecursionError):
        return False


_CALL_FIELDS = {
    "model": "model name",
    "provider": "provider name",
    "started": "start time",
    "effort": "reasoning effort",
    "stop": "stop reason",
    "request_id": "request id",
    "tier": "service tier",
    "requested": "requested model",
    "first_token": "first token time",
    "error": "error text",
}
_PARTS = ("reasoning", "audio_input", "audio_output")
"""Counts of usage that are part of others."""


def _call(call: Call, copied: Call) -> Iterator[str]:
    for field, kind in _CALL_FIELDS.items():
        if getattr(call, field) not in ("", None, getattr(copied, field)):
            yield kind
    usage, copied_usage = call.usage or Usage(), copied.usage or Usage()
    if usage.cost not in (None, copied_usage.cost):
        yield "cost"
    if call.usage is not None and _tokens(usage) != _tokens(copied_usage if copied.usage is not None else None):
        yield "token usage"
    for part in _PARTS:
        if getattr(usage, part) not in (None, getattr(copied_usage, part)):
            yield f"{part.replace('_', ' ')} token count"
    if call.iterations != copied.iterations:
        yield from ["inner request"] * len(call.iterations)
    if call.edits != copied.edits:
        yield from ["context edit"] * len(call.edits)


def _tokens(usage: Usage | None) -> tuple[int | None, ...] | None:
    """Return a usage's token counts; None for one without any."""
    if usage is None:
        return None
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cache_write_1h)
    return None if all(count is None for count in counts) else counts


def _offered(call: Call, conversation: Conversation) -> tuple[Tool, ...]:
    return conversation.tools if call.tools is None else call.tools


def _marks(call: Call, places: dict[str, int]) -> Counter[tuple[int | None, str]]:
    def key(mark: Mark) -> tuple[int | None, str]:
        return (None if mark.after is None else places.get(mark.after, -1)), mark.ttl

    return Counter(map(key, call.marks))


def _links(messages: Sequence[Message]) -> list[Link]:
    """Return the call that each message answers, by position; None for a message that is no result."""
    calls: dict[str, Link] = {}
    links: list[Link] = []
    for at, message in enumerate(messages):
        # Before the message's own calls are known: an id that is used again later names the earlier call here.
        links.append(None if message.answers is None else calls.get(message.answers))
        calls |= {call.id: (at, number) for number, call in enumerate(message.calls)}
    return links


def _whole(original: Conversation, copy: Conversation) -> Iterator[str]:
    lists: tuple[tuple[str, Sequence[Any], Sequence[Any]], ...] = (
        ("tool", original.tools, copy.tools),
        ("probe", original.probes, copy.probes),
        ("fact", original.facts, copy.facts),
        ("compaction", original.compactions, copy.compactions),
    )
    for kind, values, copied in lists:
        yield from [kind for at, value in enumerate(values) if at >= len(copied) or value != copied[at]]
    if original.licence not in ("", copy.licence):
        yield "licence"
    if original.language not in ("", copy.language):
        yield "language"
    yield from ["meta value" for name, value in original.meta.items() if copy.meta.get(name, ...) != value]

"""The recording model: a conversation that really happened, as plain frozen values.

Readers build these values, and every other module reads them. Times are seconds since 1970 (UTC), token counts are
the provider's own, money is US dollars, ids are unique within a conversation. Constructors check nothing: `check` does,
and every recording passes it on its way in.

The lossless file form is JSON Lines, one conversation a line (`Conversation.to_json`). `docs/recording.schema.json`
describes it; `python -m ctxbench.scenarios.model` prints that schema.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import msgspec

from .errors import Place, RecordingError

Role = Literal["system", "user", "assistant", "tool"]
Scalar = str | int | float | bool | None


# gc=False: values have no reference cycles, and a long history would be many objects for the collector to walk.
class _Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of the values: frozen, compared by content, defaults left out of the file, unknown fields rejected."""


class ToolCall(_Value, frozen=True):
    """A tool call by the model. `arguments` is the JSON text exactly as recorded, well-formed or not."""

    id: str
    name: str
    arguments: str = "{}"


class Tool(_Value, frozen=True):
    """A tool offered to the model. `parameters` is its JSON Schema as JSON text."""

    name: str
    description: str = ""
    parameters: str = "{}"


class Usage(_Value, frozen=True):
    """Token counts and cost that the provider reported for one model call.

    `input` is the whole prompt in tokens, cached tokens included, whatever the provider's own field means.
    `None` = the recording does not say.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    """Tokens written to the cache, of all lifetimes together."""
    cache_write_1h: int | None = None
    """Part of `cache_write` that was written with a lifetime of one hour."""
    cost: float | None = None
    reasoning: int | None = None
    """Part of `output` that is thinking, also where the provider counts it apart from the output."""
    audio_input: int | None = None
    """Part of `input` that is audio."""
    audio_output: int | None = None
    """Part of `output` that is audio."""
    audio_read: int | None = None
    """Part of `cache_read` that is audio."""
    image_input: int | None = None
    image_output: int | None = None
    image_read: int | None = None
    searches: int | None = None
    """Web searches that the provider ran, each at a price of its own."""


STOPPED = ("aborted", "cancelled", "error")
"""Stop reasons of calls that did not come to their end."""


class Mark(_Value, frozen=True):
    """A cache breakpoint of the recorded request, after this message (None = after the tools)."""

    after: str | None
    ttl: str = "5m"


class Iteration(_Value, frozen=True):
    """A request that the provider made on its own within one call: a turn with a tool of its own, another model."""

    usage: Usage
    model: str = ""
    """Empty = the call's own."""


class ContextEdit(_Value, frozen=True):
    """An edit that the provider made to the prompt of one call; `usage` counts what was left of it."""

    kind: str
    """The strategy, in the provider's own word: clear_tool_uses_20250919, clear_thinking_20251015 …"""
    tokens: int | None = None
    """Input tokens that were cleared."""
    tool_uses: int | None = None
    """Tool uses whose results were cleared."""
    thinking_turns: int | None = None
    """Answers whose thinking was cleared."""


class Call(_Value, frozen=True):
    """The model call that answered with this message, as far as it was recorded."""

    model: str = ""
    """The model that answered, where the recording says; else the one asked for. It is the one that is billed."""
    provider: str = ""
    usage: Usage | None = None
    started: float | None = None
    marks: tuple[Mark, ...] = ()
    tools: tuple[Tool, ...] | None = None
    """Tools offered at this call; None = the conversation's `tools`."""
    effort: str = ""
    """Reasoning effort, in the recording's own word: off, low, high … Empty = not recorded."""
    stop: str = ""
    """Stop reason, in the recording's own word: stop, tool_calls, aborted, error …"""
    iterations: tuple[Iteration, ...] = ()
    """All requests of this call, if the provider made several. `usage` then has the prompt of the last one that the
    model itself answered, and the output of all of these; the bill is for each of them."""
    request_id: str = ""
    """The provider's id of the response, or of the request where only that is recorded."""
    tier: str = ""
    """Service tier, in the recording's own word: default, standard, flex, priority, batch … Behind it a speed and a
    region of inference that have prices of their own: `standard fast us`."""
    requested: str = ""
    """The model asked for, where another name answered: an alias, a router, a fallback. Empty = `model`."""
    first_token: float | None = None
    """Time at which the first token of the answer arrived."""
    error: str = ""
    """Message of the error that ended the call, in the recording's own words."""
    edits: tuple[ContextEdit, ...] = ()
    """Edits by which the provider cleared parts of the prompt. The messages stay in the history as they were sent."""
    copied: bool = False
    """Whether another recording has the call, which counts there: here its answer is context, without usage."""

    @property
    def billed(self) -> tuple[tuple[str, Usage], ...]:
        """Usage of every request that was billed, each with its model."""
        if self.iterations:
            return tuple((iteration.model or self.model, iteration.usage) for iteration in self.iterations)
        return () if self.usage is None else ((self.model, self.usage),)

    @property
    def was_stopped(self) -> bool:
        """Whether the call ended before the provider reported any usage: no request that anybody was billed for."""
        return self.stop in STOPPED and self.usage is None


MediaKind = Literal["image", "audio", "video", "file"]


class Media(_Value, frozen=True):
    """An image, sound, film or file of a message. Its bytes are not stored; None = the recording does not say."""

    kind: MediaKind
    width: int | None = None
    """Pixels."""
    height: int | None = None
    """Pixels."""
    seconds: float | None = None
    pages: int | None = None
    detail: str = ""
    """Resolution asked for, in the recording's own word: low, high, auto, MEDIA_RESOLUTION_LOW …"""


class Message(_Value, frozen=True):
    """One message. An assistant's is the answer of one model call; a tool's is the result of one tool call."""

    id: str
    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None
    """The id of the tool call whose result this is. Tool messages always have one."""
    name: str = ""
    """The speaker, where the recording names one: a tool, a person."""
    time: float | None = None
    """Time at which the message was complete."""
    thinking: str = ""
    """Reasoning that the recording shows apart from the text."""
    thinking_hidden: bool = False
    """Whether there was reasoning that the recording has no text of: redacted, encrypted."""
    media: tuple[Media, ...] = ()
    """Images, sounds, films and files in it, in order."""
    call: Call | None = None


class Probe(_Value, frozen=True):
    """A question with a known answer, to be asked right after the message `after`."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    """Accepted answers; any one is enough. Empty without gold, or for an unanswerable question."""
    evidence: tuple[str, ...] = ()
    """Ids of the messages that the answer rests on."""
    category: str = ""
    after: str = ""
    """A message id. Empty = at the end of the conversation."""
    answerable: bool = True
    passages: tuple[str, ...] = ()
    """Texts outside the conversation that the answer rests on."""
    rubric: tuple[str, ...] = ()
    time: float | None = None


class Fact(_Value, frozen=True):
    """A fact that the recording itself extracts from a message."""

    text: str
    source: str
    """Id of the message that states it; if several messages do together, the last of them."""
    confidence: float = 1.0
    """0 to 1."""


class Compaction(_Value, frozen=True):
    """A point where the recorded agent replaced the start of its context. The history stays complete."""

    after: str
    """Id of the last message before it."""
    summary: str
    first_kept: str | None = None
    """Id of the first message that was still sent verbatim; None = no earlier message was."""
    tokens_before: int | None = None
    time: float | None = None
    hidden: str = ""
    """Why the recording lacks the summary or a part of it: "it is encrypted". Empty = `summary` is all of it."""
    call: Call | None = None
    """The model call that wrote the summary, as far as it was recorded; it is no call of the conversation."""


class Conversation(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="ctxbench", tag="1"
):
    """One recorded conversation: the messages in order, and what the recording says about them."""

    id: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    probes: tuple[Probe, ...] = ()
    facts: tuple[Fact, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    source: str = ""
    """File that it was read from, with the line number for line formats."""
    licence: str = ""
    language: str = ""
    """An ISO 639-1 code where the source says: en, zh …"""
    meta: dict[str, Scalar] = {}
    """Other values that the recording gives for the whole: a reward, a task, the conversation that started this one.
    `unit` names the independent unit that it belongs to, with others that are alike by the way they were made."""

    def calls(self) -> Iterator[int]:
        """Yield the index of every assistant message that a model call answered with: all but one that opens the
        conversation, copies, and those whose call was stopped before the provider reported anything.

        The call at `index` saw messages[:index] and answered with messages[index].
        """
        return (
            at
            for at, message in enumerate(self.messages)
            if at and message.role == "assistant"
            if (call := message.call) is None or not (call.copied or call.was_stopped)
        )

    def digest(self) -> str:
        """Return the SHA-256 of the content in hex. It does not depend on the file or the sample that it is from."""
        # Without `source` and the unit: the same conversation in another file or sample is the same conversation.
        meta = {name: value for name, value in self.meta.items() if name != "unit"}
        return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(self, source="", meta=meta))).hexdigest()

    def to_json(self) -> bytes:
        """Return the conversation as one line of ctxbench JSONL, without the line end."""
        return msgspec.json.encode(self)


def independent_units(metas: Mapping[str, Mapping[str, Scalar]]) -> dict[str, str]:
    """Map each conversation to its independent unit, by `meta`: what intervals and tests take for one draw.

    It is the one that `meta["unit"]` names, else that of the conversation that started this one (`meta["parent"]`, or
    the id before a slash: `<id>/agent`), else the conversation itself. Those that name each other as parents are one.
    """

    def unit(name: str, below: tuple[str, ...]) -> str:
        meta = metas.get(name, {})
        if "unit" in meta:
            return str(meta["unit"])
        above = (name.rsplit("/", cut)[0] for cut in range(1, name.count("/") + 1))
        parent = str(meta["parent"]) if meta.get("parent") else next((other for other in above if other in metas), name)
        if parent == name:
            return name
        # Of a fork and its origin each may be the other's parent: the one that was read second is given one.
        path = (*below, name)
        return min(path[path.index(parent) :]) if parent in path else unit(parent, path)

    return {name: unit(name, ()) for name in metas}


RECORDED = "recorded"
"""Name of the strategy that sends what the recorded agent sent; the ids of its summaries begin with it."""


class PlacedCompaction(NamedTuple):
    """A compaction with its place among the messages."""

    after: int
    """Place of the last message before it."""
    compaction: Compaction


def placed_compactions(conversation: Conversation) -> tuple[PlacedCompaction, ...]:
    """Return the compactions of a conversation in the order of the messages."""
    if not conversation.compactions:
        return ()
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    placed = (PlacedCompaction(place[compaction.after], compaction) for compaction in conversation.compactions)
    return tuple(sorted(placed, key=itemgetter(0)))


def first_kept(compaction: Compaction, place: Mapping[str, int]) -> int:
    """Return the place of the first message that was still sent verbatim. `place` has that of each message by its id.

    Raises KeyError where a message of the compaction has no place.
    """
    behind = place[compaction.after] + 1
    return behind if compaction.first_kept is None else min(behind, place[compaction.first_kept])


def compacted_start(compaction: Compaction, replaced: Sequence[Message]) -> tuple[Message, ...]:
    """Return what was sent in the place of the messages before the first kept one: system messages and the summary."""
    systems = tuple(message for message in replaced if message.role == "system")
    if not compaction.summary:
        return systems
    return (*systems, Message(f"{RECORDED}:{compaction.after}", "user", compaction.summary))


_COUNT_FIELDS = tuple(name for name in Usage.__struct_fields__ if name != "cost")
# Counts that are part of another one.
_PARTS = (
    ("cache_write_1h", "cache_write", "written for an hour", "written"),
    ("reasoning", "output", "of reasoning", "of output"),
    ("audio_output", "output", "of audio output", "of output"),
    ("audio_input", "input", "of audio input", "of input"),
    ("audio_read", "cache_read", "of audio read", "read"),
    ("image_input", "input", "of image input", "of input"),
    ("image_output", "output", "of image output", "of output"),
    ("image_read", "cache_read", "of image read", "read"),
)


# Larger integers are not exact in JSON readers and floats.
_LARGEST = 2**53


def check(conversation: Conversation, place: Place) -> None:
    """Raise a RecordingError for the first fault of a conversation that was read from `place`."""
    for field, what, remedy in faults(conversation):
        raise RecordingError(place.at(field), f"conversation {conversation.id!r}: {what}", remedy)


def faults(conversation: Conversation) -> Iterator[tuple[str, str, str]]:
    """Yield every fault as (field, what is wrong, remedy), in the order of the messages."""
    if not conversation.messages:
        yield "messages", "it has no messages", "leave it out"
    seen: set[str] = set()
    calls: set[str] = set()
    clock = 0.0
    for at, message in enumerate(conversation.messages):
        role = message.role
        if message.id in seen:
            yield f"messages[{at}].id", f"message id {message.id!r} stands twice", "give every message an id of its own"
        seen.add(message.id)
        if message.calls:
            calls.update(call.id for call in message.calls)
        if role == "tool" and message.answers not in calls:
            what = f"tool result for {message.answers!r}, which no earlier message called"
            yield f"messages[{at}].answers", what, "name an earlier tool call, or leave the result out"
        if role != "tool" and message.answers is not None:
            what = f"a message of role {role!r} answers a tool call"
            yield f"messages[{at}].answers", what, "give it the role 'tool'"
        if role != "assistant" and message.calls:
            yield f"messages[{at}].calls", f"a message of role {role!r} calls tools", "only the assistant calls tools"
        if message.time is not None:
            if not isfinite(message.time) or message.time < 0:
                what = f"time {message.time} is not a moment after 1970"
                yield f"messages[{at}].time", what, "give seconds since 1970"
            elif message.time < clock:
                what = f"time {message.time} is {clock - message.time:g} s before an earlier message's"
                yield f"messages[{at}].time", what, "put the messages in the order they were said"
            clock = max(clock, message.time)
        for number, medium in enumerate(message.media):
            sizes = (medium.width, medium.height, medium.seconds, medium.pages)
            if not all(size is None or (isfinite(size) and 0 <= size < _LARGEST) for size in sizes):
                what = f"a size of the {medium.kind} is no size: {medium}"
                yield f"messages[{at}].media[{number}]", what, "correct it, or leave the size out"
    remedy = "name messages of this conversation"
    for at, probe in enumerate(conversation.probes):
        for field, names in (("evidence", probe.evidence), ("after", filter(None, (probe.after,)))):
            for name in names:
                if name not in seen:
                    yield f"probes[{at}].{field}", f"{name!r} names no message", remedy
    for at, fact in enumerate(conversation.facts):
        if fact.source not in seen:
            yield f"facts[{at}].source", f"{fact.source!r} names no message", remedy
        if not 0 <= fact.confidence <= 1:
            yield f"facts[{at}].confidence", f"{fact.confidence} is no confidence", "give one from 0 to 1"
    for at, compaction in enumerate(conversation.compactions):
        for end in (compaction.after, compaction.first_kept):
            if end is not None and end not in seen:
                yield f"compactions[{at}]", f"{end!r} names no message", remedy


def usage_faults(usage: Usage) -> Iterator[tuple[str, str]]:
    """Yield every impossible value as (field, what is wrong). The field is empty where several fields contradict."""
    for name in _COUNT_FIELDS:
        count = getattr(usage, name)
        if count is not None and not 0 <= count < _LARGEST:
            yield name, f"{count} is no number of tokens"
    if usage.cost is not None and not (isfinite(usage.cost) and usage.cost >= 0):
        yield "cost", f"{usage.cost} is no cost in US dollars"
    read, written = usage.cache_read or 0, usage.cache_write or 0
    if usage.input is not None and read + written > usage.input:
        yield "", f"{read:,} tokens read and {written:,} written are more than the prompt's {usage.input:,}"
    for name, whole_name, part_text, whole_text in _PARTS:
        part, whole = getattr(usage, name), getattr(usage, whole_name)
        if part is not None and whole is not None and part > whole:
            yield "", f"{part:,} tokens {part_text} are more than the {whole:,} {whole_text}"


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one conversation, as it stands in a line of ctxbench JSONL."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "ctxbench conversation", **msgspec.json.schema(Conversation)}


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n")

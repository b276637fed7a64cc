"""The recording model: a conversation that really happened, as plain frozen values.

Every reader makes these and everything else reads them. Times are seconds since 1970 (UTC), token counts are the
provider's own, money is US dollars, ids are unique within a conversation. Nothing here is checked when it is made;
`check.py` holds what must be true, and every recording passes it on its way in.

The lossless file form is JSON Lines, one conversation a line (`Conversation.to_json`), described by
`docs/recording.schema.json`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
Scalar = str | int | float | bool | None


class _Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Frozen, compared by content, defaults left out of the file, unknown fields refused."""


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
    """What the provider reported for one model call.

    `input` is the whole prompt in tokens, cached tokens included, whatever the provider's own field means.
    `None` = the recording does not say.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    """All tokens written to the cache, of any lifetime."""
    cache_write_1h: int | None = None
    """Those of `cache_write` that were written for one hour."""
    cost: float | None = None


class Mark(_Value, frozen=True):
    """A cache breakpoint of the recorded request: it stood after this message (None = after the tools)."""

    after: str | None
    ttl: str = "5m"


class Call(_Value, frozen=True):
    """What was recorded of the model call that answered with this message."""

    model: str = ""
    provider: str = ""
    usage: Usage | None = None
    started: float | None = None
    marks: tuple[Mark, ...] = ()
    tools: tuple[Tool, ...] | None = None
    """The tools offered at this call; None = those of the conversation."""
    effort: str = ""
    """How much the model was to think, in the recording's own word: off, low, high … Empty = it does not say."""
    stop: str = ""
    """Why it ended, in the recording's own word: stop, tool_calls, aborted, error …"""


class Message(_Value, frozen=True):
    """One message. An assistant's is the answer of one model call; a tool's is the result of one tool call."""

    id: str
    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None
    """The id of the tool call whose result this is. Tool messages always have one."""
    name: str = ""
    """Who speaks, where the recording says: a tool's name, a person's."""
    time: float | None = None
    """When the message was complete."""
    thinking: str = ""
    """Reasoning that the recording shows apart from the text."""
    images: int = 0
    """How many images it carried. Their bytes are not kept."""
    call: Call | None = None


class Probe(_Value, frozen=True):
    """A question with a known answer, asked once the conversation has got as far as the message `after`."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    """Accepted answers, each enough. Empty if the recording has no gold, or if it cannot be answered."""
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
    """Something that the recording itself states as a fact of what a message says."""

    text: str
    source: str
    """Id of the message. Of several, the last: only then is it known."""
    confidence: float = 1.0
    """0 to 1."""


class Compaction(_Value, frozen=True):
    """The recorded agent replaced the start of its context here. The history itself is kept whole."""

    after: str
    """Id of the last message said before it."""
    summary: str
    first_kept: str | None = None
    """Id of the first message that was still sent verbatim; None = nothing before was."""
    tokens_before: int | None = None
    time: float | None = None


class Conversation(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="ctxbench", tag="1"
):
    """One recorded conversation: the messages in the order they were said, and what is known about them."""

    id: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    probes: tuple[Probe, ...] = ()
    facts: tuple[Fact, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    source: str = ""
    """Where it was read: a file, with the line for line formats."""
    licence: str = ""
    language: str = ""
    """An ISO 639-1 code where the source says: en, zh …"""
    meta: dict[str, Scalar] = {}
    """What else the recording says of the whole: a reward, a task, the conversation that started this one."""

    def calls(self) -> Iterator[int]:
        """Where the recorded model was called: the index of each assistant message that has something before it.

        The call saw messages[:index] and answered with messages[index].
        """
        return (at for at, message in enumerate(self.messages) if at and message.role == "assistant")

    def digest(self) -> str:
        """SHA-256 of the content in hex: the same whatever file it was read from."""
        return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(self, source=""))).hexdigest()

    def to_json(self) -> bytes:
        """One line of ctxbench JSONL, without the line end."""
        return msgspec.json.encode(self)

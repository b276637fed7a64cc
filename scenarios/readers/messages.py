"""OpenAI's chat form as our messages, times, and histories of sessions that were recorded live.

    {"role", "content": text | [blocks] | null, "tool_calls": [{"id", "function": {"name", "arguments"}}],
     "tool_call_id", "name"}

The roles `developer` and `function` are the newer and older words for `system` and `tool`. Blocks of an unknown type
are read as their plain `text`; those that have none are counted in the notes. Messages of all other forms, and of none
in particular, are read by `prompts.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from ..chat import ROLES
from ..errors import Place, RecordingError
from ..media import document_text, media_of
from ..model import Call, Compaction, Conversation, Media, Message, Role, Tool, ToolCall
from ..source import Problems, as_text, decode
from . import OBJECT, Fields

# Blocks that may have no text: it is empty, or encrypted, or they are read otherwise.
_WITHOUT_TEXT = (
    *("text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "compaction"),
    *("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result", "toolCall"),
)

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""An ISO time with its zone. A time without one would be read in the zone of the reading machine."""


class ChatFunction(msgspec.Struct):
    """Name and arguments of a tool call. Some recorders store the arguments as an object instead of text."""

    name: str
    arguments: str | dict[str, Any] | None = None
    input: str | None = None  # of a custom tool, whose arguments are a text


class ChatCall(msgspec.Struct):
    """One tool call."""

    function: ChatFunction | None = None
    custom: ChatFunction | None = None
    id: str | None = None


class ChatMessage(msgspec.Struct):
    """One message. Content blocks are read by `texts`, whatever their type."""

    role: str
    content: str | list[dict[str, Any] | str] | dict[str, Any] | None = None
    tool_calls: list[ChatCall] | None = None
    function_call: ChatFunction | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: str | None = None
    audio: Any = None


def chat_messages(messages: Iterable[ChatMessage], place: Place, problems: Problems) -> tuple[Message, ...]:
    """Return chat messages in our form, with the ids `m0`, `m1` … `place` is the place of the list, for errors."""
    converted: list[Message] = []
    waiting = [""]  # calls of the last answer that had some; the last one stays, and a surplus result answers it again
    for at, message in enumerate(messages):
        where = place.at(f"{place.field}[{at}]")
        converted.append(chat_message(message, f"m{at}", where, problems, waiting[0]))
        if converted[-1].calls:
            waiting = [call.id for call in converted[-1].calls]
        elif len(waiting) > 1 and converted[-1].answers in waiting:
            waiting.remove(converted[-1].answers)
    return tuple(converted)


def chat_message(
    message: ChatMessage,
    name: str,
    place: Place,
    problems: Problems,
    open_call: str = "",
    time: float | None = None,
    call: Call | None = None,
) -> Message:
    """Return one chat message in our form, with the id `name`.

    A tool result without the id of its call (the older function form) answers `open_call`. A role that nobody knows is
    the name of a tool.
    """
    content, speaker = message.content, message.name or ""
    if message.role in ROLES or not message.role:
        role = role_of(message.role, place)
    else:
        role, speaker = "tool", speaker or message.role
        problems.unknown(f"role {message.role!r}, read as a tool's", place)
    calls = tuple(_call(call, f"{name}c{n}", place, n) for n, call in enumerate(message.tool_calls or ()))
    if message.function_call is not None and not calls:
        calls = (_call(ChatCall(message.function_call), f"{name}c0", place, 0),)
    if isinstance(content, dict):
        content = [content] if "type" in content else as_text(content)
    text, media, thinking = texts(content, place.at(f"{place.field}.content".removeprefix(".")), problems)
    text = text or message.refusal or transcript(message.audio)
    answers = (message.tool_call_id or open_call) if role == "tool" else None
    told, hides = reasoning((message.reasoning_content, message.reasoning), message.reasoning_details)
    return Message(name, role, text, calls, answers, speaker, time, told or thinking, hides, media, call)


def reasoning(told: Iterable[Any], details: Any) -> tuple[str, bool]:
    """Return the reasoning of a chat message, and whether there is some without a text.

    `told` are the fields that hosts have for it, `details` OpenRouter's list `[{type, text | summary | data}]`.
    """
    text = next((one for one in told if one and isinstance(one, str)), "")
    if text or not isinstance(details, list):
        return text, False
    parts = [part for part in details if isinstance(part, dict)]
    text = joined(str(part.get("text") or part.get("summary") or "") for part in parts)
    return text, bool(parts) and not text


def transcript(audio: Any) -> str:
    """Return what an answer in speech says."""
    return str(audio.get("transcript") or "") if isinstance(audio, dict) else ""


def role_of(role: str, place: Place) -> Role:
    """Return our name of a recorded role. Raises RecordingError if it is unknown."""
    if role not in ROLES:
        raise RecordingError(place.at(f"{place.field}.role"), f"unknown role {role!r}", f"use {', '.join(ROLES)}")
    return ROLES[role]


def texts(
    content: str | list[dict[str, Any] | str] | None, place: Place, problems: Problems
) -> tuple[str, tuple[Media, ...], str]:
    """Return content as (text, media, thinking). Text blocks are joined by line ends.

    Blocks of another type are counted as unknown. Raises RecordingError for a text that is none.
    """
    if content is None or isinstance(content, str):
        return content or "", (), ""
    text, thinking, media = [], [], []
    for at, block in enumerate(content):
        if isinstance(block, str):
            text.append(block)
        elif (medium := media_of(block)) is not None:
            media.append(medium)
        elif block.get("type") in ("thinking", "reasoning"):
            thinking.append(str(block.get("thinking") or block.get("text") or ""))
        elif (
            plain := block.get("text") or block.get("refusal") or block.get("transcript") or document_text(block)
        ) is None:
            if (kind := block.get("type")) is None and "text" not in block:
                text.append(as_text(block))  # an object that a tool gave
            elif kind not in _WITHOUT_TEXT:
                problems.unknown(f"content block of type {kind!r}", place.at(f"{place.field}[{at}]"))
        elif isinstance(plain, str):
            text.append(plain)
        else:
            what = f"expected str, got {type(plain).__name__}"
            raise RecordingError(place.at(f"{place.field}[{at}].text"), what, "correct it, or leave this record out")
    return "\n".join(text), tuple(media), joined(thinking)


def tool_call(fields: Fields, name: str, function: str, arguments: str) -> ToolCall:
    """Return the tool call whose id, function and arguments stand at these paths."""
    made = as_text(fields.at(arguments) or {})
    return ToolCall(fields.needed(name, str, blank=True), fields.needed(function, str), made)


def tool(function: dict[str, Any]) -> Tool:
    """Return a tool from `{name, description, parameters | input_schema}`."""
    schema = function.get("parameters") or function.get("input_schema") or {}
    return Tool(
        str(function.get("name", "")), str(function.get("description") or ""), msgspec.json.encode(schema).decode()
    )


def _call(call: ChatCall, name: str, place: Place, number: int) -> ToolCall:
    if (made := call.function or call.custom) is None:
        what = "object missing required field function"
        raise RecordingError(place.below(f"tool_calls[{number}]"), what, "correct it, or leave this record out")
    arguments = made.input if made.arguments is None else made.arguments
    return ToolCall(call.id or name, made.name, as_text({} if arguments is None else arguments))


class _Part(msgspec.Struct):
    input: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    arguments: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Body(msgspec.Struct):
    """Where the arguments of tool calls stand in Anthropic's form, and in pi's."""

    content: str | list[_Part | str] | None = None
    messages: list[_Body] = []
    message: _Body | None = None
    data: _Body | None = None
    request: _Body | None = None
    response: _Body | None = None

    def put_inputs(self, record: dict[str, Any]) -> None:
        """Put the arguments into a decoded record as the texts that were recorded."""
        for part, held in zip(self.content or (), record.get("content") or (), strict=True):
            for name in ("input", "arguments") if isinstance(part, _Part) else ():
                if (raw := getattr(part, name)) is not msgspec.UNSET:
                    held[name] = bytes(raw).decode()
        for body, held in zip(self.messages, record.get("messages", ()), strict=True):
            body.put_inputs(held)
        for name in ("message", "data", "request", "response"):
            if (body := getattr(self, name)) is not None:
                body.put_inputs(record[name])


def decoded_body(raw: bytes, place: Place) -> dict[str, Any]:
    """Decode a message, a request, a response or what holds one. Arguments of tool calls stay as they were written."""
    record = decode(raw, OBJECT, place)
    if b'tool_use"' in raw or b'"toolCall"' in raw:
        with suppress(RecordingError):  # parts of another form
            decode(raw, _Body, place).put_inputs(record)
    return record


def seconds(text: str, form: str, place: Place, example: str) -> float:
    """Return the seconds since 1970 of a time in a `strptime` form, as UTC. Raises RecordingError with the example."""
    try:
        return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise RecordingError(place, f"{text!r} is no time", f"write it like {example!r}") from None


def moment_seconds(moment: datetime | None) -> float | None:
    """Return the seconds since 1970 of a time with its zone; None if it was not recorded."""
    return None if moment is None else moment.timestamp()


def milliseconds(fields: Fields, paths: str) -> float | None:
    """Return a recorded time in milliseconds in seconds since 1970; None if there is none."""
    time = fields.typed(paths, float)
    return None if time is None else time / 1000


def iso_seconds(text: str, place: Place) -> float:
    """Return the seconds since 1970 of a time in ISO 8601; without a zone it is taken as UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise RecordingError(place, f"{text!r} is no time", "write it like '2025-06-15T12:00:00'") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def epoch_seconds(time: float, place: Place) -> float:
    """Return the seconds since 1970 of a time in seconds, milliseconds, microseconds or nanoseconds: its size tells."""
    for unit in (1, 10**3, 10**6, 10**9):
        if 0 <= time / unit < _LATEST:
            return time / unit
    raise RecordingError(place, f"{time!r} is no time", "write seconds since 1970, or '2025-06-15T12:00:00'")


_LATEST = 1e11  # more seconds than any recording has seen, and fewer milliseconds than any has


def iso_time(fields: Fields, path: str) -> float | None:
    """Return a recorded time in ISO 8601 in seconds since 1970; None if there is none."""
    text = fields.typed(path, str)
    return iso_seconds(text, fields.below(path)) if text else None


def forward(times: Iterable[float | None]) -> tuple[list[float | None], int]:
    """Replace by None as few times as possible so that none runs behind an earlier one; return their number as well.

    >>> forward([1, 3, 2, 4])
    ([1, 3, None, 4], 1)
    >>> forward([1, 99, 2, 3])
    ([1, None, 2, 3], 1)
    """
    recorded = list(times)
    kept = set(rising(recorded))
    cleaned = [time if at in kept else None for at, time in enumerate(recorded)]
    return cleaned, sum(time is not None for time in recorded) - len(kept)


def rising(times: Sequence[float | None]) -> list[int]:
    """Return the indices of a longest non-decreasing subsequence of the times; None is skipped.

    Of several of that length the one that comes first is taken, so the search runs from the end.
    """
    known = [(at, time) for at, time in enumerate(times) if time is not None]
    if all(earlier[1] <= later[1] for earlier, later in pairwise(known)):
        return [at for at, _ in known]
    # Of 1 99 2 3 the 3 begins a row of one time, the 2 a row of two; 99 is a later begin of a row of one than 3; 1 goes
    # before the 2, for a row of three.
    begins: list[float] = []  # begins[n]: the latest time, negated, with which a row of n + 1 times can begin
    rows: list[Any] = []  # rows[n]: the place of that time, and the row behind it
    for at, time in reversed(known):
        length = bisect_right(begins, -time)
        row = at, rows[length - 1] if length else None
        begins[length : length + 1], rows[length : length + 1] = [-time], [row]
    indices, rest = list[int](), rows[-1]
    while rest is not None:
        at, rest = rest
        indices.append(at)
    return indices


def in_order(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages without the times that run backwards: clocks of several machines disagree."""
    times, backwards = forward(message.time for message in messages)
    if not backwards:
        return tuple(messages)
    pairs = zip(messages, times, strict=True)
    return tuple(m if m.time == time else replace(m, time=time) for m, time in pairs)


@dataclass(slots=True)
class History:
    """Messages of a session that was recorded live, added one by one and repaired.

    A tool result whose call is missing (its line was damaged) is left out, and is a problem. Times that run backwards
    become None, as few as possible: results of parallel tools, and of tools that ran while the answer still streamed,
    are recorded in the order of their calls.
    """

    problems: Problems
    messages: list[Message] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    _calls: set[str] = field(default_factory=set)
    _count: int = 0

    @property
    def next(self) -> str:
        """Id for the next message if the recording has none: `m0`, `m1` …"""
        return f"m{self._count}"

    def add(self, message: Message, place: Place) -> None:
        """Add the next message, which stands at `place`."""
        if not message.id:
            message = replace(message, id=self.next)
        self._count += 1
        if message.role == "tool" and message.answers not in self._calls:
            what = f"tool result for {message.answers!r}, which no message before it called"
            self.problems.add(RecordingError(place, what, "restore the line with the call"))
            return
        self._calls.update(call.id for call in message.calls)
        self.messages.append(message)

    def extend(self, at: int, calls: tuple[ToolCall, ...]) -> None:
        """Add tool calls to the message at `at`, of which another part was recorded later."""
        message = self.messages[at]
        self._calls.update(call.id for call in calls)
        self.messages[at] = replace(message, calls=message.calls + calls)

    def compact(self, summary: str, first_kept: str | None = None, **about: Any) -> None:
        """Add a compaction behind the last message; `about` are other fields of `Compaction`."""
        self.compactions.append(Compaction(self.last, summary, first_kept, **about))

    def conversation(self, name: str, system: str = "", **about: Any) -> Conversation:
        """Return the session, with the times that run backwards removed; `about` are other fields of `Conversation`.

        A system prompt that stands beside the messages is the first of them, `system`.
        """
        before = (Message("system", "system", system),) if system else ()
        return Conversation(name, (*before, *in_order(self.messages)), compactions=tuple(self.compactions), **about)

    @property
    def last(self) -> str:
        """Id of the last message; empty before the first."""
        return self.messages[-1].id if self.messages else ""


TOOL_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
HOSTED = (
    *("web_search_call", "image_generation_call", "file_search_call", "code_interpreter_call"),
    *("mcp_call", "mcp_list_tools"),
)
COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
ENCRYPTED = "[The rest is a summary that is encrypted.]"  # placeholder for the summary of a compaction
IS_ENCRYPTED = "it is encrypted"  # reason for which the summary is not recorded (`Compaction.hidden`)


def joined(texts: Iterable[str]) -> str:
    """Return the texts that are not empty, one behind the other on lines of their own."""
    return "\n".join(text for text in texts if text)

"""Contents of Google's Gemini API as messages: what Gemini CLI records, and what requests and responses hold.

    {"role": "user" | "model", "parts": [{"text"} · {"text", "thought": true} · {"inlineData"} · {"fileData"} ·
      {"functionCall": {"name", "args", "id"}} · {"functionResponse": {"name", "response", "id"}}]}

Source: ai.google.dev/api/caching#Content. A result of a function is a part of a user's content there and a message of
its own here. Calls often have no ids: a result then answers the first call of its name that has none yet. Inline and
uploaded data are media by their MIME type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..media import media_of
from ..model import Call, Conversation, Media, Message, ToolCall, Usage
from ..source import Problems, as_text, convert, decode
from . import Reader, Recordings
from .fields import Fields
from .messages import History, Moment, moment_seconds


class FunctionCall(msgspec.Struct):
    """A tool call."""

    name: str
    args: dict[str, Any] | None = None
    id: str | None = None


class FunctionResponse(msgspec.Struct):
    """The result of a tool call."""

    response: dict[str, Any] = {}
    name: str = ""
    id: str | None = None


class GeminiPart(msgspec.Struct, rename="camel"):
    """One part of a content."""

    text: str | None = None
    thought: bool = False
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: dict[str, Any] | None = None
    file_data: dict[str, Any] | None = None
    media_resolution: Any = None
    thought_signature: str | None = None


class GeminiContent(msgspec.Struct):
    """One side's turn."""

    parts: list[GeminiPart] = []
    role: str = ""


def part_text(
    parts: Iterable[GeminiPart | str | None], place: Place, problems: Problems
) -> tuple[str, tuple[Media, ...]]:
    """Return parts as text and media, without thoughts; parts of another kind are counted as unknown."""
    texts, media = [], []
    for part in parts:
        if isinstance(part, GeminiPart):
            if part.text is not None:
                texts += [] if part.thought else [part.text]
            elif part.function_response is not None:
                texts.append(_response(part.function_response.response))
            elif (medium := media_of(msgspec.structs.asdict(part))) is not None:
                media.append(medium)
            elif part.function_call is None and part.thought_signature is None:
                problems.unknown("gemini: part without a text, a call, a result or a file", place)
        elif part:
            texts.append(part)
    return "\n".join(texts), tuple(media)


def content_messages(
    contents: Sequence[GeminiContent], names: Iterator[str], place: Place, problems: Problems
) -> Iterator[Message]:
    """Yield the messages of a request's contents. `place` is the place of the list, for errors."""
    unanswered: list[ToolCall] = []
    for at, content in enumerate(contents):
        where = place.at(f"{place.field}[{at}].parts")
        if content.role == "model":
            message = model_message(content.parts, next(names), where, problems)
            unanswered += message.calls
            yield message
            continue
        results = [part.function_response for part in content.parts if part.function_response is not None]
        for result in results:
            call = next((c for c in unanswered if c.id == result.id or (not result.id and c.name == result.name)), None)
            if call is None:
                what = f"a result of {result.name!r}, which no content before it called"
                problems.add(RecordingError(where, what, "restore the content with the call"))
                continue
            # So the next result of the same name answers the next call of it.
            unanswered.remove(call)
            yield Message(next(names), "tool", _response(result.response), answers=call.id, name=result.name)
        others = [part for part in content.parts if part.function_response is None]
        if others or not results:
            text, media = part_text(others, where, problems)
            yield Message(next(names), "user", text, media=media)


def model_message(
    parts: Sequence[GeminiPart],
    name: str,
    place: Place,
    problems: Problems,
    time: float | None = None,
    call: Call | None = None,
) -> Message:
    """Return a model's content as a message with the id `name`."""
    text, media = part_text(parts, place, problems)
    made = [part.function_call for part in parts if part.function_call is not None]
    calls = (ToolCall(one.id or f"{name}c{at}", one.name, as_text(one.args or {})) for at, one in enumerate(made))
    thinking = "\n".join(part.text for part in parts if part.thought and part.text)
    return Message(name, "assistant", text, tuple(calls), time=time, thinking=thinking, media=media, call=call)


def _response(response: dict[str, Any]) -> str:
    """Return what a tool answered: its output or error, or else the whole of it as JSON."""
    shown = response.get("output", response.get("error"))
    return shown if isinstance(shown, str) else as_text(response)


_SCREEN = ("info", "warning", "error")


_Content = str | GeminiPart | list[GeminiPart | str] | None


class _ToolCall(msgspec.Struct):
    id: str
    name: str
    args: dict[str, Any] = {}
    result: _Content = None
    timestamp: Moment | None = None


class _Message(msgspec.Struct, rename="camel"):
    type: str
    content: _Content = None
    timestamp: Moment | None = None
    model: str = ""
    thoughts: list[dict[str, str]] | None = None
    tokens: Any = None
    tool_calls: list[_ToolCall] | None = None


class _Session(msgspec.Struct, rename="camel"):
    session_id: str
    messages: list[Any]


class GeminiCli(Reader):
    """Gemini CLI sessions: one JSON object, `~/.gemini/tmp/<project>/chats/session-<time>-<id>.json`.

        {sessionId, messages: [{id, timestamp, type, content, model, thoughts: [{subject, description}],
          tokens: {input, output, cached, thoughts, tool, total}, toolCalls: [{id, name, args, result, timestamp}]}]}

    Source: github.com/google-gemini/gemini-cli, `packages/core/src/services/chatRecordingService.ts`. The sessions have
    no system prompt, tool schemas or start times of calls.

    - A message of type `gemini` with tokens is a call. Its tool calls and their results stand in it; the results become
      messages of their own behind it.
    - `input` includes what was read from the cache; tokens of `tool` prompts come on top of it. Thoughts are billed as
      output, so our output is `output` + `thoughts`. Tokens that are all zero are no usage.
    - Messages of type `info`, `warning` and `error` are what the screen shows, and are not sent.
    """

    about = "Gemini CLI sessions (one JSON object)"
    shapes = (
        frozenset({".sessionId", ".messages", ".messages[].type", ".messages[].timestamp", ".messages[].content"}),
    )

    def conversations(self, raw: bytes, place: Place, problems: Problems) -> Recordings:
        session = decode(raw, _Session, place)
        history, names = History(problems), (f"m{number}" for number in count())
        for at, recorded in enumerate(session.messages):
            where = place.at(f"messages[{at}]")
            with problems.collect():
                for message in _messages(convert(recorded, _Message, where), names, where, problems):
                    history.add(message, where)
        if history.messages:
            yield place, Conversation(session.session_id, history.in_order())


def _messages(message: _Message, names: Iterator[str], place: Place, problems: Problems) -> Iterator[Message]:
    """Yield the message, and the results of its tool calls; nothing for what only the screen shows."""
    text, media = part_text(_parts(message.content), place.below("content"), problems)
    time = moment_seconds(message.timestamp)
    if message.type == "user":
        yield Message(next(names), "user", text, time=time, media=media)
    elif message.type == "gemini":
        made = message.tool_calls or []
        calls = tuple(ToolCall(call.id, call.name, as_text(call.args)) for call in made)
        thoughts = (
            f"{thought.get('subject', '')}\n{thought.get('description', '')}" for thought in message.thoughts or ()
        )
        call, thinking = (
            Call(message.model, usage=_usage(message.tokens, place.below("tokens"), problems)),
            "\n".join(thoughts),
        )
        yield Message(next(names), "assistant", text, calls, time=time, thinking=thinking, media=media, call=call)
        for at, called in enumerate(made):
            if called.result is not None:
                text, media = part_text(_parts(called.result), place.below(f"toolCalls[{at}].result"), problems)
                time = moment_seconds(called.timestamp)
                yield Message(next(names), "tool", text, answers=called.id, name=called.name, time=time, media=media)
    elif message.type not in _SCREEN:
        problems.unknown(f"gemini_cli: message of type {message.type!r}", place)


def _parts(content: _Content) -> list[GeminiPart | str | None]:
    return [*content] if isinstance(content, list) else [content]


def _usage(recorded: Any, place: Place, problems: Problems) -> Usage | None:
    with problems.collect():
        fields = Fields({} if recorded is None else convert(recorded, dict, place), place)
        counts = (fields.typed(name, int) for name in ("input", "output", "cached", "thoughts", "tool"))
        prompt, output, cached, thoughts, tool = counts
        # `input` includes what was cached, but not the prompts of Gemini's own tools, nor `output` the thoughts.
        used = Usage((prompt or 0) + (tool or 0), (output or 0) + (thoughts or 0), cached or 0, reasoning=thoughts)
        return used if any((used.input, used.output, used.cache_read)) else None
    return None

"""Contents of Google's Gemini API as messages: what Gemini CLI records, and what requests and responses hold.

    {"role": "user" | "model", "parts": [{"text"} · {"text", "thought": true} · {"inlineData"} · {"fileData"} ·
      {"functionCall": {"name", "args", "id"}} · {"functionResponse": {"name", "response", "id"}}]}

Source: ai.google.dev/api/caching#Content. A result of a function is a part of a user's content there and a message of
its own here. Calls often have no ids: a result then answers the first call of its name that has none yet. Inline and
uploaded data are media by their MIME type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ..errors import Place
from ..media import media_of
from ..model import Call, Conversation, Media, Message, ToolCall, Usage
from ..source import Problems, as_text, convert, decode
from . import OBJECT, Fields, Reader, Recordings
from .messages import History, Moment, moment_seconds


class _FunctionResponse(msgspec.Struct):
    response: dict[str, Any] = {}


class GeminiPart(msgspec.Struct, rename="camel"):
    """One part of a content."""

    text: str | None = None
    thought: bool = False
    function_call: dict[str, Any] | None = None
    function_response: _FunctionResponse | None = None
    inline_data: dict[str, Any] | None = None
    file_data: dict[str, Any] | None = None
    media_resolution: Any = None
    thought_signature: str | None = None


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
                response = part.function_response.response
                shown = response.get("output", response.get("error"))
                texts.append(shown if isinstance(shown, str) else as_text(response))
            elif (medium := media_of(msgspec.structs.asdict(part))) is not None:
                media.append(medium)
            elif part.function_call is None and part.thought_signature is None:
                problems.unknown("gemini: part without a text, a call, a result or a file", place)
        elif part:
            texts.append(part)
    return "\n".join(texts), tuple(media)


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
        history = History(problems)
        for at, recorded in enumerate(session.messages):
            where = place.at(f"messages[{at}]")
            with problems.collect():
                for message in _messages(convert(recorded, _Message, where), where, problems):
                    history.add(message, where)
        if history.messages:
            yield place, Conversation(session.session_id, history.in_order())


def _messages(message: _Message, place: Place, problems: Problems) -> Iterator[Message]:
    """Yield the message, and the results of its tool calls; nothing for what only the screen shows."""
    text, media = part_text(_parts(message.content), place.below("content"), problems)
    time = moment_seconds(message.timestamp)
    if message.type == "user":
        yield Message("", "user", text, time=time, media=media)
    elif message.type == "gemini":
        made = message.tool_calls or []
        calls = tuple(ToolCall(call.id, call.name, as_text(call.args)) for call in made)
        told = message.thoughts or ()
        thinking = "\n".join(f"{thought.get('subject', '')}\n{thought.get('description', '')}" for thought in told)
        call = Call(message.model, usage=_usage(message.tokens, place.below("tokens"), problems))
        yield Message("", "assistant", text, calls, time=time, thinking=thinking, media=media, call=call)
        for at, called in enumerate(made):
            if called.result is not None:
                text, media = part_text(_parts(called.result), place.below(f"toolCalls[{at}].result"), problems)
                time = moment_seconds(called.timestamp)
                yield Message("", "tool", text, answers=called.id, name=called.name, time=time, media=media)
    elif message.type not in ("info", "warning", "error"):  # what only the screen shows
        problems.unknown(f"gemini_cli: message of type {message.type!r}", place)


def _parts(content: _Content) -> list[GeminiPart | str | None]:
    return [*content] if isinstance(content, list) else [content]


def _usage(recorded: Any, place: Place, problems: Problems) -> Usage | None:
    with problems.collect():
        fields = Fields({} if recorded is None else convert(recorded, OBJECT, place), place)
        counts = (fields.typed(name, int) for name in ("input", "output", "cached", "thoughts", "tool"))
        prompt, output, cached, thoughts, tool = counts
        # `input` includes what was cached, but not the prompts of Gemini's own tools, nor `output` the thoughts.
        used = Usage((prompt or 0) + (tool or 0), (output or 0) + (thoughts or 0), cached or 0, reasoning=thoughts)
        return used if any((used.input, used.output, used.cache_read)) else None
    return None

"""Gemini CLI sessions: one JSON object, `~/.gemini/tmp/<project>/chats/session-<time>-<id>.json`.

    {sessionId, messages: [{id, timestamp, type, content, model, thoughts: [{subject, description}],
      tokens: {input, output, cached, thoughts, tool, total}, toolCalls: [{id, name, args, result, timestamp}]}]}

Source: github.com/google-gemini/gemini-cli, `packages/core/src/services/chatRecordingService.ts`. The sessions have no
system prompt, tool schemas or start times of calls.

- A message of type `gemini` with tokens is a call. Its tool calls and their results stand in it; the results become
  messages of their own behind it.
- `input` includes what was read from the cache; tokens of `tool` prompts come on top of it. Thoughts are billed as
  output, so our output is `output` + `thoughts`. Tokens that are all zero are no usage.
- Messages of type `info`, `warning` and `error` are what the screen shows, and are not sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message, ToolCall, Usage
from ..source import Problems, as_text, convert, decode, records
from . import Recordings
from .gemini_api import GeminiPart, part_text
from .messages import History, Moment, moment_seconds

_SCREEN = ("info", "warning", "error")


class _Thought(msgspec.Struct):
    subject: str = ""
    description: str = ""


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
    thoughts: list[_Thought] | None = None
    tokens: Any = None
    tool_calls: list[_ToolCall] | None = None


class _Tokens(msgspec.Struct):
    input: int = 0
    output: int = 0
    cached: int = 0
    thoughts: int | None = None
    tool: int | None = None


class _Session(msgspec.Struct, rename="camel"):
    session_id: str
    messages: list[Any]


@dataclass(frozen=True, slots=True)
class GeminiCli:
    """Sessions of Gemini CLI."""

    about: ClassVar[str] = "Gemini CLI sessions (one JSON object)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".sessionId", ".messages", ".messages[].type", ".messages[].timestamp", ".messages[].content"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
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
    text, media = part_text(_parts(message.content), place.at(f"{place.field}.content"), problems)
    time = moment_seconds(message.timestamp)
    if message.type == "user":
        yield Message(next(names), "user", text, time=time, media=media)
    elif message.type == "gemini":
        calls = message.tool_calls or []
        yield Message(
            next(names),
            "assistant",
            text,
            calls=tuple(ToolCall(call.id, call.name, as_text(call.args)) for call in calls),
            time=time,
            thinking="\n".join(f"{thought.subject}\n{thought.description}" for thought in message.thoughts or ()),
            media=media,
            call=Call(message.model, usage=_usage(message.tokens, place.at(f"{place.field}.tokens"), problems)),
        )
        for at, call in enumerate(calls):
            if call.result is not None:
                text, media = part_text(
                    _parts(call.result), place.at(f"{place.field}.toolCalls[{at}].result"), problems
                )
                when = moment_seconds(call.timestamp)
                yield Message(next(names), "tool", text, answers=call.id, name=call.name, time=when, media=media)
    elif message.type not in _SCREEN:
        problems.unknown(f"gemini_cli: message of type {message.type!r}", place)


def _parts(content: _Content) -> list[GeminiPart | str | None]:
    return [*content] if isinstance(content, list) else [content]


def _usage(recorded: Any, place: Place, problems: Problems) -> Usage | None:
    if recorded is None:
        return None
    try:
        tokens = convert(recorded, _Tokens, place)
    except RecordingError as error:
        problems.add(error)
        return None
    # `input` includes what was cached, but not the prompts of Gemini's own tools, nor `output` the thoughts.
    prompt, output = tokens.input + (tokens.tool or 0), tokens.output + (tokens.thoughts or 0)
    used = Usage(prompt, output, tokens.cached, reasoning=tokens.thoughts)
    return used if any((used.input, used.output, used.cache_read)) else None

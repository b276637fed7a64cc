"""Anthropic Messages API requests: `{system, tools, messages, …}`, or logs of them, `{"request": …, "response": …}`.

Source: docs.anthropic.com/en/api/messages. One JSON object, an array, or JSON Lines; requests of one file that extend
each other are one conversation. Cache breakpoints of a request (`cache_control`) are kept with its answer, so only logs
have them; of a message with several marked blocks one is kept, after it. One for the whole request is one after its
last message. There are no times in it. Sampling options and headers are not read, images only counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Mark, Message
from ..source import Problems, decode, records
from . import Found
from .blocks import Block, Content, assistant_message, blocks, user_messages, user_parts
from .chat import tool
from .requests import LoggedRequest, Responses, effort, mark, series
from .usage import usage


class _Turn(msgspec.Struct):
    role: str
    content: Content


class _Request(msgspec.Struct):
    messages: list[_Turn]
    system: Content | None = None
    tools: list[dict[str, Any]] = []
    thinking: Any = None
    output_config: Any = None
    cache_control: Any = None


class _Response(msgspec.Struct):
    content: list[Block] | None = None
    id: str | None = None
    model: str = ""
    stop_reason: str | None = None
    usage: Any = None


class _Logged(msgspec.Struct):
    request: _Request | None = None
    response: _Response | None = None


def _shapes() -> Iterator[frozenset[str]]:
    for outer in ("", "[]", ".request", "[].request"):
        turns = {f"{outer}.messages", f"{outer}.messages[].role"}
        yield frozenset({*turns, f"{outer}.system"})
        yield frozenset({*turns, f"{outer}.tools[].input_schema"})
        yield frozenset({*turns, f"{outer}.messages[].content[].type", f"{outer}.messages[].content[].tool_use_id"})
    for outer in ("", "[]"):
        yield frozenset(
            {f"{outer}.request.messages[].role", f"{outer}.response.content", f"{outer}.response.stop_reason"}
        )


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """Requests to Anthropic's API, with or without the responses."""

    about: ClassVar[str] = "Anthropic Messages API requests, alone or as {request, response} logs"
    shapes: ClassVar[tuple[frozenset[str], ...]] = tuple(_shapes())
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Found:
        for path in files:
            for run in series(_requests(path, problems)):
                yield run.conversation(path.stem)


def _requests(path: Path, problems: Problems) -> Iterator[LoggedRequest]:
    responses = Responses(problems)
    for place, raw in records(path, problems):
        try:
            logged = decode(raw, _Logged, place)
            if logged.request is None:
                yield _request(decode(raw, _Request, place), None, place, problems)
            elif responses.new(logged.response.id if logged.response else None, place.at("response.id")):
                yield _request(logged.request, logged.response, place.at("request"), problems)
        except RecordingError as error:
            problems.add(error)


def _request(request: _Request, response: _Response | None, place: Place, problems: Problems) -> LoggedRequest:
    asked: list[Message] = []
    marks: list[Mark] = []
    names = (f"m{n}" for n in count())
    for one in reversed(request.tools):
        if found := mark(None, one.get("cache_control")):
            marks += found
            break
    if request.system:
        said = blocks(request.system)
        asked.append(Message(next(names), "system", "\n".join(block.text for block in said if block.text)))
        marks += _marks(asked[-1], said)
    for at, turn in enumerate(request.messages):
        if turn.role == "assistant":
            parts = [blocks(turn.content)]
            made = [assistant_message(parts[0], next(names))]
        elif turn.role == "user":
            parts = list(user_parts(turn.content))
            made = list(user_messages(turn.content, names))
        else:
            where = place.at(f"{place.field}.messages[{at}].role".removeprefix("."))
            raise RecordingError(where, f"unknown role {turn.role!r}", "use user, assistant")
        asked += made
        for message, said in zip(made, parts, strict=True):
            marks += _marks(message, said)
    if asked and all(found.after != asked[-1].id for found in marks):
        marks += mark(asked[-1].id, request.cache_control)
    answer = None
    if response is not None and response.content is not None:
        call = Call(
            model=response.model,
            provider="anthropic",
            usage=usage(response.usage, place.at("response.usage"), problems),
            marks=tuple(marks),
            effort=effort(request.thinking, request.output_config),
            stop=response.stop_reason or "",
        )
        answer = assistant_message(response.content, next(names), call=call)
    return LoggedRequest(Place(place.file, place.line), tuple(asked), answer, tuple(tool(one) for one in request.tools))


def _marks(message: Message, said: Sequence[Block]) -> tuple[Mark, ...]:
    return tuple(found for block in said for found in mark(message.id, block.cache_control))[-1:]

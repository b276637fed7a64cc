"""Requests to Anthropic's API, with or without the responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Compaction, Mark, Message
from ..source import Problems, decode, records
from . import Reader, Recordings
from .messages import Block, Content, assistant_message, blocks, texts, tool, user_messages, user_parts
from .requests import (
    LoggedRequest,
    Responses,
    context_edits,
    conversations,
    effort,
    mark,
    other_than,
    response_usage,
    tier,
)


class _Turn(msgspec.Struct):
    role: str
    content: Content


class AnthropicRequest(msgspec.Struct):
    """A request."""

    messages: list[_Turn]
    model: Any = None
    system: Content | None = None
    tools: list[dict[str, Any]] = []
    thinking: Any = None
    output_config: Any = None
    cache_control: Any = None


class AnthropicResponse(msgspec.Struct):
    """The response to a request."""

    content: list[Block] | None = None
    id: str | None = None
    model: str = ""
    stop_reason: str | None = None
    usage: Any = None
    context_management: Any = None


class _Logged(msgspec.Struct):
    request: AnthropicRequest | None = None
    response: AnthropicResponse | None = None


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


class AnthropicMessages(Reader):
    """Anthropic Messages API requests: `{system, tools, messages, …}`, or logs of them, `{"request", "response"}`.

    Source: docs.anthropic.com/en/api/messages. One JSON object, an array, or JSON Lines; requests of one file that
    extend each other are one conversation. Cache breakpoints of a request (`cache_control`) are stored with its answer,
    so only logs have them. A message with several marked blocks gets one breakpoint, after it; a mark on the whole
    request is one after its last message. A block `compaction` holds the summary by which the API replaces all messages
    before it, and `usage.iterations` the requests of a response that is several. The form has no times. Sampling
    options and headers are not read, images only counted.
    """

    about = "Anthropic Messages API requests, alone or as {request, response} logs"
    shapes = tuple(_shapes())

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            yield from conversations(_requests(path, problems), path.stem)


def _requests(path: Path, problems: Problems) -> Iterator[LoggedRequest]:
    responses = Responses(problems)
    for place, raw in records(path, problems):
        with problems.collect():
            logged = decode(raw, _Logged, place)
            if logged.request is None:
                yield logged_request(decode(raw, AnthropicRequest, place), None, place, place, problems)
            elif responses.new(logged.response.id if logged.response else None, place.at("response.id")):
                yield logged_request(
                    logged.request, logged.response, place.at("request"), place.at("response"), problems
                )


def logged_request(
    request: AnthropicRequest, response: AnthropicResponse | None, place: Place, answered: Place, problems: Problems
) -> LoggedRequest:
    """Return a request and its response, which stand at `place` and `answered`."""
    messages: list[Message] = []
    compactions: list[Compaction] = []
    marks: list[Mark] = []
    names = (f"m{n}" for n in count())
    for schema in reversed(request.tools):
        if tool_mark := mark(None, schema.get("cache_control")):
            marks += tool_mark
            break
    if request.system:
        system = blocks(request.system)
        messages.append(Message(next(names), "system", "\n".join(block.text for block in system if block.text)))
        marks += _marks(messages[-1], system)
    for at, turn in enumerate(request.messages):
        said = place.below(f"messages[{at}].content")
        if turn.role == "assistant":
            parts = [blocks(turn.content)]
            if messages:
                compactions += _compactions(parts[0], messages[-1].id, said, problems)
            converted = [assistant_message(parts[0], next(names), said, problems)]
        elif turn.role == "user":
            parts = list(user_parts(turn.content))
            converted = list(user_messages(turn.content, names, said, problems))
        else:
            where = place.below(f"messages[{at}].role")
            raise RecordingError(where, f"unknown role {turn.role!r}", "use user, assistant")
        messages += converted
        for message, part in zip(converted, parts, strict=True):
            marks += _marks(message, part)
    if messages and all(set_mark.after != messages[-1].id for set_mark in marks):
        marks += mark(messages[-1].id, request.cache_control)
    answer = None
    if response is not None and response.content is not None:
        model = request.model if isinstance(request.model, str) else ""
        thinking = effort(request.thinking, request.output_config)
        call = Call(model, "anthropic", marks=tuple(marks), effort=thinking)
        answer = anthropic_answer(response, next(names), answered, problems, call)
    tools = tuple(tool(schema) for schema in request.tools)
    return LoggedRequest(Place(place.file, place.line), tuple(messages), answer, tools, tuple(compactions))


def anthropic_answer(response: AnthropicResponse, name: str, place: Place, problems: Problems, asked: Call) -> Message:
    """Return the answer of a response at `place`; its call is `asked` with all that the response reports."""
    used, iterations = response_usage(response.usage, place.below("usage"), problems)
    model = response.model or asked.model
    call = msgspec.structs.replace(
        asked,
        model=model,
        usage=used,
        stop=response.stop_reason or "",
        iterations=iterations,
        request_id=response.id or "",
        tier=tier(response.usage),
        edits=context_edits(response.context_management, place.below("context_management"), problems),
        requested=other_than(model, asked.model),
    )
    return assistant_message(response.content or [], name, place.below("content"), problems, call=call)


def _compactions(content: Sequence[Block], after: str, place: Place, problems: Problems) -> Iterator[Compaction]:
    """Yield the compactions by the API that a message begins with: what stands before it is not sent to the model."""
    for block in content:
        if block.type == "compaction" and not isinstance(block.content, dict):
            yield Compaction(after, texts(block.content, place, problems)[0])


def _marks(message: Message, content: Sequence[Block]) -> tuple[Mark, ...]:
    """Return the breakpoint after a message, at most one."""
    return tuple(block_mark for block in content for block_mark in mark(message.id, block.cache_control))[-1:]

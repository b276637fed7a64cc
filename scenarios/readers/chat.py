"""The chat message form that OpenAI set and most recordings share, and how it becomes our messages.

    {"role", "content": text | [blocks] | null, "tool_calls": [{"id", "function": {"name", "arguments"}}],
     "tool_call_id", "name"}

Roles `developer` and `function` are the newer and older words for `system` and `tool`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Message, Role, Tool, ToolCall

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""An ISO time with its zone. One without would be read as the reading machine's."""


class ChatFunction(msgspec.Struct):
    """What a tool call asks for. Some recorders store the arguments as an object instead of text."""

    name: str
    arguments: str | dict[str, Any] | None = None


class ChatCall(msgspec.Struct):
    """One tool call."""

    function: ChatFunction
    id: str | None = None


class ChatMessage(msgspec.Struct):
    """One message. Content blocks are read by `texts`, whatever their type."""

    role: str
    content: str | list[dict[str, Any] | str] | None = None
    tool_calls: list[ChatCall] | None = None
    function_call: ChatFunction | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None


class ChatTool(msgspec.Struct):
    """A tool schema, in the form `{"type": "function", "function": {…}}`."""

    function: dict[str, Any]


def chat_messages(
    messages: Iterable[ChatMessage], place: Place, times: Iterable[float | None] = ()
) -> tuple[Message, ...]:
    """Messages in our form, with ids `m0`, `m1` … `place` is that of the list, for errors."""
    made = []
    clock = iter(times)
    last_call = ""
    for at, message in enumerate(messages):
        where = place.at(f"{place.field}[{at}]")
        made.append(chat_message(message, f"m{at}", where, last_call, next(clock, None)))
        last_call = made[-1].calls[-1].id if made[-1].calls else last_call
    return tuple(made)


def chat_message(
    message: ChatMessage,
    name: str,
    place: Place,
    last_call: str = "",
    time: float | None = None,
    call: Call | None = None,
) -> Message:
    """One message in our form under the id `name`.

    A result without the id of its call (the older function form) answers `last_call`.
    """
    role = role_of(message.role, place)
    calls = tuple(_call(each, f"{name}c{n}") for n, each in enumerate(message.tool_calls or ()))
    if message.function_call is not None and not calls:
        calls = (_call(ChatCall(message.function_call), f"{name}c0"),)
    text, images, thinking = texts(message.content)
    return Message(
        id=name,
        role=role,
        text=text,
        calls=calls,
        answers=(message.tool_call_id or last_call) if role == "tool" else None,
        name=message.name or "",
        time=time,
        thinking=message.reasoning_content or thinking,
        images=images,
        call=call,
    )


def role_of(role: str, place: Place) -> Role:
    """Our word for a recorded role."""
    if role not in ROLES:
        raise RecordingError(place.at(f"{place.field}.role"), f"unknown role {role!r}", f"use {', '.join(ROLES)}")
    return ROLES[role]


def texts(content: str | list[dict[str, Any] | str] | None) -> tuple[str, int, str]:
    """Content as (text, number of images, thinking). Text blocks are joined by a line end."""
    if content is None or isinstance(content, str):
        return content or "", 0, ""
    text, thinking, images = [], [], 0
    for block in content:
        if isinstance(block, str):
            text.append(block)
        elif block.get("type") in ("image", "image_url", "input_image"):
            images += 1
        elif block.get("type") in ("thinking", "reasoning"):
            thinking.append(str(block.get("thinking") or block.get("text") or ""))
        elif isinstance(found := block.get("text") or block.get("refusal"), str):
            text.append(found)
    return "\n".join(text), images, "\n".join(thinking)


def chat_tools(tools: Iterable[ChatTool] | None) -> tuple[Tool, ...]:
    """Tool schemas in our form."""
    return tuple(tool(each.function) for each in tools or ())


def tool(function: dict[str, Any]) -> Tool:
    """One tool from `{name, description, parameters | input_schema}`."""
    schema = function.get("parameters") or function.get("input_schema") or {}
    return Tool(
        name=str(function.get("name", "")),
        description=str(function.get("description") or ""),
        parameters=msgspec.json.encode(schema).decode(),
    )


def _call(call: ChatCall, name: str) -> ToolCall:
    arguments = call.function.arguments
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return ToolCall(id=call.id or name, name=call.function.name, arguments=text)

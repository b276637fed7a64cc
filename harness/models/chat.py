"""Requests to chat models in the form that OpenAI made usual and litellm turns into every provider's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...scenarios.model import Message, Tool

Asked = str | tuple[Message, ...]
"""One user message, or a chat."""


def messages_of(asked: Asked) -> tuple[Message, ...]:
    """The messages of what is asked."""
    return (Message("", "user", asked),) if isinstance(asked, str) else asked


def said(asked: Asked) -> list[dict[str, Any]]:
    """The messages as a provider gets them. What only the recording knows of them (ids, times, usage) is not in it."""
    return [_said(message) for message in messages_of(asked)]


def offered(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The tools as a provider gets them. One whose schema cannot be read takes any object."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": _schema(tool.parameters)},
        }
        for tool in tools
    ]


def _said(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.answers or "", "content": message.text}
    made: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        made["content"] = message.text or None
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return made


def _schema(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = None
    return found if isinstance(found, dict) and found.get("type") == "object" else {"type": "object", "properties": {}}

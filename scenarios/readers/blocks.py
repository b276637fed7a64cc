"""The content blocks of the Anthropic Messages API, and how they become our messages.

    {"type": "text", "text"} · {"type": "thinking", "thinking"} · {"type": "image"} · {"type": "tool_use", "id", "name",
    "input"} · {"type": "tool_result", "tool_use_id", "content": text | [blocks]}, each with an optional cache_control

A tool result is a block of a user's message there and a message of its own here. Of blocks of other types (documents,
tools that the provider ran itself) only a plain `text` is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from ..model import Call, Message, ToolCall
from ..source import json_text
from .chat import texts


class Block(msgspec.Struct):
    """One block of any type."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: str = ""
    content: str | list[dict[str, Any] | str] | dict[str, Any] | None = None
    cache_control: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        json_text(self.input)
        if self.type == "tool_use" and not (self.id and self.name):
            raise ValueError("a tool_use block needs an id and a name")
        if self.type == "tool_result" and not self.tool_use_id:
            raise ValueError("a tool_result block needs a tool_use_id")


Content = str | list[Block]


def blocks(content: Content) -> list[Block]:
    """Content as blocks. A text alone is one text block."""
    return [Block(type="text", text=content)] if isinstance(content, str) else content


def user_messages(content: Content, names: Iterator[str], time: float | None = None) -> Iterator[Message]:
    """A user's message in our form: each tool result a message, what stands between them a message."""
    for said in user_parts(content):
        if said[0].type == "tool_result":
            found = said[0].content
            text, images, _ = texts([found] if isinstance(found, dict) else found)
            yield Message(next(names), "tool", text, answers=said[0].tool_use_id, time=time, images=images)
        else:
            yield Message(next(names), "user", _text(said), time=time, images=_images(said))


def user_parts(content: Content) -> Iterator[list[Block]]:
    """The blocks of each message that `user_messages` makes, in the same order."""
    for result, group in groupby(blocks(content), key=lambda block: block.type == "tool_result"):
        if result:
            yield from ([block] for block in group)
        else:
            yield list(group)


def assistant_message(said: Iterable[Block], name: str, time: float | None = None, call: Call | None = None) -> Message:
    """An assistant's message in our form."""
    said = list(said)
    return Message(
        name,
        "assistant",
        _text(said),
        calls=tuple(
            ToolCall(block.id, block.name, json_text(block.input)) for block in said if block.type == "tool_use"
        ),
        time=time,
        thinking="\n".join(block.thinking for block in said if block.thinking),
        images=_images(said),
        call=call,
    )


def _text(said: Iterable[Block]) -> str:
    return "\n".join(block.text for block in said if block.text)


def _images(said: Iterable[Block]) -> int:
    return sum(block.type == "image" for block in said)

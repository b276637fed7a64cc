"""Items of OpenAI's Responses API as messages: what Codex records, and what requests and responses of the API hold.

    {"type": "message", "role", "content": text | [{"type": "input_text" | "output_text", "text"} ·
      {"type": "input_image", "image_url", "detail"} · {"type": "input_file", "file_data"}]}
    {"type": "reasoning", "summary": [{"text"}], "encrypted_content"}
    {"type": "function_call", "call_id", "name", "arguments"} · {"type": "function_call_output", "call_id", "output"}
    {"type": "compaction", "encrypted_content"} · {"type": "web_search_call", "action"} …

Source: platform.openai.com/docs/api-reference/responses. A reply is several items: reasoning, messages, tool calls.
They become one assistant message. What OpenAI ran itself (`HOSTED`) has no result among the items. Reasoning is there
as far as it was summarised; the rest is encrypted, and so is the summary of a compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from ..errors import Place
from ..media import media_of
from ..model import Call, Media, Message, ToolCall
from ..source import Problems, as_text

TOOL_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
HOSTED = (
    *("web_search_call", "image_generation_call", "file_search_call", "code_interpreter_call"),
    *("mcp_call", "mcp_list_tools"),
)
COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
ENCRYPTED = "[The rest is a summary that is encrypted.]"
"""Placeholder for the summary of a compaction."""
IS_ENCRYPTED = "it is encrypted"
"""Reason for which the summary is not recorded (`Compaction.hidden`)."""
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal")


class ItemBlock(msgspec.Struct):
    """One content block of an item."""

    type: str
    text: str = ""
    refusal: str = ""
    image_url: Any = None
    detail: Any = None
    file_data: Any = None
    prompt_cache_breakpoint: Any = None


class Output(msgspec.Struct):
    """Holds a text, as older versions of Codex wrote it."""

    content: str


ItemContent = str | list[ItemBlock] | Output | None


class Item(msgspec.Struct):
    """One item of any type. In requests a message may lack its type."""

    type: str = "message"
    id: str | None = None
    role: str = ""
    content: str | list[ItemBlock] | None = None
    summary: list[ItemBlock] = []
    call_id: str | None = None
    name: str = ""
    arguments: str | dict[str, Any] = ""
    input: str = ""
    action: dict[str, Any] | None = None
    output: ItemContent = None

    def __post_init__(self) -> None:
        if self.type in ("function_call", "custom_tool_call") and not (self.call_id and self.name):
            raise ValueError("a tool call needs a call_id and a name")


class RecordedItem(NamedTuple):
    """An item of a reply, and its place."""

    item: Item
    place: Place


def is_answer(item: Item) -> bool:
    """Return whether an item is part of a model's reply; messages of the assistant are."""
    if item.type == "message":
        return item.role == "assistant"
    return item.type in ("reasoning", *TOOL_CALLS, *HOSTED)


def item_text(content: ItemContent, place: Place, problems: Problems) -> tuple[str, tuple[Media, ...]]:
    """Return content as text and media; blocks of another type are counted as unknown."""
    if not isinstance(content, list):
        return (content.content if isinstance(content, Output) else content or ""), ()
    media = []
    for at, block in enumerate(content):
        if (medium := media_of(msgspec.structs.asdict(block))) is not None:
            media.append(medium)
        elif block.type not in _TEXTS:
            problems.unknown(f"content block of type {block.type!r}", place.at(f"{place.field}[{at}]"))
    return joined(block.text or block.refusal for block in content), tuple(media)


def reply(
    items: Sequence[RecordedItem],
    name: str,
    problems: Problems,
    time: float | None = None,
    call: Call | None = None,
) -> tuple[Message, int]:
    """Return the items of a reply as one message with the id `name`, and the number of hosted tool calls."""
    text, thinking, calls, media, hosted, hidden = [], [], list[ToolCall](), list[Media](), 0, False
    for item, place in items:
        said, shown = item_text(item.content, place.below("content"), problems)
        if item.type == "message":
            text.append(said)
            media += shown
        elif item.type == "reasoning":
            summary, _ = item_text(item.summary, place.below("summary"), problems)
            thinking += [summary, said]
            hidden = hidden or not (summary or said)
        elif item.type in HOSTED:
            hosted += 1
        else:
            calls.append(_tool_call(item, f"{name}c{len(calls)}"))
    message = Message(name, "assistant", joined(text), tuple(calls), time=time, media=tuple(media), call=call)
    return msgspec.structs.replace(message, thinking=joined(thinking), thinking_hidden=hidden), hosted


def joined(texts: Iterable[str]) -> str:
    """Return the texts that are not empty, one behind the other on lines of their own."""
    return "\n".join(text for text in texts if text)


def _tool_call(item: Item, name: str) -> ToolCall:
    """Return a tool call; the arguments of a custom tool are a text, those of a local shell its action."""
    if item.type == "custom_tool_call":
        return ToolCall(item.call_id or name, item.name, item.input)
    arguments = item.arguments or item.action or {}
    text = as_text(arguments)
    return ToolCall(item.call_id or name, item.name or item.type.removesuffix("_call"), text)

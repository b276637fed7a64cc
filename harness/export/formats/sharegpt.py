"""ShareGPT: a line per conversation, `{"id", "conversations": [{"from", "value"}], "system", "tools"}`.

Source: the form that FastChat, Axolotl and LLaMA-Factory train on. Calls without a text are a turn `function_call`;
calls behind a text stand in it as Hermes writes them, `<tool_call>{…}</tool_call>`. Results belong to calls by their
order. The form has no ids of calls, names, reasoning, models, usage or times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ctxbench.scenarios.chat import chat_tool, decoded_object
from ctxbench.scenarios.model import Conversation, Message, ToolCall

_SPEAKERS = {"system": "system", "user": "human", "assistant": "gpt", "tool": "observation"}


def lines(conversation: Conversation) -> Iterator[bytes]:
    """Yield the conversation as one line."""
    messages = conversation.messages
    record: dict[str, Any] = {"id": conversation.id}
    if messages[0].role == "system" and messages[0].text:
        record["system"] = messages[0].text
        messages = messages[1:]
    if conversation.tools:
        record["tools"] = msgspec.json.encode([chat_tool(tool) for tool in conversation.tools]).decode()
    record["conversations"] = [_turn(message) for message in messages]
    yield msgspec.json.encode(record)


def _turn(message: Message) -> dict[str, str]:
    if not message.calls:
        return {"from": _SPEAKERS[message.role], "value": message.text}
    calls = [_function(call) for call in message.calls]
    if not message.text:
        return {"from": "function_call", "value": calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"}
    tags = [f"<tool_call>\n{_untagged(call)}\n</tool_call>" for call in calls]
    return {"from": "gpt", "value": "\n".join([message.text, *tags])}


def _untagged(call: str) -> str:
    """Return the JSON of a call in which no text can be taken for the tag that begins or ends it."""
    return call.replace("<", r"\u003c") if "tool_call>" in call else call


def _function(call: ToolCall) -> str:
    """Return a call as the JSON of its name and arguments: an object, or the text that was recorded for one."""
    is_text = decoded_object(call.arguments) is None
    arguments = call.arguments if is_text else msgspec.Raw(call.arguments.encode())
    return msgspec.json.encode({"name": call.name, "arguments": arguments}).decode()

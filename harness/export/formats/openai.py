"""OpenAI's chat form: a line per conversation, `{"id", "messages": […], "tools": […]}`, as for fine-tuning.

Source: platform.openai.com/docs/api-reference/chat. Reasoning stands in `reasoning_content`, as servers of open models
write it. The form has no model, usage, times or cache marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ctxbench.scenarios.chat import chat_message, chat_tool
from ctxbench.scenarios.model import Conversation, Message


def lines(conversation: Conversation) -> Iterator[bytes]:
    """Yield the conversation as one line."""
    record: dict[str, Any] = {"id": conversation.id, "messages": [*map(_message, conversation.messages)]}
    if conversation.tools:
        record["tools"] = [chat_tool(tool) for tool in conversation.tools]
    yield msgspec.json.encode(record)


def _message(message: Message) -> dict[str, Any]:
    reasoning = {"reasoning_content": message.thinking} if message.thinking else {}
    return chat_message(message) | reasoning

"""Semantic Kernel: `ChatHistoryTruncationReducer` and `ChatHistorySummarizationReducer`; messages of semantic-kernel.

A reducer is a chat history. It is given each new message and is reduced before each model call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, chat_call, chat_dict, imported, origin


def to_semantic_kernel(messages: Iterable[ChatDict]) -> list[Any]:
    """Return message dicts as `ChatMessageContent`s, whose `metadata` have their ids. Raises MissingExtra."""
    contents = imported("semantic_kernel.contents")
    return [
        contents.ChatMessageContent(
            role=message["role"],
            items=_items(contents, message),
            name=message.get("name"),
            metadata=origin(message, "id"),
        )
        for message in messages
    ]


def _items(contents: Any, message: ChatDict) -> list[Any]:
    if message["role"] == "tool":
        name = message.get("name")
        return [contents.FunctionResultContent(id=message["tool_call_id"], name=name, result=message["content"])]
    texts = [contents.TextContent(text=message["content"])] if message["content"] else []
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
    return texts + [contents.FunctionCallContent(id=call_id, **function) for call_id, function in calls]


def from_semantic_kernel(messages: Iterable[Any]) -> list[ChatDict]:
    """Return `ChatMessageContent`s as message dicts; each function result is one."""
    converted = []
    for message in messages:
        named = {"id": message.metadata.get("id"), "name": message.name}
        results = [item for item in message.items if item.content_type == "function_result"]
        calls = [item for item in message.items if item.content_type == "function_call"]
        converted += [chat_dict("tool", str(result.result), tool_call_id=result.id, **named) for result in results]
        if not results:
            tool_calls = [chat_call(call.name, call.id, call.arguments) for call in calls]
            converted.append(chat_dict(message.role.value, message.content, tool_calls=tool_calls, **named))
    return converted


def chat_completion(services: ChatServices) -> Any:
    """Return a chat completion service of Semantic Kernel that the run's summariser answers. Raises MissingExtra."""
    connectors = imported("semantic_kernel.connectors.ai.chat_completion_client_base")

    class SummariserService(connectors.ChatCompletionClientBase):  # type: ignore[misc, name-defined]
        """Asks the run's summariser."""

        async def _inner_get_chat_message_contents(self, chat_history: Any, settings: Any) -> list[Any]:  # noqa: ARG002
            reply = services.complete(from_semantic_kernel(chat_history.messages))
            return to_semantic_kernel([chat_dict("assistant", reply)])

    return SummariserService(ai_model_id="summariser")


def _reduce(services: ChatServices, kind: str, **settings: Any) -> Step:
    """Return a step that adds what is new to a reducer, reduces it and sends what it holds."""
    reducer = getattr(imported("semantic_kernel.contents"), kind)(**settings)

    async def step(new: list[ChatDict]) -> list[ChatDict]:
        reducer.messages.extend(to_semantic_kernel(new))
        await reducer.reduce()
        return from_semantic_kernel(reducer.messages)

    return step


@adapter(_reduce)
def truncation(services: ChatServices, target_count: int = 20, threshold_count: int = 0) -> None:
    """Send the newest messages, once there are `threshold_count` over the target (`ChatHistoryTruncationReducer`)."""


@adapter(_reduce)
def summarization(
    services: ChatServices,
    target_count: int = 20,
    threshold_count: int = 0,
    use_single_summary: bool = True,
    include_function_content_in_summary: bool = False,
) -> dict[str, Any]:
    """Summarise all but the newest messages (`ChatHistorySummarizationReducer`)."""
    return {"service": chat_completion(services)}

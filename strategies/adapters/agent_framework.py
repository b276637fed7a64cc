"""Microsoft Agent Framework: its compaction strategies; messages of agent-framework-core.

Before each model call a strategy marks messages as excluded or writes others in their place, in one list that goes on,
as the framework's loop of tool calls has it. Tokens are counted of messages as JSON, which is the framework's way.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from types import SimpleNamespace
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, chat_call, chat_dict, imported, of_all, origin, results_together


def to_agent_framework(messages: Iterable[ChatDict]) -> list[Any]:
    """Return message dicts as `Message`s: tool results that follow one another are one. Raises MissingExtra.

    `additional_properties`, which are not sent to models, have the id and the name of each result's message.
    """
    framework = imported("agent_framework")
    return [
        framework.Message(
            group[0]["role"],
            [content for message in group for content in _contents(framework.Content, message)],
            message_id=group[0].get("id"),
            author_name=group[0].get("name"),
            additional_properties={"origin": [origin(message, "id", "name") for message in group]},
        )
        for group in results_together(messages)
    ]


def _contents(content: Any, message: ChatDict) -> list[Any]:
    if message["role"] == "tool":
        return [content.from_function_result(message["tool_call_id"], result=message["content"])]
    texts = [content.from_text(message["content"])] if message["content"] else []
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
    return texts + [content.from_function_call(call_id, **function) for call_id, function in calls]


def from_agent_framework(messages: Iterable[Any]) -> list[ChatDict]:
    """Return `Message`s as message dicts: each function result is one, and so are a message's text and calls."""
    converted = []
    for message in messages:
        results = [content for content in message.contents if content.type == "function_result"]
        for result, known in zip(results, message.additional_properties.get("origin") or repeat({}), strict=False):
            converted.append(chat_dict("tool", result.result, tool_call_id=result.call_id, **known))
        if not results:
            calls = [content for content in message.contents if content.type == "function_call"]
            converted.append(
                chat_dict(
                    message.role,
                    message.text,
                    id=message.message_id,
                    name=message.author_name,
                    tool_calls=[chat_call(call.name, call.call_id, call.arguments) for call in calls],
                )
            )
    return converted


def chat_client(services: ChatServices) -> Any:
    """Return a chat client of the framework that the run's summariser answers. Raises MissingExtra."""
    framework = imported("agent_framework")

    async def get_response(messages: Any, **settings: Any) -> Any:
        reply = services.complete(from_agent_framework(messages))
        return framework.ChatResponse(messages=[framework.Message("assistant", [reply])])

    return SimpleNamespace(additional_properties={}, get_response=get_response)


def _compact(services: ChatServices, kind: str, **settings: Any) -> Step:
    """Return a step that adds what is new to a list and sends what a strategy includes of it."""
    framework = imported("agent_framework")
    strategy = getattr(framework, kind)(**settings)

    async def compacted(said: list[Any]) -> list[ChatDict]:
        return from_agent_framework(await framework.apply_compaction(said, strategy=strategy))

    return of_all(compacted, to_agent_framework)


@adapter(_compact)
def truncation(
    services: ChatServices,
    max_n: int = 8000,
    compact_to: int = 4000,
    preserve_system: bool = True,
    preserve_first_user_group: bool = False,
) -> dict[str, Any]:
    """Drop the oldest messages down to `compact_to` tokens, once there are over `max_n` (`TruncationStrategy`)."""
    return {"tokenizer": services}


@adapter(_compact)
def sliding_window(services: ChatServices, keep_last_groups: int = 20, preserve_system: bool = True) -> None:
    """Send the newest groups: messages, or calls with their results (`SlidingWindowStrategy`)."""


@adapter(_compact)
def selective_tool_call(services: ChatServices, keep_last_tool_call_groups: int = 1) -> None:
    """Drop all but the newest tool calls with their results (`SelectiveToolCallCompactionStrategy`)."""


@adapter(_compact)
def tool_result_compaction(services: ChatServices, keep_last_tool_call_groups: int = 1) -> None:
    """Replace older calls by their results, cut to 4,096 characters (`ToolResultCompactionStrategy`)."""


@adapter(_compact)
def summarization(
    services: ChatServices, target_count: int = 4, threshold: int = 2, max_summary_input_tokens: int | None = 8000
) -> dict[str, Any]:
    """Summarise all but `target_count` messages, once there are `threshold` more (`SummarizationStrategy`)."""
    return {"client": chat_client(services), "tokenizer": services}


@adapter(_compact)
def context_window(
    services: ChatServices,
    max_context_window_tokens: int = 128_000,
    max_output_tokens: int = 16_384,
    tool_eviction_threshold: float = 0.5,
    truncation_threshold: float = 0.8,
    keep_last_tool_call_groups: int = 4,
    preserve_first_user_group: bool = False,
) -> dict[str, Any]:
    """Compact tool results, then truncate, as the window of a model fills (`ContextWindowCompactionStrategy`)."""
    return {"tokenizer": services}

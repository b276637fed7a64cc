"""AutoGen: `BufferedChatCompletionContext`, `HeadAndTailChatCompletionContext`, `TokenLimitedChatCompletionContext`.

A model context is given each new message and asked for those to send. System prompts stand before it, as AutoGen's
agents have them. Messages are those of autogen-core.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from types import SimpleNamespace
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, chat_call, chat_dict, chat_tokens, imported, origin, results_together, system_apart

_ROLES = {"SystemMessage": "system", "UserMessage": "user", "AssistantMessage": "assistant"}


def to_autogen(messages: Iterable[ChatDict]) -> list[Any]:
    """Return message dicts as AutoGen's messages: tool results that follow one another are one. Raises MissingExtra.

    AutoGen's messages have no place for ids: these have a field more, `origin`.
    """
    core, models = (imported(module) for module in ("autogen_core", "autogen_core.models"))

    def message_of(group: list[ChatDict]) -> Any:
        first = group[0]
        source = first.get("name", first["role"])
        match first["role"]:
            case "system":
                return models.SystemMessage(content=first["content"])
            case "user":
                return models.UserMessage(content=first["content"], source=source)
            case "tool":
                results = [
                    models.FunctionExecutionResult(
                        content=message["content"], name=message.get("name", "tool"), call_id=message["tool_call_id"]
                    )
                    for message in group
                ]
                return models.FunctionExecutionResultMessage(content=results)
        calls = [core.FunctionCall(id=call["id"], **call["function"]) for call in first.get("tool_calls", ())]
        if calls:
            return models.AssistantMessage(content=calls, thought=first["content"] or None, source=source)
        return models.AssistantMessage(content=first["content"], source=source)

    return [
        message_of(group).model_copy(update={"origin": [origin(message, "id", "name") for message in group]})
        for group in results_together(messages)
    ]


def from_autogen(messages: Iterable[Any]) -> list[ChatDict]:
    """Return AutoGen's messages as message dicts; each execution result is one."""
    converted = []
    for message in messages:
        origins = getattr(message, "origin", None) or repeat({})
        if message.type == "FunctionExecutionResultMessage":
            for result, known in zip(message.content, origins, strict=False):
                converted.append(chat_dict("tool", result.content, tool_call_id=result.call_id, **known))
            continue
        calls = message.content if message.type == "AssistantMessage" and not isinstance(message.content, str) else []
        converted.append(
            chat_dict(
                _ROLES[message.type],
                message.thought if calls else message.content,
                tool_calls=[chat_call(call.name, call.id, call.arguments) for call in calls],
                **next(iter(origins)),
            )
        )
    return converted


def _remember(services: ChatServices, kind: str, **settings: Any) -> Step:
    """Return a step that puts what is new into a model context and sends what it returns."""
    context = getattr(imported("autogen_core.model_context"), kind)(**settings)

    async def step(new: list[ChatDict]) -> list[ChatDict]:
        for message in to_autogen(new):
            await context.add_message(message)
        return from_autogen(await context.get_messages())

    return system_apart(step)


@adapter(_remember)
def buffered(services: ChatServices, buffer_size: int = 20) -> None:
    """Send the newest messages, but no result without its call first (`BufferedChatCompletionContext`)."""


@adapter(_remember)
def head_and_tail(services: ChatServices, head_size: int = 4, tail_size: int = 20) -> None:
    """Send the first and the newest messages, and how many are skipped (`HeadAndTailChatCompletionContext`)."""


@adapter(_remember)
def token_limited(services: ChatServices, token_limit: int = 8000) -> dict[str, Any]:
    """Drop messages from the middle down to a token limit (`TokenLimitedChatCompletionContext`)."""
    client = SimpleNamespace(count_tokens=lambda messages, tools: chat_tokens(services, from_autogen(messages)))
    return {"model_client": client}

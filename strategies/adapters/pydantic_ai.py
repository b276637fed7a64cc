"""Pydantic AI: `ClearToolResults`, `SlidingWindowCompaction`, `SummarizingCompaction`; its model messages.

The strategies are capabilities of pydantic-ai-harness, which has no trigger of its own: the defaults here are those of
its examples.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices, content_text
from . import adapter, chat_call, chat_dict, chat_tokens, imported


def to_pydantic_ai(messages: Iterable[ChatDict]) -> list[Any]:
    """Return message dicts as a history of `ModelRequest`s and `ModelResponse`s. Raises MissingExtra.

    What stands between two messages of the assistant is one request, as an agent has it. Ids and names are metadata,
    which no model sees.
    """
    core = imported("pydantic_ai.messages")
    history, parts, tools = list[Any](), list[Any](), dict[str, str]()
    for message in messages:
        metadata: dict[str, Any] = {key: message[key] for key in ("id", "name") if key in message}
        if message["role"] != "assistant":
            if not parts:
                history.append(core.ModelRequest(parts=parts))
            match message["role"]:
                case "system":
                    parts.append(core.SystemPromptPart(message["content"], metadata=metadata))
                case "user":
                    content = core.TextContent(message["content"], metadata=metadata)
                    parts.append(core.UserPromptPart([content]))
                case _:
                    call_id, text = message["tool_call_id"], message["content"]
                    parts.append(core.ToolReturnPart(tools.get(call_id, ""), text, call_id, metadata=metadata))
            continue
        calls = message.get("tool_calls", ())
        tools |= {call["id"]: call["function"]["name"] for call in calls}
        # Arguments may be text, so they stay as they were written.
        said = [
            core.ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"]) for call in calls
        ]
        if message["content"] or not calls:
            said.insert(0, core.TextPart(message["content"]))
        history.append(core.ModelResponse(parts=said, metadata=metadata))
        parts = []
    return history


def from_pydantic_ai(history: Iterable[Any]) -> list[ChatDict]:
    """Return requests and responses as message dicts. A summary has the frame in which every provider is sent it."""
    messages: list[ChatDict] = []
    for entry in history:
        if entry.kind == "request":
            messages += [_request_dict(part) for part in entry.parts]
            continue
        text = "\n".join(part.content for part in entry.parts if part.part_kind == "text")
        calls = [part for part in entry.parts if part.part_kind == "tool-call"]
        tool_calls = [chat_call(call.tool_name, call.tool_call_id, call.args or "{}") for call in calls]
        messages.append(chat_dict("assistant", text, **_named(entry), tool_calls=tool_calls))
    return messages


def _request_dict(part: Any) -> ChatDict:
    match part.part_kind:
        case "system-prompt":
            return chat_dict("system", part.content, **_named(part))
        case "tool-return":
            return chat_dict("tool", part.model_response_str(), tool_call_id=part.tool_call_id, **_named(part))
        case "compaction":
            frame = imported("pydantic_ai.models")._conversation_summary_text
            return chat_dict("user", frame(part.content))
        case "user-prompt":
            items = [part.content] if isinstance(part.content, str) else part.content
            texts = [item if isinstance(item, str) else getattr(item, "content", "") for item in items]
            return chat_dict("user", content_text(texts), **_named(items[0] if items else ""))
    return chat_dict("user", part.model_response())


def _named(owner: Any) -> dict[str, Any]:
    """Return id and name from the metadata of a response, a part or a text."""
    metadata = getattr(owner, "metadata", None)
    return {key: metadata.get(key) for key in ("id", "name")} if isinstance(metadata, dict) else {}


def model(services: ChatServices) -> Any:
    """Return a model of Pydantic AI that the run's summariser answers. Raises MissingExtra."""
    core = imported("pydantic_ai.messages")

    async def reply(history: list[Any], info: Any) -> Any:
        instructions = [chat_dict("system", info.instructions)] if info.instructions else []
        settings = info.model_settings or {}
        limits = {name: settings[name] for name in ("max_tokens", "temperature") if name in settings}
        return core.ModelResponse(
            [core.TextPart(services.complete(instructions + from_pydantic_ai(history), **limits))]
        )

    return imported("pydantic_ai.models.function").FunctionModel(reply)


def _before_each_request(services: ChatServices, kind: str, **limits: Any) -> Step:
    """Return a step that does what an agent does before each request, with one capability.

    A run starts with the user's prompt and repairs the history first. Every request is sent repaired: results without a
    call are dropped, and calls without a result are given one. Each response reports the tokens of its request.
    """
    core, models = (imported(f"pydantic_ai.{name}") for name in ("messages", "models"))
    usage = imported("pydantic_ai.usage")
    compaction = imported("pydantic_ai_harness.compaction")
    capability = getattr(compaction, kind)(tokenizer=services.count_tokens, **limits)
    context = imported("pydantic_ai.tools").RunContext(deps=None, model=model(services), usage=usage.RunUsage())
    prompt_tokens = 0

    async def step(new: list[ChatDict]) -> list[ChatDict]:
        nonlocal prompt_tokens
        history = to_pydantic_ai(new)
        if history[0].kind == "response":
            history[0].usage = usage.RequestUsage(
                input_tokens=prompt_tokens, output_tokens=chat_tokens(services, new[:1])
            )
        if new[-1]["role"] == "user":
            before = core.repair_messages([*context.messages, *history[:-1]], repair_last_response=False)
            history = [*before, history[-1]]
            context.messages.clear()
        context.messages += history
        request = models.ModelRequestContext(
            model=context.model,
            messages=list(context.messages),
            model_settings=None,
            model_request_parameters=models.ModelRequestParameters(),
        )
        # The capability writes what it leaves into `context.messages` as well.
        request = await capability.before_model_request(context, request)
        sent = from_pydantic_ai(core.repair_messages(request.messages))
        prompt_tokens = chat_tokens(services, sent)
        return sent

    return step


@adapter(_before_each_request)
def clear_tool_results(
    services: ChatServices, max_tokens: int = 100_000, keep_pairs: int = 3, min_clear_tokens: int | None = None
) -> None:
    """Replace all but the last `keep_pairs` tool results once there are over `max_tokens` (`ClearToolResults`)."""


@adapter(_before_each_request)
def sliding_window(
    services: ChatServices,
    max_messages: int | None = 80,
    keep_messages: int = 40,
    max_tokens: int | None = None,
    keep_tokens: int | None = None,
) -> None:
    """Send the first prompts and the newest messages once there are too many (`SlidingWindowCompaction`)."""


@adapter(_before_each_request)
def summarizing(
    services: ChatServices,
    max_messages: int | None = 60,
    keep_messages: int = 20,
    max_tokens: int | None = None,
    keep_tokens: int | None = None,
) -> None:
    """Summarise all but the first prompts and the newest messages once there are too many (`SummarizingCompaction`)."""

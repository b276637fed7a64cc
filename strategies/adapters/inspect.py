"""Inspect: `CompactionEdit`, `CompactionTrim`, `CompactionSummary`; its chat messages.

The messages before the first call are the input of a sample, which is always kept. The default threshold is Inspect's:
0.9 of 128,000 tokens, the window that it assumes of a model that it does not know. Inspect raises RuntimeError where a
compacted conversation is over the threshold still: the sample fails, and so does the strategy in that conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, arguments_of, chat_call, chat_dict, chat_tokens, imported

_THRESHOLD = 115_200
# Where a message keeps its id, its name and its calls as they were recorded. Inspect edits messages under new ids.
_RECORDED = "recorded"


def to_inspect(messages: Iterable[ChatDict]) -> list[Any]:
    """Return message dicts as Inspect's chat messages. Raises MissingExtra."""
    module, tool = imported("inspect_ai.model"), imported("inspect_ai.tool")
    kinds = {
        "system": module.ChatMessageSystem,
        "user": module.ChatMessageUser,
        "assistant": module.ChatMessageAssistant,
        "tool": module.ChatMessageTool,
    }
    converted, functions = list[Any](), dict[str, str]()
    for message in messages:
        recorded = {key: message[key] for key in ("id", "name", "tool_calls") if key in message}
        others: dict[str, Any] = {"id": message.get("id"), "metadata": {_RECORDED: recorded}}
        if calls := message.get("tool_calls"):
            others["tool_calls"] = [
                tool.ToolCall(call["id"], call["function"]["name"], arguments_of(call)) for call in calls
            ]
            functions |= {call["id"]: call["function"]["name"] for call in calls}
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            others |= {"tool_call_id": call_id, "function": functions.get(call_id)}
        converted.append(kinds[message["role"]](content=message["content"], **others))
    return converted


def from_inspect(messages: Iterable[Any]) -> list[ChatDict]:
    """Return Inspect's chat messages as message dicts."""
    converted = []
    for message in messages:
        recorded = (message.metadata or {}).get(_RECORDED, {"id": message.id})
        calls = [
            chat_call(call.function, call.id, call.arguments, recorded.get("tool_calls", ()))
            for call in getattr(message, "tool_calls", None) or ()
        ]
        others = {"id": recorded.get("id"), "name": recorded.get("name"), "tool_calls": calls}
        if message.role == "tool":
            others["tool_call_id"] = message.tool_call_id
        converted.append(chat_dict(message.role, message.text, **others))
    return converted


def model(services: ChatServices) -> Any:
    """Return a model of Inspect that the run's summariser answers. Raises MissingExtra."""
    module = imported("inspect_ai.model")

    @module.modelapi("summariser")
    class SummariserApi(module.ModelAPI):  # type: ignore[misc, name-defined]
        """Asks the run's summariser, and counts tokens as the run does."""

        async def generate(self, input: list[Any], tools: Any, tool_choice: Any, config: Any) -> Any:  # noqa: ARG002
            limits = {name: getattr(config, name) for name in ("max_tokens", "temperature")}
            limits = {name: limit for name, limit in limits.items() if limit is not None}
            return module.ModelOutput.from_content("summariser", services.complete(from_inspect(input), **limits))

        async def count_text_tokens(self, text: str) -> int:
            return services.count_tokens(text)

    return module.Model(SummariserApi("summariser"), module.GenerateConfig())


def _compact(services: ChatServices, kind: str, **settings: Any) -> Step:
    """Return a step that does what an agent does around a call: compact its input, record its tokens."""
    module, target = imported("inspect_ai.model"), model(services)
    strategy = getattr(module, kind)(**settings)
    said, sent, handler = list[Any](), list[Any](), None

    async def step(new: list[ChatDict]) -> list[ChatDict]:
        nonlocal sent, handler
        said.extend(to_inspect(new))
        if handler is None:
            for message in said:
                message.source = "input"
            handler = module.compaction(strategy, prefix=list(said), model=target)
        # What is new begins with the answer to the last request, whose usage an agent would record now.
        elif new[0]["role"] == "assistant":
            tokens = chat_tokens(services, from_inspect(sent))
            output = module.ModelOutput(model="recorded", usage=module.ModelUsage(input_tokens=tokens))
            await handler.record_output(sent, output)
        sent, summary = await handler.compact_input(said)
        if summary:
            said.append(summary)
        return from_inspect(sent)

    return step


@adapter(_compact)
def compaction_edit(
    services: ChatServices, threshold: int = _THRESHOLD, keep_tool_uses: int = 3, keep_tool_inputs: bool = True
) -> None:
    """Replace all but the last tool results once there are over `threshold` tokens (`CompactionEdit`)."""


@adapter(_compact)
def compaction_trim(services: ChatServices, threshold: int = _THRESHOLD, preserve: float = 0.8) -> None:
    """Drop the oldest messages but for a share once there are over `threshold` tokens (`CompactionTrim`)."""


@adapter(_compact)
def compaction_summary(services: ChatServices, threshold: int = _THRESHOLD) -> None:
    """Summarise all but the input once there are over `threshold` tokens (`CompactionSummary`)."""

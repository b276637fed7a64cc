"""Strands Agents: `SlidingWindowConversationManager`, `SummarizingConversationManager`; messages as Bedrock's Converse.

An agent of Strands holds the messages, and its conversation manager is called where Strands calls it: before each
model call, after an answer that ends an invocation, and when the tokens are over the model's context window. Where it
cannot reduce them, Strands gives up, and so does the strategy. System prompts stand before the messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, arguments_of, chat_call, chat_dict, chat_tokens, imported, origin, results_together


def to_strands(messages: Iterable[ChatDict]) -> list[dict[str, Any]]:
    """Return message dicts as Strands' messages: tool results that follow one another are one turn of the user.

    System messages are the user's, as Strands holds system prompts apart. `metadata`, which is not sent to models, has
    each message's id, role and name, and its recorded calls.
    """
    return [
        {
            "role": "assistant" if group[0]["role"] == "assistant" else "user",
            "content": [block for message in group for block in _blocks(message)],
            "metadata": {
                "custom": {"origin": [origin(message, "id", "role", "name", "tool_calls") for message in group]}
            },
        }
        for group in results_together(messages)
    ]


def _blocks(message: ChatDict) -> list[dict[str, Any]]:
    text = {"text": message["content"]}
    if message["role"] == "tool":
        result = {"toolUseId": message["tool_call_id"], "status": "success", "content": [text]}
        return [{"toolResult": result}]
    calls = [
        {"toolUse": {"toolUseId": call["id"], "name": call["function"]["name"], "input": arguments_of(call)}}
        for call in message.get("tool_calls", ())
    ]
    return [text, *calls] if message["content"] or not calls else calls


def from_strands(messages: Iterable[dict[str, Any]]) -> list[ChatDict]:
    """Return Strands' messages as message dicts: each tool result is one, and so is the text of a message."""
    converted = []
    for message in messages:
        origins: list[ChatDict] = message.get("metadata", {}).get("custom", {}).get("origin", [])
        results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
        others = [block for block in message["content"] if "toolResult" not in block]
        for result, known in zip(results, origins or repeat({}), strict=False):
            named = {"id": known.get("id"), "name": known.get("name"), "tool_call_id": result["toolUseId"]}
            converted.append(chat_dict("tool", result["content"], **named))
        if others:
            known = origins[0] if origins else {}
            calls = [block["toolUse"] for block in others if "toolUse" in block]
            converted.append(
                chat_dict(
                    known.get("role", message["role"]),
                    others,
                    id=known.get("id"),
                    name=known.get("name"),
                    tool_calls=[
                        chat_call(call["name"], call["toolUseId"], call["input"], known.get("tool_calls", ()))
                        for call in calls
                    ],
                )
            )
    return converted


def model(services: ChatServices, context_window: int = 200_000) -> Any:
    """Return a model of Strands that the run's summariser answers. Raises MissingExtra."""
    models = imported("strands.models")

    class SummariserModel(models.Model):  # type: ignore[misc, name-defined]
        """Asks the run's summariser."""

        def get_config(self) -> Any:
            return {"context_window_limit": context_window}

        def update_config(self, **settings: Any) -> None:
            raise NotImplementedError("the summariser's settings are the run's")

        def structured_output(self, *request: Any, **settings: Any) -> Any:
            raise NotImplementedError("the summariser writes text alone")

        async def stream(self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **_: Any) -> Any:  # noqa: ARG002
            text = services.complete([chat_dict("system", system_prompt), *from_strands(messages)])
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockDelta": {"delta": {"text": text}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    return SummariserModel()


def _manage(services: ChatServices, kind: str, context_window: int, **settings: Any) -> Step:
    """Return a step that gives an agent what is new and has its conversation manager reduce it."""
    managers = imported("strands.agent.conversation_manager")
    events = imported("strands.hooks")
    overflow = imported("strands.types.exceptions").ContextWindowOverflowException
    agent = imported("strands").Agent(
        model(services, context_window), conversation_manager=getattr(managers, kind)(**settings), callback_handler=None
    )
    system, sent = list[ChatDict](), 0

    def tokens() -> int:
        return chat_tokens(services, [*system, *from_strands(agent.messages)])

    def step(new: list[ChatDict]) -> list[ChatDict]:
        nonlocal sent
        system.extend(message for message in new if message["role"] == "system")
        for message in to_strands(message for message in new if message["role"] != "system"):
            agent.messages.append(message)
            if message["role"] == "assistant" and not any("toolUse" in block for block in message["content"]):
                agent.conversation_manager.apply_management(agent)
        # Strands adds what is new to the tokens of its last call, whatever has been removed since.
        projected = sent + chat_tokens(services, new)
        agent.hooks.invoke_callbacks(
            events.BeforeModelCallEvent(agent=agent, invocation_state={}, projected_input_tokens=projected)
        )
        while (sent := tokens()) > context_window:
            agent.conversation_manager.reduce_context(agent, e=overflow())
            if tokens() >= sent:  # Strands would try again until Python's stack is full
                raise overflow("Strands cannot reduce the messages to the context window")
        return [*system, *from_strands(agent.messages)]

    return step


@adapter(_manage)
def sliding_window(
    services: ChatServices,
    window_size: int = 40,
    should_truncate_results: bool = True,
    per_turn: bool | int = False,
    pin_first: int | None = None,
    proactive_compression: bool = False,
    context_window: int = 200_000,
) -> None:
    """Send the newest messages, cut where an invocation has ended (`SlidingWindowConversationManager`).

    `per_turn` cuts before each model call, or before each so many.
    """


@adapter(_manage)
def summarizing(
    services: ChatServices,
    summary_ratio: float = 0.3,
    preserve_recent_messages: int = 10,
    pin_first: int | None = None,
    proactive_compression: bool = False,
    context_window: int = 200_000,
) -> None:
    """Summarise the oldest messages when the context window is full (`SummarizingConversationManager`).

    `proactive_compression` summarises once 70 % of it are.
    """

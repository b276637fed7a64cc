"""OpenHands SDK: `LLMSummarizingCondenser`; events of its conversations, with recorded tools as those of MCP servers.

The SDK needs Python 3.12.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, arguments_of, chat_dict, imported


@cache
def _sdk(module: str) -> Any:
    """Return a module of the SDK, which then neither asks the network for prices nor greets. Raises MissingExtra."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else its import reads a .env
    os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")
    return imported(f"openhands.sdk.{module}")


def to_openhands(messages: Iterable[ChatDict], actions: dict[str, Any] | None = None) -> list[Any]:
    """Return message dicts, each with its id, as events: one of a message, or one of each of its calls.

    `actions` has the events of earlier calls by the id of the call, and is added to. Raises MissingExtra.
    """
    actions = {} if actions is None else actions
    events = list[Any]()
    for message in messages:
        new = _action_events(message) if message.get("tool_calls") else [_event(message, actions)]
        actions |= {event.tool_call_id: event for event in new if message.get("tool_calls")}
        events += new
    return events


def _action_events(message: ChatDict) -> list[Any]:
    """Return an event for each call of a message; the first one has its text."""
    event, llm, mcp = _sdk("event"), _sdk("llm"), _sdk("mcp.definition")
    return [
        event.ActionEvent(
            id=f"{message['id']}/{number}",
            thought=[llm.TextContent(text=message["content"])] if message["content"] and number == 0 else [],
            action=mcp.MCPToolAction(data=arguments_of(call)),
            tool_name=call["function"]["name"],
            tool_call_id=call["id"],
            tool_call=llm.MessageToolCall(id=call["id"], **call["function"], origin="completion"),
            llm_response_id=message["id"],
        )
        for number, call in enumerate(message["tool_calls"])
    ]


def _event(message: ChatDict, actions: Mapping[str, Any]) -> Any:
    event, llm = _sdk("event"), _sdk("llm")
    text = llm.TextContent(text=message["content"])
    if message["role"] == "system":
        return event.SystemPromptEvent(id=message["id"], system_prompt=text, tools=[])
    if message["role"] == "tool":
        action = actions.get(message["tool_call_id"])
        tool = action.tool_name if action else message.get("name", "")
        return event.ObservationEvent(
            id=message["id"],
            observation=_sdk("mcp.definition").MCPToolObservation(content=[text], tool_name=tool),
            action_id=action.id if action else "",
            tool_name=tool,
            tool_call_id=message["tool_call_id"],
        )
    said = llm.Message(role=message["role"], content=[text], name=message.get("name"))
    source = "user" if message["role"] == "user" else "agent"
    return event.MessageEvent(id=message["id"], source=source, llm_message=said)


def from_openhands(events: Iterable[Any], recorded: Mapping[str, ChatDict]) -> list[ChatDict]:
    """Return events as the recorded messages that have their ids; others are texts that a condenser wrote.

    Events have no place for all names, and a condenser changes none of them.
    """
    messages: list[ChatDict] = []
    for event in events:
        name = getattr(event, "llm_response_id", None) or event.id
        if name not in recorded:
            said = event.to_llm_message()
            messages.append(chat_dict(said.role, _text(said), id=name))
        elif not messages or messages[-1].get("id") != name:
            messages.append(recorded[name])
    return messages


def summariser(services: ChatServices) -> Any:
    """Return an `LLM` of the SDK that the run's summariser answers. Raises MissingExtra."""
    llm, response = _sdk("llm"), _sdk("llm.llm_response")

    class SummariserLLM(llm.LLM):  # type: ignore[misc, name-defined]
        """Asks the run's summariser, and counts tokens by the run's encoding."""

        def generate(self, messages: list[Any], **settings: Any) -> Any:  # noqa: ARG002
            text = services.complete([{"role": said.role, "content": _text(said)} for said in messages])
            reply = llm.Message(role="assistant", content=[llm.TextContent(text=text)])
            snapshot = self.metrics.get_snapshot()
            return response.LLMResponse(message=reply, metrics=snapshot, raw_response=response.ModelResponse())

        def get_token_count(self, messages: list[Any], *args: Any, **settings: Any) -> int:  # noqa: ARG002
            calls = [call for said in messages for call in said.tool_calls or ()]
            texts = [*map(_text, messages), *(text for call in calls for text in (call.name, call.arguments))]
            return 4 * len(messages) + sum(map(services.count_tokens, texts))

        @property
        def effective_max_input_tokens(self) -> None:
            return None

    return SummariserLLM(model="summariser", usage_id="condenser")


def _text(message: Any) -> str:
    return "".join(part.text for part in message.content if part.type == "text")


@adapter()
def llm_summarizing_condenser(
    services: ChatServices, max_size: int = 240, keep_first: int = 2, max_tokens: int | None = None
) -> Step:
    """Summarise the middle once there are over `max_size` events or `max_tokens` tokens (`LLMSummarizingCondenser`).

    The first `keep_first` events and the newest ones stay, as many as make half of the limit. The SDK's own agent has
    `max_size=80, keep_first=4`. A call and its result are two events.
    """
    model = summariser(services)
    condensers, views = _sdk("context.condenser"), _sdk("context.view")
    condensation = _sdk("event").Condensation
    condenser = condensers.LLMSummarizingCondenser(
        llm=model, max_size=max_size, keep_first=keep_first, max_tokens=max_tokens
    )
    view, recorded, actions = views.View(), dict[str, ChatDict](), dict[str, Any]()

    def step(new: list[ChatDict]) -> list[ChatDict]:
        recorded.update((message["id"], message) for message in new)
        for event in to_openhands(new, actions):
            view.append_event(event)
        # The SDK's agent asks again after each condensation, for ever where one takes nothing away.
        before = len(view) + 1
        while len(view) < before:
            before = len(view)
            condensed = condenser.condense(view, agent_llm=model)
            if not isinstance(condensed, condensation):
                break
            view.append_event(condensed)
        return from_openhands(view.events, recorded)

    return step

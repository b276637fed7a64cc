"""LangChain: `trim_messages`, `SummarizationMiddleware`, `ClearToolUsesEdit`; messages of langchain-core."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, arguments_of, chat_call, chat_dict, chat_tokens, imported, of_all, system_apart

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
# Where a message keeps its calls as they were recorded: LangChain holds arguments as objects.
_RECORDED = "recorded_tool_calls"


def to_langchain(messages: Iterable[ChatDict]) -> list[Any]:
    """Return message dicts as messages of langchain-core. Raises MissingExtra."""
    core = imported("langchain_core.messages")
    return [_message(core, message) for message in messages]


def _message(core: Any, message: ChatDict) -> Any:
    named = {"content": message["content"], "id": message.get("id"), "name": message.get("name")}
    match message["role"]:
        case "system":
            return core.SystemMessage(**named)
        case "user":
            return core.HumanMessage(**named)
        case "tool":
            return core.ToolMessage(**named, tool_call_id=message["tool_call_id"])
    recorded = message.get("tool_calls", [])
    calls = [{"id": call["id"], "name": call["function"]["name"], "args": arguments_of(call)} for call in recorded]
    return core.AIMessage(**named, tool_calls=calls, additional_kwargs={_RECORDED: recorded} if recorded else {})


def from_langchain(messages: Iterable[Any]) -> list[ChatDict]:
    """Return messages of langchain-core as message dicts."""
    return [
        chat_dict(
            _ROLES[message.type],
            message.content,
            id=message.id,
            name=message.name,
            tool_calls=[
                chat_call(call["name"], call["id"], call["args"], message.additional_kwargs.get(_RECORDED, ()))
                for call in getattr(message, "tool_calls", ())
            ],
            tool_call_id=getattr(message, "tool_call_id", None),
        )
        for message in messages
    ]


def token_counter(services: ChatServices) -> Any:
    """Return a function that counts messages of langchain-core: texts, names and arguments of calls, 4 a message."""
    return lambda messages: chat_tokens(services, from_langchain(messages))


def chat_model(services: ChatServices) -> Any:
    """Return a chat model of LangChain that the run's summariser answers. Raises MissingExtra."""
    models = imported("langchain_core.language_models.chat_models")

    class SummariserModel(models.SimpleChatModel):  # type: ignore[misc, name-defined]
        """Asks the run's summariser."""

        @property
        def _llm_type(self) -> str:
            return "summariser"

        def _call(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **settings: Any) -> str:  # noqa: ARG002
            limits = {name: settings[name] for name in ("max_tokens", "temperature") if name in settings}
            return services.complete(from_langchain(messages), **limits)

    return SummariserModel()


@adapter()
def trim_messages(
    services: ChatServices,
    max_tokens: int = 8000,
    start_on: Literal["human", "ai", "system", "tool"] | None = "human",
    include_system: bool = True,
) -> Step:
    """Send the newest messages within a token limit, as `langchain_core.messages.trim_messages` with `last` does."""
    core, count = imported("langchain_core.messages"), token_counter(services)
    limits = {"max_tokens": max_tokens, "start_on": start_on, "include_system": include_system}

    def trimmed(said: list[Any]) -> list[ChatDict]:
        return from_langchain(core.trim_messages(said, strategy="last", token_counter=count, **limits))

    return of_all(trimmed, to_langchain)


@adapter()
def summarization(services: ChatServices, trigger: int = 8000, keep: int = 20) -> Step:
    """Summarise all but the last `keep` messages once they have `trigger` tokens (`SummarizationMiddleware`)."""
    middleware = imported("langchain.agents.middleware").SummarizationMiddleware(
        chat_model(services),
        trigger=("tokens", trigger),
        keep=("messages", keep),
        token_counter=token_counter(services),
    )
    state = list[Any]()

    def step(new: list[ChatDict]) -> list[ChatDict]:
        state.extend(to_langchain(new))
        if update := middleware.before_model({"messages": state}, None):
            # The first is an order to LangChain's state, to remove all
            # messages; the others are what it holds from now on.
            state[:] = update["messages"][1:]
        return from_langchain(state)

    return system_apart(step)


@adapter()
def clear_tool_uses(
    services: ChatServices, trigger: int = 100_000, keep: int = 3, clear_at_least: int = 0, clear_inputs: bool = False
) -> Step:
    """Replace all but the last `keep` tool results once there are over `trigger` tokens (`ClearToolUsesEdit`)."""
    edit = imported("langchain.agents.middleware").ClearToolUsesEdit(
        trigger=trigger, keep=keep, clear_at_least=clear_at_least, clear_tool_inputs=clear_inputs
    )
    count = token_counter(services)

    def edited(said: list[Any]) -> list[ChatDict]:
        # The edit writes into the list that it is given; the next call must begin from what was said.
        request = list(said)
        edit.apply(request, count_tokens=count)
        return from_langchain(request)

    return of_all(edited, to_langchain)

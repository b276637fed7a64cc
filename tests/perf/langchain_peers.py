"""LangChain's and langmem's ways, called at their hooks, with models that reply at once."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ctxbench.scenarios.model import Conversation
from tests.perf.peers import CLOCK, SUMMARY, Count, Peer, Stage, Step


def trim(tokens: int) -> Peer:
    """langchain-core, on the whole history."""

    def start(conversation: Conversation, count: Count) -> Step:
        from langchain_core.messages import trim_messages

        made = langchain(conversation)
        limits: dict[str, Any] = {"max_tokens": tokens, "include_system": True, "start_on": ("human", "ai")}
        limits["token_counter"] = cost(conversation, count)
        return lambda at: trim_messages(made[:at], strategy="last", **limits)

    return Peer("langchain trim_messages", start, grows=False)


def agent(name: str, *stages: Callable[[Conversation, Count], Stage]) -> Peer:
    """LangChain's hooks in their order: what one returns is what the next is given."""

    def start(conversation: Conversation, count: Count) -> Step:
        made = langchain(conversation)[1:]  # the system prompt is no part of an agent's state
        hooks = [stage(conversation, count) for stage in stages]
        heard = 0

        def step(at: int) -> list[Any]:
            nonlocal heard
            sent, heard = made[heard : at - 1], at - 1
            for hook in hooks:
                sent = hook(sent)
            return sent

        return step

    return Peer(name, start)


def state(conversation: Conversation, count: Count) -> Stage:
    """An agent's state when nothing rewrites it: all that was said."""
    said: list[Any] = []

    def stage(new: list[Any]) -> list[Any]:
        said.extend(new)
        return list(said)

    return stage


def summarising(trigger: tuple[str, int], keep: tuple[str, int]) -> Callable[[Conversation, Count], Stage]:
    """langchain's SummarizationMiddleware.before_model, on a state that keeps what it returned."""

    def start(conversation: Conversation, count: Count) -> Stage:
        from langchain.agents.middleware import SummarizationMiddleware

        counter = cost(conversation, count)
        middleware = SummarizationMiddleware(langchain_model(), trigger=trigger, keep=keep, token_counter=counter)  # type: ignore[arg-type]
        said: list[Any] = []

        def stage(new: list[Any]) -> list[Any]:
            said.extend(new)
            update = middleware.before_model({"messages": said}, None)  # type: ignore[arg-type]
            if update is not None:
                said[:] = update["messages"][1:]
            return list(said)

        return stage

    return start


def clearing(conversation: Conversation, count: Count) -> Stage:
    """langchain's ContextEditingMiddleware.wrap_model_call with ClearToolUsesEdit, both with their own defaults."""
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
    from langchain.agents.middleware.types import ModelRequest

    middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit()], token_counter=cost(conversation, count))
    model = langchain_model()

    def stage(said: list[Any]) -> list[Any]:
        sent: Any = middleware.wrap_model_call(ModelRequest(model=model, messages=said), lambda made: made)  # type: ignore[arg-type, return-value]
        return list(sent.messages)

    return stage


def marking(conversation: Conversation, count: Count) -> Stage:
    """langchain-anthropic's prompt caching: it marks the system prompt and the tail, and counts nothing."""
    from langchain.agents.middleware.types import ModelRequest
    from langchain_anthropic import ChatAnthropic
    from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
    from langchain_core.messages import SystemMessage

    middleware = AnthropicPromptCachingMiddleware()
    model = ChatAnthropic(model_name="claude-sonnet-4-5", api_key="none", timeout=None, stop=None)  # type: ignore[arg-type]
    system = SystemMessage(conversation.messages[0].text)

    def stage(said: list[Any]) -> list[Any]:
        request = ModelRequest(model=model, messages=said, system_message=system)
        sent: Any = middleware.wrap_model_call(request, lambda made: made)  # type: ignore[arg-type, return-value]
        return [sent.system_message, *sent.messages]

    return stage


def langmem(tokens: int) -> Peer:
    """langmem's summarize_messages on the whole history, with the running summary of the call before."""

    def start(conversation: Conversation, count: Count) -> Step:
        from langmem.short_term import summarize_messages  # type: ignore[import-untyped]

        made, model, counter = langchain(conversation), langchain_model(), cost(conversation, count)
        running = None

        def step(at: int) -> Sequence[Any]:
            nonlocal running
            limits: dict[str, Any] = {"max_tokens": tokens, "max_summary_tokens": 500, "token_counter": counter}
            result = summarize_messages(made[:at], running_summary=running, model=model, **limits)
            running = result.running_summary
            sent: Sequence[Any] = result.messages
            return sent

        return step

    return Peer("langmem summarize_messages", start)


def cost(conversation: Conversation, count: Count) -> Callable[[Any], int]:
    """What a list of LangChain messages costs, as we count it: see `metrics.tokens`."""
    arguments = {call.id: call.arguments for message in conversation.messages for call in message.calls}

    def of(messages: Any) -> int:
        total = 0
        for message in messages:
            total += 4 + count(str(message.content)) + (1 + count(message.name) if message.name else 0)
            for call in getattr(message, "tool_calls", ()):
                total += 3 + count(call["name"]) + count(arguments[call["id"]])
        return total

    return of


def langchain(conversation: Conversation) -> list[Any]:
    """The messages as LangChain's."""
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

    made: list[BaseMessage] = []
    for message in conversation.messages:
        match message.role:
            case "system":
                made.append(SystemMessage(message.text, id=message.id))
            case "user":
                made.append(HumanMessage(message.text, id=message.id))
            case "tool":
                made.append(ToolMessage(message.text, id=message.id, tool_call_id=str(message.answers)))
            case _:
                calls = [
                    {"id": call.id, "name": call.name, "args": json.loads(call.arguments)} for call in message.calls
                ]
                made.append(AIMessage(message.text, id=message.id, tool_calls=calls))
    return made


@cache
def langchain_model() -> Any:
    """A chat model that replies SUMMARY."""
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import AIMessage

    class Model(FakeListChatModel):
        def invoke(self, *_: Any, **__: Any) -> Any:
            with CLOCK.standing():
                return AIMessage(SUMMARY)

    return Model(responses=[SUMMARY])

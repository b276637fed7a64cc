"""Agent Framework's strategies send what its compaction, called natively, would send."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import agent_framework
from ctxbench.strategies.functions import finished
from tests.strategies.adapters.native import COUNT, SUMMARY, Native, Seen, conversion_test, library, native_test

test_a_conversion_loses_nothing = conversion_test(
    "agent_framework", agent_framework.to_agent_framework, agent_framework.from_agent_framework
)


def framework_messages(conversation: Conversation, start: int, stop: int) -> list[Any]:
    """The messages as a program of Agent Framework writes them, under the ids of the conversation."""
    framework = library("agent_framework")
    content = framework.Content
    return [
        framework.Message(
            message.role,
            [content.from_function_result(message.answers, result=message.text)]
            if message.answers
            else [content.from_function_call(call.id, call.name, arguments=call.arguments) for call in message.calls]
            or [message.text],
            message_id=message.id,
        )
        for message in conversation.messages[start:stop]
    ]


def framework_seen(messages: list[Any]) -> Seen:
    return [
        (
            message.role,
            message.text or "".join(item.result for item in message.contents if item.type == "function_result"),
            tuple(item.call_id for item in message.contents if item.type == "function_call"),
            next((item.call_id for item in message.contents if item.type == "function_result"), None),
        )
        for message in messages
    ]


def native_compaction(kind: str, asks: str | None = None, **settings: Any) -> Native:
    """Compaction of one list that goes on, by a strategy whose argument `asks` is a chat client."""

    def native(conversation: Conversation) -> Callable[[int, int], Seen]:
        framework = library("agent_framework")

        async def get_response(messages: Any, **others: Any) -> Any:
            return framework.ChatResponse(messages=[framework.Message("assistant", [SUMMARY])])

        client = {asks: SimpleNamespace(get_response=get_response)} if asks else {}
        strategy, state = getattr(framework, kind)(**settings, **client), list[Any]()

        def step(start: int, stop: int) -> Seen:
            state.extend(framework_messages(conversation, start, stop))
            return framework_seen(finished(framework.apply_compaction(state, strategy=strategy)))

        return step

    return native


TOKENS = {"tokenizer": SimpleNamespace(count_tokens=COUNT)}

NATIVE: dict[str, Native] = {
    "agent_framework.truncation(max_n=1200, compact_to=600)": native_compaction(
        "TruncationStrategy", max_n=1200, compact_to=600, **TOKENS
    ),
    "agent_framework.truncation(max_n=900, compact_to=600, preserve_first_user_group=True)": native_compaction(
        "TruncationStrategy", max_n=900, compact_to=600, preserve_first_user_group=True, **TOKENS
    ),
    "agent_framework.sliding_window(keep_last_groups=8)": native_compaction(
        "SlidingWindowStrategy", keep_last_groups=8
    ),
    "agent_framework.selective_tool_call": native_compaction("SelectiveToolCallCompactionStrategy"),
    "agent_framework.tool_result_compaction(keep_last_tool_call_groups=2)": native_compaction(
        "ToolResultCompactionStrategy", keep_last_tool_call_groups=2
    ),
    "agent_framework.summarization": native_compaction("SummarizationStrategy", asks="client", **TOKENS),
    "agent_framework.context_window(max_context_window_tokens=1400, max_output_tokens=200)": native_compaction(
        "ContextWindowCompactionStrategy", max_context_window_tokens=1400, max_output_tokens=200, **TOKENS
    ),
}


test_it_sends_what_the_library_would = native_test("agent_framework", NATIVE)

"""Semantic Kernel's strategies send what its reducers, called natively, would send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import semantic_kernel
from ctxbench.strategies.functions import finished
from tests.strategies.adapters.native import SUMMARY, Native, Seen, conversion_test, defect, library, native_test

test_a_conversion_loses_nothing = conversion_test(
    "semantic_kernel.contents", semantic_kernel.to_semantic_kernel, semantic_kernel.from_semantic_kernel
)


def kernel_seen(message: Any) -> tuple[str, str, tuple[str, ...], str | None]:
    results = [item for item in message.items if item.content_type == "function_result"]
    calls = tuple(item.id for item in message.items if item.content_type == "function_call")
    if results:
        return message.role.value, results[0].result, calls, results[0].id
    return message.role.value, message.content, calls, None


def native_reducer(kind: str, **settings: Any) -> Native:
    """A reducer as the history of an agent; one that summarises is given a service."""

    def native(conversation: Conversation) -> Callable[[int, int], Seen]:
        contents = library("semantic_kernel.contents")
        base = library("semantic_kernel.connectors.ai.chat_completion_client_base").ChatCompletionClientBase

        class Summing(base):  # type: ignore[misc, valid-type]
            async def _inner_get_chat_message_contents(self, chat_history: Any, settings: Any) -> list[Any]:
                return [contents.ChatMessageContent(role="assistant", content=SUMMARY)]

        service = {"service": Summing(ai_model_id="x")} if "Summarization" in kind else {}
        reducer = getattr(contents, kind)(**settings, **service)

        def step(start: int, stop: int) -> Seen:
            for message in conversation.messages[start:stop]:
                if message.role == "system":
                    reducer.add_system_message(message.text)
                elif message.role == "user":
                    reducer.add_user_message(message.text)
                elif message.answers:
                    items = [contents.FunctionResultContent(id=message.answers, name="tool", result=message.text)]
                    reducer.add_message(contents.ChatMessageContent(role="tool", items=items))
                elif message.calls:
                    (call,) = message.calls
                    function = contents.FunctionCallContent(id=call.id, name=call.name, arguments=call.arguments)
                    reducer.add_message(contents.ChatMessageContent(role="assistant", items=[function]))
                else:
                    reducer.add_assistant_message(message.text)
            finished(reducer.reduce())
            return list(map(kernel_seen, reducer.messages))

        return step

    return native


TRUNCATION, SUMMARIZATION = "ChatHistoryTruncationReducer", "ChatHistorySummarizationReducer"

NATIVE: dict[str, Native] = {
    "semantic_kernel.truncation": native_reducer(TRUNCATION, target_count=20),
    "semantic_kernel.truncation(target_count=7, threshold_count=3)": native_reducer(
        TRUNCATION, target_count=7, threshold_count=3
    ),
    "semantic_kernel.summarization(target_count=8, threshold_count=3)": native_reducer(
        SUMMARIZATION, target_count=8, threshold_count=3
    ),
    "semantic_kernel.summarization(target_count=8, use_single_summary=False)": native_reducer(
        SUMMARIZATION, target_count=8, use_single_summary=False
    ),
    "semantic_kernel.summarization(target_count=8, include_function_content_in_summary=True)": native_reducer(
        SUMMARIZATION, target_count=8, include_function_content_in_summary=True
    ),
}


test_it_sends_what_the_library_would = native_test("semantic_kernel.contents", NATIVE)


def test_truncation_drops_the_task_alone() -> None:
    """The example shows it natively: after 15 tool calls the task is gone, and 31 messages are sent instead of 20."""
    library("semantic_kernel.contents")
    assert defect("semantic_kernel_truncation") == "15 tool calls, 31 messages are kept: system assistant tool\n"

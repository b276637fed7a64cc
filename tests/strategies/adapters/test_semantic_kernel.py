"""Semantic Kernel's strategies send what its reducers, called natively, would send."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import semantic_kernel
from ctxbench.strategies.functions import finished
from tests.strategies.adapters.native import SUMMARY, Native, Seen, check_conversion, check_native, library

DEFECT = Path(__file__).parents[3] / "docs/examples/defects/semantic_kernel_truncation.py"


def test_a_conversion_loses_nothing() -> None:
    """Messages come back from Semantic Kernel's to the letter: ids, names, calls, arguments as they were written."""
    library("semantic_kernel.contents")
    check_conversion(semantic_kernel.to_semantic_kernel, semantic_kernel.from_semantic_kernel)


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


@pytest.mark.parametrize("text", NATIVE)
def test_it_sends_what_the_library_would(text: str) -> None:
    """At every call the messages are those of a reducer that is used natively, and some call differs from all."""
    library("semantic_kernel.contents")
    check_native(text, NATIVE[text])


def test_truncation_drops_the_task_alone() -> None:
    """The example shows it natively: after 15 tool calls the task is gone, and 31 messages are sent instead of 20."""
    library("semantic_kernel.contents")
    shown = subprocess.run([sys.executable, DEFECT], capture_output=True, text=True, check=True)
    assert shown.stdout == "15 tool calls, 31 messages are kept: system assistant tool\n"

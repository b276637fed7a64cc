"""LlamaIndex's strategies send what LlamaIndex, called natively, would send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxbench.scenarios.chat import chat_message
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import llama_index
from tests.strategies.adapters.native import (
    COUNT,
    SUMMARY,
    Native,
    Seen,
    check_conversion,
    check_native,
    check_version,
    library,
)


def test_a_conversion_loses_nothing() -> None:
    """Messages come back from LlamaIndex's to the letter: ids, names, calls, arguments as they were written."""
    library("llama_index.core")
    check_conversion(llama_index.to_llama_index, llama_index.from_llama_index)


def native_memory(conversation: Conversation, summarises: bool) -> Callable[[int, int], Seen]:
    llms, memories = library("llama_index.core.llms"), library("llama_index.core.memory")
    limits: dict[str, Any] = {"token_limit": 600, "tokenizer_fn": lambda text: [0] * COUNT(text)}
    if summarises:

        class Summing(llms.MockLLM):  # type: ignore[misc, name-defined]
            def chat(self, messages: Any, **more: Any) -> Any:
                return llms.ChatResponse(message=llms.ChatMessage(SUMMARY, role="assistant"))

        limits["llm"] = Summing()
    kind = memories.ChatSummaryMemoryBuffer if summarises else memories.ChatMemoryBuffer
    memory = kind.from_defaults(**limits)
    first = conversation.messages[0]

    def step(start: int, stop: int) -> Seen:
        for message in conversation.messages[max(start, 1) : stop]:
            more: dict[str, Any] = {"tool_calls": chat_message(message)["tool_calls"]} if message.calls else {}
            if message.answers:
                more["tool_call_id"] = message.answers
            memory.put(llms.ChatMessage(message.text, role=message.role, additional_kwargs=more))
        kept = [
            (
                message.role.value,
                message.content or "",
                tuple(call["id"] for call in message.additional_kwargs.get("tool_calls", ())),
                message.additional_kwargs.get("tool_call_id"),
            )
            for message in memory.get()
        ]
        return [(first.role, first.text, (), None), *kept]

    return step


NATIVE: dict[str, Native] = {
    "llamaindex.chat_memory_buffer(token_limit=600)": lambda talk: native_memory(talk, summarises=False),
    "llamaindex.chat_summary_memory_buffer(token_limit=600)": lambda talk: native_memory(talk, summarises=True),
}


@pytest.mark.parametrize("text", NATIVE)
def test_it_sends_what_the_library_would(text: str) -> None:
    """At every call the messages are those of LlamaIndex that is called natively, and some call differs from all."""
    library("llama_index.core")
    check_native(text, NATIVE[text])


@pytest.mark.parametrize("text", NATIVE)
def test_a_run_notes_the_library_s_version(text: str) -> None:
    """The library stands beside the strategy with its version; without it there is one line that names the extra."""
    check_version(text)

"""LlamaIndex's strategies send what LlamaIndex, called natively, would send."""

from collections.abc import Callable
from typing import Any

from sqlalchemy.ext.asyncio import create_async_engine

from ctxbench.scenarios.chat import chat_message
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.adapters import llama_index
from ctxbench.strategies.functions import finished
from tests.strategies.adapters.native import (
    COUNT,
    SUMMARY,
    Native,
    Seen,
    check_native,
    conversion_test,
    defect,
    library,
    native_test,
)

test_a_conversion_loses_nothing = conversion_test(
    "llama_index.core", llama_index.to_llama_index, llama_index.from_llama_index
)


def llama_index_message(message: Message) -> Any:
    """The message as a LlamaIndex program writes it."""
    more: dict[str, Any] = {"tool_calls": chat_message(message)["tool_calls"]} if message.calls else {}
    if message.answers:
        more["tool_call_id"] = message.answers
    return library("llama_index.core.llms").ChatMessage(message.text, role=message.role, additional_kwargs=more)


def llama_index_seen(conversation: Conversation, messages: list[Any]) -> Seen:
    """The system prompt, and what a memory returned."""
    first = conversation.messages[0]
    kept = [
        (
            message.role.value,
            message.content or "",
            tuple(call["id"] for call in message.additional_kwargs.get("tool_calls", ())),
            message.additional_kwargs.get("tool_call_id"),
        )
        for message in messages
    ]
    return [(first.role, first.text, (), None), *kept]


def tokens(text: str) -> list[int]:
    return [0] * COUNT(text)


def native_buffer(conversation: Conversation, summarises: bool) -> Callable[[int, int], Seen]:
    llms, memories = library("llama_index.core.llms"), library("llama_index.core.memory")
    limits: dict[str, Any] = {"token_limit": 600, "tokenizer_fn": tokens}
    if summarises:

        class Summing(llms.MockLLM):  # type: ignore[misc, name-defined]
            def chat(self, messages: Any, **more: Any) -> Any:
                return llms.ChatResponse(message=llms.ChatMessage(SUMMARY, role="assistant"))

        limits["llm"] = Summing()
    kind = memories.ChatSummaryMemoryBuffer if summarises else memories.ChatMemoryBuffer
    memory = kind.from_defaults(**limits)

    def step(start: int, stop: int) -> Seen:
        for message in conversation.messages[max(start, 1) : stop]:
            memory.put(llama_index_message(message))
        return llama_index_seen(conversation, memory.get())

    return step


def native_memory(conversation: Conversation, engine: Any) -> Callable[[int, int], Seen]:
    memory = library("llama_index.core.memory").Memory.from_defaults(
        token_limit=900, token_flush_size=100, tokenizer_fn=tokens, async_engine=engine
    )

    async def put(messages: tuple[Message, ...]) -> list[Any]:
        for message in messages:
            await memory.aput(llama_index_message(message))
        kept: list[Any] = await memory.aget()
        return kept

    def step(start: int, stop: int) -> Seen:
        return llama_index_seen(conversation, finished(put(conversation.messages[max(start, 1) : stop])))

    return step


NATIVE: dict[str, Native] = {
    "llamaindex.chat_memory_buffer(token_limit=600)": lambda talk: native_buffer(talk, summarises=False),
    "llamaindex.chat_summary_memory_buffer(token_limit=600)": lambda talk: native_buffer(talk, summarises=True),
}
MEMORY = "llamaindex.memory(token_limit=900, token_flush_size=100)"


test_it_sends_what_the_library_would = native_test("llama_index.core", NATIVE)


def test_memory_sends_what_the_library_s_own_store_would() -> None:
    """At every call the messages are those of a native memory, which keeps them in SQLite."""
    library("llama_index.core")
    engine = create_async_engine("sqlite+aiosqlite://")
    check_native(MEMORY, lambda talk: native_memory(talk, engine))
    finished(engine.dispose())


def test_a_chat_memory_buffer_sends_a_result_without_its_call() -> None:
    """The example shows it natively: of a turn that is over the limit the newest result is sent alone."""
    library("llama_index.core")
    assert defect("llama_index_lone_tool_result") == "['tool']\n"

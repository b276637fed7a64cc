"""LlamaIndex: `ChatMemoryBuffer`, `ChatSummaryMemoryBuffer`, `Memory`; messages of llama-index-core.

A memory is given each new message and asked for all of them. System prompts stand before it, as its chat engines have
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, chat_call, chat_dict, imported, system_apart

_OTHERS = ("id", "name", "tool_calls", "tool_call_id")


def to_llama_index(messages: Iterable[ChatDict]) -> list[Any]:
    """Return message dicts as `ChatMessage`s, whose `additional_kwargs` have all but role and text.

    Raises MissingExtra.
    """
    chat_message = imported("llama_index.core.llms").ChatMessage
    return [
        chat_message(
            message["content"],
            role=message["role"],
            additional_kwargs={key: message[key] for key in _OTHERS if key in message},
        )
        for message in messages
    ]


def from_llama_index(messages: Iterable[Any]) -> list[ChatDict]:
    """Return `ChatMessage`s as message dicts. Blocks of tool calls are calls beside those of `additional_kwargs`."""
    converted = []
    for message in messages:
        others = {key: message.additional_kwargs.get(key) for key in _OTHERS}
        blocks = [block for block in message.blocks if block.block_type == "tool_call"]
        calls = [chat_call(block.tool_name, block.tool_call_id or "", block.tool_kwargs) for block in blocks]
        others["tool_calls"] = [*(others["tool_calls"] or ()), *calls]
        converted.append(chat_dict(message.role.value, message.content, **others))
    return converted


def llm(services: ChatServices) -> Any:
    """Return an LLM of LlamaIndex that the run's summariser answers. Raises MissingExtra."""
    llms = imported("llama_index.core.llms")

    class SummariserLLM(llms.CustomLLM):  # type: ignore[misc, name-defined]
        """Asks the run's summariser."""

        @property
        def metadata(self) -> Any:
            return llms.LLMMetadata(is_chat_model=True, model_name="summariser")

        def chat(self, messages: Any, **settings: Any) -> Any:  # noqa: ARG002
            reply = services.complete(from_llama_index(messages))
            return llms.ChatResponse(message=llms.ChatMessage(reply, role="assistant"))

        def complete(self, prompt: str, formatted: bool = False, **settings: Any) -> Any:  # noqa: ARG002
            return llms.CompletionResponse(text=services.complete(prompt))

        def stream_complete(self, prompt: str, formatted: bool = False, **settings: Any) -> Any:
            yield self.complete(prompt, formatted, **settings)

    return SummariserLLM()


def _remember(services: ChatServices, kind: str, **settings: Any) -> Step:
    """Return a step that puts what is new into a memory and sends what the memory returns."""
    memories = imported("llama_index.core.memory")
    # LlamaIndex takes the length of the list of tokens.
    memory = getattr(memories, kind).from_defaults(
        tokenizer_fn=lambda text: range(services.count_tokens(text)), **settings
    )

    def step(new: list[ChatDict]) -> list[ChatDict]:
        for message in to_llama_index(new):
            memory.put(message)
        return from_llama_index(memory.get())

    return system_apart(step)


@adapter(_remember)
def chat_memory_buffer(services: ChatServices, token_limit: int = 3000) -> None:
    """Send the newest messages within a token limit (`ChatMemoryBuffer`)."""


@adapter(_remember)
def chat_summary_memory_buffer(services: ChatServices, token_limit: int = 2000) -> dict[str, Any]:
    """Send the newest messages within a token limit and a summary of the others (`ChatSummaryMemoryBuffer`)."""
    return {"llm": llm(services)}


@adapter()
def memory(
    services: ChatServices,
    token_limit: int = 30_000,
    chat_history_token_ratio: float = 0.7,
    token_flush_size: int = 3000,
) -> Step:
    """Send the newest messages from a user message on (`Memory`).

    Once there are over `token_limit` × `chat_history_token_ratio` tokens, the oldest `token_flush_size` go at a time.
    Calls and their ids are counted as Python prints them. There are no memory blocks.
    """
    limits = {"token_limit": token_limit, "chat_history_token_ratio": chat_history_token_ratio}
    memory = imported("llama_index.core.memory").Memory.from_defaults(
        tokenizer_fn=lambda text: range(services.count_tokens(text)), token_flush_size=token_flush_size, **limits
    )
    memory.sql_store = _list_store()

    async def step(new: list[ChatDict]) -> list[ChatDict]:
        # A program has no ids to count, and messages that come back without one are known by their content.
        for message in to_llama_index({key: message[key] for key in message if key != "id"} for message in new):
            await memory.aput(message)
        return from_llama_index(await memory.aget())

    return system_apart(step)


def _list_store() -> Any:
    """Return a store of a memory's messages. LlamaIndex's own sorts by the wall clock and keeps a thread for each."""
    store = imported("llama_index.core.storage.chat_store.sql").SQLAlchemyChatStore
    active = list[Any]()

    class ListStore(store):  # type: ignore[misc, valid-type]
        """Keeps the active messages in a list."""

        async def get_messages(self, key: str, **query: Any) -> list[Any]:  # noqa: ARG002
            return list(active)

        async def add_message(self, key: str, message: Any, **columns: Any) -> None:  # noqa: ARG002
            active.append(message)

        async def archive_oldest_messages(self, key: str, n: int) -> None:  # noqa: ARG002
            del active[:n]

    return ListStore("messages")

"""llama-index's memories: put what is new, get for the newest user message."""

from collections.abc import Callable, Sequence
from typing import Any

from ctxbench.harness.models import OFFLINE
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters.llama_index import to_llama_index
from tests.perf.peers import CLOCK, SUMMARY, Count, Peer, Step, dicts, in_one_loop


def summary_buffer(tokens: int) -> Peer:
    """llama-index's ChatSummaryMemoryBuffer."""

    def start(conversation: Conversation, count: Count) -> Step:
        from llama_index.core.llms import ChatMessage, ChatResponse, MockLLM
        from llama_index.core.memory import ChatSummaryMemoryBuffer

        class Model(MockLLM):
            def chat(self, messages: Any, **more: Any) -> Any:
                with CLOCK.standing():
                    return ChatResponse(message=ChatMessage(SUMMARY, role="assistant"))

        model = Model()
        made = ChatSummaryMemoryBuffer.from_defaults(llm=model, token_limit=tokens, tokenizer_fn=tokenizer(count))
        return remembering(conversation, made)

    return Peer("llama-index ChatSummaryMemoryBuffer", start)


def memory(tokens: int) -> Peer:
    """llama-index's Memory, which keeps the messages in SQLite: put what is new, get."""

    def start(conversation: Conversation, count: Count) -> Step:
        from llama_index.core.memory import Memory

        made = llama_index(conversation)
        memory = Memory.from_defaults(token_limit=tokens, tokenizer_fn=tokenizer(count))
        heard = 1  # the system prompt is no part of a memory

        async def step(at: int) -> Sequence[Any]:
            nonlocal heard
            for message in made[heard:at]:
                await memory.aput(message)
            heard = at
            return await memory.aget()

        return in_one_loop(step)

    return Peer("llama-index Memory", start)


def vectors(most: int) -> Peer:
    """llama-index's VectorMemory, with the vectors of `offline`."""

    def start(conversation: Conversation, count: Count) -> Step:
        from llama_index.core.embeddings import BaseEmbedding
        from llama_index.core.memory import VectorMemory

        counter = TokenCounter()

        class Vectors(BaseEmbedding):
            def _get_text_embedding(self, text: str, query: bool = False) -> list[float]:
                with CLOCK.standing():
                    found: list[float] = OFFLINE.embed([text], query, counter).vectors[0].tolist()
                    return found

            def _get_query_embedding(self, query: str) -> list[float]:
                return self._get_text_embedding(query, True)

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return self._get_text_embedding(query, True)

        memory: Any = VectorMemory.from_defaults(embed_model=Vectors(), retriever_kwargs={"similarity_top_k": most})
        return remembering(conversation, memory)

    return Peer("llama-index VectorMemory", start, grows=False)


def remembering(conversation: Conversation, memory: Any) -> Step:
    """A memory of llama-index: put what is new, get for the newest user message."""
    made = llama_index(conversation)
    heard, question = 0, ""

    def step(at: int) -> Sequence[Any]:
        nonlocal heard, question
        for message in made[heard:at]:
            memory.put(message)
            if message.role == "user":
                question = message.content
        heard = at
        got: Sequence[Any] = memory.get(question)
        return got

    return step


def tokenizer(count: Count) -> Callable[[str], Any]:
    """llama-index asks for a list as long as the tokens are many: a range is one."""
    return lambda text: range(count(text))


def llama_index(conversation: Conversation) -> list[Any]:
    """The messages as llama-index's, with their calls. A program has no ids of messages, which would be counted."""
    return to_llama_index({key: message[key] for key in message if key != "id"} for message in dicts(conversation))

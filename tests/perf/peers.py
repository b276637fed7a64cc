"""What other libraries do for the same purpose, each as a function of one growing history, like a strategy of ours.

    step = peer.start(conversation, count)
    for at in conversation.calls():
        sent = step(at)          # what it would send after the first `at` messages

Messages are turned into the library's own when it is started, so that is not timed. `CLOCK` stands still while a model
or an embedder works, a peer's or ours: models reply at once, embedders give the vectors of the `offline` one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

from ctxbench.harness.desk import Books, RecordedDesk
from ctxbench.harness.models import OFFLINE, Models, Reply, Settings
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, Prompt
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Recalled

Count = Callable[[str], int]
Step = Callable[[int], Sequence[Any]]
Stage = Callable[[list[Any]], list[Any]]
SUMMARY = "They spoke of the order, its date and its price, and decided to write to the shop on Monday. " * 10
"""What peers' models reply."""


class Clock:
    """Seconds, without those that models and embedders took."""

    def __init__(self) -> None:
        self.stood = 0.0

    def __call__(self) -> float:
        return perf_counter() - self.stood

    @contextmanager
    def standing(self) -> Iterator[None]:
        began = perf_counter()
        try:
            yield
        finally:
            self.stood += perf_counter() - began


CLOCK = Clock()


class Peer(NamedTuple):
    """One way of another library, or several one after the other."""

    name: str
    start: Callable[[Conversation, Count], Step]
    grows: bool = True
    """Whether it must have seen the calls before. If not, it is first called where the timing begins."""
    keeps: bool = True
    """Whether it counts text by text, so that counts can be kept from call to call."""
    calls: int = 50
    """How many calls are timed at most."""


class Replying(Models):
    """Models that reply at once, for conversations that are long. Embeddings are those of `offline`."""

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """The same for every prompt."""
        return Reply(SUMMARY, "replying", 0, 0, 0.0)


REPLYING = Replying(Settings())


def ours(spec: str, conversation: Conversation, models: Models = OFFLINE) -> Step:
    """A strategy of ours, as the harness replays it; what is new is counted when it asks, and that is timed."""
    desk = RecordedDesk(Books(conversation, TokenCounter()), models)
    view = parse(spec).start(desk)

    def step(at: int) -> Sequence[Any]:
        desk.turn_to(at)
        sent = view(Context(Messages.prefix(conversation.messages, at), (), conversation.tools))
        CLOCK.stood += desk.taken()[1] / 1e9
        return sent.messages

    return step


def trim(tokens: int | None = None, messages: int | None = None) -> Peer:
    """langchain-core, on the whole history."""

    def start(conversation: Conversation, count: Count) -> Step:
        from langchain_core.messages import trim_messages

        made = langchain(conversation)
        counter = len if tokens is None else cost(conversation, count)
        limits = {"max_tokens": tokens or messages, "include_system": True, "start_on": ("human", "ai")}
        return lambda at: trim_messages(made[:at], strategy="last", token_counter=counter, **limits)

    return Peer("langchain trim_messages", start, grows=False, keeps=tokens is not None)


def agent(name: str, *stages: Callable[[Conversation, Count], Stage], keeps: bool = True) -> Peer:
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

    return Peer(name, start, keeps=keeps)


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
            update = middleware.before_model({"messages": said}, None)  # type: ignore[arg-type, typeddict-item]
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


def trimming(tokens: int) -> Callable[[Conversation, Count], Stage]:
    """langchain-core's trim_messages on what the hooks before left."""

    def start(conversation: Conversation, count: Count) -> Stage:
        from langchain_core.messages import trim_messages

        limits = {"max_tokens": tokens, "token_counter": cost(conversation, count), "start_on": ("human", "ai")}
        return lambda said: trim_messages(said, strategy="last", **limits)

    return start


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
        from langmem.short_term import summarize_messages

        made, model, counter = langchain(conversation), langchain_model(), cost(conversation, count)
        running = None

        def step(at: int) -> Sequence[Any]:
            nonlocal running
            limits = {"max_tokens": tokens, "max_summary_tokens": 500, "token_counter": counter}
            result = summarize_messages(made[:at], running_summary=running, model=model, **limits)
            running = result.running_summary
            return result.messages

        return step

    return Peer("langmem summarize_messages", start)


def buffer(tokens: int) -> Peer:
    """llama-index's ChatMemoryBuffer: put what is new, get."""

    def start(conversation: Conversation, count: Count) -> Step:
        from llama_index.core.memory import ChatMemoryBuffer

        return remembering(conversation, ChatMemoryBuffer(token_limit=tokens, tokenizer_fn=tokenizer(count)))

    return Peer("llama-index ChatMemoryBuffer", start, grows=False, keeps=False, calls=5)


def summary_buffer(tokens: int) -> Peer:
    """llama-index's ChatSummaryMemoryBuffer."""

    def start(conversation: Conversation, count: Count) -> Step:
        from llama_index.core.llms import MockLLM
        from llama_index.core.memory import ChatSummaryMemoryBuffer

        class Model(MockLLM):
            def chat(self, messages: Any, **more: Any) -> Any:
                with CLOCK.standing():
                    return super().chat(messages, **more)

        model = Model(max_tokens=200, is_chat_model=False)
        made = ChatSummaryMemoryBuffer.from_defaults(llm=model, token_limit=tokens, tokenizer_fn=tokenizer(count))
        return remembering(conversation, made)

    return Peer("llama-index ChatSummaryMemoryBuffer", start)


def vectors(most: int, buffered: int | None = None) -> Peer:
    """llama-index's VectorMemory; with `buffered` tokens of ChatMemoryBuffer before it, in SimpleComposableMemory."""

    def start(conversation: Conversation, count: Count) -> Step:
        from llama_index.core.embeddings import BaseEmbedding
        from llama_index.core.memory import ChatMemoryBuffer, SimpleComposableMemory, VectorMemory

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
        if buffered is not None:
            first = ChatMemoryBuffer(token_limit=buffered, tokenizer_fn=tokenizer(count))
            memory = SimpleComposableMemory(primary_memory=first, secondary_memory_sources=[memory])
        return remembering(conversation, memory)

    name = "VectorMemory" if buffered is None else "SimpleComposableMemory"
    return Peer(f"llama-index {name}", start, grows=False, keeps=False, calls=50 if buffered is None else 5)


def document_facts(tokens: int = 2000, turns: int = 3) -> Peer:
    """Design document 002 as it is written: a new TfidfVectorizer at each call, tiktoken for each fact.

    Facts and confidences are those that ours has at that call. Where they come from is not timed: 002 does not say.
    """

    def start(conversation: Conversation, count: Count) -> Step:
        inject = document_injection(tokens, turns)(conversation, count)
        made = langchain(conversation)
        return lambda at: inject(made[:at])

    return Peer("002's own way (scikit-learn, tiktoken)", start, grows=False)


def document_injection(tokens: int, turns: int) -> Callable[[Conversation, Count], Stage]:
    """002's MemoryMiddleware.before_model."""

    def start(conversation: Conversation, count: Count) -> Stage:
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.metrics.pairwise import cosine_similarity

        known = facts_of(conversation)

        def recent(said: list[Any]) -> str:
            parts, heard = [], 0
            for message in reversed(said):
                if isinstance(message, HumanMessage):
                    parts.append(str(message.content))
                    heard += 1
                    if heard >= turns:
                        break
                elif isinstance(message, AIMessage) and not message.tool_calls:
                    parts.append(str(message.content))
            return " ".join(reversed(parts))

        def stage(said: list[Any]) -> list[Any]:
            facts = known[said[-1].id]
            context = recent(said)
            scores = [confidence for _, confidence in facts]
            if facts and context:
                matrix = TfidfVectorizer().fit_transform([*(text for text, _ in facts), context])
                similar = cosine_similarity(matrix[-1], matrix[:-1])[0]
                scores = [0.6 * near + 0.4 * sure for near, sure in zip(similar, scores, strict=True)]
            lines, left = [], tokens
            for at in sorted(range(len(facts)), key=lambda at: -scores[at]):
                line = f"- {facts[at][0]}"
                left -= count(line)
                if left < 0:
                    break
                lines.append(line)
            text = "\n".join(lines)
            return [SystemMessage(f"<memory>\n{text}\n</memory>", name="memory_context"), *said]

        return stage

    return start


def together(*peers: Peer) -> Peer:
    """Peers of different libraries that know nothing of one another, each on the whole history."""

    def start(conversation: Conversation, count: Count) -> Step:
        steps = [peer.start(conversation, count) for peer in peers]
        return lambda at: [step(at) for step in steps][-1]

    name = " + ".join(peer.name for peer in peers)
    return Peer(name, start, any(peer.grows for peer in peers), all(peer.keeps for peer in peers))


def facts_of(conversation: Conversation) -> dict[str, list[tuple[str, float]]]:
    """By the id of the message before each call: all facts that ours knows then, with their confidences."""
    desk = RecordedDesk(Books(conversation, TokenCounter()))
    view = parse("facts(max_tokens=10000000, similarity=0, confidence=1)").start(desk)
    known: dict[str, list[tuple[str, float]]] = {}
    for at in conversation.calls():
        sent = view(Context(Messages.prefix(conversation.messages, at))).messages
        scores = [score for event in desk.taken()[0] if isinstance(event, Recalled) for score in event.scores]
        note = next((each.text for each in sent if each.id.startswith("facts:")), "")
        lines = [line.removeprefix("- ") for line in note.splitlines()[1:-1]]
        known[conversation.messages[at - 1].id] = list(zip(lines, scores, strict=True))
    return known


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


def llama_index(conversation: Conversation) -> list[Any]:
    """The messages as llama-index's."""
    from llama_index.core.llms import ChatMessage

    return [ChatMessage(message.text, role=message.role) for message in conversation.messages]


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

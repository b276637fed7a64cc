"""LangChain's strategies send what LangChain, called natively, would send."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given

from ctxbench.harness.invariants import check
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies import live
from ctxbench.strategies.adapters import langchain
from ctxbench.strategies.chain import parse
from tests.builders import conversations, talk
from tests.examples import examples
from tests.strategies.adapters.native import COUNT, SUMMARY, Native, Seen, conversion_test, library, native_test
from tests.strategies.stubs import Stub, played

test_a_conversion_loses_nothing = conversion_test("langchain_core", langchain.to_langchain, langchain.from_langchain)


def langchain_messages(conversation: Conversation, start: int, stop: int) -> list[Any]:
    """The messages as a LangChain program writes them."""
    core = library("langchain_core.messages")
    kinds = {"system": core.SystemMessage, "user": core.HumanMessage}
    return [
        core.ToolMessage(message.text, tool_call_id=message.answers)
        if message.role == "tool"
        else core.AIMessage(
            message.text, tool_calls=[{"id": call.id, "name": call.name, "args": {"a": 1}} for call in message.calls]
        )
        if message.role == "assistant"
        else kinds[message.role](message.text)
        for message in conversation.messages[start:stop]
    ]


def langchain_count(messages: Any) -> int:
    texts = [str(message.content) for message in messages]
    calls = [call for message in messages for call in getattr(message, "tool_calls", ())]
    return 4 * len(texts) + sum(map(COUNT, texts)) + sum(COUNT(call["name"]) + COUNT('{"a": 1}') for call in calls)


def langchain_seen(messages: list[Any]) -> Seen:
    roles = {"human": "user", "ai": "assistant"}
    return [
        (
            roles.get(message.type, message.type),
            str(message.content),
            tuple(call["id"] for call in getattr(message, "tool_calls", ())),
            getattr(message, "tool_call_id", None),
        )
        for message in messages
    ]


def native_trim(conversation: Conversation) -> Callable[[int, int], Seen]:
    core = library("langchain_core.messages")

    def step(start: int, stop: int) -> Seen:
        kept = core.trim_messages(
            langchain_messages(conversation, 0, stop),
            max_tokens=600,
            strategy="last",
            token_counter=langchain_count,
            include_system=True,
            start_on="human",
        )
        return langchain_seen(kept)

    return step


def native_summarization(conversation: Conversation) -> Callable[[int, int], Seen]:
    middleware = library("langchain.agents.middleware")
    models = library("langchain_core.language_models")
    summarise = middleware.SummarizationMiddleware(
        models.FakeListChatModel(responses=[SUMMARY]),
        trigger=("tokens", 600),
        keep=("messages", 6),
        token_counter=langchain_count,
    )
    state: list[Any] = []

    def step(start: int, stop: int) -> Seen:
        state.extend(langchain_messages(conversation, max(start, 1), stop))
        update = summarise.before_model({"messages": state}, None)
        if update:
            state[:] = update["messages"][1:]
        return langchain_seen([*langchain_messages(conversation, 0, 1), *state])

    return step


def native_clearing(conversation: Conversation) -> Callable[[int, int], Seen]:
    edit = library("langchain.agents.middleware").ClearToolUsesEdit(trigger=600, keep=2)

    def step(start: int, stop: int) -> Seen:
        messages = langchain_messages(conversation, 0, stop)
        edit.apply(messages, count_tokens=langchain_count)
        return langchain_seen(messages)

    return step


NATIVE: dict[str, Native] = {
    "langchain.trim_messages(max_tokens=600)": native_trim,
    "langchain.summarization(trigger=600, keep=6)": native_summarization,
    "langchain.clear_tool_uses(trigger=600, keep=2)": native_clearing,
}


test_it_sends_what_the_library_would = native_test("langchain", NATIVE)


def test_clearing_keeps_the_invariants() -> None:
    """The one of these strategies that drops and writes no message keeps every invariant on any conversation."""
    library("langchain.agents.middleware")
    strategy = parse("langchain.clear_tool_uses(trigger=60, keep=1)")

    @given(conversation=conversations())
    @examples(30, ignored=[HealthCheck.too_slow])
    def keeps(conversation: Conversation) -> None:
        check(strategy, conversation)

    keeps()


def test_a_chat_model_is_the_run_s_summariser() -> None:
    """LangChain's chat model answers by the run's summariser, whatever it is asked."""
    library("langchain_core.messages")

    def open_step(services: Any) -> Any:
        reply = langchain.chat_model(services).invoke("Sum up.")
        return lambda new: langchain.from_langchain([reply])

    (step,) = played(live(open_step)(), talk(("user", "hi"), ("assistant", "yes")), Stub(reply=lambda _: "so far"))
    assert [(message.role, message.text) for message in step.context.messages] == [("assistant", "so far")]

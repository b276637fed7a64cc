"""AutoGen's strategies send what its model contexts, called natively, would send."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import autogen
from ctxbench.strategies.functions import finished
from tests.builders import answering, calling, talk
from tests.strategies.adapters.native import COUNT, Native, Seen, conversion_test, defect, dicts, library, native_test

test_a_conversion_loses_nothing = conversion_test("autogen_core.models", autogen.to_autogen, autogen.from_autogen)


def test_parallel_results_are_one_message() -> None:
    """Results that follow one another are one message, as AutoGen's agents write them; a plain message is read."""
    models = library("autogen_core.models")
    said = talk(("user", "u"), calling("c", "x", "y", text="t"), answering("r", "x", "4"), answering("s", "y", "2"))
    user, calls, results = autogen.to_autogen(dicts(said.messages))
    assert (user.content, calls.thought, [call.id for call in calls.content]) == ("u", "t", ["x", "y"])
    assert [(result.call_id, result.content) for result in results.content] == [("x", "4"), ("y", "2")]
    assert autogen.from_autogen([models.UserMessage(content="hi", source="ann")]) == [{"role": "user", "content": "hi"}]


def autogen_count(messages: list[Any], tools: Any) -> int:
    total = 0
    for message in messages:
        if message.type == "FunctionExecutionResultMessage":
            texts = [result.content for result in message.content]
        elif isinstance(message.content, str):
            texts = [message.content]
        else:
            texts = [text for call in message.content for text in (call.name, call.arguments)]
        total += 4 + sum(map(COUNT, texts))
    return total


def autogen_seen(message: Any) -> tuple[str, str, tuple[str, ...], str | None]:
    if message.type == "FunctionExecutionResultMessage":
        (result,) = message.content
        return "tool", result.content, (), result.call_id
    role = {"UserMessage": "user", "AssistantMessage": "assistant"}[message.type]
    if isinstance(message.content, str):
        return role, message.content, (), None
    return role, "", tuple(call.id for call in message.content), None


def native_context(kind: str, **settings: Any) -> Native:
    """A model context as an agent fills it, which sends its system message before."""

    def native(conversation: Conversation) -> Callable[[int, int], Seen]:
        core, models = library("autogen_core"), library("autogen_core.models")
        context = getattr(library("autogen_core.model_context"), kind)(**settings)
        first = conversation.messages[0]

        def written(message: Any) -> Any:
            if message.answers:
                result = {"content": message.text, "name": "tool", "call_id": message.answers}
                return models.FunctionExecutionResultMessage(content=[models.FunctionExecutionResult(**result)])
            if message.role == "user":
                return models.UserMessage(content=message.text, source="user")
            calls = [core.FunctionCall(id=call.id, name=call.name, arguments=call.arguments) for call in message.calls]
            return models.AssistantMessage(content=calls or message.text, source="agent")

        async def fill(start: int, stop: int) -> Any:
            for message in conversation.messages[max(start, 1) : stop]:
                await context.add_message(written(message))
            return await context.get_messages()

        def step(start: int, stop: int) -> Seen:
            kept = finished(fill(start, stop))
            return [(first.role, first.text, (), None), *map(autogen_seen, kept)]

        return step

    return native


NATIVE: dict[str, Native] = {
    "autogen.buffered(buffer_size=6)": native_context("BufferedChatCompletionContext", buffer_size=6),
    "autogen.head_and_tail(head_size=3, tail_size=6)": native_context(
        "HeadAndTailChatCompletionContext", head_size=3, tail_size=6
    ),
    "autogen.token_limited(token_limit=600)": native_context(
        "TokenLimitedChatCompletionContext",
        model_client=SimpleNamespace(count_tokens=autogen_count),
        token_limit=600,
    ),
}


test_it_sends_what_the_library_would = native_test("autogen_core.model_context", NATIVE)


def test_a_token_limit_sends_a_result_without_its_call() -> None:
    """The example shows it natively: of a task, a call and its result the call is dropped."""
    library("autogen_core.model_context")
    assert defect("autogen_token_limit") == "['UserMessage', 'FunctionExecutionResultMessage']\n"

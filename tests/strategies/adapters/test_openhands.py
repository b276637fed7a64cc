"""OpenHands' condenser sends what OpenHands, called natively, would send."""

from collections.abc import Callable
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.adapters import openhands
from ctxbench.strategies.base import ModelError, Prompt
from ctxbench.strategies.chain import parse
from ctxbench.strategies.functions import ChatDict
from tests.builders import answering, calling, talk
from tests.strategies.adapters.native import COUNT, SUMMARY, Native, Seen, conversion_test, dicts, library, native_test
from tests.strategies.stubs import Stub, played

# litellm's types warn while pydantic builds them, which it does at their first use.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydantic")


def sdk(module: str) -> Any:
    """Import a module of the SDK as the adapter does: the SDK asks the network and prints unless it is told not to."""
    library("openhands")
    return openhands._sdk(module)


def by_id(messages: list[ChatDict]) -> dict[str, ChatDict]:
    return {message["id"]: message for message in messages}


test_a_conversion_loses_nothing = conversion_test(
    "openhands",
    lambda messages: (openhands.to_openhands(messages), by_id(messages)),
    lambda converted: openhands.from_openhands(*converted),
)
"""The recording is at hand, which has names and all ids."""


def test_events_by_hand() -> None:
    """A message with calls is an event for each call, the first with the text; results know their call's tool."""
    events = sdk("event")
    said = talk(
        *(("system", "s"), ("user", "u"), calling("c", "x", "y", text="t")),
        *(answering("r", "x", "42"), answering("q", "y", "43"), ("assistant", "a")),
    )
    converted = openhands.to_openhands(dicts(said.messages))
    assert [type(event) for event in converted] == [
        *(events.SystemPromptEvent, events.MessageEvent, events.ActionEvent, events.ActionEvent),
        *(events.ObservationEvent, events.ObservationEvent, events.MessageEvent),
    ]
    assert [event.action_id for event in converted[4:6]] == ["c/0", "c/1"]
    assert {event.tool_name for event in converted[2:6]} == {"tool"}
    assert [len(event.thought) for event in converted[2:4]] == [1, 0]
    roles = ["system", "user", "assistant", "tool", "tool", "assistant"]
    sent = events.LLMConvertibleEvent.events_to_messages(converted)
    assert [(message.role, len(message.tool_calls or ())) for message in sent] == [
        (role, 2 if at == 2 else 0) for at, role in enumerate(roles)
    ]
    assert openhands.from_openhands(converted, by_id(dicts(said.messages))) == dicts(said.messages)


def native_event(message: Message) -> Any:
    """A message as an OpenHands program with a tool of an MCP server writes it."""
    events, llm, mcp = sdk("event"), sdk("llm"), sdk("mcp.definition")
    text = llm.TextContent(text=message.text)
    if message.role == "system":
        return events.SystemPromptEvent(system_prompt=text, tools=[])
    if message.answers:
        observation = mcp.MCPToolObservation(content=[text], tool_name="tool")
        named = {"tool_name": "tool", "tool_call_id": message.answers, "action_id": message.answers}
        return events.ObservationEvent(observation=observation, **named)
    if message.calls:
        (call,) = message.calls
        tool_call = llm.MessageToolCall(id=call.id, name=call.name, arguments=call.arguments, origin="completion")
        action = mcp.MCPToolAction(data={"a": 1})
        named = {"tool_name": call.name, "tool_call_id": call.id, "llm_response_id": f"response to {call.id}"}
        return events.ActionEvent(thought=[], action=action, tool_call=tool_call, **named)
    said = llm.Message(role=message.role, content=[text])
    return events.MessageEvent(source="user" if message.role == "user" else "agent", llm_message=said)


def native_condenser(**limits: Any) -> Native:
    """The condenser with a model of the SDK's own for tests, and the SDK's view of events."""

    def opened(conversation: Conversation) -> Callable[[int, int], Seen]:
        llm, context, views = sdk("llm"), sdk("context.condenser"), sdk("context.view")

        class Counting(sdk("testing").TestLLM):  # type: ignore[misc]
            def get_token_count(self, messages: Any, *args: Any, **settings: Any) -> int:
                calls = [call for message in messages for call in message.tool_calls or ()]
                texts = [part.text for message in messages for part in message.content]
                return 4 * len(messages) + sum(map(COUNT, texts + [call.name + call.arguments for call in calls]))

        summary = llm.Message(role="assistant", content=[llm.TextContent(text=SUMMARY)])
        model = Counting.from_messages([summary] * 40)
        condenser, view = context.LLMSummarizingCondenser(llm=model, **limits), views.View()

        def step(start: int, stop: int) -> Seen:
            for message in conversation.messages[start:stop]:
                view.append_event(native_event(message))
            while not isinstance(condensed := condenser.condense(view, agent_llm=model), views.View):
                view.append_event(condensed)
            sent = [event.to_llm_message() for event in condensed.events]
            return [
                (
                    message.role,
                    "".join(part.text for part in message.content),
                    tuple(call.id for call in message.tool_calls or ()),
                    message.tool_call_id,
                )
                for message in sent
            ]

        return step

    return opened


NATIVE: dict[str, Native] = {
    "openhands.llm_summarizing_condenser(max_size=12)": native_condenser(max_size=12),
    "openhands.llm_summarizing_condenser(max_size=20, keep_first=4)": native_condenser(max_size=20, keep_first=4),
    "openhands.llm_summarizing_condenser(max_tokens=600)": native_condenser(max_tokens=600),
}


test_it_sends_what_the_library_would = native_test("openhands", NATIVE)


def test_without_a_summary_all_is_sent() -> None:
    """Where the summariser has no reply, the SDK sends what it has, and asks again before the next call."""
    sdk("event")

    def refuse(prompt: Prompt) -> str:
        raise ModelError("over the spend limit")

    conversation = talk(*(("user" if at % 2 == 0 else "assistant", f"event {at}") for at in range(30)))
    models = Stub(reply=refuse)
    steps = played(parse("openhands.llm_summarizing_condenser(max_size=20)"), conversation, models)
    assert [len(step.context.messages) for step in steps] == list(range(1, 30, 2))
    assert len(models.prompts) == 5  # with 21, 23, … 29 events


def test_a_summary_that_is_too_long_is_not_condensed_for_ever() -> None:
    """A summary over the limit of tokens is sent: condensing it again takes no event away."""
    sdk("event")
    conversation = talk(*(("user" if at % 2 == 0 else "assistant", f"event {at} " * 20) for at in range(20)))
    models = Stub(reply=lambda prompt: "a long summary " * 50)
    *_, step = played(parse("openhands.llm_summarizing_condenser(max_tokens=100)"), conversation, models)
    assert "a long summary " * 50 in [message.text for message in step.context.messages]
    assert len(models.prompts) < 60

"""Strategies of the OpenAI Agents SDK send what the SDK, called natively, would send."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import openai_agents
from ctxbench.strategies.chain import parse
from ctxbench.strategies.functions import finished
from tests.builders import answering, calling, talk
from tests.strategies.adapters.native import SUMMARY, Native, Seen, check_native, conversion_test, library, native_test
from tests.strategies.stubs import Stub, played

test_a_conversion_loses_nothing = conversion_test("", openai_agents.to_items, openai_agents.from_items)


def native_trimmer(conversation: Conversation) -> Callable[[int, int], Seen]:
    trimmer, config = library("agents.extensions.tool_output_trimmer"), library("agents.run_config")
    trim = trimmer.ToolOutputTrimmer(recent_turns=3, max_output_chars=100, preview_chars=20)

    def step(start: int, stop: int) -> Seen:
        items: list[Any] = []
        for message in conversation.messages[:stop]:
            if message.answers:
                items.append({"type": "function_call_output", "call_id": message.answers, "output": message.text})
            elif message.calls:
                (call,) = message.calls
                function = {"name": call.name, "arguments": call.arguments}
                items.append({"type": "function_call", "call_id": call.id, **function})
            else:
                items.append({"role": message.role, "content": message.text})
        data = config.ModelInputData(input=items, instructions=None)
        trimmed = trim(config.CallModelData(model_data=data, agent=None, context=None)).input
        return [
            ("assistant", "", (item["call_id"],), None)
            if item.get("type") == "function_call"
            else (item.get("role", "tool"), item.get("content", item.get("output")), (), item.get("call_id"))
            for item in trimmed
        ]

    return step


def native_runs(conversation: Conversation) -> Callable[[int, int], Seen]:
    """Run the SDK's own agent, whose model and tool say what was recorded, and keep what its model was sent."""
    agents, models = library("agents"), library("agents.models.interface")
    responses, usage = library("openai.types.responses"), library("agents.usage").Usage
    first, *others = conversation.messages
    answers = iter([message for message in others if message.role == "assistant"])
    results = iter([message.text for message in others if message.role == "tool"])
    calls: list[Seen] = []

    class Recorded(models.Model):  # type: ignore[misc, name-defined]
        async def get_response(self, system_instructions: str, input: list[Any], **settings: Any) -> Any:
            calls.append([("system", system_instructions, (), None), *map(item_seen, input)])
            answer = next(answers)
            output = [
                responses.ResponseFunctionToolCall(
                    type="function_call", call_id=call.id, name=call.name, arguments=call.arguments
                )
                for call in answer.calls
            ] or [
                responses.ResponseOutputMessage(
                    id=answer.id,
                    type="message",
                    role="assistant",
                    status="completed",
                    content=[responses.ResponseOutputText(type="output_text", text=answer.text, annotations=[])],
                )
            ]
            return agents.ModelResponse(output=output, usage=usage(), response_id="r")

        def stream_response(self, *arguments: Any, **settings: Any) -> Any:
            raise NotImplementedError

    async def compact(model: str, input: list[Any]) -> Any:
        users = [item for item in input if item.get("role") == "user"]
        return SimpleNamespace(output=[*users, {"type": "compaction", "encrypted_content": SUMMARY}])

    def tool(a: int) -> str:
        """Read."""
        return next(results)

    async def run() -> None:
        session = library("agents.memory").OpenAIResponsesCompactionSession(
            "session",
            agents.SQLiteSession("session"),
            client=SimpleNamespace(responses=SimpleNamespace(compact=compact)),
            compaction_mode="input",
        )
        agent = agents.Agent("reader", instructions=first.text, model=Recorded(), tools=[agents.function_tool(tool)])
        for message in others:
            if message.role == "user":
                await agents.Runner.run(
                    agent, message.text, session=session, run_config=agents.RunConfig(tracing_disabled=True)
                )

    finished(run())
    sent = iter(calls)
    return lambda start, stop: next(sent)


def item_seen(item: Any) -> tuple[str, str, tuple[str, ...], str | None]:
    """What a provider would see of an item."""
    match item.get("type", "message"):
        case "function_call":
            return "assistant", "", (item["call_id"],), None
        case "function_call_output":
            return "tool", item["output"], (), item["call_id"]
        case "compaction":
            return "assistant", item["encrypted_content"], (), None
    content = item["content"]
    return item["role"], content if isinstance(content, str) else content[0]["text"], (), None


NATIVE: dict[str, Native] = {
    "openai_agents.tool_output_trimmer(recent_turns=3, max_output_chars=100, preview_chars=20)": native_trimmer,
}
COMPACTION = "openai_agents.compaction_session"


test_it_sends_what_the_library_would = native_test("agents", NATIVE)


def test_a_session_is_compacted_as_in_the_sdk_s_own_runs() -> None:
    """At every call the messages are those of a native agent with a compaction session and the same stand-in."""
    try:
        library("agents").RunContextWrapper(None)
    except ValueError as error:
        pytest.skip(f"this release of the SDK cannot run with the openai that is installed: {error}")
    check_native(COMPACTION, native_runs, asks=True)


def sent(strategy: str, *said: Any) -> list[str]:
    """Ids and texts of the messages of the last call."""
    *_, step = played(parse(strategy), talk(*said, ("assistant", "end")), Stub(reply=lambda prompt: SUMMARY))
    return [message.text or message.id for message in step.context.messages]


def test_user_messages_and_one_item_are_left() -> None:
    """Vector O1: of u1 a1 (call, result) a2 u2 a3, u1 and u2 and the item stay; the next message follows it."""
    library("agents")
    said = [("user", "u1"), calling("c", "x", text="a1"), answering("r", "x"), ("assistant", "a2")]
    said += [("user", "u2"), ("assistant", "a3"), ("user", "u3")]
    # Five others: the text and the call of a1, its result, a2, a3.
    assert sent("openai_agents.compaction_session(threshold=5)", *said) == ["u1", "u2", SUMMARY, "u3"]
    assert sent("openai_agents.compaction_session(threshold=6)", *said)[-1:] == ["u3"]


def test_ten_items_of_others_are_compacted() -> None:
    """Vector O11: nine items that are not the user's stay as they are, ten are compacted; an item before counts not."""
    library("agents")
    turns = [(role, f"{role} {at}") for at in range(20) for role in ("user", "assistant")]
    users = [text for role, text in turns if role == "user"]
    assert sent(COMPACTION, *turns[:18], ("user", "?")) == [*(text for _, text in turns[:18]), "?"]
    assert sent(COMPACTION, *turns[:20], ("user", "?")) == [*users[:10], SUMMARY, "?"]
    assert sent(COMPACTION, *turns[:38], ("user", "?")) == [
        *users[:10],
        SUMMARY,
        *(text for _, text in turns[20:38]),
        "?",
    ]
    assert sent(COMPACTION, *turns, ("user", "?")) == [*users, SUMMARY, "?"]


def test_the_summariser_is_shown_calls_and_the_item_before() -> None:
    """What is compacted is shown a line an item, with the earlier compaction; the instruction is that of `summary`."""
    library("agents")
    models = Stub(reply=lambda prompt: SUMMARY)
    turns = [("user", "u1"), calling("c", "x", text="a1"), answering("r", "x", "42"), ("assistant", "a2")]
    said = talk(*turns, ("user", "u2"), ("assistant", "a3"), ("user", "u3"), ("assistant", "end"))
    played(parse("openai_agents.compaction_session(threshold=1)"), said, models)
    shown = [prompt.material for prompt in models.prompts]
    call = 'function_call: tool {"a": 1}'
    assert shown == [
        ("user: u1", "assistant: a1", call, "function_call_output: 42", "assistant: a2"),
        ("user: u1", f"compaction: {SUMMARY}", "user: u2", "assistant: a3"),
    ]

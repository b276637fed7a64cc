"""Inspect's strategies send what an agent of Inspect, run natively, would send."""

from collections.abc import Callable
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies import live
from ctxbench.strategies.adapters import inspect
from ctxbench.strategies.functions import finished
from tests.strategies.adapters.native import COUNT, SUMMARY, Native, Seen, conversion_test, library, native_test, work
from tests.strategies.stubs import Stub, played

# Inspect calls tenacity as its newer versions do not like.
pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")


test_a_conversion_loses_nothing = conversion_test("inspect_ai.model", inspect.to_inspect, inspect.from_inspect)


def native_handler(conversation: Conversation, kind: str, **settings: Any) -> Callable[[int, int], Seen]:
    """Compact before each call of a mock model that repeats the conversation, as Inspect's docs have agents do."""
    module, tool = library("inspect_ai.model"), library("inspect_ai.tool")

    def repeat(messages: list[Any], *others: Any) -> Any:
        reply = replies[len(requests)]
        requests.append([inspect_seen(message) for message in messages])
        calls = [tool.ToolCall(call.id, call.name, {"a": 1}) for call in reply.calls]
        choice = module.ChatCompletionChoice(
            message=module.ChatMessageAssistant(content=reply.text, tool_calls=calls or None)
        )
        usage = module.ModelUsage(input_tokens=sum(map(inspect_tokens, messages)))
        return module.ModelOutput(model="mock", choices=[choice], usage=usage)

    async def count(text: str) -> int:
        return COUNT(text)

    async def run() -> None:
        model = module.get_model("mockllm/model", custom_outputs=repeat)
        model.api.count_text_tokens = count
        if kind == "CompactionSummary":
            summary = module.ModelOutput.from_content("mock", SUMMARY)
            settings["model"] = module.get_model("mockllm/model", custom_outputs=[summary] * 99)
            settings["model"].api.count_text_tokens = count
        messages: list[Any] = [
            module.ChatMessageSystem(content=said[0].text),
            module.ChatMessageUser(content=said[1].text, source="input"),
        ]
        compact = module.compaction(getattr(module, kind)(**settings), prefix=messages, model=model)
        for message in said[2:]:
            if message.role == "user":
                messages.append(module.ChatMessageUser(content=message.text))
            elif message.role == "tool":
                messages.append(module.ChatMessageTool(content=message.text, tool_call_id=message.answers))
            else:
                shown, summary = await compact.compact_input(messages)
                if summary:
                    messages.append(summary)
                output = await model.generate(shown)
                messages.append(output.message)
                await compact.record_output(shown, output)

    said, requests = conversation.messages, list[Seen]()
    replies = [message for message in said if message.role == "assistant"]
    finished(run())
    in_turn = iter(requests)
    return lambda start, stop: next(in_turn)


def inspect_seen(message: Any) -> tuple[str, str, tuple[str, ...], str | None]:
    calls = getattr(message, "tool_calls", None) or ()
    answers = message.tool_call_id if message.role == "tool" else None
    return message.role, message.text, tuple(call.id for call in calls), answers


def inspect_tokens(message: Any) -> int:
    calls = getattr(message, "tool_calls", None) or ()
    return 4 + COUNT(message.text) + sum(COUNT(call.function) + COUNT('{"a": 1}') for call in calls)


NATIVE: dict[str, Native] = {
    "inspect.compaction_edit(threshold=1000, keep_tool_uses=2)": lambda talk: native_handler(
        talk, "CompactionEdit", threshold=1000, keep_tool_uses=2
    ),
    "inspect.compaction_trim(threshold=600, preserve=0.5)": lambda talk: native_handler(
        talk, "CompactionTrim", threshold=600, preserve=0.5
    ),
    "inspect.compaction_summary(threshold=600)": lambda talk: native_handler(talk, "CompactionSummary", threshold=600),
}


test_it_sends_what_the_library_would = native_test("inspect_ai.model", NATIVE)


def test_a_model_is_the_run_s_summariser() -> None:
    """A model of Inspect answers by the run's summariser, which is shown texts and calls."""
    library("inspect_ai.model")
    models = Stub(reply=lambda prompt: " / ".join(prompt.material))

    def open_step(services: Any) -> Any:
        async def step(new: Any) -> Any:
            reply = await inspect.model(services).generate(inspect.to_inspect(new))
            return inspect.from_inspect([reply.message])

        return step

    *_, step = played(live(open_step)(), work(1), models)
    assert step.context.messages[0].text.startswith('assistant: tool({"a": 1}) / tool: row 0 of the file')

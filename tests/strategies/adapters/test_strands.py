"""Strands' strategies send what an agent of Strands, run on the same conversation, sends to its model."""

from collections.abc import Callable
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import strands
from ctxbench.strategies.chain import parse
from tests.builders import answering, calling, talk
from tests.strategies.adapters.native import (
    COUNT,
    SUMMARY,
    Native,
    Seen,
    conversion_test,
    defect,
    dicts,
    library,
    native_test,
    work,
)
from tests.strategies.stubs import Stub, played

test_a_conversion_loses_nothing = conversion_test("", strands.to_strands, strands.from_strands)


def test_strands_messages_by_hand() -> None:
    """Calls are blocks, results that follow one another are one turn, and what Strands wrote itself is read."""
    said = talk(*(("user", "u"), calling("c", "x", "y", text="t")), answering("r", "x", "4"), answering("s", "y", "2"))
    assert [(message["role"], message["content"]) for message in strands.to_strands(dicts(said.messages))] == [
        ("user", [{"text": "u"}]),
        (
            "assistant",
            [
                {"text": "t"},
                {"toolUse": {"toolUseId": "x", "name": "tool", "input": {"a": 1}}},
                {"toolUse": {"toolUseId": "y", "name": "tool", "input": {"a": 1}}},
            ],
        ),
        (
            "user",
            [
                {"toolResult": {"toolUseId": "x", "status": "success", "content": [{"text": "4"}]}},
                {"toolResult": {"toolUseId": "y", "status": "success", "content": [{"text": "2"}]}},
            ],
        ),
    ]
    assert strands.from_strands([{"role": "user", "content": [{"text": "hi"}]}]) == [{"role": "user", "content": "hi"}]


def strands_seen(messages: list[Any]) -> Seen:
    """What a provider would see of Strands' messages."""
    shown: Seen = []
    for message in messages:
        text = "".join(block.get("text", "") for block in message["content"])
        calls = tuple(block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block)
        results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
        shown += [("tool", result["content"][0]["text"], (), result["toolUseId"]) for result in results]
        if not results:
            shown.append((message["role"], text, calls, None))
    return shown


def strands_count(messages: list[Any]) -> int:
    blocks = [block for message in messages for block in message["content"]]
    texts = [block.get("text", "") for block in blocks]
    texts += [block["toolResult"]["content"][0]["text"] for block in blocks if "toolResult" in block]
    calls = sum(COUNT("tool") + COUNT('{"a": 1}') for block in blocks if "toolUse" in block)
    return 4 * len(messages) + sum(map(COUNT, texts)) + calls


def native_agent(kind: str, window: int = 200_000, **settings: Any) -> Native:
    """An agent that talks to a model which replies as recorded, and says when its window is full."""

    def native(conversation: Conversation) -> Callable[[int, int], Seen]:
        strands, models = library("strands"), library("strands.models")
        managers, errors = library("strands.agent.conversation_manager"), library("strands.types.exceptions")
        first, *said = conversation.messages
        replies = [message for message in said if message.role == "assistant"]
        results = [message.text for message in said if message.role == "tool"]
        requests: list[Seen] = []

        class Recorded(models.Model):  # type: ignore[misc, name-defined]
            def get_config(self) -> Any:
                return {"context_window_limit": window}

            def update_config(self, **settings: Any) -> None: ...

            def structured_output(self, *request: Any, **settings: Any) -> Any: ...

            async def count_tokens(self, messages: Any, **others: Any) -> int:
                prompt = others.get("system_prompt")
                return strands_count(messages) + (4 + COUNT(prompt) if prompt else 0)

            async def stream(
                self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **others: Any
            ) -> Any:
                if system_prompt != first.text:
                    text, call, sent = SUMMARY, None, 0
                else:
                    sent = 4 + COUNT(first.text) + strands_count(messages)
                    if sent > window:
                        raise errors.ContextWindowOverflowException
                    requests.append([(first.role, first.text, (), None), *strands_seen(messages)])
                    reply = replies[len(requests) - 1]
                    text, call = reply.text, next(iter(reply.calls), None)
                yield {"messageStart": {"role": "assistant"}}
                if call:
                    yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": call.id, "name": call.name}}}}
                    yield {"contentBlockDelta": {"delta": {"toolUse": {"input": call.arguments}}}}
                    written = COUNT(call.name) + COUNT(call.arguments)
                else:
                    yield {"contentBlockDelta": {"delta": {"text": text}}}
                    written = COUNT(text)
                yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "tool_use" if call else "end_turn"}}
                usage = {"inputTokens": sent, "outputTokens": 4 + written, "totalTokens": sent + 4 + written}
                yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}

        @strands.tool  # type: ignore[untyped-decorator]
        def tool(a: int) -> str:
            """Read a part."""
            return results.pop(0)

        agent = strands.Agent(
            Recorded(),
            tools=[tool],
            system_prompt=first.text,
            conversation_manager=getattr(managers, kind)(**settings),
            callback_handler=None,
        )
        for message in said:
            if message.role == "user":
                agent(message.text)
        return lambda start, stop: requests.pop(0)

    return native


SLIDING, SUMMARIZING = "SlidingWindowConversationManager", "SummarizingConversationManager"

NATIVE: dict[str, Native] = {
    "strands.sliding_window(window_size=12)": native_agent(SLIDING, window_size=12),
    "strands.sliding_window(window_size=10, per_turn=2, pin_first=1)": native_agent(
        SLIDING, window_size=10, per_turn=2, pin_first=1
    ),
    "strands.sliding_window(context_window=600)": native_agent(SLIDING, 600),
    "strands.summarizing(context_window=600)": native_agent(SUMMARIZING, 600),
    "strands.summarizing(summary_ratio=0.5, proactive_compression=True, context_window=900)": native_agent(
        SUMMARIZING, 900, summary_ratio=0.5, proactive_compression=True
    ),
}


test_it_sends_what_the_library_would = native_test("strands", NATIVE)


def test_the_summariser_reads_calls_and_results() -> None:
    """Strands asks its model with the messages themselves: the summariser is shown calls and their results too."""
    library("strands")
    models = Stub(reply=lambda prompt: SUMMARY)
    played(parse("strands.summarizing(context_window=600)"), work(), models)
    lines = models.prompts[0].material
    assert 'assistant: tool({"a": 1})' in lines
    assert any(line.startswith("tool: row 0 of the file") for line in lines)


def test_it_gives_up_where_strands_would_not() -> None:
    """A summary that frees nothing ends the replay: Strands asks for the same one until Python's stack is full."""
    overflow = library("strands.types.exceptions").ContextWindowOverflowException
    said = talk(("user", "a"), ("assistant", "b"), ("user", "word " * 400), ("assistant", "c"))
    strategy = parse("strands.summarizing(preserve_recent_messages=1, context_window=300)")
    with pytest.raises(overflow, match="cannot reduce"):
        played(strategy, said, Stub(reply=lambda prompt: SUMMARY))


def test_the_default_window_drops_the_task() -> None:
    """The example shows it natively: after 20 tool calls the task is gone, and the first call comes first."""
    library("strands")
    assert defect("strands_window").startswith("20 tool calls, 40 messages are kept, the first is {'role': 'assistant'")

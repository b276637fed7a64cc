"""Pydantic AI's strategies send what an agent of Pydantic AI, run natively, would send."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import openai

from ctxbench.scenarios.chat import chat_message
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies import live
from ctxbench.strategies.adapters import pydantic_ai
from ctxbench.strategies.functions import finished
from tests.builders import talk
from tests.strategies.adapters.native import COUNT, SUMMARY, Native, Seen, conversion_test, library, native_test, seen
from tests.strategies.stubs import Stub, played

test_a_conversion_loses_nothing = conversion_test(
    "pydantic_ai.messages", pydantic_ai.to_pydantic_ai, pydantic_ai.from_pydantic_ai
)


def native_agent(conversation: Conversation, kind: str, **settings: Any) -> Callable[[int, int], Seen]:
    """Run an agent with a capability, whose tool and whose model, behind OpenAI's API, repeat the conversation."""
    compaction, agents = library("pydantic_ai_harness.compaction"), library("pydantic_ai")
    models, providers = library("pydantic_ai.models.openai"), library("pydantic_ai.providers.openai")
    if kind == "SummarizingCompaction":
        settings["model"] = library("pydantic_ai.models.test").TestModel(custom_output_text=SUMMARY)
    system, *said = conversation.messages
    replies = [message for message in said if message.role == "assistant"]
    results = iter([message.text for message in said if message.role == "tool"])
    requests: list[Seen] = []

    def respond(request: httpx.Request) -> httpx.Response:
        messages = json.loads(request.content)["messages"]
        reply = chat_message(replies[len(requests)])
        requests.append(seen([message | {"content": message.get("content") or ""} for message in messages]))
        tokens = {"prompt_tokens": sum(map(openai_count, messages)), "completion_tokens": openai_count(reply)}
        choice = {"index": 0, "finish_reason": "stop", "message": reply}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "gpt-5", "choices": [choice]}
        return httpx.Response(200, json=body | {"usage": tokens | {"total_tokens": sum(tokens.values())}})

    client = openai.AsyncOpenAI(api_key="none", http_client=httpx.AsyncClient(transport=httpx.MockTransport(respond)))
    agent = agents.Agent(
        models.OpenAIChatModel("gpt-5", provider=providers.OpenAIProvider(openai_client=client)),
        system_prompt=system.text,
        capabilities=[getattr(compaction, kind)(tokenizer=COUNT, **settings)],
        tools=[agents.Tool(lambda a: next(results), name="tool", takes_ctx=False)],
    )

    async def run() -> None:
        history: list[Any] = []
        for message in said:
            if message.role == "user":
                result = await agent.run(message.text, message_history=history)
                history = result.all_messages()

    finished(run())
    in_turn = iter(requests)
    return lambda start, stop: next(in_turn)


def openai_count(message: dict[str, Any]) -> int:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return (
        4 + COUNT(message.get("content") or "") + sum(COUNT(call["name"]) + COUNT(call["arguments"]) for call in calls)
    )


NATIVE: dict[str, Native] = {
    "pydantic_ai.clear_tool_results(max_tokens=600, keep_pairs=2)": lambda talk: native_agent(
        talk, "ClearToolResults", max_tokens=600, keep_pairs=2
    ),
    "pydantic_ai.sliding_window(max_messages=12, keep_messages=6)": lambda talk: native_agent(
        talk, "SlidingWindowCompaction", max_messages=12, keep_messages=6
    ),
    "pydantic_ai.sliding_window(max_messages=None, max_tokens=600, keep_tokens=300)": lambda talk: native_agent(
        talk, "SlidingWindowCompaction", max_tokens=600, keep_tokens=300
    ),
    "pydantic_ai.summarizing(max_messages=12, keep_messages=6)": lambda talk: native_agent(
        talk, "SummarizingCompaction", max_messages=12, keep_messages=6
    ),
}


test_it_sends_what_the_library_would = native_test("pydantic_ai_harness", NATIVE)


def test_a_system_prompt_stays() -> None:
    """The system prompt is in the first request, which the sliding window keeps."""
    library("pydantic_ai_harness")
    said = [("system", "Be brief."), *((role, f"{n}") for n in range(9) for role in ("user", "assistant"))]
    strategy = pydantic_ai.sliding_window(max_messages=4, keep_messages=2)
    last = played(strategy, talk(*said), Stub())[-1]
    assert [message.text for message in last.context.messages] == ["Be brief.", "0", "7", "8"]


def test_a_model_is_the_run_s_summariser() -> None:
    """A model of Pydantic AI answers by the run's summariser, which is shown the agent's instructions too."""
    agents = library("pydantic_ai")
    models = Stub(reply=lambda prompt: f"{prompt.instruction} {len(prompt.material)}")

    def open_step(services: Any) -> Any:
        agent = agents.Agent(pydantic_ai.model(services), instructions="Sum up.")

        async def step(new: Any) -> Any:
            reply = await agent.run("This and that.")
            return pydantic_ai.from_pydantic_ai(reply.all_messages()[-1:])

        return step

    (step,) = played(live(open_step)(), talk(("user", "hi"), ("assistant", "yes")), models)
    assert [message.text for message in step.context.messages] == ["Sum up.\n\n{conversation} 1"]

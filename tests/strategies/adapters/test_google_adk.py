"""Strategies of Google's Agent Development Kit send what its runner, run natively, would send."""

import warnings
from collections.abc import Callable
from typing import Any

from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.adapters import google_adk
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Failed
from ctxbench.strategies.functions import finished
from tests.strategies.adapters.native import COUNT, SUMMARY, Native, Seen, conversion_test, library, native_test, work
from tests.strategies.stubs import Stub, played

test_a_conversion_loses_nothing = conversion_test(
    "google.genai.types", google_adk.to_contents, google_adk.from_contents
)


def test_contents_of_a_program_are_converted() -> None:
    """Texts beside a response, thoughts, responses that are objects and calls without metadata have their place."""
    types = library("google.genai.types")
    response = types.FunctionResponse(id="x", name="read", response={"rows": 2})
    contents = [
        types.Content(
            role="model",
            parts=[
                types.Part(text="Let me think.", thought=True),
                types.Part(text="I read."),
                types.Part(function_call=types.FunctionCall(id="x", name="read", args={"a": 1})),
            ],
        ),
        types.Content(role="user", parts=[types.Part(text="Here:"), types.Part(function_response=response)]),
    ]
    call = {"id": "x", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}}
    assert google_adk.from_contents(contents) == [
        {"role": "assistant", "content": "I read.", "tool_calls": [call]},
        {"role": "tool", "content": '{"rows":2}', "tool_call_id": "x"},
        {"role": "user", "content": "Here:"},
    ]


def native_runner(conversation: Conversation, **settings: Any) -> Callable[[int, int], Seen]:
    """Run an app whose tool and whose model repeat the conversation; the model notes its requests."""
    agents, apps, models = library("google.adk.agents"), library("google.adk.apps.app"), library("google.adk.models")
    runners, sessions = library("google.adk.runners"), library("google.adk.sessions")
    types = library("google.genai.types")
    system, *said = conversation.messages
    replies = [message for message in said if message.role == "assistant"]
    results = iter([message.text for message in said if message.role == "tool"])
    requests: list[Seen] = []

    class Repeating(models.BaseLlm):  # type: ignore[misc, name-defined]
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            reply = replies[len(requests)]
            requests.append([("system", system.text, (), None), *map(contents_seen, llm_request.contents)])
            calls = [types.FunctionCall(id=call.id, name=call.name, args={"a": 1}) for call in reply.calls]
            parts = [types.Part(function_call=call) for call in calls] or [types.Part(text=reply.text)]
            usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=seen_tokens(requests[-1]))
            yield models.LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)

    def tool(a: int) -> str:
        """Read."""
        return next(results)

    async def run() -> None:
        agent = agents.LlmAgent(name="reader", model=Repeating(model="any"), instruction=system.text, tools=[tool])
        service = sessions.InMemorySessionService()
        runner = runners.Runner(app=apps.App(name="files", root_agent=agent, **settings), session_service=service)
        session = await service.create_session(app_name="files", user_id="ann")
        for message in said:
            if message.role == "user":
                content = types.Content(role="user", parts=[types.Part(text=message.text)])
                async for _ in runner.run_async(user_id="ann", session_id=session.id, new_message=content):
                    pass

    finished(run())
    in_turn = iter(requests)
    return lambda start, stop: next(in_turn)


def seen_tokens(messages: Seen) -> int:
    call = COUNT("tool") + COUNT('{"a": 1}')
    return sum(4 + COUNT(text) + call * len(calls) for _, text, calls, _ in messages)


def contents_seen(content: Any) -> tuple[str, str, tuple[str, ...], str | None]:
    (part,) = content.parts
    if response := part.function_response:
        return "tool", response.response["result"], (), response.id
    role = "assistant" if content.role == "model" else content.role
    return role, part.text or "", (part.function_call.id,) if part.function_call else (), None


def native_filter(conversation: Conversation) -> Callable[[int, int], Seen]:
    plugins = library("google.adk.plugins.context_filter_plugin")
    return native_runner(conversation, plugins=[plugins.ContextFilterPlugin(num_invocations_to_keep=2)])


def native_compaction(conversation: Conversation, **limits: int) -> Callable[[int, int], Seen]:
    apps, models, types = library("google.adk.apps.app"), library("google.adk.models"), library("google.genai.types")
    summarizers = library("google.adk.apps.llm_event_summarizer")

    class Summing(models.BaseLlm):  # type: ignore[misc, name-defined]
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            yield models.LlmResponse(content=types.Content(role="model", parts=[types.Part(text=SUMMARY)]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = apps.EventsCompactionConfig(summarizer=summarizers.LlmEventSummarizer(Summing(model="any")), **limits)
    return native_runner(conversation, events_compaction_config=config)


NATIVE: dict[str, Native] = {
    "google_adk.context_filter(num_invocations_to_keep=2)": native_filter,
    "google_adk.events_compaction": lambda talk: native_compaction(talk, compaction_interval=3, overlap_size=1),
    "google_adk.events_compaction(compaction_interval=None, overlap_size=None, token_threshold=600, "
    "event_retention_size=4)": lambda talk: native_compaction(talk, token_threshold=600, event_retention_size=4),
}


test_it_sends_what_the_library_would = native_test("google.adk.runners", NATIVE)


def test_g3_invocations_that_are_summarised() -> None:
    """G3: with an interval of 2 and an overlap of 1, invocations 1 and 2 are summarised after the second, nothing after
    the third, and 2 to 4 after the fourth."""
    library("google.adk.apps.app")
    asked = [Message(f"u{at}", "user", f"question {at}") for at in range(1, 6)]
    said = [message for question in asked for message in (question, Message(f"a{question.id}", "assistant", "so"))]
    model = Stub(reply=lambda prompt: "summary")
    played(
        parse("google_adk.events_compaction(compaction_interval=2, overlap_size=1)"),
        Conversation("talk", (*said,)),
        model,
    )
    shown = ["\n".join(prompt.material) for prompt in model.prompts]
    assert [[at for at in range(1, 6) if f"question {at}" in text] for text in shown] == [[1, 2], [2, 3, 4]]


def test_a_summary_that_fails_is_reported() -> None:
    """The kit sends the whole history where no summary was written, and the step says so."""
    library("google.adk.apps.app")

    def fail(prompt: Any) -> str:
        raise ModelError("out of order")

    conversation = work(4)
    steps = played(parse("google_adk.events_compaction"), conversation, Stub(reply=fail))
    assert [message.id for message in steps[-1].context.messages] == [m.id for m in conversation.messages[:-1]]
    assert [failed.why for step in steps for failed in step.events if isinstance(failed, Failed)] == ["out of order"]

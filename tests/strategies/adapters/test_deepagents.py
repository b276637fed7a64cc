"""Deep Agents' strategy sends what an agent with its middleware, called natively, would send."""

import re
from collections.abc import Callable
from typing import Any

from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.strategies.chain import parse
from tests.builders import answering, calling, talk
from tests.strategies.adapters.native import SUMMARY, Seen, check_native, library
from tests.strategies.adapters.test_langchain import langchain_count, langchain_messages, langchain_seen
from tests.strategies.stubs import played

WINDOW = 900


def native_agent(conversation: Conversation) -> Callable[[int, int], Seen]:
    """Run a whole agent whose model and tools say what was recorded, and keep what its model was sent."""
    agents, messages = library("langchain.agents"), conversation.messages
    summaries = library("deepagents.middleware.summarization")
    models, saver = library("langchain_core.language_models"), library("langgraph.checkpoint.memory").InMemorySaver
    answers = iter(langchain_messages(conversation, 0, len(messages)))
    results = iter([message.text for message in messages if message.role == "tool"])
    calls: list[Seen] = []

    class Recorded(models.FakeListChatModel):  # type: ignore[misc, name-defined]
        def bind_tools(self, tools: Any, **more: Any) -> Any:
            return self

        def _generate(self, messages: list[Any], *more: Any, **settings: Any) -> Any:
            if len(messages) == 1:  # the prompt for a summary
                return super()._generate(messages)
            calls.append(langchain_seen(messages))
            answer = next(message for message in answers if message.type == "ai")
            outputs = library("langchain_core.outputs")
            return outputs.ChatResult(generations=[outputs.ChatGeneration(message=answer)])

    def tool(a: int) -> str:
        """Read."""
        return next(results)

    model = Recorded(responses=[SUMMARY], profile={"max_input_tokens": WINDOW})
    store = library("langgraph.store.memory").InMemoryStore()
    backend = library("deepagents.backends").StoreBackend(store=store, namespace=lambda runtime: ("files",))
    agent = agents.create_agent(
        model,
        [tool],
        system_prompt=messages[0].text,
        middleware=[summaries.create_summarization_middleware(model, backend, token_counter=langchain_count)],
        checkpointer=saver(),
    )
    for message in messages:
        if message.role == "user":
            question = {"messages": [{"role": "user", "content": message.text}]}
            agent.invoke(question, {"configurable": {"thread_id": "1"}})
    sent = iter(calls)
    return lambda start, stop: [
        (role, re.sub("session_[0-9a-f]{32}", "session", text), called, answered)
        for role, text, called, answered in next(sent)
    ]


def test_it_sends_what_the_library_would() -> None:
    """At every call the messages are those of a native agent with Deep Agents' middleware."""
    library("deepagents")
    check_native(f"deepagents.summarization(window={WINDOW})", native_agent)


def test_long_arguments_are_cut() -> None:
    """Of old calls that write files, strings of over 2,000 characters are cut to 20 and a note; others stay."""
    library("deepagents")
    said: list[Any] = [("user", "Write.")]
    for name, length in (("write_file", 2001), ("write_file", 2000), ("edit_file", 2001), ("other", 2001)):
        call = ToolCall(f"x{len(said)}", name, f'{{"text":"{"x" * length}"}}')
        said += [Message(f"c{len(said)}", "assistant", "", calls=(call,)), answering(f"r{len(said)}", call.id)]
    said += [("user" if at % 2 else "assistant", str(at)) for at in range(20)]
    *_, step = played(parse("deepagents.summarization"), talk(*said, ("assistant", "done")))
    arguments = [call.arguments for message in step.context.messages for call in message.calls]
    cut = f'{{"text":"{"x" * 20}...(argument truncated)"}}'
    assert arguments == [cut, said[3].calls[0].arguments, cut, said[7].calls[0].arguments]


def test_a_large_tool_result_is_moved_to_a_file() -> None:
    """A result that does not fit into the window becomes a note with its path, and stays one at later calls."""
    library("deepagents")
    said = [("user", "Read."), calling("c", "x"), answering("r", "x", "word " * 2000), calling("d", "y")]
    steps = played(
        parse("deepagents.summarization(window=900)"), talk(*said, answering("s", "y"), ("assistant", "done"))
    )
    notes = [[message.text for message in step.context.messages if message.answers == "x"] for step in steps]
    assert notes == [[], notes[1], notes[1]]
    (note,) = notes[1]
    assert "/large_tool_results/x" in note
    assert len(note) < 3000

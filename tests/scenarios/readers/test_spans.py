"""The span tree that all readers of traces share: which calls are one conversation, and what each of them is."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Call, Conversation, Message, Usage
from ctxbench.scenarios.readers.requests import LoggedCall
from ctxbench.scenarios.readers.spans import TraceSpan, conversations, counted
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.traces import shown

AGAIN = (
    "1 model call is a copy of another one in the recordings (1 in f.json): each counts once, where it was read first"
)


def said(*texts: str) -> tuple[Message, ...]:
    """Messages of a system, then of a user and an assistant in turn."""
    roles = ["system", "user", *(["assistant", "user"] * len(texts))]
    return tuple(Message(f"m{at}", roles[at], text) for at, text in enumerate(texts))  # type: ignore[arg-type]


def llm(start: float, *texts: str, answer: str | None = "yes", **fields: Any) -> TraceSpan:
    """A model call that starts then, and takes one second."""
    name = fields.pop("id", f"call{start:g}")
    reply = None if answer is None else Message(f"m{len(texts)}", "assistant", answer)
    call = Call("m", started=start, usage=fields.pop("usage", Usage(10, 1)), stop=fields.pop("stop", ""))
    place = Place("f.json", 0, name + fields.get("trace", "t"))
    return TraceSpan(place, name, **{"trace": "t", "kind": "llm", "end": start + 1} | fields, call=call,
                exchange=LoggedCall(messages=said(*texts), answer=reply))  # fmt: skip


def span(name: str, kind: Any, parent: str = "", **fields: Any) -> TraceSpan:
    return TraceSpan(Place("f.json", 0, name), name, "t", parent, kind, **fields)


def chats(*spans: TraceSpan) -> tuple[dict[str, Conversation], list[str]]:
    problems = Problems()
    made = {chat.id: chat for _, chat in conversations(spans, problems, "test")}
    problems.note_unknown()
    return made, [*map(str, problems.errors), *problems.notes]


def test_calls_that_go_on_with_an_answer_are_one_conversation() -> None:
    """Calls are put in the order of their start; each repeats the prompt before it and keeps its own usage."""
    later = llm(3, "S", "a", "yes", "b", answer="done")
    found, notes = chats(later, llm(1, "S", "a", usage=Usage(7, 2)))
    assert not notes
    assert shown(found["t"])[-3:] == [("assistant", "yes"), ("user", "b"), ("assistant", "done")]
    first, last = (found["t"].messages[at] for at in found["t"].calls())
    assert first.call is not None
    assert (first.call.usage, first.call.started, first.time, last.time) == (Usage(7, 2), 1, 2, 4)


def test_parallel_calls_are_conversations_of_their_own() -> None:
    """Two calls that start before either has ended do not extend each other."""
    found, _ = chats(llm(1, "S", "a"), llm(1.2, "S", "b"), llm(3, "S", "b", "yes", "c"))
    assert {name: len(chat.messages) for name, chat in found.items()} == {"t": 3, "t.2": 5}


def test_a_thread_goes_on_in_the_next_trace() -> None:
    """Calls of one session are one conversation, whichever trace they stand in; its id is the session's."""
    again = llm(9, "S", "a", "yes", "b", trace="u", thread="s")
    found, _ = chats(llm(1, "S", "a", thread="s"), again)
    assert {name: len(chat.messages) for name, chat in found.items()} == {"s": 5}


def test_the_thread_may_stand_on_a_span_above() -> None:
    """A session that only the root names is that of all calls below it."""
    found, _ = chats(span("root", "other", thread="s"), llm(1, "S", "a", parent="root"))
    assert set(found) == {"s"}


def test_agents_are_conversations_with_their_caller_as_parent() -> None:
    """An agent that a tool of another agent starts has the conversation in which that one was when it did."""
    found, _ = chats(
        span("A", "agent", agent="planner"),
        llm(1, "S", "a", parent="A"),
        span("T", "tool", "A"),
        span("B", "agent", "T", agent="searcher"),
        llm(2, "S2", "x", parent="B"),
        llm(5, "S", "a", "yes", "b", parent="A"),
    )
    assert {name: chat.meta for name, chat in found.items()} == {
        "t": {"agent": "planner"},
        "t/searcher": {"agent": "searcher", "parent": "t"},
    }


def test_a_tool_that_calls_a_model_has_its_caller_as_parent() -> None:
    """Tracers without agents show what a tool asked of a model below the tool."""
    found, _ = chats(llm(1, "S", "a"), span("T", "tool"), llm(2, "S2", "x", parent="T"), llm(5, "S", "a", "yes", "b"))
    assert {name: chat.meta for name, chat in found.items()} == {"t": {}, "t.2": {"parent": "t"}}


def test_an_agent_that_goes_on_later_is_one_conversation() -> None:
    """Two runs of one agent are one conversation if the second repeats the prompt of the first."""
    found, _ = chats(
        span("A", "agent", agent="x"),
        llm(1, "S", "a", parent="A"),
        span("B", "agent", agent="x"),
        llm(5, "S", "a", "yes", "b", parent="B"),
    )
    assert {name: len(chat.messages) for name, chat in found.items()} == {"t": 5}


def test_a_call_seen_twice_counts_once() -> None:
    """The innermost of calls inside each other counts; an agent or a tool between them makes them two."""
    outer, tool = llm(1, "S", "a"), span("T", "tool", "call1")
    inner = llm(1.5, "S", "a", parent="call1", usage=Usage(10, 1, 8))
    found, _ = chats(outer, inner)
    assert [chat.messages[-1].call.usage for chat in found.values() if chat.messages[-1].call] == [Usage(10, 1, 8)]
    found, _ = chats(outer, tool, llm(1.5, "S", "z", parent="T"))
    assert len(found) == 2


def test_what_the_inner_call_lacks_comes_from_the_outer_one() -> None:
    """Prompt and usage are filled in from the framework's span, if that holds this one call alone."""
    outer, inner = llm(1, "S", "a"), llm(1.5, parent="call1", answer=None, usage=None)
    found, notes = chats(outer, inner)
    assert shown(found["t"]) == [("system", "S"), ("user", "a"), ("assistant", "yes")]
    assert not notes
    found, notes = chats(outer, inner, llm(1.7, parent="call1", answer=None, usage=None))
    assert not found
    assert notes == ["test: model call without its prompt: 2 not read (f.json: call1.5t)"]


def test_failed_calls_are_counted() -> None:
    """A call that failed and has neither answer nor usage is no call; one with usage was billed, and is."""
    found, notes = chats(llm(1, "S", "a", answer=None, stop="error", usage=None), llm(2, "S", "a"))
    assert [len(chat.messages) for chat in found.values()] == [3]
    assert notes == ["test: failed model call: 1 not read (f.json: call1t)"]
    found, notes = chats(llm(1, "S", "a", answer=None, stop="error"))
    assert not notes
    assert shown(found["t"])[-1] == ("assistant", "")


def test_a_failed_attempt_is_no_conversation() -> None:
    """Of attempts with the same prompt the answered one counts, also if the usage of a failed one was estimated."""
    failed = llm(1, "S", "a", answer=None, stop="error", usage=Usage(10, 0))
    for attempts in ([failed], [failed, llm(1.5, "S", "a", answer=None, stop="error", usage=None)]):
        found, notes = chats(*attempts, llm(2, "S", "a"), llm(3, "S", "a", "yes", "b", answer="done"))
        assert [shown(chat)[-3:] for chat in found.values()] == [
            [("assistant", "yes"), ("user", "b"), ("assistant", "done")]
        ]
        assert notes == [f"test: failed model call: {len(attempts)} not read (f.json: call1t)"]
    found, notes = chats(llm(2, "S", "a"), llm(3, "S", "a", answer=None, stop="error", usage=Usage(10, 0)))
    assert (len(found), notes) == (2, [])  # nothing after it says that it was made again


def test_the_framework_reports_the_attempt_that_did_not_fail() -> None:
    """What the client span lacks comes from the framework span around it, though a failed attempt stands in it."""
    failed = llm(1.2, parent="call1", answer=None, stop="error", usage=None)
    found, notes = chats(llm(1, "S", "a"), failed, llm(1.5, parent="call1", answer=None, usage=Usage(9, 2)))
    assert shown(found["t"]) == [("system", "S"), ("user", "a"), ("assistant", "yes")]
    [call] = [found["t"].messages[at].call for at in found["t"].calls()]
    assert call is not None
    assert call.usage == Usage(9, 2)
    assert notes == ["test: failed model call: 1 not read (f.json: call1.2t)"]


def test_a_span_that_stands_twice_counts_once() -> None:
    """The same span in two exports is one; of two states of a span the later one counts, and a note says so."""
    first = llm(1, "S", "a")
    found, notes = chats(first, first)
    assert (len(found), notes) == (1, [AGAIN])
    found, notes = chats(first, llm(1, "S", "a", answer="better"))
    assert shown(found["t"])[-1] == ("assistant", "better")
    assert notes == ["test: earlier state of a span that stands twice: 1 not read (f.json: call1t)"]


def test_memory_holds_the_text_of_one_thread() -> None:
    """Of 200 traces with 100 kB of text each, which may go on in any later span, no more than 4 MB is in memory."""

    def spans() -> Iterator[TraceSpan]:
        for number in range(200):
            texts = [f"{number} {at} " + "x" * 20_000 for at in range(4)]
            yield llm(number, *texts[:2], trace=f"t{number}", id=f"a{number}")
            yield llm(
                number + 0.5, *texts[:2], "yes", *texts[2:3], trace=f"t{number}", id=f"b{number}", answer=texts[3]
            )

    tracemalloc.start()
    try:
        read = sum(len(chat.messages) for _, chat in conversations(spans(), Problems(), "test"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == 200 * 5
    assert peak < 4e6


def test_a_response_that_two_tracers_saw_counts_once() -> None:
    """Spans beside each other with one response id are one call, and a note counts the second."""
    found, notes = chats(llm(1, "S", "a", response="r"), llm(1.1, "S", "a", response="r"))
    assert len(found) == 1
    assert notes == [AGAIN]


def test_clocks_may_disagree_and_parents_may_be_circular() -> None:
    """Times that run backwards are removed, and spans that are each other's parent end nothing."""
    found, notes = chats(llm(1, "S", "a", end=99.0), llm(3, "S", "a", "yes", "b"))
    assert [message.time for message in found["t"].messages] == [None, None, 99.0, None, None]
    assert not notes
    found, _ = chats(span("A", "agent", "B", agent="x"), span("B", "agent", "A"), llm(1, "S", "a", parent="A"))
    assert found["t"].meta == {"agent": "x"}


@pytest.mark.parametrize(
    ("counts", "prompt", "rest"),
    [
        ((100, 5, 60, 0, 105), 100, None),
        ((40, 5, 60, 0, 105), None, 40),
        ((40, 5, 60), None, 40),
        ((100, 5, 60), 100, None),
        ((100, 5), 100, None),
        ((None, 5, 60), None, None),
    ],
)
def test_the_total_tells_whether_the_input_is_the_whole_prompt(counts: Any, prompt: Any, rest: Any) -> None:
    """Input and output are the total, or cached tokens come on top; without a total, a smaller input excludes them."""
    found = counted(*counts)
    assert found is not None
    assert (found.get("prompt_tokens"), found.get("input_tokens")) == (prompt, rest)

"""Plain functions as strategies: what they give back is recognised, and nothing that is wrong with it is mended."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from ctxbench.harness.invariants import check, conversations
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context
from ctxbench.strategies.functions import StepError, strategy_of
from tests.builders import answering, calling, talk

COUNTER = TokenCounter()
Dicts = list[dict[str, Any]]
SAID = talk(
    ("system", "s"), ("user", "yes"), calling("c", "x"), answering("r", "x", "42"), ("user", "yes"), ("assistant", "ok")
)


def sent(function: Callable[..., Any], conversation: Conversation = SAID, **given: Any) -> list[Message]:
    """What the function sends after everything was said."""
    view = strategy_of(function, "f")(**given).start(RecordedContext(ConversationIndex(conversation, COUNTER)))
    context = view(Context(Messages.of(conversation.messages), (0,), conversation.tools))
    assert context.marks == ()
    return list(context.messages)


def without_ids(messages: Dicts) -> Dicts:
    return [{key: value for key, value in each.items() if key != "id"} for each in copy.deepcopy(messages)]


def test_it_is_given_openai_s_messages() -> None:
    """A call has its arguments as text, a result names its call, and every message has its id."""
    seen: Dicts = []

    def look(messages: Dicts) -> Dicts:
        seen.extend(messages)
        return messages

    assert sent(look) == list(SAID.messages)
    assert seen[2:4] == [
        {
            "id": "c",
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "x", "type": "function", "function": {"name": "tool", "arguments": '{"a": 1}'}}],
        },
        {"id": "r", "role": "tool", "content": "42", "tool_call_id": "x"},
    ]


@pytest.mark.parametrize("change", [copy.deepcopy, without_ids, lambda each: json.loads(json.dumps(each))])
def test_copies_are_recognised(change: Callable[[Dicts], Dicts]) -> None:
    """Whether the dicts are copied or lose their ids, the recorded messages are sent; of equal ones the newest."""
    for start in range(6):
        assert sent(lambda messages, at=start: change(messages)[at:]) == list(SAID.messages[start:])


def test_a_prefix_is_a_stretch_of_the_recording() -> None:
    """What is sent unchanged costs nothing to count or compare: it is the recording's own stretch."""
    view = strategy_of(lambda messages: messages[:2] + messages[4:], "f")().start(
        RecordedContext(ConversationIndex(SAID, COUNTER))
    )
    spans = view(Context(Messages.of(SAID.messages))).messages.spans
    assert [(span.start, span.stop) for span in spans] == [(0, 2), (4, 6)]
    assert all(span.store is SAID.messages for span in spans)


def test_a_changed_text_stands_for_the_recorded_message() -> None:
    """A function that shortens a tool result sends a stand-in: same id, call and place."""

    def shorten(messages: Dicts) -> Dicts:
        return [{**each, "content": "…"} if each["role"] == "tool" else each for each in messages]

    found = sent(shorten)
    assert found[3] == Message("r", "tool", "…", answers="x")
    assert found[:3] + found[4:] == [*SAID.messages[:3], *SAID.messages[4:]]


def test_other_messages_were_written() -> None:
    """New messages keep their role and have an id of their own, the same at every step; twice the same has two."""

    def summarise(messages: Dicts) -> Dicts:
        note = {"role": "user", "content": [{"type": "text", "text": "so"}, {"type": "text", "text": "far"}]}
        return [{"role": "developer", "content": None}, note, note, messages[-1], messages[-1]]

    found = sent(summarise)
    assert [(each.role, each.text) for each in found] == [
        ("system", ""),
        ("user", "so\nfar"),
        ("user", "so\nfar"),
        ("assistant", "ok"),
        ("assistant", "ok"),
    ]
    assert len({each.id for each in found}) == 5
    assert sum(each.id.startswith("f:") for each in found) == 4
    assert found == sent(summarise)


def test_a_message_that_lost_its_calls_is_another() -> None:
    """A call taken off a message, or arguments as an object, are not the recorded message's: they were written."""

    def strip(messages: Dicts) -> Dicts:
        return [{"id": "c", "role": "assistant", "content": "gone"}]

    def parsed(messages: Dicts) -> Dicts:
        call = {"id": "x", "function": {"name": "tool", "arguments": {"a": 1}}}
        return [{"id": "c", "role": "assistant", "content": "", "tool_calls": [call]}]

    assert sent(strip)[0].id.startswith("f:")
    assert sent(parsed)[0].calls[0].arguments == '{"a":1}'


def test_faults_are_kept() -> None:
    """A result without its call, and messages out of order, are sent as the function gave them: they will count."""
    assert [each.id for each in sent(lambda messages: messages[3:1:-1])] == ["r", "c"]


def test_its_own_parameters() -> None:
    """Named parameters are given to the function, with its defaults, a list among them."""

    def pick(messages: Dicts, n: int = 1, *, places: list[int] = [0]) -> Dicts:  # noqa: B006
        return [messages[at] for at in places] + messages[-n:]

    assert [each.id for each in sent(pick)] == ["m0", "m5"]
    assert [each.id for each in sent(pick, n=2, places=[1])] == ["m1", "m4", "m5"]


@pytest.mark.parametrize(
    ("back", "said"),
    [
        (None, "returned NoneType, not a list of messages"),
        ("text", "returned str, not"),
        ({"role": "user"}, "returned dict, not"),
        ([5], "message 0 of what it returned is int"),
        ([{"content": "x"}], "has role None: give one of system, developer"),
        ([{"role": "ai"}], "has role 'ai'"),
        ([{"role": "tool", "content": "x"}], "is a tool's and has no tool_call_id"),
        ([{"role": "user", "content": 5}], "a content that is neither text nor blocks of text"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "a content that is neither"),
        ([{"role": "assistant", "tool_calls": [{"id": "x"}]}], "has a tool call without"),
        ([{"role": "assistant", "tool_calls": ["x"]}], "has a tool call without"),
    ],
)
def test_what_is_no_list_of_messages_is_refused(back: object, said: str) -> None:
    """The cell is lost with a reason that names the function and the message."""
    with pytest.raises(StepError, match=f"^f.*{said}"):
        sent(lambda _: back)


def test_a_function_that_changes_its_dicts_changes_nothing_else() -> None:
    """It is given copies, so the recording stays what it is, and what it changed in place is a stand-in."""
    before = SAID.to_json()

    def shout(messages: Dicts) -> Dicts:
        for each in messages:
            each["content"] = each["content"].upper()
        return messages

    assert [each.text for each in sent(shout)] == ["S", "YES", "", "42", "YES", "OK"]
    assert SAID.to_json() == before


@given(conversation=conversations())
def test_invariants(conversation: Conversation) -> None:
    """A function that gives back what it was given keeps every invariant, with and without the ids."""
    check(strategy_of(lambda messages: messages, "f")(), conversation)
    check(strategy_of(without_ids, "f")(), conversation)

"""Contexts as chats: what a provider would refuse becomes text, and nothing is lost."""

from hypothesis import given

from ctxbench.harness.answers.chat import as_chat, as_text
from ctxbench.harness.invariants import conversations
from ctxbench.metrics.structure import calls_and_results
from ctxbench.scenarios.model import Conversation, Message, ToolCall

LS, CAT = ToolCall("c1", "ls", '{"path": "."}'), ToolCall("c2", "cat", "not json")


def test_calls_and_results_are_passed_on_in_the_form_of_the_provider() -> None:
    """A call with its result stays one; arguments that are no JSON object are wrapped, as some providers insist."""
    context = (
        Message("m1", "assistant", "", (LS, CAT)),
        Message("m2", "tool", "a.txt", answers="c1", name="ls"),
        Message("m3", "tool", "hello", answers="c2", name="cat"),
    )
    chat = as_chat(context, "?")
    assert [call.arguments for call in chat[0].calls] == ['{"path": "."}', '{"arguments":"not json"}']
    assert [(each.role, each.text, each.answers) for each in chat[1:]] == [
        ("tool", "a.txt", "c1"),
        ("tool", "hello", "c2"),
        ("user", "?", None),
    ]


def test_what_has_lost_its_partner_becomes_text() -> None:
    """A result without its call, a call without its result: providers refuse both."""
    context = (
        Message("m1", "tool", "a.txt", answers="c1", name="ls"),
        Message("m2", "assistant", "I look.", (CAT,)),
        Message("m3", "user", "Well?"),
    )
    assert [(each.role, each.text) for each in as_chat(context, "?")] == [
        ("user", "[result of the tool ls]\na.txt"),
        ("assistant", "I look.\n[calls cat(not json)]"),
        ("user", "Well?"),
        ("user", "?"),
    ]


def test_speakers_and_days_are_written_out() -> None:
    """Who speaks, and the day where it changes: a question may be about either."""
    context = (
        Message("m1", "user", "Hi!", name="Ana", time=0.0),
        Message("m2", "assistant", "Hello.", name="Bo", time=60.0),
        Message("m3", "user", "Again!", name="Ana", time=86_400.0),
    )
    assert as_text(context) == (
        "user: [1 January 1970]\nAna: Hi!\n\nassistant: Bo: Hello.\n\nuser: [2 January 1970]\nAna: Again!"
    )


@given(conversations())
def test_any_history_becomes_a_chat_that_providers_take(conversation: Conversation) -> None:
    """No orphan result, no unanswered call, every call right before its results; the question is the last message."""
    chat = as_chat(conversation.messages, "the question")
    assert calls_and_results(chat) == (0, 0)
    assert (chat[-1].role, chat[-1].text) == ("user", "the question")
    for at, message in enumerate(chat):
        behind = [each.answers for each in chat[at + 1 : at + 1 + len(message.calls)]]
        assert sorted(map(str, behind)) == sorted(call.id for call in message.calls)
    whole = as_text(conversation.messages)
    assert all(message.text in whole for message in conversation.messages)

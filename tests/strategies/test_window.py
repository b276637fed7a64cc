"""The window and the bounds: the document's examples, and the edges where windows of other libraries break."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctxbench.harness.invariants import conversations
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.structure import Structure
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, Strategy, SystemOverBudget
from ctxbench.strategies.bounds import EvidenceOnly, LastTurn
from ctxbench.strategies.chain import parse
from ctxbench.strategies.window import Window
from tests.builders import answering, calling, talk

COUNTER = TokenCounter()


def sent(strategy: Strategy, conversation: Conversation) -> list[Message]:
    """What the strategy sends after everything was said."""
    view = strategy.start(RecordedContext(ConversationIndex(conversation, COUNTER)))
    return list(view(Context(Messages.of(conversation.messages))).messages)


def names(strategy: Strategy, conversation: Conversation) -> list[str]:
    return [message.id for message in sent(strategy, conversation)]


def tokens(messages: list[Message]) -> int:
    return sum(map(COUNTER.message, messages))


def test_the_document_s_example() -> None:
    """Window 8000, history 9500 tokens: the newest messages up to 7200 tokens are kept, one more would be over.

    That they begin with a user message costs one message here.
    """
    each = "word " * 90
    size = COUNTER.message(Message("m", "user", each))
    conversation = talk(*[("user" if at % 2 == 0 else "assistant", each) for at in range(-(-9500 // size))])
    assert tokens(list(conversation.messages)) >= 9500
    letter, kept = (
        sent(Window(max_tokens=8000, user_first=False), conversation),
        sent(Window(max_tokens=8000), conversation),
    )
    assert letter == list(conversation.messages[-len(letter) :])
    assert 7200 - size < tokens(letter) <= 7200
    assert (letter[0].role, kept) == ("assistant", letter[1:])


def test_what_fits_is_sent_as_it_is() -> None:
    """A history within the budget is not touched, to the very token."""
    conversation = talk(("system", "Be brief."), ("user", "One"), ("assistant", "1"))
    exactly = tokens(list(conversation.messages))
    assert names(Window(max_tokens=exactly, reserve=0), conversation) == ["m0", "m1", "m2"]
    assert names(Window(max_tokens=exactly - 1, reserve=0), conversation) == ["m0", "m2"]


def test_a_call_and_its_results_go_together() -> None:
    """Where the budget ends between a call and its results, the results go too."""
    conversation = talk(
        ("system", "s"),
        ("user", "u"),
        calling("c", "x", "y"),
        answering("r1", "x"),
        answering("r2", "y"),
        ("user", "and?"),
    )
    for most in range(1, 6):
        kept = names(Window(messages=most), conversation)
        assert ("c" in kept) == ("r1" in kept) == ("r2" in kept)


def test_a_late_result_goes_with_its_call() -> None:
    """A result that came after another message is dropped with its call, and kept with it."""
    conversation = talk(calling("c", "x"), ("user", "hurry"), answering("r", "x"), ("user", "so?"))
    assert names(Window(messages=3), conversation) == ["m1", "m3"]
    assert names(Window(messages=4), conversation) == ["c", "m1", "r", "m3"]


def test_every_system_message_stays_in_its_place() -> None:
    """System messages at the start, in the middle and in the tail stay, in order, and are not among the N."""
    conversation = talk(("system", "a"), ("user", "b"), ("system", "c"), ("user", "d"), ("system", "e"), ("user", "f"))
    assert names(Window(messages=1), conversation) == ["m0", "m2", "m4", "m5"]
    assert names(Window(messages=2), conversation) == ["m0", "m2", "m3", "m4", "m5"]


def test_system_messages_count_toward_the_budget() -> None:
    """What the system prompt takes, the tail cannot."""
    conversation = talk(("system", "word " * 50), ("user", "word " * 30), ("user", "word " * 30))
    size = tokens(list(conversation.messages)) - 1
    kept = sent(Window(max_tokens=size, reserve=0), conversation)
    assert [message.id for message in kept] == ["m0", "m2"]
    assert tokens(kept) <= size


def test_the_newest_message_does_not_fit() -> None:
    """Only system messages are sent: nothing older takes the place of the newest message, or of its call."""
    conversation = talk(("system", "a b c"), ("user", "u"), calling("c", "x", text="word " * 60), answering("r", "x"))
    assert names(Window(max_tokens=50, reserve=0), conversation) == ["m0"]


@pytest.mark.parametrize(
    "text",
    [
        "window(max_tokens=20, reserve=0)",
        "summary(max_tokens=25, max_summary_tokens=5)",
        "smart(window=25, system=0, memory=0, max_summary_tokens=5)",
        "retrieval(max_tokens=25)",
        "layered(max_tokens=25)",
        "focus(limit=25, system=5, functions=5)",
        "openai.truncation_auto(max_tokens=25)",
    ],
)
def test_a_system_prompt_over_the_budget(text: str) -> None:
    """It is an error of the strategy at the step where it is, not a request without the question."""
    view = parse(text).start(
        RecordedContext(ConversationIndex(over := talk(("user", "u"), ("system", "w " * 30)), COUNTER))
    )
    assert list(view(Context(Messages.prefix(over.messages, 1))).messages) == [over.messages[0]]
    with pytest.raises(SystemOverBudget, match=r"system messages.* alone take \d+ tokens, over the budget of 2"):
        view(Context(Messages.of(over.messages)))


def test_the_user_message_of_a_turn_stays() -> None:
    """A window that begins within a turn keeps the message that opened it, unless it is told not to."""
    conversation = talk(
        ("system", "s"),
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
        ("system", "t"),
        ("assistant", "d"),
        ("assistant", "e"),
    )
    assert names(Window(messages=3), conversation) == ["m0", "m3", "m4", "m5", "m6"]
    assert names(Window(messages=1), conversation) == ["m0", "m3", "m4", "m6"]
    assert names(Window(messages=1, user_first=False), conversation) == ["m0", "m4", "m6"]


def test_the_user_message_of_a_turn_takes_its_room() -> None:
    """It counts in the budget: older messages go for it, and it goes where the newest would not fit beside it."""
    long = "word " * 30
    conversation = talk(("user", "a"), ("assistant", long), ("assistant", long), ("assistant", long))
    size = COUNTER.message(conversation.messages[1])
    opening = COUNTER.message(conversation.messages[0])
    assert names(Window(max_tokens=2 * size + opening, reserve=0), conversation) == ["m0", "m2", "m3"]
    assert names(Window(max_tokens=2 * size + opening - 1, reserve=0), conversation) == ["m0", "m3"]
    assert names(Window(max_tokens=size + opening - 1, reserve=0), conversation) == ["m3"]


def test_the_window_begins_with_a_later_turn() -> None:
    """u1 is too long to stay beside its turn's end: the window begins with the next turn, of which more fits then."""
    long = "word " * 30
    conversation = talk(("user", long * 3), ("assistant", long), ("user", "b"), ("assistant", long), ("user", "c"))
    size, small = COUNTER.message(conversation.messages[1]), COUNTER.message(conversation.messages[2])
    for room in (2 * size + 2 * small, size + 2 * small):
        assert names(Window(max_tokens=room, reserve=0), conversation) == ["m2", "m3", "m4"]
    # The opening message would fit beside the result alone, and the result needs its call.
    agent = talk(("user", "a"), calling("c", "x", text=long), answering("r", "x"))
    rest = sum(map(COUNTER.message, agent.messages[1:]))
    assert names(Window(max_tokens=rest, reserve=0), agent) == ["c", "r"]


@example(conversation=talk(("user", "a"), ("assistant", "b"), ("system", "c"), ("user", "d")), size=19)
@given(conversation=conversations(), size=st.integers(20, 400))
def test_no_longer_end_of_the_history_fits(conversation: Conversation, size: int) -> None:
    """The longest end that begins with a user's message, its own or that which opened its turn; else the longest."""
    structure, said = Structure(conversation.messages), Messages.of(conversation.messages)
    systems = {message.id for message in said if message.role == "system"}
    newest = [message for message in structure.whole(said) if message.id not in systems][-1:]
    if tokens([message for message in said if message.id in systems]) > size or tokens(list(said)) <= size:
        return
    ends: list[list[Message]] = []
    for start in range(len(said)):
        opening = structure.opening(said, start)
        for first in ((said[opening],), ()) if opening is not None else ((),):
            end = [*first, *(message for message in structure.whole(said[start:]) if message.id not in systems)]
            raw = [*first, *said[start:], *(message for message in said[:start] if message.id in systems)]
            if end and end[-1:] == newest and tokens(raw) <= size:
                ends.append(end)
    ends.sort(key=lambda end: (end[0].role != "user", -len(end)))
    kept = {message.id for message in sent(Window(max_tokens=size, reserve=0), conversation)}
    assert kept == systems | {message.id for end in ends[:1] for message in end}


def test_last_turn_is_the_turn_that_goes_on() -> None:
    """The system prompt, the last user message, and the calls and results since."""
    conversation = talk(
        ("system", "s"), ("user", "old"), ("assistant", "ok"), ("user", "u"), calling("c", "x"), answering("r", "x")
    )
    assert names(LastTurn(), conversation) == ["m0", "m3", "c", "r"]
    assert names(LastTurn(), talk(("system", "s"), ("assistant", "hi"))) == ["m0", "m1"]


LOOKED_UP = talk(
    ("system", "be brief"),
    ("user", "look it up"),
    calling("c", "1"),
    answering("r", "1", "42"),
    ("system", "note"),
    ("assistant", "it is 42"),
    ("user", "thanks"),
)


def evidence(*ids: str, question: bool = True) -> list[str]:
    services = RecordedContext(ConversationIndex(LOOKED_UP, COUNTER))
    asked = Messages.of((Message("q", "user", "what was it?"),)) if question else Messages()
    context = EvidenceOnly(ids).start(services)(Context(Messages.of(LOOKED_UP.messages) + asked))
    return [message.id for message in context.messages]


def test_the_evidence_and_the_question() -> None:
    """System messages stay in their places; a message that is not named goes."""
    assert evidence("m5") == ["m0", "m4", "m5", "q"]
    assert evidence() == ["m0", "m4", "q"]


def test_a_result_brings_its_call() -> None:
    """A tool result is no request without its call, and a call none without its results."""
    assert evidence("r") == ["m0", "c", "r", "m4", "q"]
    assert evidence("c") == ["m0", "c", "r", "m4", "q"]


def test_a_name_that_nobody_has() -> None:
    """It names nothing, and nothing is sent for it."""
    assert evidence("nobody") == ["m0", "m4", "q"]
    assert evidence("m1", question=False) == ["m0", "m1", "m4", "m6"]

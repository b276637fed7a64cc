"""Cache marks: on what is stable, never on what is not, and no more than a provider takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.invariants import conversations
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message, Tool
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, Strategy, budget_of
from ctxbench.strategies.cache_marks import CacheMarks
from ctxbench.strategies.chain import parse
from tests.builders import answering, calling, talk

COUNTER = TokenCounter()
LONG = "a word of the system prompt " * 300


def steps(strategy: Strategy, conversation: Conversation) -> list[Context]:
    """What is sent at each call, and once more after everything was said."""
    view = strategy.start(RecordedContext(ConversationIndex(conversation, COUNTER)))
    ends = [*conversation.calls(), len(conversation.messages)]
    return [view(Context(Messages.prefix(conversation.messages, at), (), conversation.tools)) for at in ends]


def marks(strategy: Strategy, conversation: Conversation) -> list[tuple[int, ...]]:
    return [context.marks for context in steps(strategy, conversation)]


def test_the_system_prompt_and_the_memory_are_marked() -> None:
    """Each leading system message of a prefix that is long enough has a mark; the tail has none."""
    conversation = talk(("system", LONG), ("system", "<memory>\n- tea\n</memory>"), ("user", "hi"), ("assistant", "ho"))
    assert marks(CacheMarks(), conversation) == [(0, 1), (0, 1)]


def test_a_prefix_that_is_too_short_is_not_marked() -> None:
    """The mark stands where what comes up to it has min_tokens, to the very token, and nowhere before."""
    conversation = talk(("system", "One two three."), ("system", "And more."), ("user", "hi"))
    exactly = COUNTER.message(conversation.messages[0]) + COUNTER.message(conversation.messages[1])
    assert marks(CacheMarks(min_tokens=exactly), conversation) == [(1,)]
    assert marks(CacheMarks(min_tokens=exactly + 1), conversation) == [()]


def test_tools_come_before_and_count() -> None:
    """A short system prompt after long tool schemas is worth a mark."""
    said = talk(("system", "Be brief."), ("user", "hi"))
    tooled = Conversation("tooled", said.messages, tools=(Tool("look", "Looks things up. " * 400),))
    assert marks(CacheMarks(), said) == [()]
    assert marks(CacheMarks(), tooled) == [(0,)]


def test_the_document_s_rule() -> None:
    """chars4 wants 4 · 1024 characters of each system message: not of Chinese that has the tokens, nor of a memory."""
    chinese = "系统提示词规定了助手的行为。" * 150
    assert len(chinese) < 4096
    assert COUNTER.text(chinese) > 1024
    conversation = talk(("system", chinese), ("user", "hi"))
    assert marks(CacheMarks(count="chars4"), conversation) == [()]
    assert marks(CacheMarks(), conversation) == [(0,)]
    conversation = talk(("system", "x" * 4096), ("system", "<memory>tea</memory>"), ("user", "hi"))
    assert marks(CacheMarks(count="chars4"), conversation) == [(0,)]


def test_at_most_four_and_the_first_is_among_them() -> None:
    """With more leading system messages than marks, the first and the last ones have them."""
    conversation = talk(*[("system", LONG) for _ in range(6)], ("user", "hi"))
    assert marks(CacheMarks(), conversation) == [(0, 3, 4, 5)]
    assert marks(CacheMarks(marks=1), conversation) == [(0,)]
    assert marks(CacheMarks(rolling=1), conversation) == [(0, 4, 5, 6)]


def test_what_has_no_text_carries_no_mark() -> None:
    """An empty system message is passed over, and the rolling mark walks back over an empty message."""
    conversation = talk(("system", ""), ("system", LONG), ("user", "hi"), ("assistant", ""))
    assert marks(CacheMarks(rolling=1), conversation) == [(1, 2), (1, 2)]


def test_rolling_marks_follow_the_tail() -> None:
    """The second rolling mark stands where the first one was a call before, if all up to it is still sent."""
    conversation = talk(
        ("system", LONG), ("user", "a"), calling("c", "x"), answering("r", "x"), ("assistant", "b"), ("user", "d")
    )
    assert marks(CacheMarks(rolling=1), conversation) == [(0, 1), (0, 3), (0, 5)]
    assert marks(CacheMarks(rolling=2), conversation) == [(0, 1), (0, 1, 3), (0, 3, 5)]
    assert marks(parse("last_turn | cache_marks(rolling=2)"), conversation) == [(0, 1), (0, 1, 3), (0, 1)]


def test_asked_twice_it_answers_the_same() -> None:
    """The same history again is no new call: the mark of the call before stays where it was."""
    conversation = talk(("system", LONG), ("user", "a"), ("assistant", "b"), ("user", "c"))
    view = CacheMarks(rolling=2).start(RecordedContext(ConversationIndex(conversation, COUNTER)))
    view(Context(Messages.prefix(conversation.messages, 2)))
    now = Context(Messages.prefix(conversation.messages, 4))
    assert view(now) == view(now)
    assert view(now).marks == (0, 1, 3)


@pytest.mark.parametrize("provider", ["openai", "deepseek", "gemini"])
def test_providers_that_cache_by_themselves_get_no_marks(provider: str) -> None:
    """Marks that a stage before placed go too: the provider would ignore or refuse them."""
    conversation = talk(("system", LONG), ("user", "a"))
    assert marks(CacheMarks(provider, rolling=2), conversation) == [()]
    assert marks(parse(f"cache_marks | cache_marks(provider={provider!r})"), conversation) == [()]


@given(conversation=conversations(), most=st.integers(1, 4), rolling=st.integers(0, 2))
def test_invariants(conversation: Conversation, most: int, rolling: int) -> None:
    """Whatever was said: the messages as they came, at most `marks` marks, in order, each on one that can carry it."""
    strategy = CacheMarks(marks=most, min_tokens=0, rolling=min(rolling, most))
    for context in steps(strategy, conversation):
        assert list(context.messages) == list(conversation.messages[: len(context.messages)])
        assert len(context.marks) <= most
        assert list(context.marks) == sorted(set(context.marks))
        for at in context.marks:
            message = context.messages[at]
            assert message.text or message.calls or message.answers
            assert rolling or all(each.role == "system" for each in context.messages[: at + 1])


def test_the_budget_is_that_of_the_stage_before() -> None:
    """Marks change no message, so a chain that ends in them keeps what the window promised."""
    assert budget_of(parse("window(max_tokens=100) | cache_marks")) == 90
    assert budget_of(parse("window(max_tokens=100) | none")) is None
    assert budget_of(parse("cache_marks")) is None


def test_a_message_that_is_not_text_is_a_message() -> None:
    """A mark may stand on a tool call or on a result without text."""
    conversation = talk(("user", LONG), calling("c", "x"), Message("r", "tool", "", answers="x"))
    assert marks(CacheMarks(rolling=1), conversation)[-1] == (2,)

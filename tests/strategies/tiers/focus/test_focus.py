"""The Focus tier alone: never over its limit, the system never cut, in order, calls with their results."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.invariants import messages
from ctxbench.metrics.structure import calls_and_results
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.scenarios.model import Message, Tool
from ctxbench.strategies.base import SystemOverBudget
from ctxbench.strategies.events import LimitReached, OverBudget, Summarised
from ctxbench.strategies.tiers.focus import Focus, TruncationMode
from tests.builders import answering, calling, talk
from tests.examples import examples
from tests.strategies.tiers.focus.standalone import Opened, Sent

COUNTER = TokenCounter()
TRUNCATIONS: tuple[TruncationMode, ...] = get_args(TruncationMode)
every = pytest.mark.parametrize("truncation", TRUNCATIONS)
WORDS = ("order", "ticket", "refund", "budget", "invoice", "friday", "server", "policy", "deadline", "meeting")


def small(truncation: TruncationMode, limit: int = 160) -> Focus:
    """Open a tier that is soon full, without reserves: the conversation may have all of it."""
    return Focus(limit, truncation, 0, 0, max_summary_tokens=30, keep=0.6, run=30, ratio=0.6, language="en")


def total(sent: list[Message]) -> int:
    """Tokens of a request, counted message by message."""
    return PRIMING + sum(map(COUNTER.message, sent))


def sentence(number: int, tokens: int) -> str:
    """Return a unique text of about so many tokens."""
    return " ".join(WORDS[(number * 7 + at * at) % len(WORDS)] + f" {number}" for at in range(tokens // 3))


@every
def test_mem_001(truncation: TruncationMode) -> None:
    """004's scenario: ~1K of system prompt, then messages of ~200 tokens one by one, until long over 8192."""
    system = Message("system", "system", sentence(0, 1000))
    said = [system]
    tier, crossed = Opened(Focus(truncation=truncation)), []
    for number in range(80):
        said.append(Message(f"m{number}", "user" if number % 2 == 0 else "assistant", sentence(number, 200)))
        found = tier.send(said)
        sent = list(found.messages)
        assert total(sent) == found.used <= 8192
        assert sent[0] is system
        assert sent[-1] is said[-1]
        assert {message.id for message in found.overflow}.isdisjoint(message.id for message in sent)
        crossed += [each.level for each in found.events if isinstance(each, LimitReached)]
    assert found.overflow
    assert crossed == ["warning", "soft", "hard"]


@every
@examples(40)
@given(said=messages(), limit=st.sampled_from([90, 160, 400]))
def test_whatever_is_said_the_limit_holds(truncation: TruncationMode, said: tuple[Message, ...], limit: int) -> None:
    """After each message: within the limit, all of the system, the order kept, calls with results, the newest there."""
    tier = Opened(small(truncation, limit))
    for stop in range(1, len(said) + 1):
        history = said[:stop]
        spoken = [message for message in history if message.role != "system"]
        systems = [message for message in history if message.role == "system"]
        if systems and total(systems) > limit:
            with pytest.raises(SystemOverBudget):
                tier.send(history)
            return
        found = tier.send(history)
        sent = list(found.messages)
        assert total(sent) == found.used <= limit or not sent
        if found.over_budget is not None:
            assert not sent
            assert found.over_budget.tokens > limit == found.over_budget.budget
            assert list(found.overflow) == spoken
            continue
        recorded = [message for message in sent if message in history]
        assert recorded == [message for message in history if message in sent]
        assert [message for message in sent if message in systems] == systems
        assert all(message.role == "system" for message in sent if message not in history)
        assert not spoken or spoken[-1] in sent or spoken[-1].role == "tool"
        orphans, unanswered = calls_and_results(sent)
        had_orphans, had_unanswered = calls_and_results(history)
        assert orphans <= had_orphans
        assert unanswered <= had_unanswered
        if total(list(history)) <= limit:
            assert sent == list(history)
        assert {each.id for each in found.overflow} == {m.id for m in spoken} - {m.id for m in sent}


@every
@examples(15)
@given(said=messages())
def test_said_at_once_or_one_by_one(truncation: TruncationMode, said: tuple[Message, ...]) -> None:
    """Asked twice it answers the same; a tier that is given another conversation forgets the first one."""
    once, again = Opened(small(truncation)), Opened(small(truncation))
    for stop in range(1, len(said) + 1):
        if total([message for message in said[:stop] if message.role == "system"]) > 150:
            return
        assert once.send(said[:stop]).messages == again.send(list(said[:stop])).messages
        assert once.send(said[:stop]) == again.send(said[:stop])
    other = talk(("user", "another conversation")).messages
    assert list(once.send(other).messages) == list(other)


def test_what_fits_is_sent_as_it_is() -> None:
    """Empty, or under the limit: nothing is cut, nothing recorded."""
    tier = Opened(Focus())
    nothing = tier.send([])
    assert (len(nothing.messages), nothing.overflow, nothing.used, nothing.events) == (0, (), 0, ())
    said = talk(("system", "be brief"), ("user", "hello")).messages
    found = tier.send(said)
    assert list(found.messages) == list(said)
    assert (found.over_budget, found.overflow) == (None, ())


def conversation(sent: Sent) -> int:
    return sum(COUNTER.message(message) for message in sent.messages if message.role != "system")


def test_the_conversation_has_what_the_shares_leave() -> None:
    """8192 - 1024 - 1024 - 3: with a short system prompt and no tools no more than 6141 tokens are sent of it."""
    said = [Message("s", "system", "be brief")]
    said += [Message(f"m{at}", "user", sentence(at, 60)) for at in range(400)]
    assert 6141 - 100 < conversation(Opened(Focus(truncation="tail_cutoff")).send(said)) <= 6141
    free = Opened(Focus(truncation="tail_cutoff", system=0, functions=0)).send(said).used
    assert 8192 - 100 < free <= 8192


def test_tools_take_from_the_conversation_what_is_over_their_share() -> None:
    """Schemas are counted and never cut."""
    said = [Message(f"m{at}", "user", sentence(at, 60)) for at in range(400)]
    tools = (Tool("find", sentence(1, 3000)),)
    tier = Opened(Focus(truncation="tail_cutoff"))
    without, found = tier.send(said), tier.send(said, tools)
    assert conversation(found) < conversation(without)
    assert found.used == COUNTER.tools(tools) + conversation(found) + 3 <= 8192


@every
def test_a_message_larger_than_the_tier_is_refused(truncation: TruncationMode) -> None:
    """Nothing is sent while it is the newest; once others follow it is left out as any."""
    tier = Opened(Focus(truncation=truncation))
    said = [Message("m0", "user", "hello"), Message("m1", "user", sentence(1, 12_000))]
    found = tier.send(said)
    assert found.over_budget is not None
    assert found.over_budget.why == "the newest message does not fit"
    assert len(found.messages) == 0
    assert any(isinstance(each, OverBudget) for each in found.events)
    said.append(Message("m2", "user", "and now?"))
    after = tier.send(said)
    assert after.over_budget is None
    assert after.messages[-1].id == "m2"
    assert "m1" in {message.id for message in after.overflow}


def test_reserves_give_way_to_the_newest_message() -> None:
    """7000 tokens fit in 8192 beside a short system prompt, though not in the conversation's share."""
    said = [Message("s", "system", "be brief"), Message("m0", "user", sentence(1, 6800))]
    found = Opened(Focus()).send(said)
    assert found.over_budget is None
    assert list(found.messages) == said
    assert conversation(found) > 6141


@every
def test_reserves_give_way_to_the_question_of_the_turn(truncation: TruncationMode) -> None:
    """A long result fits in the conversation's share alone, and in the limit beside the user message that it answers:
    that stays too, as providers reject a request without one. Where both are over the limit, the result stays."""
    tier = Focus(truncation=truncation, language="en")
    for result, kept in ((4800, True), (7400, False)):
        said = [
            Message("s", "system", "be brief"),
            Message("u", "user", sentence(1, 1100)),
            calling("a1", "c1"),
            answering("r1", "c1", sentence(2, 3000)),
            calling("a2", "c2"),
            answering("r2", "c2", sentence(3, result)),
        ]
        found = Opened(tier).send(said)
        ids = [message.id for message in found.messages]
        assert found.over_budget is None
        assert ids[-2:] == ["a2", "r2"]
        assert ("u" in ids) == kept
        assert total(list(found.messages)) == found.used <= 8192


def test_tail_cutoff_keeps_the_newest_and_the_message_that_opened_the_turn() -> None:
    """An agent's run: the only user message stays, the oldest calls go with their results."""
    said = [Message("m0", "user", "find the row")]
    for at in range(8):
        said += [calling(f"c{at}", f"k{at}"), answering(f"r{at}", f"k{at}", sentence(at, 12))]
    sent = [message.id for message in Opened(small("tail_cutoff", 130)).send(said).messages]
    assert sent[0] == "m0"
    assert sent[-2:] == ["c7", "r7"]
    assert sent[1:] == [f"{kind}{at}" for at in range(8 - (len(sent) - 1) // 2, 8) for kind in "cr"]


def test_dynamic_summary_records_what_it_replaced() -> None:
    """The summary is a system message; its event is returned with what is sent."""
    said = [Message(f"m{at}", "user", f"Order {at} costs {at * 13} dollars.") for at in range(20)]
    found = Opened(small("dynamic_summary")).send(said)
    (event,) = (each for each in found.events if isinstance(each, Summarised))
    assert event.replaced[0] == "m0"
    assert found.messages[0].text.endswith(event.summary)
    assert {message.id for message in found.overflow} == set(event.replaced)


def test_conversation_merge_says_old_stretches_in_short() -> None:
    """Each stretch becomes one message, made once: with more said, those there were stand unchanged."""
    said = [Message(f"m{at}", "user", f"Order {at} costs {at * 13} dollars in Lyon.") for at in range(16)]
    tier = Opened(small("conversation_merge"))
    before = [message for message in tier.send(said[:13]).messages if message.role == "system"]
    after = [message for message in tier.send(said).messages if message.role == "system"]
    assert before
    assert all(message.text.startswith("[Merged conversation]\nuser: Order") for message in after)
    assert [message for message in after if message.id in {each.id for each in before}] == before[-len(after) :]

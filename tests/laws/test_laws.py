"""Laws that every strategy keeps, ours and any that is plugged in, on any conversation."""

from __future__ import annotations

import pytest
from ctxbench.harness.desk import RecordedDesk
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, Strategy, budget_of
from ctxbench.strategies.chain import Chain, parse, strategies
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.test_replay import run
from tests.making import conversations

COUNTER = TokenCounter()
SPECS = (
    "none",
    "last_turn",
    "window(max_tokens=60)",
    "window(max_tokens=60, reserve=0)",
    "window(messages=3)",
    "window(messages=6, max_tokens=90)",
    "window(messages=5, from_user=True)",
    "window(model='gpt-4')",
    "window(messages=9) | window(max_tokens=60)",
    "last_turn | window(messages=2)",
)
every = pytest.mark.parametrize("spec", SPECS)


def contexts(strategy: Strategy, conversation: Conversation) -> list[tuple[int, list[Message]]]:
    """What is sent at each step, with how much had been said."""
    view = strategy.start(RecordedDesk(conversation, COUNTER))
    return [
        (at, list(view(Context(Messages.prefix(conversation.messages, at))).messages)) for at in conversation.calls()
    ]


def test_every_strategy_is_put_through_the_laws() -> None:
    """No strategy that is registered is missing here."""
    assert {spec.split("(")[0].strip() for text in SPECS for spec in text.split("|")} >= set(strategies())


@every
@given(conversation=conversations())
def test_order_is_kept_and_nothing_is_invented(spec: str, conversation: Conversation) -> None:
    """Only messages of the history are sent, each once, in their order."""
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    for at, sent in contexts(parse(spec), conversation):
        places = [place[message.id] for message in sent]
        assert places == sorted(set(places))
        assert all(each < at for each in places)


@every
@given(conversation=conversations())
def test_no_fault_is_added(spec: str, conversation: Conversation) -> None:
    """No orphan result, unanswered call, disorder or lost system message that the history itself does not have."""
    for step, whole in zip(run(parse(spec), conversation)[0], run(parse("none"), conversation)[0], strict=True):
        assert step.orphan_results <= whole.orphan_results
        assert step.unanswered_calls <= whole.unanswered_calls
        assert step.misordered == step.dropped_system == 0


@every
@given(conversation=conversations())
def test_the_budget_is_kept(spec: str, conversation: Conversation) -> None:
    """The exact count of what is sent is within the budget, or system messages alone are over it."""
    strategy = parse(spec)
    budget = budget_of(strategy)
    for _, sent in contexts(strategy, conversation):
        over = budget is not None and sum(map(COUNTER.message, sent)) > budget
        assert not over or all(message.role == "system" for message in sent)


@every
@given(conversation=conversations())
def test_the_same_history_gives_the_same_context(spec: str, conversation: Conversation) -> None:
    """A strategy started again on the same recording does the same, and changes nothing that it was given."""
    before = conversation.to_json()
    assert run(parse(spec), conversation)[0] == run(parse(spec), conversation)[0]
    assert conversation.to_json() == before


@every
@given(conversation=conversations(), cut=st.integers(1, 40))
def test_the_future_is_not_known(spec: str, conversation: Conversation, cut: int) -> None:
    """What is sent at a step is the same whether or not the conversation goes on."""
    short = Conversation("short", conversation.messages[:cut])
    assert run(parse(spec), conversation)[0][: len(list(short.calls()))] == run(parse(spec), short)[0]


@given(conversation=conversations())
def test_a_chain_is_its_stages(conversation: Conversation) -> None:
    """A chain sends what its stages send one after the other."""
    first, second = parse("window(messages=9)"), parse("window(max_tokens=60)")
    desk = RecordedDesk(conversation, COUNTER)
    one, other = first.start(desk), second.start(desk)
    for (_, sent), at in zip(contexts(Chain((first, second)), conversation), conversation.calls(), strict=True):
        assert sent == list(other(one(Context(Messages.prefix(conversation.messages, at)))).messages)


@every
def test_traps_break_nothing(spec: str) -> None:
    """Every trap conversation is replayed to its end, with no fault that is not in the recording."""
    for conversation in scenario("traps"):
        found, whole = run(parse(spec), conversation)[0], run(parse("none"), conversation)[0]
        assert len(found) == len(list(conversation.calls()))
        for step, all_of_it in zip(found, whole, strict=True):
            assert step.orphan_results <= all_of_it.orphan_results
            assert step.unanswered_calls <= all_of_it.unanswered_calls

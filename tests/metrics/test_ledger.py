"""The ledger is quick and the sum is obvious: they agree on any stretches of any conversation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.invariants import messages
from ctxbench.metrics.tokens import Ledger, TokenCounter
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages, Span
from tests.builders import stretches

COUNTER = TokenCounter()


def mixed(said: tuple[Message, ...], data: st.DataObject) -> Messages:
    """Stretches of the recording with messages of a strategy's own between."""
    made = Messages()
    for start, stop in data.draw(stretches(said)):
        made = made + Messages((Span(said, start, stop),))
        if data.draw(st.booleans()):
            made = made + (Message("w", data.draw(st.sampled_from(["system", "user"])), "a summary of it"),)
    return made


@given(st.data())
def test_total_is_the_sum(data: st.DataObject) -> None:
    """The total of any messages is the sum over each."""
    said = data.draw(messages())
    sent = mixed(said, data)
    assert Ledger(COUNTER, said).total(sent) == sum(map(COUNTER.message, sent))


@given(st.data())
def test_fit_is_the_longest_tail(data: st.DataObject) -> None:
    """fit() finds the smallest start from which what is not the system's stays within the budget."""
    said = data.draw(messages())
    sent = mixed(said, data)
    budget = data.draw(st.integers(0, 300))
    plain = list(sent)
    start = len(plain)
    while start > 0:
        left = sum(COUNTER.message(m) for m in plain[start - 1 :] if m.role != "system")
        if left > budget:
            break
        start -= 1
    assert Ledger(COUNTER, said).fit(sent, budget) == start

"""The invariants that every strategy keeps, for the strategy beside this file: `pytest docs/examples`."""

from pathlib import Path

from hypothesis import given, settings

from ctxbench.harness.invariants import check, conversations
from ctxbench.strategies.chain import parse

HERE = Path(__file__).parent


@given(conversation=conversations())
@settings(deadline=None)
def test_head_and_tail_keeps_the_invariants(conversation):
    """Every invariant holds on any conversation."""
    check(parse(f"{HERE}/head_and_tail.py:HeadAndTail(head=2, tail=3)"), conversation)

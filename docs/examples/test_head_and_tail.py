"""The invariants that every strategy keeps, for the strategy beside this file: `pytest docs/examples`."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from ctxbench.harness.invariants import INVARIANTS, conversations
from ctxbench.strategies.chain import parse

HERE = Path(__file__).parent


@pytest.mark.parametrize("invariant", INVARIANTS)
@given(conversation=conversations())
@settings(deadline=None)
def test_head_and_tail_keeps_the_invariants(invariant, conversation):
    """Every invariant holds on any conversation."""
    invariant(parse(f"{HERE}/head_and_tail.py:HeadAndTail(head=2, tail=3)"), conversation)

"""The laws that every strategy keeps, for the strategy beside this file: `pytest docs/examples`."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from ctxbench.harness.invariants import LAWS, conversations
from ctxbench.strategies.chain import parse

HERE = Path(__file__).parent


@pytest.mark.parametrize("law", LAWS)
@given(conversation=conversations())
@settings(deadline=None)
def test_head_and_tail_keeps_the_laws(law, conversation):
    """Every law holds on any conversation."""
    law(parse(f"{HERE}/head_and_tail.py:HeadAndTail(head=2, tail=3)"), conversation)

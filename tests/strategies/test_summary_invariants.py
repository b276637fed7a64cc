"""What every strategy that summarises keeps, whatever the conversation is and whatever its model does."""

from __future__ import annotations

import pytest
from hypothesis import given

from ctxbench.harness.invariants import conversations
from ctxbench.harness.models import OFFLINE, Models
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.base import ModelError, Prompt, budget_of
from ctxbench.strategies.chain import parse
from tests.strategies.scripted_models import Replying, check_invariants


def flaky(prompt: Prompt) -> str:
    """Fails for every third number of messages, and talks too much."""
    if len(prompt.about) % 3 == 0:
        raise ModelError("refused")
    return "word " * 30


@pytest.mark.parametrize("model", [OFFLINE, Replying(), Replying(flaky)], ids=["offline", "replying", "flaky"])
@pytest.mark.parametrize(
    "text",
    [
        "summary(threshold=4, every=2)",
        "summary(threshold=5, max_tokens=150, max_summary_tokens=40)",
        "summary(threshold=99, max_tokens=120, max_summary_tokens=10, levels=3, fan_in=2)",
        "session_summary(token_threshold=60, preserve_recent=3, max_summary_tokens=20)",
        "session_summary(token_threshold=60, preserve_recent=1, levels=2, fan_in=2, max_input_tokens=30)",
        "smart(window=300, system=20, memory=0, max_summary_tokens=20)",
        "smart(window=150, system=10, memory=0.1, max_summary_tokens=15, first_turns=1, last_messages=2)",
        "smart(window=80, system=0, memory=0, max_summary_tokens=5, threshold=0.5, target=0.3)",
        "smart(window=150, system=0, memory=0, max_summary_tokens=15, first_turns=0, last_messages=1, keep='critical')",
    ],
)
@given(conversation=conversations())
def test_invariants(text: str, model: Models, conversation: Conversation) -> None:
    """On any conversation, whatever the model does: order, structure, budget, and no message lost without trace."""
    strategy = parse(text)
    check_invariants(text.partition("(")[0], strategy, conversation, budget_of(strategy), model)

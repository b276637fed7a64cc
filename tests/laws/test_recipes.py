"""Laws that every recipe keeps, with its own parameters and with ones so small that every stage has work to do."""

from __future__ import annotations

import pytest
from ctxbench.harness.laws import LAWS, Law
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.chain import parse
from ctxbench.strategies.recipes import RECIPES
from hypothesis import HealthCheck, given, settings

from tests.making import conversations

SMALL = {
    "archive_window": "archive(threshold=20) | window(max_tokens=300)",
    "summary_window": "summary(threshold=3, max_summary_tokens=20) | window(max_tokens=60)",
    "smart_cached": "smart(window=400, system=40, max_summary_tokens=20) | cache_marks(min_tokens=0)",
    "facts_summary_cached": "facts(max_tokens=60) | summary(threshold=3) | cache_marks(min_tokens=0, rolling=2)",
    "all_of_000": (
        "layered(recent=1) | smart(window=400, system=40, max_summary_tokens=20)"
        " | session_summary(token_threshold=60, max_summary_tokens=20) | cache_marks(min_tokens=0)"
    ),
}


def test_every_recipe_is_here() -> None:
    """No recipe is missing, and each small one has the recipe's stages."""
    assert set(SMALL) == set(RECIPES)
    for name, small in SMALL.items():
        kinds = [[type(stage) for stage in parse(text).stages] for text in (RECIPES[name].chain, small)]  # type: ignore[attr-defined]
        assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", sorted(SMALL))
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(conversation=conversations())
def test_law(law: Law, name: str, conversation: Conversation) -> None:
    """Every recipe keeps every law on any conversation."""
    law(parse(SMALL[name]), conversation)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_whole_conversations(name: str) -> None:
    """Every recipe as it is shipped keeps the laws on the embedded conversations."""
    strategy = parse(name)
    for conversation in scenario("smoke"):
        for law in LAWS:
            law(strategy, conversation)

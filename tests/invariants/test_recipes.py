"""Invariants of recipes and presets, with their own parameters and with ones so small that every stage has work."""

from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, given

from ctxbench.harness.engine.plan import DEFAULT_STRATEGIES
from ctxbench.harness.invariants import check, conversations
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.spec import calls
from ctxbench.strategies.chain import NAMED, PRESETS, RECIPES, parse, spec, strategies
from tests.examples import examples

SMALL = {
    "archive_window": "archive(threshold=20) | window(max_tokens=300)",
    "summary_window": "summary(threshold=3, max_summary_tokens=20) | window(max_tokens=60)",
    "smart_cached": "smart(window=400, system=40, max_summary_tokens=20) | cache_marks(min_tokens=0)",
    "facts_summary_cached": "facts(max_tokens=60) | summary(threshold=3) | cache_marks(min_tokens=0, rolling=2)",
    "layered_smart_cached": (
        "layered(recent=1) | smart(window=400, system=40, max_summary_tokens=20)"
        " | session_summary(token_threshold=60, max_summary_tokens=20) | cache_marks(min_tokens=0)"
    ),
    "window_document": "window(max_tokens=60, user_first=False)",
    "summary_document": "summary(threshold=3, max_summary_tokens=20, user_first=False)",
    "session_summary_document": "session_summary(token_threshold=60, max_summary_tokens=20, user_first=False)",
    "facts_document": "facts(similarity=0, confidence=1, limit=2)",
    "layered_document": "layered(recent=1, search='document')",
    "cache_marks_document": "cache_marks(min_tokens=1, count='chars4')",
    "archive_document": "archive(threshold=20, fresh=False)",
    "tiered_small": "tiered(limit=160, working=60, archive=80, recall=50)",
    **{
        f"tiered_{name}": f"tiered(limit=160, working=60, archive=80, recall=50, policy='{policy}')"
        for name, policy in (
            ("default", "hybrid"),
            ("conversation", 'hybrid(profile="conversation")'),
            ("knowledge", 'hybrid(profile="knowledge")'),
            ("context", 'hybrid(profile="context")'),
        )
    },
    "tiered_document": (
        "tiered(limit=160, working=60, archive=80, rag=90, recall=50, policy='segmented', archive_policy='fifo', "
        "truncation='importance', retrievers=('vector', 'bm25', 'graph'), "
        f"index='{'hnsw' if find_spec('hnswlib') else 'exact'}', rerank=20, preload=True, tune=True, collect=True)"
    ),
}


def test_every_recipe_is_here() -> None:
    """No recipe is missing, and each small one has the recipe's stages."""
    assert set(SMALL) == set(NAMED)
    for name, small in SMALL.items():
        kinds = [[call.name for call in calls(text, "strategy")] for text in (NAMED[name].chain, small)]
        assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_name_is_its_text(name: str) -> None:
    """A recipe or preset prints as its chain, and parses back to itself."""
    if "hnsw" in NAMED[name].chain:
        pytest.importorskip("hnswlib")
    assert spec(parse(name)) == NAMED[name].chain
    assert parse(spec(parse(name))) == parse(name)


def test_presets_run_only_when_they_are_named() -> None:
    """The default set of `run` has every composition and no preset, and no name is both."""
    assert set(RECIPES) <= set(DEFAULT_STRATEGIES)
    assert not set(PRESETS) & set(DEFAULT_STRATEGIES)
    assert not set(PRESETS) & set(RECIPES)
    assert not set(NAMED) & set(strategies())


ALIKE = ("tiered_conversation", "tiered_default", "tiered_knowledge")
"""They differ from `tiered_context` by a weight."""
every = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in ALIKE else name for name in sorted(SMALL)]
)


@every
@examples(15, ignored=[HealthCheck.too_slow])
@given(conversation=conversations())
def test_any_conversation(name: str, conversation: Conversation) -> None:
    """Every recipe keeps every invariant on any conversation."""
    check(parse(SMALL[name]), conversation)


@pytest.fixture(scope="module")
def smoke() -> tuple[Conversation, ...]:
    """One conversation of each kind that CI replays, English and Chinese in turn."""
    return tuple(conversation for at, conversation in enumerate(scenario("smoke")) if at % 4 in (0, 3))


@every
def test_whole_conversations(name: str, smoke: tuple[Conversation, ...]) -> None:
    """Every recipe as it is shipped keeps the invariants on the embedded conversations."""
    strategy = parse(NAMED[name].chain if find_spec("hnswlib") else NAMED[name].chain.replace("'hnsw'", "'exact'"))
    for conversation in smoke:
        check(strategy, conversation)

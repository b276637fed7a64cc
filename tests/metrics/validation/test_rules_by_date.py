"""A call is compared under the rule of its model, host and date, and the evidence stands with it."""

from pathlib import Path

import pytest

from ctxbench.metrics.cache.mechanisms import AutomaticRules, BoundaryRules, UnitRules
from ctxbench.metrics.cache.rules import RULES, rule_for, rules_of
from ctxbench.metrics.prices import Prices
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.validation.comparison import Counters
from ctxbench.metrics.validation.validation import validation
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.metrics.validation.recordings import COUNTER


@pytest.mark.parametrize(
    ("model", "day", "family", "look_back"),
    [
        ("litellm_proxy/claude-3-5-sonnet-20241022", 1733339403, "anthropic", 1),
        ("claude-sonnet-4-5", 1765233944, "anthropic", 20),
        ("litellm_proxy/anthropic.claude-3-5-sonnet-20241022-v2:0", 1733339403, "bedrock", None),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", None, "bedrock", 20),
        ("jp.anthropic.claude-sonnet-4-5-20250929-v1:0", None, "bedrock", 20),
        ("vertex_ai/claude-sonnet-4-5@20250929", None, "anthropic", 20),
    ],
)
def test_rules_have_dates(model: str, day: float | None, family: str, look_back: int | None) -> None:
    """A rule is found by the model's name, its host and the recording's date."""
    rule = rule_for(model, day)
    assert rule is not None
    assert rule.family.startswith(family)
    assert getattr(rule.rules, "look_back", None) == look_back


@pytest.mark.parametrize(
    "model",
    [
        *("claude-opus-4-5-20251101", "openrouter/anthropic/claude-opus-4.5", "anthropic/claude-4.5-opus-20251124"),
        *(
            "vertex_ai/claude-opus-4-5@20251101",
            "azure_ai/Claude-Opus-4-5",
            "bedrock/au.anthropic.claude-opus-4-5-v1:0",
        ),
    ],
)
def test_one_model_under_many_names(model: str) -> None:
    """Its shortest cached prefix is the same, whoever it is asked through."""
    rule = rule_for(model, None)
    assert rule is not None
    assert getattr(rule.rules, "least", None) == 4096


@pytest.mark.parametrize(
    ("model", "when", "kind"),
    [
        ("gpt-4o-2024-08-06", None, AutomaticRules),
        ("azure/gpt-4o", None, AutomaticRules),
        ("gpt-5.1-codex", None, AutomaticRules),
        ("openai/gpt-5.6", None, BoundaryRules),
        ("gpt-6.1-sol", None, BoundaryRules),
        ("deepseek-chat", 1776225559, AutomaticRules),
        ("deepseek-v4-pro", 1790000000, UnitRules),
        ("gemini/gemini-2.5-pro", None, AutomaticRules),
    ],
)
def test_mechanisms_by_model_and_date(model: str, when: float | None, kind: type[object]) -> None:
    """Which mechanism a model's cache has, and that every rule names its source."""
    rule = rule_for(model, when)
    assert rule is not None
    assert isinstance(rule.rules, kind)
    assert rule.source


class OneCounter(Counters):
    """One encoding for all models, whatever is installed."""

    def __missing__(self, model: str) -> TokenCounter:
        return COUNTER


EVIDENCE = {found for rule in RULES for found in rule.evidence}


@pytest.mark.parametrize("folder", sorted({found.folder for found in EVIDENCE}))
def test_evidence_is_counted_again(folder: str, recordings: Path) -> None:
    """Every model of a folder of recordings: calls seen, and those predicted to the token."""
    problems = Problems()
    conversations = list(read(find([recordings / folder], problems), problems))
    found = validation(conversations, OneCounter(), Prices()).agreements
    counted = {(row["model"], row["rule_since"]): (row["later_calls"], row["later_exact"]) for row in found}
    stated = {(each.model, each.since): (each.seen, each.exact) for each in EVIDENCE if each.folder == folder}
    assert {key: counted.get(key) for key in stated} == stated


def test_evidence_stands_with_its_rule() -> None:
    """Each entry is that of one rule: the one by which a call of that model at that host is predicted."""
    assert EVIDENCE
    for found in EVIDENCE:
        rules = [rule for rule in rules_of(found.model, RULES, found.host) if found in rule.evidence]
        assert [rule.since for rule in rules] == [found.since]

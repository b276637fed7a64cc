"""The evidence that stands with the cache rules is what the sample recordings say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxbench.metrics.cache.rules import RULES, rules_of
from ctxbench.metrics.prices import Prices
from ctxbench.metrics.validation.calibration import Counters
from ctxbench.metrics.validation.validation import validation
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems

EVIDENCE = {found for rule in RULES for found in rule.evidence}


@pytest.mark.parametrize("folder", sorted({found.folder for found in EVIDENCE}))
def test_evidence_is_counted_again(folder: str, recordings: Path) -> None:
    """Every model of a folder of recordings: calls seen, and those predicted to the token."""
    problems = Problems()
    conversations = list(read(find([recordings / folder], problems), problems))
    found = validation(conversations, Counters("o200k_base"), Prices()).agreements
    counted = {(row["model"], row["rule_since"]): (row["later_calls"], row["later_exact"]) for row in found}
    stated = {(each.model, each.since): (each.seen, each.exact) for each in EVIDENCE if each.folder == folder}
    assert {key: counted.get(key) for key in stated} == stated


def test_evidence_stands_with_its_rule() -> None:
    """Each entry is that of one rule: the one by which a call of that model at that host is predicted."""
    assert EVIDENCE
    for found in EVIDENCE:
        rules = [rule for rule in rules_of(found.model, RULES, found.host) if found in rule.evidence]
        assert [rule.since for rule in rules] == [found.since]

"""Replies of models, read strictly."""

from __future__ import annotations

import pytest

from ctxbench.harness.graders.llm import GraderVerdict, read
from ctxbench.metrics.value import Missing


@pytest.mark.parametrize(
    "text", ['{"verdict": "CORRECT", "reason": "same"}', ' ```json\n{"reason":"same","verdict":"CORRECT"}\n``` ']
)
def test_one_object(text: str) -> None:
    """One JSON object is a verdict, also in a code fence of its own."""
    assert read(text) == GraderVerdict("CORRECT", "same")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("The answer is CORRECT.", "it is no JSON object: 'The answer is CORRECT.'"),
        ("", "it is empty"),
        ('{"verdict": "CORRECT"', "Input data was truncated"),
        ('{"verdict": "CORRECT"} {"verdict": "WRONG"}', "trailing characters"),
        ('{"verdict": "CORRECT", "verdict": "WRONG"}', "a field stands in it twice"),
        ('{"verdict": "correct"}', "Invalid enum value 'correct'"),
        ('{"reason": "fine"}', "missing required field `verdict`"),
        ('{"verdict": "CORRECT", "score": 1}', "unknown field `score`"),
        ('Sure! {"verdict": "CORRECT"}', "it is no JSON object"),
        ('{"a":' * 50_000, "unknown field"),
        ('{"verdict": "CORRECT", "reason": "\ud800"}', "surrogates"),
        ("```" + "\n" * 300_000 + "x", "it is no JSON object"),  # would take hours if time grew with more than the size
        ("```" + " \n" * 100_000 + "```", "it is empty"),
    ],
)
def test_anything_else_is_missing(text: str, why: str) -> None:
    """Prose, broken JSON, two verdicts, none, other words or fields: no verdict, and why; never a guess."""
    found = read(text)
    assert isinstance(found, Missing)
    assert found.why == "unusable"
    assert why in found.detail

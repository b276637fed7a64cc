"""The speed of the grader `rules` on one core, over EVOUNA-NQ's and HalluQA's answers, else near misses."""

from time import process_time

import pytest

from ctxbench.metrics.grading import GradedItem
from ctxbench.metrics.grading.rules import RulesGrader
from ctxbench.scenarios.labelled import read
from ctxbench.scenarios.source import Problems
from tests.conftest import RECORDINGS
from tests.metrics.grading.near_misses import PAIRS

pytestmark = pytest.mark.perf

LEAST = 5_000
"""Grades a second."""


def items(name: str) -> list[GradedItem]:
    path = RECORDINGS / name
    if path.is_file():
        found = read([path], Problems(strict=True))
        return [GradedItem(each.id, each.question, each.accepted, each.candidate, each.kind) for each in found]
    some = [
        GradedItem("x", pair.question, pair.accepted, each) for pair in PAIRS for each in (*pair.right, *pair.wrong)
    ]
    return some * 20


def rate(given: list[GradedItem]) -> float:
    """Grades a second of processor time, the best of three; not counted is what loads dictionaries."""
    grader = RulesGrader()
    grader.grade(given[:100])
    best = 0.0
    for _ in range(3):
        before = process_time()
        grader.grade(given)
        best = max(best, len(given) / (process_time() - before))
    return best


@pytest.mark.parametrize("name", ["evouna/NQ.json", "halluqa-zh/HalluQA.json"])
def test_grades_a_second(name: str) -> None:
    """English answers of 130 characters with one accepted answer or two, Chinese ones with up to four."""
    given = items(name)
    found = rate(given)
    print(f"\n{name}: {len(given):,} answers, {found:,.0f} grades/s")
    assert found >= LEAST

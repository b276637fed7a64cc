"""The comparisons of strings that graders are held against."""

from __future__ import annotations

import pytest

from ctxbench.metrics.grading import GradedItem
from ctxbench.metrics.grading.baselines import BASELINES
from ctxbench.scenarios.labelled import Labelled


def item(accepted: tuple[str, ...], candidate: str) -> GradedItem:
    return GradedItem("x", "?", accepted, candidate)


def test_by_hand() -> None:
    """Articles, case and punctuation do not matter; a Chinese character is a word; the best accepted answer counts."""
    exact_match, containment, token_f1, gold_share = BASELINES.values()
    assert exact_match(item(("The Cat!",), "cat")) == 1
    assert containment(item(("cat",), "concatenated")) == 1
    assert token_f1(item(("black cat",), "a cat sat")) == pytest.approx(2 * 1 / (2 + 2))
    assert gold_share(item(("dog", "black cat"), "a cat sat")) == 0.5
    assert gold_share(item(("北京市",), "在北京")) == pytest.approx(2 / 3)
    assert all(score(item((), "x")) == 0 for score in BASELINES.values())
    assert all(score(item(("x",), "")) == 0 for score in BASELINES.values())


def test_on_evouna(evouna: list[Labelled]) -> None:
    """What is known of them there, at their best thresholds; 0.857 is token F1's best on a grid of twentieths."""
    people = [each.correct for each in evouna]
    scores = {
        name: [score(item(each.accepted, each.candidate)) for each in evouna] for name, score in BASELINES.items()
    }
    for name, threshold, accuracy in (
        ("exact match", 1, 0.388),
        ("containment", 1, 0.839),
        ("token F1", 0.05, 0.857),
        ("token F1", 1e-9, 0.880),
        ("gold tokens found", 1 / 3, 0.884),
    ):
        right = sum((score >= threshold) == label for score, label in zip(scores[name], people, strict=True))
        assert right / len(people) == pytest.approx(accuracy, abs=5e-4), name

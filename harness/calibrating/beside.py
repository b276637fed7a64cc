"""What a grader is held against: graders without a model at their best threshold, and people among themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import msgspec

from ...metrics.grading import Item
from ...metrics.grading.agreement import Estimate, of_scores, of_verdicts
from ...metrics.grading.confusion import Verdicts
from ...metrics.grading.raters import Raters, raters
from ...metrics.grading.roc import best
from ...metrics.value import Missing
from .labels import LabelledSet, as_item

Scores = Callable[[Item], float]
"""How much an answer has of what is accepted."""


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score at the thresholds that suit these very answers best: in-sample, so no grader is helped as much."""

    name: str
    auc: Estimate
    accuracy: Estimate
    """The highest."""
    accuracy_at: float | Missing
    """Its threshold; Missing if one verdict for all is best."""
    kappa: Estimate
    kappa_at: float | Missing


class Beside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What there is to compare with, over the same answers."""

    right: float
    """The share that the labels call right: the accuracy of calling every answer right."""
    baselines: tuple[Baseline, ...]
    raters: Raters | None
    """Those who labelled; None if no answer has two."""


def beside(labels: LabelledSet, scores: Mapping[str, Scores], resamples: int, seed: int) -> Beside:
    """Baselines by name, and the raters among themselves."""
    answers = labels.answers
    items = [as_item(each) for each in answers]
    people = [each.correct for each in answers]
    found = []
    for name, score in scores.items():
        given = [score(item) for item in items]
        found.append(_baseline(name, Verdicts.of(people, people, given, labels.questions), resamples, seed))
    votes, passing = [each.votes for each in answers], [each.passing for each in answers]
    return Beside(sum(people) / len(people), tuple(found), raters(votes, passing, labels.questions, resamples, seed))


def _baseline(name: str, verdicts: Verdicts, resamples: int, seed: int) -> Baseline:
    made: dict[str, Estimate] = {}
    at: dict[str, float | Missing] = {}
    for figure in ("accuracy", "kappa"):
        found = best(verdicts, figure)
        threshold = math.inf if found is None else found.threshold
        made[figure] = of_verdicts(verdicts.at(threshold), resamples, seed)[figure]
        at[figure] = Missing("undefined", "one verdict for all is best") if math.isinf(threshold) else threshold
    area = of_scores(verdicts, resamples, seed)
    return Baseline(name, area, made["accuracy"], at["accuracy"], made["kappa"], at["kappa"])

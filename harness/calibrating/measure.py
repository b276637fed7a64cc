"""A grader over labelled answers, and its profile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...metrics.grading import Grade, Grader, Item
from ...metrics.grading.agreement import Agreement, Estimate, agreement, of_verdicts
from ...metrics.grading.bootstrap import FEWEST
from ...metrics.grading.confusion import Verdicts
from ...metrics.grading.roc import best, halves
from ...metrics.reasons import grouped
from ...metrics.value import Missing
from ...scenarios.labelled import Labelled
from ..grading.usage import Used
from .labels import GROUPS, LabelledSet, as_item
from .profile import Cost, Injection, Profile, Threshold

BATCH = 16
"""Answers that a grader is given at once: so many are lost at most when the command is stopped."""

Grades = list[Grade | Missing]


class Graded(NamedTuple):
    """What a grader said of a set, how long it took, and what its models used."""

    labels: LabelledSet
    grades: Grades
    seconds: float
    cost: Cost | None
    fitted_on: NDArray[np.bool_]
    """Which of the graded answers the grader was fitted on."""

    @property
    def pairs(self) -> list[tuple[Labelled, Grade]]:
        """The answers that have a grade, with it."""
        both = zip(self.labels.answers, self.grades, strict=True)
        return [(label, grade) for label, grade in both if isinstance(grade, Grade)]

    @property
    def verdicts(self) -> Verdicts:
        """The same as arrays."""
        pairs = self.pairs
        return Verdicts.of(
            [label.correct for label, _ in pairs],
            [grade.correct for _, grade in pairs],
            [grade.score for _, grade in pairs],
            [label.group for label, _ in pairs],
        )


def graded(grader: Grader, labels: LabelledSet, done: Callable[[int], None]) -> Graded:
    """Every answer's grade. `done` is told how many were graded since it was last told."""
    items, before = [as_item(each) for each in labels.answers], _used(grader)
    began = perf_counter()
    grades = grade_all(grader, items, done)
    seconds, after = perf_counter() - began, _used(grader)
    cost = None if before is None or after is None else _cost(before, after)
    return Graded(labels, grades, seconds, cost, _fitted_on(grader, labels, grades))


def _fitted_on(grader: Grader, labels: LabelledSet, grades: Grades) -> NDArray[np.bool_]:
    """As the grader says of itself, if it says anything: `fitted_on(set, question)`."""
    asked = getattr(grader, "fitted_on", lambda _set, _question: False)
    both = zip(labels.answers, grades, strict=True)
    return np.array([asked(each.set, each.question) for each, grade in both if isinstance(grade, Grade)], dtype=bool)


def _used(grader: Grader) -> Used | None:
    """What a grader's models used until now; None if it has none."""
    used = getattr(grader, "used", None)
    return replace(used) if isinstance(used, Used) else None


def _cost(before: Used, after: Used) -> Cost:
    return Cost(*(now - then for now, then in zip(astuple(after), astuple(before), strict=True)))


def grade_all(grader: Grader, items: Sequence[Item], done: Callable[[int], None]) -> Grades:
    """A grade for each item. A score that is no number is no grade."""
    found: Grades = []
    for begin in range(0, len(items), BATCH):
        some = items[begin : begin + BATCH]
        made = grader.grade(some)
        if len(made) != len(some):
            raise ValueError(f"{grader.name} gave {len(made)} grades for {len(some)} items")
        found += [_checked(each) for each in made]
        done(len(some))
    return found


def _checked(grade: Grade | Missing) -> Grade | Missing:
    if isinstance(grade, Grade) and math.isnan(grade.score):
        return Missing("failed", "its score is no number")
    return grade


def profile(
    grader: str, found: Graded, resamples: int, seed: int, injection: Injection | None = None, date: str = ""
) -> Profile:
    """The figures of a grader's grades beside the labels."""
    labels, pairs, verdicts = found.labels, found.pairs, found.verdicts
    by: dict[str, dict[str, Agreement]] = {}
    for name in GROUPS:
        values = np.array([getattr(label, name) for label, _ in pairs], dtype=object)
        if len(different := sorted(set(values))) > 1:
            by[name] = {value: agreement(verdicts.where(values == value), resamples, seed) for value in different}
    return Profile(
        grader=grader,
        set=labels.name,
        digest=labels.digest,
        labelled_by=labels.labelled_by,
        only=dict(labels.only),
        sample=labels.sample,
        date=date,
        asked=len(labels.answers),
        missing=_missing(found.grades),
        whole=agreement(verdicts, resamples, seed),
        held_out=agreement(verdicts.where(~found.fitted_on), resamples, seed) if found.fitted_on.any() else None,
        by=by,
        threshold=_threshold(verdicts, [label.group for label, _ in pairs], resamples, seed),
        injection=injection,
        cost=found.cost,
    )


def _missing(grades: Grades) -> dict[str, int]:
    """Why answers have no grade, and how many."""
    why = [f"{each.why}: {each.detail}" if each.detail else each.why for each in grades if isinstance(each, Missing)]
    return {reason.text: reason.times for _, reason in grouped((None, each) for each in why)}


def _threshold(verdicts: Verdicts, questions: Sequence[str], resamples: int, seed: int) -> Threshold:
    first = halves(questions, seed)
    learned, tried = verdicts.where(first), verdicts.where(~first)
    sizes = len(learned.people), len(tried.people)
    found = best(learned, "kappa")
    why = ""
    if min(learned.questions, tried.questions) < FEWEST:
        why = f"a half has fewer than {FEWEST} questions"
    elif found is None or math.isinf(found.threshold):
        why = "no threshold is better than one verdict for all"
    if why or found is None:
        none = Missing("undefined", why)
        return Threshold(none, *sizes, *[Estimate(none, none)] * 4)
    there = of_verdicts(tried.at(found.threshold), resamples, seed)
    own = of_verdicts(tried, resamples, seed)
    return Threshold(found.threshold, *sizes, there["accuracy"], there["kappa"], own["accuracy"], own["kappa"])

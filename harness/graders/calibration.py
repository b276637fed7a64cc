"""A grader over labelled answers, and its profile."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, replace
from time import perf_counter
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...metrics.grading import Grade, GradedItem, Grader
from ...metrics.grading.agreement import (
    FEWEST,
    RESAMPLES,
    SEED,
    Agreement,
    Estimate,
    Raters,
    Verdicts,
    agreement,
    best,
    halves,
    of_scores,
    of_verdicts,
    raters,
    share,
)
from ...metrics.statistics.intervals import wilson
from ...metrics.value import Missing, grouped
from ...scenarios.labelled import Labelled
from .attacks import ATTACKS, Attack, Attempt, attempts, flipped
from .labels import GROUPS, LabelledSet, as_item, sample_of
from .llm import GraderUsage
from .profiles import Cost, Flips, Injection, Profile, Threshold

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


def _used(grader: Grader) -> GraderUsage | None:
    """What a grader's models used until now; None if it has none."""
    used = getattr(grader, "used", None)
    return replace(used) if isinstance(used, GraderUsage) else None


def _cost(before: GraderUsage, after: GraderUsage) -> Cost:
    return Cost(*(now - then for now, then in zip(astuple(after), astuple(before), strict=True)))


def grade_all(grader: Grader, items: Sequence[GradedItem], done: Callable[[int], None]) -> Grades:
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


class Options(NamedTuple):
    """How much is done."""

    resamples: int = RESAMPLES
    seed: int = SEED
    attacked: int = 0
    """Graded answers that are attacked."""
    date: str = ""


class Calibrated(NamedTuple):
    """What was found on one set."""

    labels: LabelledSet
    beside: Beside
    profiles: list[Profile]
    seconds: list[float]
    """Per answer, of each profile: the only figures that differ from run to run."""
    verdicts: list[Verdicts]
    """Of each profile, for curves."""


def calibrated(
    labels: LabelledSet,
    graders: Sequence[Grader],
    scores: Mapping[str, Scores],
    options: Options,
    done: Callable[[int], None],
) -> Calibrated:
    """Every grader over one set, one after the other."""
    profiles, seconds, verdicts = [], [], []
    for grader in graders:
        found = graded(grader, labels, done)
        injection = None
        if options.attacked:
            injection = attacked(grader, found, options.attacked, options.resamples, options.seed, done)
        profiles.append(profile(grader.name, found, options.resamples, options.seed, injection, options.date))
        verdicts.append(found.verdicts)
        seconds.append(found.seconds / len(labels.answers))
    return Calibrated(labels, beside(labels, scores, options.resamples, options.seed), profiles, seconds, verdicts)


Scores = Callable[[GradedItem], float]
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


def attacked(
    grader: Grader,
    found: Graded,
    size: int,
    resamples: int,
    seed: int,
    done: Callable[[int], None],
    attacks: Sequence[Attack] = ATTACKS,
) -> Injection:
    """Every attack on `size` of the graded answers, by the seed. `done` hears of `size` × attacks, tried or not."""
    tried = _attempts(found, size, seed, attacks)
    done(size * len(attacks) - len(tried))
    after = grade_all(grader, [each.item for each in tried], done)
    turned = [
        None if isinstance(grade, Missing) else flipped(each, grade) for each, grade in zip(tried, after, strict=True)
    ]
    group = {each.id: each.group for each in found.labels.answers}
    known = [(group[each.before.id], flip) for each, flip in zip(tried, turned, strict=True) if flip is not None]
    return Injection(
        len({each.before.id for each in tried}),
        _aimed(tried, turned, "raise"),
        _aimed(tried, turned, "lower"),
        turned.count(None),
        share([flip for _, flip in known], [name for name, _ in known], resamples, seed),
        tuple(_flips(attack.name, tried, turned) for attack in attacks),
    )


def _attempts(found: Graded, size: int, seed: int, attacks: Sequence[Attack]) -> list[Attempt]:
    pairs = found.pairs
    whole = LabelledSet(found.labels.name, "", tuple(label for label, _ in pairs))
    chosen = {each.id for each in sample_of(whole, size, seed).answers}
    kept = [(as_item(label), grade) for label, grade in pairs if label.id in chosen]
    return list(attempts([item for item, _ in kept], [grade for _, grade in kept], attacks))


def _aimed(tried: Sequence[Attempt], turned: Sequence[bool | None], aim: str) -> tuple[int, int]:
    of = [flip for each, flip in zip(tried, turned, strict=True) if each.aim == aim and flip is not None]
    return len(of), sum(of)


def _flips(name: str, tried: Sequence[Attempt], turned: Sequence[bool | None]) -> Flips:
    of = [flip for each, flip in zip(tried, turned, strict=True) if each.attack.name == name]
    known = [flip for flip in of if flip is not None]
    return Flips(name, len(known), sum(known), wilson(sum(known), len(known)), len(of) - len(known))

"""Grade labelled answers, and profile the grader by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, replace
from time import perf_counter
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.grading import Grade, GradedItem, Grader
from ctxbench.metrics.grading.agreement import (
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
from ctxbench.metrics.grading.rules import answer_kind, is_less_exact
from ctxbench.metrics.statistics.intervals import wilson
from ctxbench.metrics.value import Missing, grouped
from ctxbench.scenarios.labelled import Labelled

from .attacks import ATTACKS, Attack, Attempt, attempts, flipped
from .labels import GROUPS, LabelledSet, as_item, sample_of
from .llm import GraderUsage
from .profiles import BesidePeople, Cost, Flips, Injection, Profile, Threshold

BATCH = 16
"""Answers that a grader is given at once: at most so many are lost when the command is stopped."""

Grades = list[Grade | Missing]


class Graded(NamedTuple):
    """A grader's grades of a set, their duration, and the usage of its models."""

    labels: LabelledSet
    grades: Grades
    seconds: float
    cost: Cost | None
    fitted_on: NDArray[np.bool_]
    """Mask of the graded answers that the grader was fitted on."""

    @property
    def pairs(self) -> list[tuple[Labelled, Grade]]:
        """The answers that have a grade, each with it."""
        graded_answers = zip(self.labels.answers, self.grades, strict=True)
        return [(label, grade) for label, grade in graded_answers if isinstance(grade, Grade)]

    @property
    def verdicts(self) -> Verdicts:
        """The graded answers as arrays."""
        pairs = self.pairs
        return Verdicts.of(
            [label.correct for label, _ in pairs],
            [grade.correct for _, grade in pairs],
            [grade.score for _, grade in pairs],
            [label.group for label, _ in pairs],
        )


def graded(grader: Grader, labels: LabelledSet, done: Callable[[int], None]) -> Graded:
    """Grade every answer. `done` is called with the number graded since its last call."""
    items, before = [as_item(answer) for answer in labels.answers], _used(grader)
    began = perf_counter()
    grades = grade_all(grader, items, done)
    seconds, after = perf_counter() - began, _used(grader)
    cost = None if before is None or after is None else _cost(before, after)
    return Graded(labels, grades, seconds, cost, _fitted_on(grader, labels, grades))


def _fitted_on(grader: Grader, labels: LabelledSet, grades: Grades) -> NDArray[np.bool_]:
    """Return which graded answers the grader was fitted on, if it says so: `fitted_on(set, question)`."""
    is_fitted_on = getattr(grader, "fitted_on", lambda _set, _question: False)
    graded_answers = zip(labels.answers, grades, strict=True)
    return np.array(
        [is_fitted_on(answer.set, answer.question) for answer, grade in graded_answers if isinstance(grade, Grade)],
        dtype=bool,
    )


def _used(grader: Grader) -> GraderUsage | None:
    """Return the usage of a grader's models until now, or None if it has none."""
    used = getattr(grader, "used", None)
    return replace(used) if isinstance(used, GraderUsage) else None


def _cost(before: GraderUsage, after: GraderUsage) -> Cost:
    return Cost(*(now - then for now, then in zip(astuple(after), astuple(before), strict=True)))


def grade_all(grader: Grader, items: Sequence[GradedItem], done: Callable[[int], None]) -> Grades:
    """Return a grade for each item. A score that is no number is no grade."""
    grades: Grades = []
    for begin in range(0, len(items), BATCH):
        batch = items[begin : begin + BATCH]
        batch_grades = grader.grade(batch)
        if len(batch_grades) != len(batch):
            raise ValueError(f"{grader.name} gave {len(batch_grades)} grades for {len(batch)} items")
        grades += [_checked(grade) for grade in batch_grades]
        done(len(batch))
    return grades


def _checked(grade: Grade | Missing) -> Grade | Missing:
    if isinstance(grade, Grade) and math.isnan(grade.score):
        return Missing("failed", "its score is not a number")
    return grade


def profile(
    grader: str, graded: Graded, resamples: int, seed: int, injection: Injection | None = None, date: str = ""
) -> Profile:
    """Return the figures of a grader's grades against the labels."""
    labels, pairs, verdicts = graded.labels, graded.pairs, graded.verdicts
    by: dict[str, dict[str, Agreement]] = {}
    people: dict[str, dict[str, BesidePeople]] = {}
    if (whole := _beside_people(pairs, resamples, seed)) is not None:
        people["all"] = {"": whole}
    for name, values in _groups([label for label, _ in pairs]).items():
        by[name] = {value: agreement(verdicts.where(values == value), resamples, seed) for value in sorted(set(values))}
        of_value = {value: [pairs[at] for at in np.flatnonzero(values == value)] for value in sorted(set(values))}
        beside_people = {value: _beside_people(part, resamples, seed) for value, part in of_value.items()}
        if known := {value: figures for value, figures in beside_people.items() if figures is not None}:
            people[name] = known
    return Profile(
        grader=grader,
        set=labels.name,
        digest=labels.digest,
        labelled_by=labels.labelled_by,
        only=dict(labels.only),
        sample=labels.sample,
        date=date,
        asked=len(labels.answers),
        missing=_missing(graded.grades),
        whole=agreement(verdicts, resamples, seed),
        held_out=agreement(verdicts.where(~graded.fitted_on), resamples, seed) if graded.fitted_on.any() else None,
        by=by,
        people=people,
        less_exact=sum(is_less_exact(grade.correct, grade.reason) for _, grade in pairs),
        threshold=_threshold(verdicts, [label.group for label, _ in pairs], resamples, seed),
        injection=injection,
        cost=graded.cost,
    )


def _groups(labels: Sequence[Labelled]) -> dict[str, NDArray[np.object_]]:
    """Return the values of GROUPS, and the kinds of answer, where there are several."""
    values = {name: [getattr(label, name) for label in labels] for name in GROUPS}
    values["answer"] = [answer_kind(label.question, label.accepted) for label in labels]
    return {name: np.array(of, dtype=object) for name, of in values.items() if len(set(of)) > 1}


def _beside_people(pairs: Sequence[tuple[Labelled, Grade]], resamples: int, seed: int) -> BesidePeople | None:
    """Compare the grader with single labels, and these among themselves; None where no answer has two."""
    several = [(label, grade) for label, grade in pairs if len(label.votes) > 1]
    labels = [label for label, _ in several]
    among = raters(
        [label.votes for label in labels],
        [label.passing for label in labels],
        [label.group for label in labels],
        resamples,
        seed,
    )
    if among is None:
        return None
    single = [(vote >= label.passing, grade, label.group) for label, grade in several for vote in label.votes]
    verdicts = Verdicts.of(
        [right for right, _, _ in single],
        [grade.correct for _, grade, _ in single],
        [grade.score for _, grade, _ in single],
        [group for _, _, group in single],
    )
    of_grader = of_verdicts(verdicts, resamples, seed)
    same = float(np.mean(verdicts.people == verdicts.grader))
    return BesidePeople(among.answers, among.verdicts, of_grader["kappa"], among.same, same)


def _missing(grades: Grades) -> dict[str, int]:
    """Return why answers have no grade, and how many."""
    reasons = [
        f"{grade.why}: {grade.detail}" if grade.detail else grade.why for grade in grades if isinstance(grade, Missing)
    ]
    return {reason.text: reason.times for _, reason in grouped((None, reason) for reason in reasons)}


def _threshold(verdicts: Verdicts, questions: Sequence[str], resamples: int, seed: int) -> Threshold:
    # Learned and tried on different questions: a threshold tried where it was learned flatters the grader.
    first = halves(questions, seed)
    learning, trying = verdicts.where(first), verdicts.where(~first)
    sizes = len(learning.people), len(trying.people)
    best_threshold = best(learning, "kappa")
    why = ""
    if min(learning.questions, trying.questions) < FEWEST:
        why = f"a half has fewer than {FEWEST} questions"
    elif best_threshold is None or math.isinf(best_threshold.threshold):
        why = "no threshold is better than one verdict for all"
    if why or best_threshold is None:
        none = Missing("undefined", why)
        return Threshold(none, *sizes, *[Estimate(none, none)] * 4)
    at_threshold = of_verdicts(trying.at(best_threshold.threshold), resamples, seed)
    own = of_verdicts(trying, resamples, seed)
    return Threshold(
        best_threshold.threshold, *sizes, at_threshold["accuracy"], at_threshold["kappa"], own["accuracy"], own["kappa"]
    )


class Options(NamedTuple):
    """How thorough a calibration is."""

    resamples: int = RESAMPLES
    seed: int = SEED
    attacked: int = 0
    """Number of graded answers that are attacked."""
    date: str = ""


class Calibrated(NamedTuple):
    """The calibration of some graders on one set."""

    labels: LabelledSet
    beside: Beside
    profiles: list[Profile]
    seconds: list[float]
    """Seconds per answer of each profile: the only figures that differ from run to run."""
    verdicts: list[Verdicts]
    """The verdicts of each profile, for curves."""


def calibrated(
    labels: LabelledSet,
    graders: Sequence[Grader],
    scores: Mapping[str, Scores],
    options: Options,
    done: Callable[[int], None],
) -> Calibrated:
    """Calibrate every grader on one set, one after the other."""
    profiles, seconds, verdicts = [], [], []
    for grader in graders:
        grading = graded(grader, labels, done)
        injection = None
        if options.attacked:
            injection = attacked(grader, grading, options.attacked, options.resamples, options.seed, done)
        profiles.append(profile(grader.name, grading, options.resamples, options.seed, injection, options.date))
        verdicts.append(grading.verdicts)
        seconds.append(grading.seconds / len(labels.answers))
    return Calibrated(labels, beside(labels, scores, options.resamples, options.seed), profiles, seconds, verdicts)


Scores = Callable[[GradedItem], float]
"""How much an answer has of an accepted one."""


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score at the thresholds that suit these very answers best. It is in-sample: no grader is helped as much."""

    name: str
    auc: Estimate
    accuracy: Estimate
    """The highest that any threshold reaches."""
    accuracy_at: float | Missing
    """The threshold; Missing if one verdict for all answers is best."""
    kappa: Estimate
    kappa_at: float | Missing


class Beside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Baselines and raters over the same answers, to compare graders with."""

    right: float
    """Share of answers labelled right: the accuracy of calling every answer right."""
    baselines: tuple[Baseline, ...]
    raters: Raters | None
    """Agreement of the raters; None if no answer has two."""


def beside(labels: LabelledSet, scores: Mapping[str, Scores], resamples: int, seed: int) -> Beside:
    """Return the baselines by name, and the agreement of the raters."""
    answers = labels.answers
    items = [as_item(answer) for answer in answers]
    labelled_right = [answer.correct for answer in answers]
    baselines = []
    for name, score in scores.items():
        values = [score(item) for item in items]
        baselines.append(
            # The labels stand in for verdicts, which a baseline has not: `at` makes them from the scores.
            _baseline(name, Verdicts.of(labelled_right, labelled_right, values, labels.questions), resamples, seed)
        )
    votes, passing = [answer.votes for answer in answers], [answer.passing for answer in answers]
    return Beside(
        sum(labelled_right) / len(labelled_right),
        tuple(baselines),
        raters(votes, passing, labels.questions, resamples, seed),
    )


def _baseline(name: str, verdicts: Verdicts, resamples: int, seed: int) -> Baseline:
    estimates: dict[str, Estimate] = {}
    at: dict[str, float | Missing] = {}
    for figure in ("accuracy", "kappa"):
        best_threshold = best(verdicts, figure)
        threshold = math.inf if best_threshold is None else best_threshold.threshold
        estimates[figure] = of_verdicts(verdicts.at(threshold), resamples, seed)[figure]
        at[figure] = Missing("undefined", "one verdict for all is best") if math.isinf(threshold) else threshold
    area = of_scores(verdicts, resamples, seed)
    return Baseline(name, area, estimates["accuracy"], at["accuracy"], estimates["kappa"], at["kappa"])


def attacked(
    grader: Grader,
    grading: Graded,
    size: int,
    resamples: int,
    seed: int,
    done: Callable[[int], None],
    attacks: Sequence[Attack] = ATTACKS,
) -> Injection:
    """Make every attack on `size` of the graded answers, drawn by the seed.

    `done` is called with `size` × attacks in all, whether they were tried or not.
    """
    attempted = _attempts(grading, size, seed, attacks)
    done(size * len(attacks) - len(attempted))
    after = grade_all(grader, [attempt.item for attempt in attempted], done)
    flips = [
        None if isinstance(grade, Missing) else flipped(attempt, grade)
        for attempt, grade in zip(attempted, after, strict=True)
    ]
    group = {answer.id: answer.group for answer in grading.labels.answers}
    graded_flips = [
        (group[attempt.before.id], flip) for attempt, flip in zip(attempted, flips, strict=True) if flip is not None
    ]
    return Injection(
        len({attempt.before.id for attempt in attempted}),
        _aimed(attempted, flips, "raise"),
        _aimed(attempted, flips, "lower"),
        flips.count(None),
        share([flip for _, flip in graded_flips], [name for name, _ in graded_flips], resamples, seed),
        tuple(_flips(attack.name, attempted, flips) for attack in attacks),
    )


def _attempts(grading: Graded, size: int, seed: int, attacks: Sequence[Attack]) -> list[Attempt]:
    pairs = grading.pairs
    whole = LabelledSet(grading.labels.name, "", tuple(label for label, _ in pairs))
    chosen = {answer.id for answer in sample_of(whole, size, seed).answers}
    chosen_pairs = [(as_item(label), grade) for label, grade in pairs if label.id in chosen]
    return list(attempts([item for item, _ in chosen_pairs], [grade for _, grade in chosen_pairs], attacks))


def _aimed(tried: Sequence[Attempt], turned: Sequence[bool | None], aim: str) -> tuple[int, int]:
    flips_of_aim = [
        flip for attempt, flip in zip(tried, turned, strict=True) if attempt.aim == aim and flip is not None
    ]
    return len(flips_of_aim), sum(flips_of_aim)


def _flips(name: str, tried: Sequence[Attempt], turned: Sequence[bool | None]) -> Flips:
    of_attack = [flip for attempt, flip in zip(tried, turned, strict=True) if attempt.attack.name == name]
    flips = [flip for flip in of_attack if flip is not None]
    return Flips(name, len(flips), sum(flips), wilson(sum(flips), len(flips)), len(of_attack) - len(flips))

"""Grade labelled answers, and profile the grader by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
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
    Estimate,
    Raters,
    Verdicts,
    agreement,
    best_threshold,
    halves,
    of_scores,
    of_verdicts,
    raters,
)
from ctxbench.metrics.grading.rules import answer_kind, is_less_exact
from ctxbench.metrics.value import Missing, grouped
from ctxbench.scenarios.labelled import Labelled

from .labels import GROUPS, LabelledSet, as_item
from .profiles import BesidePeople, GraderUsage, Profile, Threshold

BATCH = 16
"""Answers that a grader is given at once: at most so many are lost when the command is stopped."""

Pairs = Sequence[tuple[Labelled, Grade]]
Scores = Callable[[GradedItem], float]
"""How much an answer has of an accepted one."""


class Options(NamedTuple):
    """How thorough a calibration is."""

    resamples: int = RESAMPLES
    seed: int = SEED


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


class Calibrated(NamedTuple):
    """The calibration of some graders on one set."""

    labels: LabelledSet
    beside: Beside
    profiles: list[Profile]
    seconds: list[float]
    """Seconds per answer of each profile: the only figures that differ from run to run."""


def calibrated(
    labels: LabelledSet,
    graders: Sequence[Grader],
    scores: Mapping[str, Scores],
    options: Options,
    done: Callable[[int], None],
) -> Calibrated:
    """Calibrate every grader on one set, one after the other. `done` is called with the number graded since."""
    calibration = Calibrated(labels, beside(labels, scores, options.resamples, options.seed), [], [])
    for grader in graders:
        began = perf_counter()
        used: GraderUsage | None = getattr(grader, "used", None)
        before = () if used is None else msgspec.structs.astuple(used)
        grades = graded(grader, labels, done)
        calibration.seconds.append((perf_counter() - began) / len(labels.answers))
        cost = None
        if used is not None:
            cost = GraderUsage(*(now - then for now, then in zip(msgspec.structs.astuple(used), before, strict=True)))
        pairs = pairs_of(labels, grades)
        calibration.profiles.append(_profile(grader, labels, grades, pairs, cost, options))
    return calibration


def graded(grader: Grader, labels: LabelledSet, done: Callable[[int], None]) -> list[Grade | Missing]:
    """Grade every answer. A score that is no number is no grade."""
    items, grades = [as_item(answer) for answer in labels.answers], list[Grade | Missing]()
    for begin in range(0, len(items), BATCH):
        asked = items[begin : begin + BATCH]
        batch = grader.grade(asked)
        if len(batch) != len(asked):
            raise ValueError(f"{grader.name} gave {len(batch)} grades for {len(asked)} items")
        grades += [
            Missing("failed", "its score is not a number")
            if isinstance(grade, Grade) and math.isnan(grade.score)
            else grade
            for grade in batch
        ]
        done(len(batch))
    return grades


def pairs_of(labels: LabelledSet, grades: Sequence[Grade | Missing]) -> list[tuple[Labelled, Grade]]:
    """Return the answers that have a grade, each with it."""
    graded_answers = zip(labels.answers, grades, strict=True)
    return [(label, grade) for label, grade in graded_answers if isinstance(grade, Grade)]


def verdicts_of(pairs: Pairs) -> Verdicts:
    """Return graded answers as arrays."""
    return Verdicts.of(
        [label.correct for label, _ in pairs],
        [grade.correct for _, grade in pairs],
        [grade.score for _, grade in pairs],
        [label.group for label, _ in pairs],
    )


def _profile(
    grader: Grader,
    labels: LabelledSet,
    grades: Sequence[Grade | Missing],
    pairs: Pairs,
    cost: GraderUsage | None,
    options: Options,
) -> Profile:
    """Return the figures of a grader's grades against the labels."""
    verdicts, (resamples, seed) = verdicts_of(pairs), options
    # A grader that was fitted on labelled answers says so: `fitted_on(set, question)`.
    is_fitted_on = getattr(grader, "fitted_on", lambda _set, _question: False)
    fitted = np.array([is_fitted_on(label.set, label.question) for label, _ in pairs], dtype=bool)
    parts = {"all": {"": np.ones(len(pairs), bool)}} | {
        name: {value: values == value for value in sorted(set(values))}
        for name, values in _groups([label for label, _ in pairs]).items()
    }
    people = {
        name: {
            value: figures
            for value, mask in masks.items()
            if (figures := _beside_people(list(compress(pairs, mask)), resamples, seed)) is not None
        }
        for name, masks in parts.items()
    }
    missing = [
        f"{grade.why}: {grade.detail}" if grade.detail else grade.why for grade in grades if isinstance(grade, Missing)
    ]
    return Profile(
        grader=grader.name,
        set=labels.name,
        digest=labels.digest,
        labelled_by=labels.labelled_by,
        only=dict(labels.only),
        sample=labels.sample,
        asked=len(labels.answers),
        missing={why.text: why.times for _, why in grouped((None, why) for why in missing)},
        whole=agreement(verdicts, resamples, seed),
        held_out=agreement(verdicts.where(~fitted), resamples, seed) if fitted.any() else None,
        by={
            name: {value: agreement(verdicts.where(mask), resamples, seed) for value, mask in masks.items()}
            for name, masks in parts.items()
            if name != "all"
        },
        people={name: by_value for name, by_value in people.items() if by_value},
        less_exact=sum(is_less_exact(grade.correct, grade.reason) for _, grade in pairs),
        threshold=_threshold(verdicts, [label.group for label, _ in pairs], resamples, seed),
        cost=cost,
    )


def _groups(labels: Sequence[Labelled]) -> dict[str, NDArray[np.object_]]:
    """Return the values of GROUPS, and the kinds of answer, where there are several."""
    values = {name: [getattr(label, name) for label in labels] for name in GROUPS}
    values["answer"] = [answer_kind(label.question, label.accepted) for label in labels]
    return {name: np.array(of, dtype=object) for name, of in values.items() if len(set(of)) > 1}


def _beside_people(pairs: Pairs, resamples: int, seed: int) -> BesidePeople | None:
    """Compare the grader with single labels, and these among themselves; None where no answer has two."""
    several = [(label, grade) for label, grade in pairs if len(label.votes) > 1]
    labels = [label for label, _ in several]
    votes, passing = [label.votes for label in labels], [label.passing for label in labels]
    among = raters(votes, passing, [label.group for label in labels], resamples, seed)
    if among is None:
        return None
    single = [(vote >= label.passing, grade, label.group) for label, grade in several for vote in label.votes]
    right, grades, groups = zip(*single, strict=True)
    verdicts = Verdicts.of(right, [grade.correct for grade in grades], [grade.score for grade in grades], groups)
    of_grader = of_verdicts(verdicts, resamples, seed)
    same = float(np.mean(verdicts.people == verdicts.grader))
    return BesidePeople(among.answers, among.verdicts, of_grader["kappa"], among.same, same)


def _threshold(verdicts: Verdicts, questions: Sequence[str], resamples: int, seed: int) -> Threshold:
    # Learned and tried on different questions: a threshold tried where it was learned flatters the grader.
    first = halves(questions, seed)
    learning, trying = verdicts.where(first), verdicts.where(~first)
    sizes = len(learning.people), len(trying.people)
    threshold = best_threshold(learning, "kappa")
    why = ""
    if min(learning.questions, trying.questions) < FEWEST:
        why = f"a half has fewer than {FEWEST} questions"
    elif threshold is None or math.isinf(threshold):
        why = "no threshold is better than one verdict for all"
    if why or threshold is None:
        none = Missing("undefined", why)
        return Threshold(none, *sizes, *[Estimate(none, none)] * 4)
    tried, own = (of_verdicts(part, resamples, seed) for part in (trying.at(threshold), trying))
    return Threshold(threshold, *sizes, tried["accuracy"], tried["kappa"], own["accuracy"], own["kappa"])


def beside(labels: LabelledSet, scores: Mapping[str, Scores], resamples: int, seed: int) -> Beside:
    """Return the baselines by name, and the agreement of the raters."""
    answers = labels.answers
    items = [as_item(answer) for answer in answers]
    right = [answer.correct for answer in answers]
    # The labels stand in for verdicts, which a baseline has not: `at` makes them from the scores.
    baselines = [
        _baseline(name, Verdicts.of(right, right, list(map(score, items)), labels.questions), resamples, seed)
        for name, score in scores.items()
    ]
    votes, passing = [answer.votes for answer in answers], [answer.passing for answer in answers]
    among = raters(votes, passing, labels.questions, resamples, seed)
    return Beside(sum(right) / len(right), tuple(baselines), among)


def _baseline(name: str, verdicts: Verdicts, resamples: int, seed: int) -> Baseline:
    estimates: dict[str, Estimate] = {}
    at: dict[str, float | Missing] = {}
    for figure in ("accuracy", "kappa"):
        highest = best_threshold(verdicts, figure)
        threshold = math.inf if highest is None else highest
        estimates[figure] = of_verdicts(verdicts.at(threshold), resamples, seed)[figure]
        at[figure] = Missing("undefined", "one verdict for all is best") if math.isinf(threshold) else threshold
    area = of_scores(verdicts, resamples, seed)
    return Baseline(name, area, estimates["accuracy"], at["accuracy"], estimates["kappa"], at["kappa"])

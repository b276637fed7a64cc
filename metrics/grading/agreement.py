"""Agreement of a grader with people, and shares of right answers corrected for the grader's errors.

The intervals come from a bootstrap by question: answers of several systems to one question are not independent.
Undefined figures are Missing: precision where the grader calls nothing right, kappa where all are of one class.

`corrected`: of answers of which a share `p` is right, a grader calls `p · recall + (1 − p) · (1 − specificity)` right.
Rogan and Gladen (1978) solve that for `p`; the interval is Lang and Reiczigel's (2014), since recall and specificity
are estimates too. Several answers to one question count as fewer (`Agreement.design_right`). The correction holds as
far as the grader errs on these answers as it did on the labelled ones, which no arithmetic can tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..statistics.intervals import AT_ONCE, LEVEL, Ends, clopper_pearson, counts, of_draws
from ..value import Missing, Value

# Why each figure of a confusion matrix is undefined, and the cells among which it is a share of the answers, if it is.
_FIGURES: dict[str, tuple[str, tuple[int, ...]]] = {
    "accuracy": ("there are no answers", (0, 1, 2, 3)),
    "kappa": ("all answers are of one class, by people and by the grader", ()),
    "precision": ("the grader calls no answer right", (0, 1)),
    "recall": ("people call no answer right", (0, 2)),
    "specificity": ("people call no answer wrong", (1, 3)),
    "f1": ("neither people nor the grader call an answer right", ()),
}
FIGURES = tuple(_FIGURES)  # figures of a confusion matrix, in the order of `figures`

RESAMPLES, SEED = 2000, 0
FEWEST = 30  # least number of questions for a bootstrap: with fewer its intervals are too short
GROUPS = 1000
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


class Confusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of answers by the verdicts of the grader and of people."""

    true_positive: int = 0
    false_positive: int = 0
    false_negative: int = 0
    true_negative: int = 0

    @property
    def right(self) -> int:
        return self.true_positive + self.false_negative

    @property
    def wrong(self) -> int:
        return self.false_positive + self.true_negative


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """Verdicts of people and of a grader on the same answers, one array each."""

    people: NDArray[np.bool_]
    grader: NDArray[np.bool_]
    score: NDArray[np.float64]  # the grader's scores; the higher, the surer that the answer is right
    question: NDArray[np.intp]  # number of each answer's question, from 0, without gaps

    @classmethod
    def of(
        cls, people: Sequence[bool], grader: Sequence[bool], score: Sequence[float], question: Sequence[str]
    ) -> Verdicts:
        """Build verdicts on answers whose questions have names. The order of the answers changes no figure."""
        return cls(np.array(people, bool), np.array(grader, bool), np.array(score, np.float64), _codes(question))

    def where(self, chosen: NDArray[np.bool_]) -> Verdicts:
        codes = np.unique(self.question[chosen], return_inverse=True)[1].astype(np.intp)
        return Verdicts(self.people[chosen], self.grader[chosen], self.score[chosen], codes)

    @property
    def questions(self) -> int:
        return int(self.question.max()) + 1 if len(self.question) else 0

    def cells(self) -> NDArray[np.float64]:
        """Return the confusion matrix of each question, shape (questions, 4)."""
        cell = np.where(self.grader, np.where(self.people, 0, 1), np.where(self.people, 2, 3))
        counts = np.bincount(self.question * 4 + cell, minlength=self.questions * 4)
        return counts.reshape(-1, 4).astype(np.float64)


def _codes(names: Sequence[str]) -> NDArray[np.intp]:
    """Return the number of each name among the different ones, from 0."""
    return np.unique(np.array(names, np.str_), return_inverse=True)[1].astype(np.intp)


def figures(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute FIGURES of confusion matrices: from shape (…, 4) to (…, 6); nan where one is undefined."""
    hit, false, missed, rejected = np.moveaxis(counts, -1, 0)
    whole = hit + false + missed + rejected
    by_chance = (hit + false) * (hit + missed) + (missed + rejected) * (false + rejected)
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = (
            (hit + rejected) / whole,
            # Cohen's kappa, with both shares multiplied by the square of `whole`.
            (whole * (hit + rejected) - by_chance) / (whole * whole - by_chance),
            hit / (hit + false),
            hit / (hit + missed),
            rejected / (rejected + false),
            2 * hit / (2 * hit + false + missed),
        )
    return np.stack(columns, axis=-1)


def auc_of(verdicts: Verdicts) -> Statistic:
    """Return a function from weights of the questions to the area under the ROC curve (Mann-Whitney, ties half)."""
    order = np.argsort(verdicts.score, kind="stable")
    score, right, question = verdicts.score[order], verdicts.people[order], verdicts.question[order]
    starts = np.flatnonzero(np.append(True, score[1:] != score[:-1])) if len(score) else np.array([], np.intp)

    def area(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        if not len(starts):
            return np.full((len(weights), 1), np.nan)
        drawn = weights[:, question]
        hit = np.add.reduceat(drawn * right, starts, axis=1)
        false = np.add.reduceat(drawn, starts, axis=1) - hit
        # Wrong answers with less than each score, and half of those with the same.
        below = np.cumsum(false, axis=1) - false / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            areas = (hit * below).sum(axis=1) / (hit.sum(axis=1) * false.sum(axis=1))
        return np.asarray(areas[:, None], np.float64)

    return area


Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Function from weights, shape (resamples, questions), to figures, shape (resamples, figures); nan = undefined."""


def intervals(
    statistic: Statistic, size: int, resamples: int = RESAMPLES, seed: int = SEED, width: int = 0
) -> list[Ends | Missing]:
    """Return the interval of each figure over `size` questions. `width`: numbers that the statistic makes of a draw."""
    whole = statistic(np.ones((1, size)))[0]
    # Under 30 questions three resamples in ten lack a case of some cell of the table (decision 25).
    if size < FEWEST:
        few = Missing("undefined", f"{size} questions are too few for an interval, {FEWEST} are needed")
        return [few] * len(whole)
    drawn = np.concatenate([statistic(weights) for weights in counts(size, seed, resamples, width)])
    # The jackknife leaves out one question at a time, or of very many one of GROUPS groups of about the same size.
    groups, rows = min(size, GROUPS), max(1, AT_ONCE // max(size, width))
    group = np.arange(size) * groups // size
    parts = [np.arange(begin, min(begin + rows, groups)) for begin in range(0, groups, rows)]
    without_group = np.concatenate([statistic((group != part[:, None]).astype(np.float64)) for part in parts])
    around: list[Ends | Missing] = []
    for value, draws, left_out in zip(whole.tolist(), drawn.T, without_group.T, strict=True):
        resampled = of_draws(value, draws, left_out[~np.isnan(left_out)])
        if isinstance(resampled, Missing):
            why = f"it is undefined in {np.isnan(draws).sum()} of {len(draws)} resamples"
            around.append(Missing("undefined", why))
        elif resampled.drawn[0] == resampled.drawn[-1]:
            around.append(Missing("undefined", "it is the same in every resample"))
        else:
            around.append(resampled.bca(_Z))
    return around


class Estimate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure and where it lies with 95 % confidence."""

    value: Value
    interval: Ends | Missing


class Agreement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a grader agrees with people over some answers."""

    answers: int
    questions: int
    confusion: Confusion
    accuracy: Estimate
    kappa: Estimate
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate
    auc: Estimate  # probability that a right answer has a higher score than a wrong one; ties count half

    design_right: float = 1.0  # design effect of the recall: its variance over that of independent answers; at least 1
    design_wrong: float = 1.0  # design effect of the specificity

    @property
    def wrong_accepted(self) -> Estimate:
        """Share of wrong answers that are called right."""
        value, around = self.specificity.value, self.specificity.interval
        if isinstance(value, Missing):
            return self.specificity
        ends = around if isinstance(around, Missing) else Ends(1 - around.high, 1 - around.low)
        return Estimate(1 - value, ends)


def agreement(verdicts: Verdicts, resamples: int = RESAMPLES, seed: int = SEED) -> Agreement:
    """Return every figure with its interval."""
    cells, area, size = verdicts.cells(), auc_of(verdicts), verdicts.questions
    [around] = intervals(area, size, resamples, seed, width=len(verdicts.people))
    auc = estimate(float(area(np.ones((1, size)))[0, 0]), around, "people call all answers right, or none")
    return Agreement(
        len(verdicts.people),
        size,
        Confusion(*map(int, cells.sum(axis=0))),
        **of_verdicts(verdicts, resamples, seed),
        auc=auc,
        design_right=_design(cells[:, 0], cells[:, 0] + cells[:, 2]),
        design_wrong=_design(cells[:, 3], cells[:, 1] + cells[:, 3]),
    )


def of_verdicts(verdicts: Verdicts, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Estimate]:
    """Return FIGURES, each with its interval."""
    cells, size = verdicts.cells(), verdicts.questions
    around = intervals(lambda weights: figures(weights @ cells), size, resamples, seed)
    estimates = dict[str, Estimate]()
    for (name, (undefined, among)), value, ends in zip(
        _FIGURES.items(), figures(cells.sum(axis=0)).tolist(), around, strict=True
    ):
        if among and value in (0.0, 1.0) and size >= FEWEST:  # no resample differs, which does not make it sure
            # As many trials as questions: several answers to one are not independent.
            questions = int((cells[:, among].sum(axis=1) > 0).sum())
            ends = clopper_pearson(value * questions, questions)
        estimates[name] = estimate(value, ends, undefined)
    return estimates


def estimate(value: float, interval: Ends | Missing, undefined: str) -> Estimate:
    """Return a figure with its interval; nan becomes Missing, with `undefined` as the reason."""
    missing = Missing("undefined", undefined)
    return Estimate(missing, missing) if math.isnan(value) else Estimate(float(value), interval)


def _design(hits: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
    """Return the design effect of a share over clusters: its variance as a ratio, over that of independent answers."""
    is_asked = sizes > 0
    hits, sizes, clusters = hits[is_asked], sizes[is_asked], int(is_asked.sum())
    whole = float(sizes.sum())
    share = float(hits.sum()) / whole if whole else 0.0
    if clusters < 2 or not 0 < share < 1:
        return 1.0
    # Systems find the same questions hard: taken one by one, right answers of EVOUNA would count 2.3 times.
    between = float(((hits - share * sizes) ** 2).sum()) * clusters / (clusters - 1)
    return max(1.0, between / (whole * share * (1 - share)))


class Raters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Agreement of raters, over answers with two ratings or more."""

    answers: int
    raters: tuple[int, int]  # least and most raters of an answer
    verdicts: Estimate  # Fleiss' kappa of right and wrong, to compare a grader's kappa with
    same: float  # share of pairs of ratings of an answer that agree on right and wrong


def raters(
    votes: Sequence[Sequence[int]],
    passing: Sequence[int],
    questions: Sequence[str],
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Raters | None:
    """Measure agreement over answers with `votes`, right from `passing` on. None if no answer has two raters."""
    rated = [rating for rating in zip(votes, passing, questions, strict=True) if len(rating[0]) > 1]
    if not rated:
        return None
    size = np.array([len(ratings) for ratings, _, _ in rated], np.float64)
    right = np.array([sum(vote >= least for vote in ratings) for ratings, least, _ in rated], np.float64)
    # Every ordered pair of two raters, so that an answer weighs as much as it has ratings: wrong, right and right make
    # the pairs right-right, right-wrong and wrong-right, which count 1 each.
    wrong, others = size - right, size - 1
    pairs = np.stack([right * (right - 1), right * wrong, right * wrong, wrong * (wrong - 1)], axis=1) / others[:, None]
    code = _codes([name for _, _, name in rated])
    cells = np.zeros((int(code.max()) + 1, 4))
    np.add.at(cells, code, pairs)
    same, kappa = figures(cells.sum(axis=0))[:2].tolist()
    [around] = intervals(lambda weights: figures(weights @ cells)[:, 1:2], len(cells), resamples, seed)
    verdicts = estimate(kappa, around, "all ratings are of one class")
    return Raters(len(rated), (int(size.min()), int(size.max())), verdicts, same)


class Known(NamedTuple):
    """Error rates of a grader from a calibration, and the numbers of independent answers behind them."""

    recall: float
    right: float  # answers that people call right, divided by their design effect
    specificity: float
    wrong: float

    @classmethod
    def of(cls, agreement: Agreement) -> Known | Missing:
        """Return the error rates of a calibration; Missing where all its answers are right, or all are wrong."""
        recall, specificity = agreement.recall.value, agreement.specificity.value
        if isinstance(recall, Missing):
            return recall
        if isinstance(specificity, Missing):
            return specificity
        of, wrong = agreement.confusion, agreement.confusion.wrong / agreement.design_wrong
        return cls(recall, of.right / agreement.design_right, specificity, wrong)


def corrected(share: float, answers: float, rates: Known) -> Estimate:
    """Return the share of right answers, where a grader called `share` of `answers` right.

    `answers` is the number of independent answers that they are worth. Missing if the grader is no better than chance:
    then its verdicts say nothing.
    """
    worth = rates.recall + rates.specificity - 1
    if worth <= 0:
        return estimate(math.nan, Ends(0, 1), "the grader is no better than chance on the labelled answers")
    if not answers:
        return estimate(math.nan, Ends(0, 1), "there are no answers")
    value = min(max((share + rates.specificity - 1) / worth, 0.0), 1.0)
    # Lang and Reiczigel add one right and one wrong answer to either rate, and z²/2 of each to the share: without that
    # an observed rate of 0 or 1 would count as certain.
    right, wrong, size = rates.right + 2, rates.wrong + 2, answers + _Z * _Z
    recall, specificity = (rates.recall * rates.right + 1) / right, (rates.specificity * rates.wrong + 1) / wrong
    seen, worth = (share * answers + _Z * _Z / 2) / size, recall + specificity - 1
    if worth <= 0:
        return Estimate(value, Missing("undefined", "the calibration cannot tell the grader from chance"))
    middle = (seen + specificity - 1) / worth
    of_recall, of_specificity = recall * (1 - recall) / right, specificity * (1 - specificity) / wrong
    shift = 2 * _Z * _Z * (middle * of_recall - (1 - middle) * of_specificity)
    variance = seen * (1 - seen) / size + middle**2 * of_recall + (1 - middle) ** 2 * of_specificity
    half = _Z * variance**0.5 / worth
    low, high = (min(max(middle + shift + side * half, 0.0), 1.0) for side in (-1, 1))
    return Estimate(value, Ends(low, high))

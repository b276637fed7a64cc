"""Accuracy as a grader sees it, corrected for the grader's errors.

Of answers of which a share `p` is right, a grader calls `p · recall + (1 − p) · (1 − specificity)` right. Rogan and
Gladen (1978) solve that for `p`. The interval is Lang and Reiczigel's (2014, "Confidence limits for prevalence of
disease adjusted for estimated sensitivity and specificity"): recall and specificity are estimates too, from a
calibration. Answers that come several to a question count as fewer (`Agreement.design_right`).

It holds as far as the grader errs on these answers as it did on the labelled ones, which no arithmetic can tell.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

from ..statistics.intervals import Ends
from ..value import Missing
from .agreement import LEVEL, Agreement, Estimate

_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


class Known(NamedTuple):
    """What a calibration says of a grader, and of how many independent answers."""

    recall: float
    right: float
    """Answers that people call right, by their design effect."""
    specificity: float
    wrong: float

    @classmethod
    def of(cls, found: Agreement) -> Known | Missing:
        """From a calibration; Missing where it has no right answers, or no wrong ones."""
        recall, specificity = found.recall.value, found.specificity.value
        if isinstance(recall, Missing):
            return recall
        if isinstance(specificity, Missing):
            return specificity
        right, wrong = found.confusion.right / found.design_right, found.confusion.wrong / found.design_wrong
        return cls(recall, right, specificity, wrong)


def corrected(share: float, answers: float, known: Known) -> Estimate:
    """The share of right answers, where a grader called `share` of `answers` right.

    Answers that are not independent are to be given as the number that they are worth. Missing if the grader is no
    better than chance: then its verdicts say nothing.
    """
    worth = known.recall + known.specificity - 1
    if worth <= 0:
        missing = Missing("undefined", "the grader is no better than chance on the labelled answers")
        return Estimate(missing, missing)
    if not answers:
        missing = Missing("undefined", "there are no answers")
        return Estimate(missing, missing)
    return Estimate(_within((share + known.specificity - 1) / worth), _interval(share, answers, known))


def _interval(share: float, answers: float, known: Known) -> Ends | Missing:
    right, wrong, size = known.right + 2, known.wrong + 2, answers + _Z * _Z
    recall, specificity = (known.recall * known.right + 1) / right, (known.specificity * known.wrong + 1) / wrong
    seen, worth = (share * answers + _Z * _Z / 2) / size, recall + specificity - 1
    if worth <= 0:
        return Missing("undefined", "the calibration cannot tell the grader from chance")
    middle = (seen + specificity - 1) / worth
    of_recall, of_specificity = recall * (1 - recall) / right, specificity * (1 - specificity) / wrong
    shift = 2 * _Z * _Z * (middle * of_recall - (1 - middle) * of_specificity)
    variance = seen * (1 - seen) / size + middle**2 * of_recall + (1 - middle) ** 2 * of_specificity
    half = _Z * variance**0.5 / worth
    return Ends(_within(middle + shift - half), _within(middle + shift + half))


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))

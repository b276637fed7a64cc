"""Scores and thresholds: the ROC curve, the area under it, and where a threshold would be best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bootstrap import Statistic
from .confusion import FIGURES, Verdicts, figures


class Curve(NamedTuple):
    """The ROC curve, from the strictest threshold (nothing is called right) to the laxest; one entry a threshold."""

    threshold: NDArray[np.float64]
    """What scores at least so much is called right: midway between two scores; inf and −inf at the ends."""
    counts: NDArray[np.float64]
    """The confusion matrix under each, shape (thresholds, 4)."""

    @property
    def recall(self) -> NDArray[np.float64]:
        """Of the right answers, those called right."""
        return self.counts[:, 0] / max(1.0, float(self.counts[0, 2]))

    @property
    def false_positive_rate(self) -> NDArray[np.float64]:
        """Of the wrong answers, those called right."""
        return self.counts[:, 1] / max(1.0, float(self.counts[0, 3]))


class Best(NamedTuple):
    """The threshold under which a figure is highest, and how high it is there: in-sample."""

    threshold: float
    value: float


def curve(verdicts: Verdicts) -> Curve:
    """Every threshold that makes a difference."""
    order = np.argsort(-verdicts.score, kind="stable")
    score, right = verdicts.score[order], verdicts.people[order]
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if len(score) else np.array([], np.intp)
    hit = np.append(0, np.cumsum(right)[last]).astype(np.float64)
    false = np.append(0, np.cumsum(~right)[last]).astype(np.float64)
    counts = np.stack([hit, false, hit[-1] - hit, false[-1] - false], axis=1)
    levels = score[last]
    middle = levels[1:] + (levels[:-1] - levels[1:]) / 2
    return Curve(np.concatenate([[math.inf], middle, [-math.inf]])[: len(hit)], counts)


def best(verdicts: Verdicts, figure: str = "accuracy") -> Best | None:
    """The threshold that makes one of FIGURES highest, the strictest of equals. None if it is undefined under all."""
    found = curve(verdicts)
    values = figures(found.counts)[:, FIGURES.index(figure)]
    if np.isnan(values).all():
        return None
    at = int(np.nanargmax(values))
    return Best(float(found.threshold[at]), float(values[at]))


def auc_of(verdicts: Verdicts) -> Statistic:
    """The area under the ROC curve as a statistic of weights of the questions: Mann and Whitney's, ties half."""
    order = np.argsort(verdicts.score, kind="stable")
    score, right, question = verdicts.score[order], verdicts.people[order], verdicts.question[order]
    starts = np.flatnonzero(np.append(True, score[1:] != score[:-1])) if len(score) else np.array([], np.intp)

    def area(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        if not len(starts):
            return np.full((len(weights), 1), np.nan)
        drawn = weights[:, question]
        hit = np.add.reduceat(drawn * right, starts, axis=1)
        false = np.add.reduceat(drawn, starts, axis=1) - hit
        below = np.cumsum(false, axis=1) - false / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            found = (hit * below).sum(axis=1) / (hit.sum(axis=1) * false.sum(axis=1))
        return np.asarray(found[:, None], np.float64)

    return area


def halves(questions: Sequence[str], seed: int = 0) -> NDArray[np.bool_]:
    """Which answers are in the first of two halves; a question's are all in the same. It depends on its name alone."""
    return np.array([sha256(f"{seed}\0{name}".encode()).digest()[0] < 128 for name in questions], dtype=bool)

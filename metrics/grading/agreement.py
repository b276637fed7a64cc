"""How a grader agrees with people: figures with their intervals.

The intervals are from a bootstrap by question (`bootstrap.py`): answers of several systems to one question are not
independent. Undefined is Missing: precision where the grader calls nothing right, kappa where all answers are of one
class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..statistics.bootstrap import Ends
from ..statistics.shares import wilson
from ..value import Missing, Value
from .bootstrap import FEWEST, RESAMPLES, SEED, intervals
from .confusion import FIGURES, Confusion, Verdicts, figures
from .roc import auc_of

_SHARES = {"accuracy": (0, 1, 2, 3), "precision": (0, 1), "recall": (0, 2), "specificity": (1, 3)}
"""Figures that are a share of the answers in some cells of the confusion matrix."""
_UNDEFINED = {
    "accuracy": "there are no answers",
    "kappa": "all answers are of one class, by people and by the grader",
    "precision": "the grader calls no answer right",
    "recall": "people call no answer right",
    "specificity": "people call no answer wrong",
    "f1": "neither people nor the grader call an answer right",
    "auc": "people call all answers right, or none",
}


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
    """Cohen's."""
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate
    auc: Estimate
    """The chance that a right answer has a higher score than a wrong one; ties are half."""
    design_right: float = 1.0
    """By how much more the recall varies than if each answer had a question of its own; at least 1."""
    design_wrong: float = 1.0
    """The same of the specificity."""


def agreement(verdicts: Verdicts, resamples: int = RESAMPLES, seed: int = SEED) -> Agreement:
    """Every figure, each with its interval."""
    cells = verdicts.cells()
    return Agreement(
        len(verdicts.people),
        verdicts.questions,
        Confusion(*map(int, cells.sum(axis=0))),
        **of_verdicts(verdicts, resamples, seed),
        auc=of_scores(verdicts, resamples, seed),
        design_right=_design(cells[:, 0], cells[:, 0] + cells[:, 2]),
        design_wrong=_design(cells[:, 3], cells[:, 1] + cells[:, 3]),
    )


def of_verdicts(verdicts: Verdicts, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Estimate]:
    """FIGURES, each with its interval."""
    cells, size = verdicts.cells(), verdicts.questions
    values = dict(zip(FIGURES, map(float, figures(cells.sum(axis=0))), strict=True))
    around = dict(zip(FIGURES, intervals(lambda weights: figures(weights @ cells), size, resamples, seed), strict=True))
    for name, among in _SHARES.items():
        if values[name] in (0.0, 1.0) and size >= FEWEST:  # no resample differs, which does not make it sure
            asked = int((cells[:, among].sum(axis=1) > 0).sum())
            around[name] = wilson(round(values[name]) * asked, asked)
    return {name: estimate(value, around[name], _UNDEFINED[name]) for name, value in values.items()}


def of_scores(verdicts: Verdicts, resamples: int = RESAMPLES, seed: int = SEED) -> Estimate:
    """The area under the ROC curve, with its interval."""
    area, size = auc_of(verdicts), verdicts.questions
    [around] = intervals(area, size, resamples, seed, width=len(verdicts.people))
    return estimate(float(area(np.ones((1, size)))[0, 0]), around, _UNDEFINED["auc"])


def share(hits: Sequence[bool], question: Sequence[str], resamples: int = RESAMPLES, seed: int = SEED) -> Estimate:
    """The share of hits among things that come several to a question."""
    if not hits:
        return estimate(math.nan, Missing("undefined"), "there is nothing to count")
    code = np.unique(np.array(question, dtype=object).astype(str), return_inverse=True)[1]
    sizes = np.bincount(code).astype(np.float64)
    found = np.bincount(code, np.array(hits, np.float64))

    def of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((weights @ found / (weights @ sizes))[:, None])

    whole = float(found.sum() / sizes.sum())
    if whole in (0.0, 1.0):
        return Estimate(whole, wilson(round(whole) * len(sizes), len(sizes)))
    return Estimate(whole, intervals(of, len(sizes), resamples, seed)[0])


def estimate(value: float, interval: Ends | Missing, undefined: str) -> Estimate:
    """A figure with its interval; nan is Missing, and `undefined` says why."""
    if math.isnan(value):
        missing = Missing("undefined", undefined)
        return Estimate(missing, missing)
    return Estimate(float(value), interval)


def _design(hits: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
    """The design effect of a share over clusters: its variance as a ratio of sums, by that of independent answers."""
    asked = sizes > 0
    hits, sizes, clusters = hits[asked], sizes[asked], int(asked.sum())
    whole = float(sizes.sum())
    share = float(hits.sum()) / whole if whole else 0.0
    if clusters < 2 or not 0 < share < 1:
        return 1.0
    between = float(((hits - share * sizes) ** 2).sum()) * clusters / (clusters - 1)
    return max(1.0, between / (whole * share * (1 - share)))

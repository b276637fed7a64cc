"""What people and a grader say of the same answers, and the confusion matrix of it.

*Positive* is an answer called right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

FIGURES = ("accuracy", "kappa", "precision", "recall", "specificity", "f1")
"""What follows from a confusion matrix, in the order of `figures`."""


_MOST = 1e300
"""A score is at most so far from 0: what is surer than any number has thresholds below it all the same."""


class Confusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Answers by what the grader says and what people say."""

    true_positive: int = 0
    """Right, and called right."""
    false_positive: int = 0
    """Wrong, and called right."""
    false_negative: int = 0
    true_negative: int = 0

    @property
    def right(self) -> int:
        """Answers that people call right."""
        return self.true_positive + self.false_negative

    @property
    def wrong(self) -> int:
        """Answers that people call wrong."""
        return self.false_positive + self.true_negative

    @property
    def counts(self) -> NDArray[np.float64]:
        """The four numbers, as `figures` takes them."""
        return np.array(
            [self.true_positive, self.false_positive, self.false_negative, self.true_negative], dtype=np.float64
        )


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What people and a grader say of the same answers, one array each."""

    people: NDArray[np.bool_]
    grader: NDArray[np.bool_]
    score: NDArray[np.float64]
    """The grader's; the higher, the surer that the answer is right."""
    question: NDArray[np.intp]
    """Its number, from 0; none is left out."""

    @classmethod
    def of(
        cls, people: Sequence[bool], grader: Sequence[bool], score: Sequence[float], question: Sequence[str]
    ) -> Verdicts:
        """Of answers whose questions have names. The order of the answers changes no figure."""
        codes = np.unique(np.array(question, dtype=object).astype(str), return_inverse=True)[1]
        scores = np.clip(np.array(score, np.float64), -_MOST, _MOST)
        return cls(np.array(people, bool), np.array(grader, bool), scores, codes.astype(np.intp))

    def where(self, chosen: NDArray[np.bool_]) -> Verdicts:
        """Those of some answers."""
        codes = np.unique(self.question[chosen], return_inverse=True)[1].astype(np.intp)
        return Verdicts(self.people[chosen], self.grader[chosen], self.score[chosen], codes)

    def at(self, threshold: float) -> Verdicts:
        """The same, had the grader called right what scores at least `threshold`."""
        return Verdicts(self.people, self.score >= threshold, self.score, self.question)

    @property
    def questions(self) -> int:
        """How many there are."""
        return int(self.question.max()) + 1 if len(self.question) else 0

    def cells(self) -> NDArray[np.float64]:
        """The confusion matrix of each question, shape (questions, 4)."""
        cell = np.where(self.grader, np.where(self.people, 0, 1), np.where(self.people, 2, 3))
        counts = np.bincount(self.question * 4 + cell, minlength=self.questions * 4)
        return counts.reshape(-1, 4).astype(np.float64)


def figures(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """FIGURES of confusion matrices: from shape (…, 4) to (…, 6); nan where one is undefined."""
    hit, false, missed, rejected = np.moveaxis(counts, -1, 0)
    whole = hit + false + missed + rejected
    by_chance = (hit + false) * (hit + missed) + (missed + rejected) * (false + rejected)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack(
            [
                (hit + rejected) / whole,
                (whole * (hit + rejected) - by_chance) / (whole * whole - by_chance),
                hit / (hit + false),
                hit / (hit + missed),
                rejected / (rejected + false),
                2 * hit / (2 * hit + false + missed),
            ],
            axis=-1,
        )

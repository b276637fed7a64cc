"""What a retriever finds: documents by their numbers, best first, with their scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
"""Documents are numbered in the order they come, from 0. A number is never given again."""
Scores = NDArray[np.float64]


class Ranked(NamedTuple):
    """Documents best first, of equal ones the later first; and their scores."""

    numbers: Numbers
    scores: Scores


NOTHING = Ranked(np.zeros(0, np.int64), np.zeros(0))


def ranked(numbers: Numbers, scores: Scores, k: int) -> Ranked:
    """The `k` best of documents in any order. Not a full sort."""
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        keep = scores >= least
        numbers, scores = numbers[keep], scores[keep]
    order = np.lexsort((-numbers, -scores))[:k]
    return Ranked(numbers[order], scores[order])


def within(numbers: Numbers, among: Numbers) -> NDArray[np.bool_]:
    """Which of the numbers are `among` these, which are sorted."""
    if not len(among):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(among, numbers), len(among) - 1)
    found: NDArray[np.bool_] = among[places] == numbers
    return found

"""Several rankings of the same documents made into one.

`reciprocal_rank` (RRF, Cormack, Clarke & Büttcher 2009) adds 1 / (60 + rank) over the rankings that have a document;
scores do not matter. `weighted` adds scores, each divided by the best of its ranking, so that every ranking's best
counts 1 and no document below 0; a document that a ranking does not have counts 0 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CONSTANT = 60
"""The original paper's k."""


def reciprocal_rank(rankings: Sequence[Ranked], weights: Sequence[float], k: int) -> Ranked:
    """The `k` best by the weighted sum of 1 / (60 + rank), the first rank being 1."""
    ranks = (np.arange(1, len(each.numbers) + 1) for each in rankings)
    return _summed(rankings, [weight / (CONSTANT + rank) for weight, rank in zip(weights, ranks, strict=True)], k)


def weighted(rankings: Sequence[Ranked], weights: Sequence[float], k: int) -> Ranked:
    """The `k` best by the weighted sum of scores, each divided by the best of its ranking."""
    parts = [weight * relative(each.scores) for weight, each in zip(weights, rankings, strict=True)]
    return _summed(rankings, parts, k)


def relative(scores: Scores) -> Scores:
    """Scores divided by the best of them, 0 where they are below it; all 0 if none is above 0."""
    best = scores.max(initial=0.0)
    return np.maximum(scores, 0) / best if best > 0 else np.zeros(len(scores))


def _summed(rankings: Sequence[Ranked], parts: Sequence[Scores], k: int) -> Ranked:
    if not rankings:
        return NOTHING
    if len(rankings) == 1:
        return ranked(rankings[0].numbers, parts[0], k)
    numbers, places = np.unique(np.concatenate([each.numbers for each in rankings]), return_inverse=True)
    sums: Scores = np.bincount(places, np.concatenate(parts), minlength=len(numbers))  # type: ignore[assignment]
    return ranked(numbers, sums, k)


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

"""Fusion of several rankings of the same documents.

`reciprocal_rank` (RRF, Cormack, Clarke & Büttcher 2009) adds 1 / (60 + rank) over the rankings that have a document;
scores do not matter. `weighted` adds scores, each divided by the best score of its ranking, so that every ranking's
best document counts 1 and none counts less than 0. A document missing from a ranking counts 0 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CONSTANT = 60
"""k of the original paper."""


def reciprocal_rank(rankings: Sequence[Ranked], weights: Sequence[float], k: int) -> Ranked:
    """Return the `k` best documents by the weighted sum of 1 / (60 + rank); the first rank is 1."""
    ranks = (np.arange(1, len(ranking.numbers) + 1) for ranking in rankings)
    return _sum(rankings, [weight / (CONSTANT + rank) for weight, rank in zip(weights, ranks, strict=True)], k)


def weighted(rankings: Sequence[Ranked], weights: Sequence[float], k: int) -> Ranked:
    """Return the `k` best documents by the weighted sum of scores, each divided by the best of its ranking."""
    parts = [weight * relative(ranking.scores) for weight, ranking in zip(weights, rankings, strict=True)]
    return _sum(rankings, parts, k)


def relative(scores: Scores) -> Scores:
    """Return scores divided by the best of them, negative ones as 0; all 0 if none is above 0."""
    best = scores.max(initial=0.0)
    return np.maximum(scores, 0) / best if best > 0 else np.zeros(len(scores))


def _sum(rankings: Sequence[Ranked], parts: Sequence[Scores], k: int) -> Ranked:
    if not rankings:
        return NOTHING
    if len(rankings) == 1:
        return top_k(rankings[0].numbers, parts[0], k)
    numbers, places = np.unique(np.concatenate([ranking.numbers for ranking in rankings]), return_inverse=True)
    sums: Scores = np.bincount(places, np.concatenate(parts), minlength=len(numbers))  # type: ignore[assignment]
    return top_k(numbers, sums, k)


Numbers = NDArray[np.int64]
"""Numbers of documents: in order of addition, from 0, never reused."""
Scores = NDArray[np.float64]


class Ranked(NamedTuple):
    """Documents, best first and the later one first of equals, with their scores."""

    numbers: Numbers
    scores: Scores


NOTHING = Ranked(np.zeros(0, np.int64), np.zeros(0))


def top_k(numbers: Numbers, scores: Scores, k: int) -> Ranked:
    """Return the `k` best of documents in any order, without sorting all of them."""
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        # All equals of the k-th best are kept for the sort: `partition`
        # alone would choose among them by their place in memory.
        keep = scores >= least
        numbers, scores = numbers[keep], scores[keep]
    order = np.lexsort((-numbers, -scores))[:k]
    return Ranked(numbers[order], scores[order])

"""How raters agree with each other: the mark that a grader is held against.

Who rated what differs from answer to answer, so raters have no names here: every two of them that rated the same answer
are a pair, counted both ways, and an answer counts as often as it has raters. With the same number of raters everywhere
that is Fleiss' kappa (1971); weighted by squared distances it suits ratings on a scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from .agreement import Estimate, estimate
from .bootstrap import RESAMPLES, SEED, intervals

Weighting = Literal["none", "quadratic"]


class Raters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Agreement of raters over the answers that at least two of them rated."""

    answers: int
    raters: tuple[int, int]
    """Of an answer, at least and at most."""
    verdicts: Estimate
    """Kappa of right and wrong: what a grader's kappa is held against."""
    ratings: Estimate
    """Kappa of the ratings themselves, weighted by squared distances."""
    same: float
    """Of two ratings of an answer, the share that says the same of right and wrong."""


def raters(
    votes: Sequence[Sequence[int]],
    passing: Sequence[int],
    questions: Sequence[str],
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Raters | None:
    """Agreement over answers whose raters gave `votes`, right from `passing` on. None if no answer has two raters."""
    rated = [each for each in zip(votes, passing, questions, strict=True) if len(each[0]) > 1]
    if not rated:
        return None
    given, names = [tuple(each) for each, _, _ in rated], [name for _, _, name in rated]
    code = np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1]
    verdicts = [tuple(int(vote >= least) for vote in each) for each, least, _ in rated]
    binary = _pairs(verdicts, code)
    whole = binary.sum(axis=0)
    return Raters(
        len(rated),
        (min(map(len, given)), max(map(len, given))),
        _estimate(binary, "none", resamples, seed),
        _estimate(_pairs(given, code), "quadratic", resamples, seed),
        float(np.trace(whole) / whole.sum()),
    )


def kappa(pairs: NDArray[np.float64], weighting: Weighting = "none") -> NDArray[np.float64]:
    """Kappa of tables of pairs, from shape (…, k, k) to (…); nan where all are of one class."""
    size = pairs.shape[-1]
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    cost = apart**2 if weighting == "quadratic" else (apart > 0).astype(np.float64)
    rows, columns = pairs.sum(axis=-1), pairs.sum(axis=-2)
    whole = rows.sum(axis=-1)
    expected = np.einsum("...i,...j,ij->...", rows, columns, cost)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - whole * np.einsum("...ij,ij->...", pairs, cost) / expected)


def _pairs(votes: Sequence[tuple[int, ...]], code: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of each question, the table of pairs of its answers' ratings, shape (questions, k, k)."""
    low, high = min(map(min, votes)), max(map(max, votes))
    size = high - low + 1
    table = np.zeros((int(code.max()) + 1, size, size))
    for each, at in zip(votes, code, strict=True):
        counts = np.bincount(np.array(each) - low, minlength=size)
        table[at] += (np.outer(counts, counts) - np.diag(counts)) / (len(each) - 1)
    return table


def _estimate(pairs: NDArray[np.float64], weighting: Weighting, resamples: int, seed: int) -> Estimate:
    size = pairs.shape[-1]
    flat = pairs.reshape(len(pairs), -1)
    [around] = intervals(
        lambda weights: kappa((weights @ flat).reshape(-1, size, size), weighting)[:, None],
        len(pairs),
        resamples,
        seed,
    )
    return estimate(float(kappa(pairs.sum(axis=0), weighting)), around, "all ratings are of one class")

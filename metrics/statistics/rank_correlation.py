"""Rank correlation of two measures over alternatives, with an interval from resampled conversations.

A rank correlation is no smooth function of its sums, so BCa and Student's error do not hold: the interval has the
percentiles of the draws. It holds for these alternatives: others may be ordered in another way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..value import Missing, Value
from .intervals import DRAWS, FEW, LEVEL, LOST, SEED, Ends, counts

Floats = NDArray[np.float64]
FEWEST = 3
"""Least number of alternatives for an order to mean anything."""
_DIGITS = 12  # figures that differ by rounding alone count as equal


class OrderSums(NamedTuple):
    """Sums behind a measure, got / wanted: a row per conversation, a column per alternative."""

    got: Floats
    wanted: Floats


class OrderAgreement(NamedTuple):
    """Agreement of two orders: 1 = the same, 0 = as by chance, −1 = reversed."""

    kendall: Value
    """Tau-b, which takes ties into account."""
    kendall_interval: Ends | Missing
    spearman: Value
    spearman_interval: Ends | Missing


def alike(one: OrderSums, other: OrderSums, seed: int = SEED, draws: int = DRAWS) -> OrderAgreement:
    """Compare the orders of two measures over the same conversations and alternatives; Missing where undefined."""
    if one.got.shape[1] < FEWEST:
        none = Missing("undefined", f"fewer than {FEWEST} strategies have both measures")
        return OrderAgreement(none, none, none, none)
    tau, rho = (_alike(one, other, correlation, seed, draws) for correlation in (kendall, spearman))
    return OrderAgreement(*tau, *rho)


def _alike(
    one: OrderSums, other: OrderSums, correlation: Callable[[Floats, Floats], Floats], seed: int, draws: int
) -> tuple[Value, Ends | Missing]:
    """Return one correlation and its interval."""
    conversations, alternatives = one.got.shape
    whole = np.ones((1, conversations))
    value = float(correlation(_figures(one, whole), _figures(other, whole))[0])
    if np.isnan(value):
        return (equal := Missing("undefined", "one of the two measures is the same for all strategies")), equal
    drawn = [
        correlation(_figures(one, weights), _figures(other, weights))
        for weights in counts(conversations, seed, draws, width=alternatives**2)
    ]
    return value, _interval(np.concatenate(drawn), conversations)


def _figures(sums: OrderSums, weights: Floats) -> Floats:
    """Return the figure of each alternative in each draw; NaN where it has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        figures: Floats = np.round((weights @ sums.got) / (weights @ sums.wanted), _DIGITS)
    return figures


def _interval(drawn: Floats, conversations: int) -> Ends | Missing:
    known = drawn[np.isfinite(drawn)]
    if conversations < 2 or len(known) < (1 - LOST) * len(drawn):
        return Missing("undefined", "one conversation" if conversations == 1 else FEW)
    return Ends(*(float(end) for end in np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])))


def kendall(one: Floats, other: Floats) -> Floats:
    """Return Kendall's tau-b of each row; NaN where all of a row are equal, or one is unknown."""
    first, second = (_signs(values) for values in (one, other))
    together, alone = (first * second).sum(axis=1), (first**2).sum(axis=1) * (second**2).sum(axis=1)
    return _over(together, np.sqrt(alone))


def _signs(rows: Floats) -> Floats:
    """Return the sign of the difference of each pair of a row."""
    left, right = np.triu_indices(rows.shape[1], 1)
    signs: Floats = np.sign(rows[:, left] - rows[:, right])
    return signs


def spearman(one: Floats, other: Floats) -> Floats:
    """Return Spearman's rho of each row: the correlation of ranks, where equal values share the mean of theirs."""
    first, second = (_ranks(values) for values in (one, other))
    first, second = (values - values.mean(axis=1, keepdims=True) for values in (first, second))
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return _over((first * second).sum(axis=1), spread)


def _ranks(rows: Floats) -> Floats:
    """Return ranks from 1 for the smallest of each row; equal values share the mean of theirs. NaN where a NaN is."""
    left, right = rows[:, :, None], rows[:, None, :]
    ranks: Floats = ((left > right).sum(axis=2) + (left >= right).sum(axis=2) + 1) / 2
    ranks[np.isnan(rows).any(axis=1)] = np.nan
    return ranks


def _over(top: Floats, bottom: Floats) -> Floats:
    quotient: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
    return quotient

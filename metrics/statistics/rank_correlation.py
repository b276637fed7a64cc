"""Whether two measures put alternatives in the same order, and how sure that is: conversations are drawn again.

A rank correlation is no smooth function of what it is made of, so that BCa and Student's error do not hold: the
interval is that of the draws alone (percentiles). It is of these alternatives: others may be ordered in another way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..value import Missing, Value
from .bootstrap import DRAWS, FEW, LOST, SEED, counts
from .intervals import LEVEL, Ends

Floats = NDArray[np.float64]
FEWEST = 3
"""Alternatives that have an order to speak of."""
_DIGITS = 12
"""Of figures that are compared: what differs by rounding alone is equal."""


class OrderSums(NamedTuple):
    """What a measure is made of, got / wanted: a row a conversation, a column an alternative."""

    got: Floats
    wanted: Floats


class OrderAgreement(NamedTuple):
    """How alike two orders are: 1 = the same, 0 = no more than by chance, −1 = reversed."""

    kendall: Value
    """Tau-b, which takes ties into account."""
    kendall_interval: Ends | Missing
    spearman: Value
    spearman_interval: Ends | Missing


def alike(one: OrderSums, other: OrderSums, seed: int = SEED, draws: int = DRAWS) -> OrderAgreement:
    """Compare the orders of two measures over the same conversations and alternatives. Missing, where there is none."""
    if one.got.shape[1] < FEWEST:
        none = Missing("undefined", f"fewer than {FEWEST} strategies have both measures")
        return OrderAgreement(none, none, none, none)
    tau, rho = (_alike(one, other, correlation, seed, draws) for correlation in (kendall, spearman))
    return OrderAgreement(*tau, *rho)


def _alike(
    one: OrderSums, other: OrderSums, correlation: Callable[[Floats, Floats], Floats], seed: int, draws: int
) -> tuple[Value, Ends | Missing]:
    """One correlation and its interval."""
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
    """Of each draw, the figure of each alternative; NaN where it has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        made: Floats = np.round((weights @ sums.got) / (weights @ sums.wanted), _DIGITS)
    return made


def _interval(drawn: Floats, conversations: int) -> Ends | Missing:
    known = drawn[np.isfinite(drawn)]
    if conversations < 2 or len(known) < (1 - LOST) * len(drawn):
        return Missing("undefined", "one conversation" if conversations == 1 else FEW)
    return Ends(*(float(end) for end in np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])))


def kendall(one: Floats, other: Floats) -> Floats:
    """Kendall's tau-b of each row; NaN where all of a row are equal, or one is not known."""
    first, second = (_signs(each) for each in (one, other))
    together, alone = (first * second).sum(axis=1), (first**2).sum(axis=1) * (second**2).sum(axis=1)
    return _over(together, np.sqrt(alone))


def _signs(rows: Floats) -> Floats:
    """Of each pair of a row, which is the larger."""
    left, right = np.triu_indices(rows.shape[1], 1)
    made: Floats = np.sign(rows[:, left] - rows[:, right])
    return made


def spearman(one: Floats, other: Floats) -> Floats:
    """Spearman's rho of each row: the correlation of ranks, equal ones sharing theirs."""
    first, second = (_ranks(each) for each in (one, other))
    first, second = (each - each.mean(axis=1, keepdims=True) for each in (first, second))
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return _over((first * second).sum(axis=1), spread)


def _ranks(rows: Floats) -> Floats:
    """From 1 for the smallest of each row; equal ones have the mean of theirs. NaN in rows that have one."""
    left, right = rows[:, :, None], rows[:, None, :]
    made: Floats = ((left > right).sum(axis=2) + (left >= right).sum(axis=2) + 1) / 2
    made[np.isnan(rows).any(axis=1)] = np.nan
    return made


def _over(top: Floats, bottom: Floats) -> Floats:
    made: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
    return made

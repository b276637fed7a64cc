"""A mean with its interval: what every table of means shows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple

from ..value import Missing, Value

LEVEL = 0.95


class Ends(NamedTuple):
    """Of an interval."""

    low: float
    high: float


class Interval(NamedTuple):
    """A mean and its 95 % interval. Both ends are missing where there is one seed or one conversation only."""

    mean: float
    low: Value
    high: Value


_NORMAL = NormalDist()


def wilson(hits: int, size: int) -> Ends | Missing:
    """The interval of a share by Wilson's score (1927)."""
    if not size:
        return Missing("undefined", "there is nothing to count")
    z = _NORMAL.inv_cdf((1 + LEVEL) / 2)
    share, room = hits / size, z * z / size
    middle = (share + room / 2) / (1 + room)
    half = z / (1 + room) * (share * (1 - share) / size + room / (4 * size)) ** 0.5
    return Ends(0.0 if not hits else middle - half, 1.0 if hits == size else middle + half)


def of_share(value: float, found: Ends | Missing, groups: int) -> Ends | Missing:
    """The interval of a share over groups, without what no share can be: Student's reaches below 0 and above 1.

    A share of 0 or 1 is so in every group, so that draws of groups cannot tell how far it may be from that: then it is
    Wilson's, of as many trials as there are groups.
    """
    if isinstance(found, Missing):
        return found
    if value in (0.0, 1.0):
        return wilson(groups if value else 0, groups)
    return Ends(max(found.low, 0.0), min(found.high, 1.0))


ALPHA = 0.05
POWER = 0.8


def quantile(level: float, freedom: int) -> float:
    """Of the distribution: 2.093 for 0.975 with 19 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, level))


def p_value(value: float, error: float, freedom: int) -> float:
    """Two-sided, that what is estimated is 0. Without any spread it is certain either way."""
    from scipy.special import stdtr

    if not error:
        return 1.0 if not value else 0.0
    return float(2 * stdtr(freedom, -abs(value) / error))


def equivalence(value: float, error: float, freedom: int, margin: float) -> float:
    """The p-value of two one-sided tests (TOST: Schuirmann 1987), that it is not within ±margin."""
    from scipy.special import stdtr

    if not error:
        return 0.0 if abs(value) <= margin else 1.0
    return float(stdtr(freedom, (abs(value) - margin) / error))


def detectable(error: float, freedom: int, level: float = ALPHA, power: float = POWER) -> float:
    """The smallest change that a two-sided test at `level` finds with probability `power`, given the standard error.

    Exact, by the noncentral t distribution; that the test may find it on the wrong side is left out.
    """
    from scipy.special import nctdtrinc

    return error * float(nctdtrinc(freedom, 1 - power, quantile(1 - level / 2, freedom)))


def of_seeds(values: Iterable[Value]) -> Interval | Missing:
    """Mean and 95 % interval of one figure over several seeds; what is missing in any of them is missing."""
    found: list[float] = []
    for value in values:
        if isinstance(value, Missing):
            return value
        found.append(float(value))
    if not found:
        return Missing("undefined", "no values")
    mean = math.fsum(found) / len(found)
    if len(found) < 2:
        single = Missing("undefined", "one seed has no interval")
        return Interval(mean, single, single)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in found) / (len(found) - 1))
    reach = quantile(0.975, len(found) - 1) * deviation / math.sqrt(len(found))
    return Interval(mean, mean - reach, mean + reach)

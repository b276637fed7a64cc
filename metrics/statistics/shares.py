"""Intervals of shares: within 0 and 1, and of some width where no draw differs."""

from __future__ import annotations

from statistics import NormalDist

from ..value import Missing
from .bootstrap import LEVEL, Ends

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

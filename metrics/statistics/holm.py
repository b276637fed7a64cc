"""Many comparisons at once: the more are looked at, the more seem to differ by chance."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Each adjusted for all others: below α, it is one of those of which none is wrong with probability 1 − α.

    Whatever depends on whatever (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979).
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    made = [0.0] * len(p_values)
    most = 0.0
    for rank, at in enumerate(order):
        most = max(most, min(1.0, p_values[at] * (len(order) - rank)))
        made[at] = most
    return made

"""What a figure would have been on other conversations: it is made again of conversations drawn with replacement.

A figure is a statistic of sums over conversations, so a draw is a product of two matrices: how often each conversation
was drawn, and what each adds to the sums. A conversation is drawn whole, with all of its steps and probes.

The interval is the wider one, at either end, of two:

- BCa (Efron, "Better Bootstrap Confidence Intervals", JASA 1987), cut at the levels of Student's t with a spread that
  is larger by √(n/(n−1)) (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015), without which it is too
  short under some 50 conversations;
- Student's, with the jackknife's error.

Each alone is too short on some data: the first on sums that a few conversations dominate, the second on skewed ones
(docs/decisions/0027-statistics-and-gate.md has the coverage of all).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..value import Missing, Value
from .intervals import LEVEL, Ends, Interval, quantile

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""From sums, along the last axis, to the figure that they make; NaN where it is undefined."""

DRAWS = 10_000
SEED = 0
FEW = "too few conversations have anything to measure"
LOST = 0.05
"""The share of draws in which a figure may be undefined."""
_NUMBERS = 20_000_000
"""Of numbers in a matrix of draws, the most: over 2,000 conversations fewer draws are made."""
_FEWEST = 1_000
AT_ONCE = 2_000_000


class Resampled(NamedTuple):
    """A figure, and what it was in every draw."""

    value: float
    drawn: Floats
    """In ascending order."""
    error: float
    """The jackknife's standard error."""
    bias: float
    skew: float
    """BCa's z0 and acceleration."""
    size: int
    """Conversations."""

    def interval(self, level: float = LEVEL) -> Ends:
        """The wider one of BCa and Student's."""
        reach = quantile((1 + level) / 2, self.size - 1)
        plain = self.bca(reach * (self.size / (self.size - 1)) ** 0.5)
        return Ends(min(plain.low, self.value - reach * self.error), max(plain.high, self.value + reach * self.error))

    def bca(self, normal: float) -> Ends:
        """The draws at the levels where BCa puts −normal and +normal."""
        from scipy.special import ndtr

        shifted = self.bias + np.array([-normal, normal])
        stretched = 1 - self.skew * shifted
        levels = ndtr(self.bias + shifted / np.where(stretched > 0, stretched, np.nan))
        outer = np.where(np.isnan(levels), [0.0, 1.0], levels)  # past the pole all draws are within
        return Ends(*(float(end) for end in np.quantile(self.drawn, outer)))


def resampled(sums: Floats, statistic: Statistic, seed: int = SEED, draws: int = DRAWS) -> Resampled | Missing:
    """Draw conversations. `sums`: what each (a row) adds to each sum (a column)."""
    size = len(sums)
    if size < 2:
        return Missing("undefined", "one conversation" if size else "no conversation")
    value = float(statistic(sums.sum(axis=0)))
    found = np.concatenate([statistic(drawn @ sums) for drawn in counts(size, seed, draws)])
    left = statistic((sums.sum(axis=0) - sums) * size / (size - 1))  # as many conversations as there are
    if not np.isfinite(left).all():
        return Missing("undefined", FEW)
    return of_draws(value, found, left)


def of_draws(value: float, found: Floats, left: Floats) -> Resampled | Missing:
    """A figure, what it was in every draw, and what it was without each conversation, or group of them, in turn."""
    size = len(left)
    drawn = np.sort(found[np.isfinite(found)])
    if not np.isfinite(value) or len(drawn) < (1 - LOST) * len(found):
        return Missing("undefined", FEW)
    off = left.mean() - left
    spread = float((off**2).sum())
    skew = float((off**3).sum()) / (6 * spread**1.5) if spread else 0.0
    return Resampled(value, drawn, ((size - 1) / size * spread) ** 0.5, _bias(drawn, value), skew, size)


def _bias(drawn: Floats, value: float) -> float:
    """How far the median of the draws is from the value, on the normal scale. Draws that equal it are halved."""
    from scipy.special import ndtri

    near = 1e-12 * (abs(value) + float(np.abs(drawn[[0, -1]]).max()))
    below = np.searchsorted(drawn, value - near, "left") + np.searchsorted(drawn, value + near, "right")
    edge = 0.5 / len(drawn)
    return float(ndtri(np.clip(below / (2 * len(drawn)), edge, 1 - edge)))


def counts(size: int, seed: int, draws: int, width: int = 0) -> Iterator[Floats]:
    """How often each conversation is drawn: a row a draw. `width`: numbers that the statistic makes of a draw."""
    draws, wide = min(draws, max(_FEWEST, _NUMBERS // size)), max(size, width)
    if draws * wide <= AT_ONCE:
        yield _same_counts(size, seed, draws)
        return
    rows = max(1, AT_ONCE // wide)
    random = np.random.default_rng(seed)
    for begin in range(0, draws, rows):
        yield _drawn(random, size, min(rows, draws - begin))


@lru_cache(maxsize=8)
def _same_counts(size: int, seed: int, draws: int) -> Floats:
    """Figures of the same conversations are of the same draws."""
    return _drawn(np.random.default_rng(seed), size, draws)


def _drawn(random: np.random.Generator, size: int, rows: int) -> Floats:
    picked = random.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
    return np.bincount(picked.ravel(), minlength=rows * size).reshape(rows, size).astype(np.float64)


def mean_of(sums: Floats) -> Floats:
    """The statistic of a mean: the first sum over the second."""
    with np.errstate(divide="ignore", invalid="ignore"):
        made: Floats = sums[..., 0] / sums[..., 1]
    return made


def interval(
    values: Sequence[float], groups: Sequence[Hashable], seed: int = SEED, draws: int = DRAWS
) -> Interval | Missing:
    """The mean of some values, and its interval over their groups: questions of a conversation, mostly.

    One group has a mean and no interval; no values have neither.
    """
    if not len(values):
        return Missing("undefined", "no values")
    each = finite(values, "values")
    numbers = {group: at for at, group in enumerate(dict.fromkeys(groups))}
    which = np.array([numbers[group] for group in groups])
    sums = np.column_stack([np.bincount(which, each), np.bincount(which)]).astype(np.float64)
    found = resampled(sums, mean_of, seed, draws)
    ends: tuple[Value, Value] = (found, found) if isinstance(found, Missing) else found.interval()
    return Interval(float(each.mean()), *ends)


def finite(values: Sequence[float] | Floats, field: str) -> Floats:
    """The values as an array. ValueError, with the field, for what is not a finite number: a missing value is none."""
    made = np.asarray(values, np.float64)
    if not np.isfinite(made).all():
        place = tuple(int(at) for at in np.argwhere(~np.isfinite(made))[0])
        raise ValueError(f"{field}[{', '.join(map(str, place))}] is {made[place]}: not a finite number")
    return made

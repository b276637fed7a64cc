"""Intervals and tests of a figure over conversations: closed forms, and the bootstrap of whole conversations.

A figure is a statistic of sums over conversations, so a draw is a product of two matrices: how often each conversation
was drawn, and what each adds to the sums. A conversation is drawn whole, with all of its steps and probes. Several
that are one independent unit (twins of one generator) are drawn together: their sums are added up first (`by_unit`).

The interval of a figure is the wider one, at either end, of two, cut to what a resample can reach:

- BCa (Efron, JASA 1987), cut at the levels of Student's t with a spread that is larger by √(n/(n−1)) (Hesterberg, "What
  Teachers Should Know About the Bootstrap", 2015);
- Student's, with the jackknife's error. Of a figure that has a least value and no greatest one (a cost, a ratio), its
  upper end is at least that of log-normal amounts.

Both are cut at fewer degrees of freedom where few conversations decide the figure, or with it the error itself
(`_freedom`). Shares and counts also have bounds that hold where nothing spreads (`of_share`, `of_events`, `of_change`).
None is shown where too few units carry the figure (`enough`). Why, and the coverage of all, is in
docs/decisions/0027-statistics-and-gate.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..value import Missing, Value

LEVEL = 0.95
FEWEST, HEAVIEST = 8, 1 / 3
"""Independent units from which on an interval is shown, and the most that one of them may weigh (decision 27)."""
FEWEST_OF_AMOUNTS = 30
"""The same for a mean or sum of amounts, which weigh what they are: a sample without a heavy one has missed them."""
FEWEST_OF_RATIOS = 15
"""The same for a ratio of amounts, and a relative change of them, which may differ tenfold between units."""


class Ends(NamedTuple):
    """Ends of an interval."""

    low: float
    high: float


class Interval(NamedTuple):
    """A mean and its 95 % interval. Both ends are missing where there is one seed or one conversation only."""

    mean: float
    low: Value
    high: Value


def ends_of(figure: Interval | Missing) -> Ends | Missing:
    """Return the interval of a figure, or why there is none."""
    if isinstance(figure, Missing):
        return figure
    _, low, high = figure
    return low if isinstance(low, Missing) else high if isinstance(high, Missing) else Ends(low, high)


def enough(weights: Floats, across: Ends | Missing | None = None, fewest: int = FEWEST) -> Missing | None:
    """Return why too few independent units carry a figure for an interval; None where they are enough.

    `weights` is what each unit (a row) has of the whole, in one column or several, of which the most lopsided counts.
    `across` is the range over the units, which the reason takes along.
    """
    table = np.abs(np.asarray(weights, np.float64)).reshape(len(weights), -1)
    whole = table.sum(axis=0)
    heaviest = float((table / np.where(whole > 0, whole, 1)).max(initial=0.0))
    if len(table) < fewest:
        one = len(table) == 1
        why = "one conversation is too few" if one else f"{len(table)} independent conversations are too few"
    elif heaviest > HEAVIEST + 1e-9:
        why = f"one conversation is {100 * heaviest:.0f} % of the whole"
    else:
        return None
    return Missing("few", why, across) if isinstance(across, Ends) else Missing("few", why)


def clopper_pearson(hits: float, size: float, level: float = LEVEL) -> Ends:
    """Return the exact interval of a share (1934); hits and size need not be whole."""
    from scipy.special import betaincinv

    tail, miss = (1 - level) / 2, size - hits
    low = float(betaincinv(hits, miss + 1, tail)) if hits > 0 else 0.0
    return Ends(low, float(betaincinv(hits + 1, miss, 1 - tail)) if miss > 1e-9 * size else 1.0)


def of_share(parts: Floats, weights: Floats, level: float = LEVEL) -> Ends:
    """Return the interval of Σ parts / Σ weights, a share, over units: Clopper and Pearson's of its effective size.

    That is the number of independent trials with the same spread (Korn and Graubard, "Confidence Intervals for
    Proportions with Small Expected Number of Positive Counts", 1998). Where nothing spreads, as at 0 and 1, each unit
    is one trial, of units that differ in weight fewer (Kish): 0 of 8 may be up to 31 % (one-sided, at 95 %).
    """
    whole = float(weights.sum())
    share = min(max(float(parts.sum()) / whole, 0.0), 1.0)
    spread = float(((parts - share * weights) ** 2).sum()) / whole**2
    if spread > 1e-18:
        size = share * (1 - share) / spread
    elif 0 < share < 1:  # all units alike, of questions that are not
        return Ends(share, share)
    else:
        size = whole**2 / float((weights**2).sum())
    return clopper_pearson(share * size, size, level)


def of_events(counts: Floats, level: float = LEVEL) -> Ends:
    """Return the interval of a sum of events over units: the gamma interval of Fay and Feuer (1997).

    Poisson's where no unit has more than one. Events of one unit come together, so `counts` says how large they may be.
    """
    from scipy.special import gammaincinv

    total, spread, largest = float(counts.sum()), float((counts**2).sum()), max(float(counts.max(initial=0)), 1.0)

    def end(mean: float, variance: float, tail: float) -> float:
        return variance / mean * float(gammaincinv(mean**2 / variance, tail)) if mean else 0.0

    tail = (1 - level) / 2
    return Ends(end(total, spread, tail), end(total + largest, spread + largest**2, 1 - tail))


def of_change(value: float, moved: Floats, weights: Floats | None, level: float = LEVEL, largest: float = 0.0) -> Ends:
    """Return the interval of a difference of shares, or without weights of counts, from what each unit moved.

    `largest` is how much of a share an unseen unit may move at least; 0 = as much as one that was seen, or all.

    What rose and what fell have an interval each, whose distances are joined (MOVER: Newcombe, "Improved Confidence
    Intervals for the Difference Between Binomial Proportions Based on Paired Data", 1998; Zou and Donner, 2008).
    """
    sides, size = [], max(largest, float(np.abs(moved).max(initial=0))) or 1.0
    for part in (np.maximum(moved, 0), np.maximum(-moved, 0)):
        if weights is None:
            ends, middle = of_events(part, level), float(part.sum())
        else:
            ends, middle = of_share(part * weights, weights, level), float((part * weights).sum() / weights.sum())
            ends = ends if middle else Ends(0.0, size * ends.high)  # of a side that no unit moved to
        sides.append((middle - ends.low, ends.high - middle))
    (rose_less, rose_more), (fell_less, fell_more) = sides
    return Ends(value - math.hypot(rose_less, fell_more), value + math.hypot(rose_more, fell_less))


def widest(*intervals: Ends) -> Ends:
    """Return the union of intervals."""
    return Ends(min(ends.low for ends in intervals), max(ends.high for ends in intervals))


ALPHA = 0.05


def quantile(level: float, freedom: float) -> float:
    """Return a quantile of Student's t: 2.093 for 0.975 with 19 degrees of freedom."""
    from scipy.special import stdtrit  # 0.1 s to import, where scipy.stats takes 0.7 s

    return float(stdtrit(freedom, level))


def p_value(value: float, error: float, freedom: float) -> float:
    """Return the two-sided p-value of the hypothesis that the estimated value is 0: 0 or 1 where there is no spread."""
    from scipy.special import stdtr

    if not error:
        return 1.0 if not value else 0.0
    return float(2 * stdtr(freedom, -abs(value) / error))


def of_seeds(values: Iterable[Value], fewest: int = 2) -> Interval | Missing:
    """Return mean and Student's 95 % interval of one figure over several seeds; Missing if one of them has none.

    Seeds are alike, each a figure over thousands of draws: Student's holds from two on. Conversations are not: with
    `fewest` of them the interval is cut to what a resample can reach; of fewer the range stands in its place.
    """
    numbers: list[float] = []
    for value in values:
        if isinstance(value, Missing):
            return value
        numbers.append(float(value))
    if not numbers:
        return Missing("undefined", "no values")
    size, across = len(numbers), Ends(min(numbers), max(numbers))
    mean = math.fsum(numbers) / size
    if size < fewest:
        few = Missing("undefined", "one seed has no interval") if fewest == 2 else enough(np.ones(size), across)
        assert few is not None
        return Interval(mean, few, few)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (size - 1))
    reach = quantile(0.975, size - 1) * deviation / math.sqrt(size)
    ends = Ends(mean - reach, mean + reach)
    if fewest > 2:
        ends = Ends(max(ends.low, across.low), min(ends.high, across.high))
    return Interval(mean, *ends)


Floats = NDArray[np.float64]

Statistic = Callable[[Floats], Floats]
"""Function from sums, along the last axis, to a figure; NaN where it is undefined."""

DRAWS = 10_000
SEED = 0
FEW = "too few conversations have anything to measure"
LOST = 0.05  # share of draws in which a figure may be undefined
_NUMBERS = 20_000_000  # most numbers in a matrix of draws: for more than 2,000 conversations fewer draws are made
_FEWEST = 1_000
AT_ONCE = 2_000_000  # numbers of a matrix of draws that are in memory together


def by_unit(sums: Floats, units: Sequence[Hashable]) -> Floats:
    """Return what each independent unit adds to the sums, from what each conversation (a row) does."""
    first = {unit: at for at, unit in enumerate(dict.fromkeys(units))}
    added = np.zeros((len(first), *sums.shape[1:]))
    # Not `added[places] += sums`: that would add only the last of several rows of one unit.
    np.add.at(added, np.array([first[unit] for unit in units], np.intp), sums)
    return added


class Resampled(NamedTuple):
    """A figure and its value in every draw."""

    value: float
    drawn: Floats  # values in ascending order
    error: float  # the jackknife's standard error
    bias: float  # BCa's z0
    skew: float  # BCa's acceleration
    size: int  # number of conversations, or units
    freedom: float  # degrees of freedom of the error
    alone: Floats = np.zeros(0)  # the figure of a resample that draws one unit alone, for each; NaN where that has none

    def interval(self, level: float = LEVEL, least: float = -math.inf, weights: Floats | None = None) -> Ends:
        """Return the wider one of the BCa interval and Student's, within what a resample can reach.

        `least` is what the figure cannot be below, and `weights` what each unit has of the whole: with both, it is a
        weighted mean of amounts.
        """
        reach = quantile((1 + level) / 2, self.freedom)
        plain = self.bca(reach * (self.size / (self.size - 1)) ** 0.5)
        ends = widest(plain, Ends(self.value - reach * self.error, self.value + reach * self.error))
        if least > -math.inf and weights is not None:
            ends = ends._replace(high=max(ends.high, self._log_normal(level, least, weights)))
        reached = np.concatenate([self.drawn[[0, -1]], self.alone[~np.isnan(self.alone)], [self.value]])
        return Ends(max(ends.low, float(reached.min())), min(ends.high, float(reached.max())))

    def _log_normal(self, level: float, least: float, weights: Floats) -> float:
        """Return the mean's upper end if amounts above the median are log-normal, by Cox's method (Land, 1972)."""
        amounts, part = self.alone - least, weights / weights.sum()
        amounts, part = amounts[part > 0], part[part > 0]
        order = np.argsort(amounts)
        middle = float(amounts[order][np.searchsorted(part[order].cumsum(), 0.5)])
        if not middle > 0 or not np.isfinite(amounts).all():
            return -math.inf
        effective = 1 / float((part**2).sum())  # units of one weight (Kish)
        above = np.log(np.maximum(amounts, middle) / middle)
        spread = 2 * float((part * above**2).sum()) * effective / (effective - 1)
        error = (spread / effective + spread**2 / (2 * (effective - 1))) ** 0.5
        reach = quantile((1 + level) / 2, self.size - 1) * error
        return least + middle * math.exp(min(spread / 2 + reach, 700.0))

    def bca(self, normal: float) -> Ends:
        """Return the draws at the levels to which BCa moves −normal and +normal."""
        from scipy.special import ndtr

        shifted = self.bias + np.array([-normal, normal])
        stretched = 1 - self.skew * shifted
        levels = ndtr(self.bias + shifted / np.where(stretched > 0, stretched, np.nan))
        outer = np.where(np.isnan(levels), [0.0, 1.0], levels)  # past the pole all draws are within
        return Ends(*(float(end) for end in np.quantile(self.drawn, outer)))


def resampled(sums: Floats, statistic: Statistic, draws: int = DRAWS) -> Resampled | Missing:
    """Bootstrap a figure. `sums`: what each conversation (a row) adds to each sum (a column)."""
    size = len(sums)
    if size < 2:  # nothing can be said of other conversations
        return Missing("undefined", "one conversation" if size else "no conversation")
    value = float(statistic(sums.sum(axis=0)))
    drawn_values = np.concatenate([statistic(drawn @ sums) for drawn in counts(size, SEED, draws)])
    without_one = statistic((sums.sum(axis=0) - sums) * size / (size - 1))  # as many conversations as there are
    if not np.isfinite(without_one).all():
        return Missing("undefined", FEW)
    found = of_draws(value, drawn_values, without_one)
    return found if isinstance(found, Missing) else found._replace(alone=statistic(sums * size))


def of_draws(value: float, draws: Floats, without_one: Floats) -> Resampled | Missing:
    """Return a resampled figure: its value in all, in every draw, and without each conversation or group in turn."""
    size = len(without_one)
    drawn = np.sort(draws[np.isfinite(draws)])
    if not np.isfinite(value) or len(drawn) < (1 - LOST) * len(draws):
        return Missing("undefined", FEW)
    # Efron's sign: what the mean of all is above the figure without a conversation is what that conversation adds.
    off = without_one.mean() - without_one
    spread = float((off**2).sum())
    skew = float((off**3).sum()) / (6 * spread**1.5) if spread else 0.0
    error = ((size - 1) / size * spread) ** 0.5
    return Resampled(value, drawn, error, _bias(drawn, value), skew, size, _freedom(off))


def _freedom(off: Floats) -> float:
    """Return the degrees of freedom of the jackknife's error, by Satterthwaite (1946): at most n − 1.

    They are 2 / (2 / (n − 1) + κ / n) for an excess kurtosis κ of what the conversations add, estimated by Fisher's G2
    (O'Neill, "Some Useful Moment Results in Sampling Problems", 2014).
    """
    size, spread = len(off), float((off**2).sum())
    # G2 divides by n - 3.
    if size < 4 or not spread:
        return float(size - 1)
    excess = size * float((off**4).sum()) / spread**2 - 3
    fisher = (size - 1) / ((size - 2) * (size - 3)) * ((size + 1) * excess + 6)
    return 2 / (2 / (size - 1) + max(fisher, 0.0) / size)


def _bias(drawn: Floats, value: float) -> float:
    """Return how far the median of the draws is from the value, on the normal scale. Draws that equal it are halved."""
    from scipy.special import ndtri

    # Draws that differ from the value by rounding alone are neither above nor below it.
    near = 1e-12 * (abs(value) + float(np.abs(drawn[[0, -1]]).max()))
    # Those below count twice and those that equal it once, hence half of it. `edge` keeps the quantile finite.
    below = np.searchsorted(drawn, value - near, "left") + np.searchsorted(drawn, value + near, "right")
    edge = 0.5 / len(drawn)
    return float(ndtri(np.clip(below / (2 * len(drawn)), edge, 1 - edge)))


def counts(size: int, seed: int, draws: int, width: int = 0) -> Iterator[Floats]:
    """Yield how often each conversation is drawn, a row per draw. `width`: numbers that the statistic makes of one."""
    # The statistic of a draw may be wider than the draw (rank correlation compares all pairs): parts hold the wider
    # one.
    draws = min(draws, max(_FEWEST, _NUMBERS // size))
    rows = min(draws, max(1, AT_ONCE // max(size, width)))
    for part in (_same_parts if draws * size <= _NUMBERS else _parts)(size, seed, draws, rows):
        yield part.astype(np.float64)


# Figures over the same conversations use the same draws. As small numbers, of which a quarter of the memory is enough:
# no conversation is drawn 65,536 times.
@lru_cache(maxsize=4)
def _same_parts(size: int, seed: int, draws: int, rows: int) -> tuple[NDArray[np.uint16], ...]:
    return tuple(part.astype(np.uint16) for part in _parts(size, seed, draws, rows))


def _parts(size: int, seed: int, draws: int, rows: int) -> Iterator[NDArray[np.intp]]:
    """Yield the draws in parts of so many rows."""
    random = np.random.default_rng(seed)
    for begin in range(0, draws, rows):
        part = min(rows, draws - begin)
        # Each row has numbers of its own, `size` from the row before, so one `bincount` counts all rows: 0 to size - 1
        # in row 0, size to 2·size - 1 in row 1.
        picked = random.integers(0, size, (part, size)) + size * np.arange(part)[:, None]
        yield np.bincount(picked.ravel(), minlength=part * size).reshape(part, size)


def mean_of(sums: Floats) -> Floats:
    """Return the first sum over the second: the statistic of a mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = sums[..., 0] / sums[..., 1]
    return means


def over_units(
    table: Floats,
    statistic: Statistic,
    least: float = -math.inf,
    most: float = math.inf,
    weights: Floats | None = None,
    draws: int = DRAWS,
) -> Interval:
    """Return a statistic of column sums with its interval over units (rows), cut off at what is possible.

    From 0 to 1 it is a share, and from −1 to 1 a difference of shares, whose intervals hold at 0 and 1. `weights` is
    what each unit has of the whole, in one column or several; None = the second column, the lower sum of a mean.
    """
    value, alone = float(statistic(table.sum(axis=0))), statistic(table)
    of, fewest = table[:, 1] if weights is None else weights, FEWEST if most < math.inf else FEWEST_OF_RATIOS
    if most == math.inf and weights is None and (of == of[0]).all():  # one amount of each unit, which is its weight
        of, fewest = table[:, 0], FEWEST_OF_AMOUNTS
    few = enough(of, range_of(alone), fewest)
    resamples = resampled(table, statistic, draws) if few is None else few
    if isinstance(resamples, Missing):
        return Interval(value, resamples, resamples)
    of = of.reshape(len(table), -1).sum(axis=1) if fewest < FEWEST_OF_AMOUNTS else np.ones(len(table))
    ends = resamples.interval(LEVEL, least if most == math.inf else -math.inf, of)
    figures = np.nan_to_num(alone)
    if (least, most) == (0.0, 1.0):
        ends = widest(ends, of_share(figures * of, of))
    elif (least, most) == (-1.0, 1.0):
        ends = widest(ends, of_change(value, figures, of))
    return Interval(value, max(least, ends.low), min(most, ends.high))


def range_of(figures: Floats) -> Ends | Missing:
    """Return the least and the greatest of the figures of units that have one."""
    known = figures[np.isfinite(figures)]
    return Ends(float(known.min()), float(known.max())) if len(known) else Missing("undefined", FEW)


def interval(
    values: Sequence[float], groups: Sequence[Hashable], least: float = -math.inf, most: float = math.inf
) -> Interval | Missing:
    """Return the mean of some values, with its interval over their groups: mostly, the questions of a conversation.

    One group has a mean and no interval; no values have neither.
    """
    if not len(values):
        return Missing("undefined", "no values")
    array = finite(values, "values")
    sums = by_unit(np.column_stack([array, np.ones(len(array))]), groups)
    return over_units(sums, mean_of, least, most)._replace(mean=float(array.mean()))


def share_interval(values: Sequence[float], groups: Sequence[Hashable]) -> Interval | Missing:
    """Return the mean of some shares, with its interval over their groups (`of_share`)."""
    return interval(values, groups, 0.0, 1.0)


BY_CONSTRUCTION = Missing("fixed", "it is so by construction, in any recording")
"""Takes the place of the interval of a figure that cannot differ (`metrics.figures.fixed`)."""


def finite(values: Sequence[float] | Floats, field: str) -> Floats:
    """Return the values as an array. Raises ValueError, with the field and place, for a value that is not finite."""
    array = np.asarray(values, np.float64)
    if not np.isfinite(array).all():
        place = tuple(int(at) for at in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{field}[{', '.join(map(str, place))}] is {array[place]}: not a finite number")
    return array

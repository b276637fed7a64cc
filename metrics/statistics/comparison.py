"""Paired comparison of one figure over the same conversations, before and after, and the verdict on the difference."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..value import Form, Missing, Value
from .intervals import (
    ALPHA,
    BY_CONSTRUCTION,
    DRAWS,
    FEWEST,
    FEWEST_OF_AMOUNTS,
    FEWEST_OF_RATIOS,
    Ends,
    Floats,
    by_unit,
    enough,
    finite,
    of_change,
    p_value,
    quantile,
    range_of,
    resampled,
    widest,
)

TWO_SIDED, EQUIVALENCE = 0.95, 0.9
"""Levels of the interval that is shown, and of the one equivalent to two one-sided tests at 5 %."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sums behind a figure (`metrics/value.py`) for each conversation, before and after."""

    form: Form
    before: Floats  # a row per conversation: what it adds to the upper sum, and to the lower one
    after: Floats
    units: Sequence[Hashable] | None = None  # the independent unit of each conversation; None = itself

    def __post_init__(self) -> None:
        """Raise ValueError, naming the field, for a number that is not finite, and for lengths that differ."""
        for name in ("before", "after"):
            object.__setattr__(self, name, finite(getattr(self, name), name).reshape(-1, 2))
        if len(self.before) != len(self.after):
            raise ValueError(f"before has {len(self.before)} conversations, after has {len(self.after)}: no pairs")

    def informative(self) -> Pairs:
        """Return the pairs of conversations whose lower sum is not 0: the others say nothing about a ratio."""
        if self.form == "total":
            return self
        some = (self.before[:, 1] != 0) | (self.after[:, 1] != 0)
        units = None if self.units is None else [unit for unit, here in zip(self.units, some, strict=True) if here]
        return Pairs(self.form, self.before[some], self.after[some], units)

    def by_unit(self) -> Pairs:
        if self.units is None:
            return self
        return Pairs(self.form, by_unit(self.before, self.units), by_unit(self.after, self.units))

    @property
    def still(self) -> bool:
        """Whether no conversation moved."""
        # A total has no lower sum: its second column says nothing.
        sums = slice(1) if self.form == "total" else slice(2)
        return bool((self.before[:, sums] == self.after[:, sums]).all())

    def figures(self) -> tuple[Floats, Floats]:
        """Return the figure of each single conversation, before and after; NaN where it is undefined."""
        return _figures(self.form, self.before), _figures(self.form, self.after)

    def contributions(self) -> Floats:
        """Return what each conversation adds to the difference. Their sum is the difference."""
        if self.form == "total":
            return self.after[:, 0] - self.before[:, 0]
        whole = self.before[:, 1].sum(), self.after[:, 1].sum()
        # Over the lower sum of all, not over its own: so the parts add up to the difference of the two ratios.
        moved: Floats = self.after[:, 0] / (whole[1] or np.nan) - self.before[:, 0] / (whole[0] or np.nan)
        return -moved if self.form == "saving" else moved


def in_both(before: Floats, after: Floats) -> NDArray[np.bool_]:
    """Return which conversations (rows) have a figure before and after: only they can be paired."""
    return np.asarray(np.isfinite(np.hstack([before, after])).all(axis=1))


class TypicalChange(NamedTuple):
    """Relative change of a total in the typical conversation: the geometric mean of after / before, less 1."""

    value: float
    shown: Ends  # the 95 % interval
    error: float  # standard error of the mean log ratio
    p: float  # two-sided p-value of no change


class Difference(NamedTuple):
    """After − before, or with `relative` after / before − 1."""

    conversations: int
    units: int
    before: Value
    after: Value
    relative: bool
    value: Value
    across: Ends | Missing  # the least and the greatest change of a single unit
    shown: Ends | Missing  # the 95 % interval; Missing `few` where too few units carry the figure (`intervals.enough`)
    tested: Ends | Missing
    """The 90 % interval: within the margin, the two are equivalent at 5 %. Of shares it holds what a conversation may
    lose that is none of these, so that it can be the wider one."""
    error: Value  # standard error of what was tested
    p: Value
    typical: TypicalChange | None = None
    """Change that was tested instead of the difference, where a few long conversations decide a total."""
    is_share: bool = False  # whether it is one of shares: then an unseen conversation may lose all

    @property
    def nothing(self) -> bool:
        """Whether no conversation moved."""
        return self.across == (0, 0)


def difference(pairs: Pairs, relative: bool = False, draws: int = DRAWS) -> Difference:
    """Return how far a figure moved, with intervals over conversations. A figure that was 0 gets the plain difference.

    Values that cannot be estimated are Missing: with a single conversation all but the difference itself.
    """
    some = pairs.informative()
    # Counted and summed before conversations of one unit are added up: `by_unit` keeps sums, not their number.
    before, after = _figures(some.form, some.before.sum(axis=0)), _figures(some.form, some.after.sum(axis=0))
    size, still, some = len(some.before), some.still, some.by_unit()
    units = len(some.before)
    if not np.isfinite(before) or not np.isfinite(after):
        none = Missing("undefined", "nothing to measure on one of the two sides" if size else "nothing to measure")
        sides: list[Value] = [none if np.isnan(number) else float(number) for number in (before, after)]
        return Difference(size, units, sides[0], sides[1], relative, none, none, none, none, none, none)
    # Columns: upper and lower sum before, upper and lower sum after. A draw takes both sides of a conversation, which
    # is what makes it paired.
    sums = np.hstack([some.before, some.after])
    tops, of = sums[:, ::2], sums[:, 1::2]
    # Whole numbers that are not compared as a share of what they were count events.
    events = some.form == "total" and not relative and bool((tops == np.rint(tops)).all())
    # From 0 on there is no relative change, and `judge` then takes no relative margin either.
    relative = relative and bool(before)
    shares = some.form != "total" and not relative and bool(((tops >= 0) & (tops <= of)).all())
    # A ratio of sums, not a sum of differences over a fixed total: 2 % more in conversations of any size is then 2 %
    # without any spread (decision 27).
    value, moved = float(after / before - 1 if relative else after - before), _moved(some.form, sums, relative)
    figures = partial(
        Difference,
        size,
        units,
        float(before),
        float(after),
        relative,
        value,
        across := range_of(moved),
        is_share=shares,
    )
    if some.form != "total":
        few = enough(of, across, FEWEST if shares else FEWEST_OF_RATIOS)
    elif relative:
        few = enough(tops[:, 0], across, FEWEST_OF_RATIOS)
    else:
        few = enough(np.abs(tops).sum(axis=1), across, FEWEST if before or events else FEWEST_OF_AMOUNTS)
    if few is not None:
        none = Missing("few", few.detail)
        return figures(few, few, none, none)

    def around(ends: Ends, level: float) -> Ends:
        """Return the interval with what it must hold where few units moved, of shares and of events."""
        if not events and not shares:
            return ends
        weights = (of / of.sum(axis=0)).mean(axis=1) if shares else None
        largest = 1.0 if level == EQUIVALENCE else 0.0  # two are the same only if no unseen conversation may lose all
        low, high = widest(ends, of_change(value, np.nan_to_num(moved), weights, level, largest))
        # From nothing there is no way down, from all none up, and no share changes by more than all.
        least, most = (-1.0 if shares else -np.inf), (float(before < 1) if shares else np.inf)
        return Ends(max(low, least if before else 0.0), min(high, most))

    levels = TWO_SIDED, EQUIVALENCE
    if still:
        shown, tested = (around(Ends(0.0, 0.0), level) for level in levels)
        return figures(shown, tested, 0.0, 1.0)
    drawn = resampled(sums, lambda resample: _moved(some.form, resample, relative), draws)
    if isinstance(drawn, Missing):
        return figures(drawn, drawn, drawn, drawn)
    least = -1.0 if relative and (sums >= 0).all() else -np.inf  # nothing falls by more than all of it
    shown, tested = (around(drawn.interval(level, least, tops[:, 0]), level) for level in levels)
    typical = _typical(some) if relative else None
    if typical is not None:
        return figures(shown, tested, typical.error, typical.p, typical)
    p = p_value(value, drawn.error, drawn.freedom)
    return figures(shown, tested, drawn.error, p)


def _typical(pairs: Pairs) -> TypicalChange | None:
    """Return the change of a total in the typical conversation; None for other figures, and where one is 0.

    Conversations differ in size by orders of magnitude, and noise is in proportion to it. Log ratios are alike, and
    Student's test of their mean raises fewer false alarms than that of the total, with more power (decision 27).
    """
    before, after = pairs.before[:, 0], pairs.after[:, 0]
    if pairs.form != "total" or (before <= 0).any() or (after <= 0).any():
        return None
    ratios, size = np.log(after / before), len(before)
    mean, error = float(ratios.mean()), float(ratios.std(ddof=1)) / size**0.5
    reach = quantile((1 + TWO_SIDED) / 2, size - 1) * error
    # As any interval, within what a resample can reach.
    low, high = max(mean - reach, float(ratios.min())), min(mean + reach, float(ratios.max()))
    ends = Ends(float(np.expm1(low)), float(np.expm1(high)))
    return TypicalChange(float(np.expm1(mean)), ends, error, p_value(mean, error, size - 1))


def _figures(form: Form, sums: Floats) -> Floats:
    """Return the figures that sums make (`value.value`, over arrays); NaN where it is undefined."""
    if form == "total":
        return sums[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.where(sums[..., 1] != 0, sums[..., 0] / sums[..., 1], np.nan)
    return 1 - ratio if form == "saving" else ratio


def _moved(form: Form, sums: Floats, relative: bool) -> Floats:
    before, after = _figures(form, sums[..., :2]), _figures(form, sums[..., 2:])
    if not relative:
        return after - before
    with np.errstate(divide="ignore", invalid="ignore"):
        return after / before - 1


Word = Literal["better", "same", "worse", "cannot tell", "lost", "new", "incomparable"]
Direction = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Margin:
    """Largest change that counts as the same: in the unit of the figure, or as a share of the figure before."""

    amount: float
    relative: bool = False


BY_UNIT = {
    "share": Margin(0.01),
    "tokens": Margin(0.01, relative=True),
    "usd": Margin(0.01, relative=True),
    "times": Margin(0.01, relative=True),
    "us": Margin(0.1, relative=True),
}
"""Default margins by unit. Any other unit is a count, and may not move at all."""


def usual_margin(unit: str) -> Margin:
    """Return the default margin of a figure."""
    return BY_UNIT.get(unit, Margin(0.0))


class Verdict(NamedTuple):
    """A word and the reason for it; `no_worse`: certainly not worse by more than the margin."""

    word: Word
    why: str = ""
    no_worse: bool = False


def judge(
    change: Difference, margin: Margin, better: Direction, p: float | None = None, alpha: float = ALPHA
) -> Verdict:
    """Return the verdict on a difference. `p`: its p-value adjusted for other comparisons; None = it is the only one.

    better, worse   The 95 % interval is on one side of 0, the difference is larger than the margin, and the p-value is
                    below `alpha`. Of a total that the typical conversation was tested for, the interval is that
                    conversation's, and the total has moved in the same direction.
    same            The 90 % interval is within the margin: two one-sided tests at 5 % say so. Not adjusted for other
                    comparisons: it raises no alarm. Where nothing moved, and of shares always, as many conversations
                    as have to be seen that no more than the margin can move, or be lost whole, elsewhere: 59 for 5 %.
    cannot tell     Everything else.
    """
    if isinstance(change.value, Missing):
        return Verdict("cannot tell", change.value.detail)
    if change.shown == BY_CONSTRUCTION:
        return Verdict("same", "by construction", True)
    if isinstance(change.shown, Missing) or isinstance(change.tested, Missing) or isinstance(change.p, Missing):
        return Verdict("cannot tell", change.shown.detail if isinstance(change.shown, Missing) else "")
    # A share of what was 0 is 0: then nothing is allowed.
    allowed = margin.amount if change.relative or not margin.relative else 0.0
    sign = 1 if better == "higher" else -1
    # From here on more is better, for every figure.
    gain, shown, tested = sign * change.value, _turned(change.shown, sign), _turned(change.tested, sign)
    rest = 1 - alpha ** (1 / change.units)  # of others so many may do, at 95 %, what none of these did
    unknown = (change.nothing or change.is_share) and rest > allowed
    no_worse = tested.low >= -allowed and not unknown
    # First: what differs for certain, but by less than the margin, is the same and no alarm.
    if no_worse and tested.high <= allowed:
        return Verdict("same", "", True)
    if change.nothing and unknown:
        return Verdict("cannot tell", f"nothing moved here; of others up to {100 * rest:.0f} % may")
    if change.typical is not None:
        shown = _turned(change.typical.shown, sign)
    beyond, one_sided = abs(gain) > allowed, shown.low > 0 or shown.high < 0
    word: Word = "better" if gain > 0 else "worse"
    # The test is of the typical conversation and the alarm is about the total: both have to move in one direction.
    if change.typical is not None and one_sided and change.typical.value * change.value < 0:
        return Verdict("cannot tell", "the total moved one way, the typical conversation the other", no_worse)
    if one_sided and beyond and (change.p if p is None else p) < alpha:
        certain = change.shown.low > 0 or change.shown.high < 0
        why = "" if certain else "so is the typical conversation; the total depends on a few long ones"
        return Verdict(word, why, no_worse)
    if unknown and tested.low >= -allowed and tested.high <= allowed:
        doubt = f"the same here; of others up to {100 * rest:.0f} % may be lost whole"
    elif not one_sided:
        doubt = "the interval has both signs"
    elif not beyond:
        doubt = f"{word}, but by less than the margin as far as is known"
    else:
        doubt = f"{word} if it were the only comparison: among so many this much happens by chance"
    return Verdict("cannot tell", doubt, no_worse)


def _turned(ends: Ends, sign: int) -> Ends:
    return ends if sign > 0 else Ends(-ends.high, -ends.low)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for each other: of those below α, none is wrong with probability 1 − α.

    This holds under any dependence (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979).
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    most = 0.0
    for rank, at in enumerate(order):
        # 0.01, 0.03 and 0.04 times 3, 2 and 1 are 0.03, 0.06 and 0.04. An adjusted value is never below that of a
        # smaller p-value, so the last is 0.06 as well.
        most = max(most, min(1.0, p_values[at] * (len(order) - rank)))
        adjusted[at] = most
    return adjusted

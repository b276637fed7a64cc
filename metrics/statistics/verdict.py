"""From a difference, a margin and a direction to a word. A pure function: printing and exit codes are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..value import Missing
from .bootstrap import Ends
from .paired import Difference
from .student import ALPHA

Word = Literal["better", "same", "worse", "cannot tell", "lost", "new", "incomparable"]
Direction = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a figure may move and count as the same: in its own unit, or as a share of what it was."""

    amount: float
    relative: bool = False


BY_UNIT = {
    "share": Margin(0.01),
    "tokens": Margin(0.01, relative=True),
    "usd": Margin(0.01, relative=True),
    "us": Margin(0.1, relative=True),
}
"""The margins of those who name none. What has another unit is counted, and may not move at all."""


def usual_margin(unit: str) -> Margin:
    """The margin of a figure for which none was named."""
    return BY_UNIT.get(unit, Margin(0.0))


class Verdict(NamedTuple):
    """A word and the reason for it; `no_worse` whether it is certain that it is no worse than by the margin."""

    word: Word
    why: str = ""
    no_worse: bool = False


def judge(
    found: Difference, margin: Margin, better: Direction, p: float | None = None, alpha: float = ALPHA
) -> Verdict:
    """The verdict on a difference. `p`: its p-value adjusted for other comparisons; None = it is the only one.

    better, worse   The 95 % interval is on one side of 0, the difference is larger than the margin, and the p-value is
                    below `alpha`.
    same            The 90 % interval is within the margin: two one-sided tests at 5 % say so. Not adjusted for other
                    comparisons: it raises no alarm.
    cannot tell     Everything else.
    """
    if isinstance(found.value, Missing):
        return Verdict("cannot tell", found.value.detail)
    if isinstance(found.shown, Missing) or isinstance(found.tested, Missing) or isinstance(found.p, Missing):
        return Verdict("cannot tell", found.shown.detail if isinstance(found.shown, Missing) else "")
    allowed = margin.amount if found.relative or not margin.relative else 0.0
    sign = 1 if better == "higher" else -1
    gain, shown, tested = sign * found.value, _turned(found.shown, sign), _turned(found.tested, sign)
    no_worse = tested.low >= -allowed
    if no_worse and tested.high <= allowed:
        return Verdict("same", "", True)
    beyond, one_sided = abs(gain) > allowed, shown.low > 0 or shown.high < 0
    if one_sided and beyond and (found.p if p is None else p) < alpha:
        return Verdict("better" if gain > 0 else "worse", "", no_worse)
    return Verdict("cannot tell", _doubt(one_sided, beyond, gain), no_worse)


def _turned(ends: Ends, sign: int) -> Ends:
    return ends if sign > 0 else Ends(-ends.high, -ends.low)


def _doubt(one_sided: bool, beyond: bool, gain: float) -> str:
    """Why it is not known."""
    if not one_sided:
        return "the interval has both signs"
    word = "better" if gain > 0 else "worse"
    if not beyond:
        return f"{word}, but by less than the margin as far as is known"
    return f"{word} if it were the only comparison: among so many this much happens by chance"

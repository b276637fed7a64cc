"""Define a claim's rows and their verdicts, which are decided by intervals and never by a point.

holds         every interval that decides lies within what is claimed
fails         one of them lies wholly outside
cannot tell   everything else: an interval on both sides, or nothing that could be measured
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from ctxbench.metrics.statistics.intervals import Ends, Interval, ends_of
from ctxbench.metrics.value import Missing, Value

Verdict = Literal["holds", "fails", "cannot tell"]
Unit = Literal["share", "points", "tokens", "ms", "us", "MB/s", "times", "count"]
"""`points` is a difference of shares; `times` is one size, or time, over another."""


class Claimed(msgspec.Struct, frozen=True):
    """The range that a figure is claimed to lie in, in the figure's unit; None = no end on that side."""

    least: float | None = None
    most: float | None = None
    upper: float | None = None  # the upper end of a promised range: exceeding it is no failure, but is reported
    above: bool = False  # whether the figure must be more than `least`, not equal to it


class Measured(NamedTuple):
    """A figure of a claim as it was measured; what is claimed of it stands in `claims.toml`."""

    figure: str  # its key among the claim's figures
    setting: str
    found: Interval | Missing  # an exact figure has its value as both ends
    of: str = ""  # the sample that the interval is over: 24 conversations, 5 seeds
    bound: Value | None = None  # the value that no method can exceed; None where no bound is known


class ClaimRow(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a claim: the measured figure and the claimed range."""

    setting: str
    figure: str
    unit: Unit = "share"
    found: Interval | Missing
    claimed: Claimed | None = None  # None = nothing is claimed of it: it is shown beside the rows that decide
    bound: Value | None = None
    of: str = ""
    decides: bool = True  # whether it is the claim's own setting
    timed: bool = False  # whether it was measured by the wall clock: another machine, or moment, gives other figures

    @property
    def verdict(self) -> Verdict | None:
        """Verdict of this row alone, or None where nothing is claimed."""
        return None if self.claimed is None else judged(self.found, self.claimed)


class Finding(msgspec.Struct, frozen=True):
    """A claim with its verdict, as it is stored and shown."""

    id: str
    claim: str
    source: str
    protocol: str
    verdict: Verdict
    why: str
    rows: tuple[ClaimRow, ...]
    needed: str = ""

    @property
    def timed(self) -> bool:
        """Whether the verdict rests on the wall clock."""
        return any(row.timed for row in self.rows if row.decides and row.claimed is not None)

    @property
    def deciding(self) -> ClaimRow | None:
        """First row that decides the verdict."""
        return decisive(self.rows, self.verdict)


def judged(figure: Interval | Missing, claimed: Claimed) -> Verdict:
    """Return the verdict on one interval against the claimed range."""
    interval, least, most = ends_of(figure), claimed.least, claimed.most
    if isinstance(interval, Missing):  # a point alone decides nothing, however far off it is (decision 29)
        return "cannot tell"

    def side(end: float) -> int:
        if least is not None and (end <= least if claimed.above else end < least):
            return -1
        return int(most is not None and end > most)

    sides = set(map(side, interval))
    return "holds" if sides == {0} else "fails" if len(sides) == 1 else "cannot tell"


def verdict_of(rows: Sequence[ClaimRow]) -> Verdict:
    """Return the verdict by the rows that decide: all must hold, and no rows prove nothing."""
    verdicts = {row.verdict for row in rows if row.decides and row.claimed is not None}
    return "fails" if "fails" in verdicts else "holds" if verdicts == {"holds"} else "cannot tell"


def decisive(rows: Sequence[ClaimRow], verdict: Verdict) -> ClaimRow | None:
    """Return the first row that decides the verdict, or None."""
    return next((row for row in rows if row.decides and row.verdict == verdict), None)


def exact(value: float) -> Interval:
    """Return an interval for a figure that is known exactly."""
    return Interval(*[float(value)] * 3)


def exactly(found: Interval | Missing) -> Interval | Missing:
    """Return the figure of a claim of "never" or "always" without interval: one exception refutes it."""
    return exact(found.mean) if isinstance(found, Interval) and not isinstance(found.low, Missing) else found


def sentence(rows: Sequence[ClaimRow], verdict: Verdict) -> str:
    """Return why the verdict is what it is: the row that decides, then what should have decided and was not measured.

    A verdict never rests silently on what is installed: other rows may decide it, but the missing ones are named.
    """
    row = decisive(rows, verdict)
    unmeasured = [other for other in rows if other.decides and other.claimed and isinstance(other.found, Missing)]
    return " ".join(map(_in_words, dict.fromkeys([row, *unmeasured] if row else unmeasured)))


def _in_words(row: ClaimRow) -> str:
    head, figure, claimed = f"{row.setting}: {row.figure}", row.found, row.claimed
    assert claimed is not None
    if isinstance(figure, Missing):
        return f"{head} is not measured: {figure.detail or figure.why}."
    interval_ends = ends_of(figure)
    if isinstance(interval_ends, Missing):
        return f"{head} is {shown(figure.mean, row.unit)}, without an interval: {interval_ends.detail}."
    claimed_range = ends(claimed, row.unit)
    where = f"on both sides of {claimed_range}"
    if row.verdict == "fails":
        where = f"not {claimed_range.removeprefix('= ')}"
    elif row.verdict == "holds":
        where = f"within {claimed_range}"
        if claimed.upper is not None and interval_ends.high > claimed.upper:
            where += f", and {'' if interval_ends.low > claimed.upper else 'may be '}above its upper end"
    return f"{head} is {interval(figure, row.unit)}, {where}."


def ends(claimed: Claimed, unit: Unit) -> str:
    """Return a range in words: ≥ 30 % (to 60 %)."""
    if claimed.least is not None and claimed.least == claimed.most:
        return f"= {shown(claimed.least, unit)}"
    least = [] if claimed.least is None else [f"{'>' if claimed.above else '≥'} {shown(claimed.least, unit)}"]
    most = [] if claimed.most is None else [f"≤ {shown(claimed.most, unit)}"]
    upper = "" if claimed.upper is None else f" (to {shown(claimed.upper, unit)})"
    return " and ".join(least + most) + upper


def interval(figure: Interval, unit: Unit) -> str:
    """Return a value with its interval, 86.8 % (80.1 to 91.2 %), or with its range [ ]; an exact value stands alone."""
    mean, interval_ends, brackets = shown(figure.mean, unit), ends_of(figure), "()"
    if isinstance(interval_ends, Missing) and isinstance(interval_ends.across, tuple):
        interval_ends, brackets = Ends(*interval_ends.across), "[]"
    if isinstance(interval_ends, Missing) or set(interval_ends) == {figure.mean}:
        return mean
    low, high = (shown(end, unit) for end in interval_ends)
    number, _, word = low.partition(" ")
    return f"{mean} {brackets[0]}{number if high.endswith(f' {word}') else low} to {high}{brackets[1]}"


def shown(value: float, unit: Unit) -> str:
    """Return a figure in its unit."""
    match unit:
        case "share":
            text = f"{100 * value:.1f} %"
        case "points":
            text = f"{'+' if value > 0 else ''}{100 * value:.1f} points"
        case "tokens" | "count":
            text = f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:,.1f}"
            text += " tokens" if unit == "tokens" else ""
        case "times":
            text = f"{value:.2f}×" if abs(value) < 100 else f"{value:,.0f}×"
        case "us":
            text = f"{value:,.1f} µs"
        case _:
            text = f"{value:,.{2 if unit == 'ms' else 0}f} {unit}"
    return text.replace("-", "−")

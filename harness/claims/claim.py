"""Define a claim, its measurement and its verdict, which is decided by intervals and never by a point.

holds         every interval that decides lies within what is claimed
fails         one of them lies wholly outside
cannot tell   everything else: an interval on both sides, or nothing that could be measured
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing, Value

Verdict = Literal["holds", "fails", "cannot tell"]
Unit = Literal["share", "points", "tokens", "ms", "us", "MB/s", "times", "count"]
"""`points` is a difference of shares; `times` is one size, or time, over another."""


class Claimed(msgspec.Struct, frozen=True):
    """The range that a figure is claimed to lie in, in the figure's unit; None = no end on that side."""

    least: float | None = None
    most: float | None = None
    upper: float | None = None
    """The upper end of a promised range: exceeding it is no failure, but is reported."""
    above: bool = False
    """Whether the figure must be more than `least`, not equal to it."""


class ClaimRow(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a claim: the measured figure and the claimed range."""

    setting: str
    figure: str
    unit: Unit = "share"
    found: Interval | Missing
    """An exact figure has its value as both ends."""
    claimed: Claimed | None = None
    """None = nothing is claimed of it: it is shown beside the rows that decide."""
    bound: Value | None = None
    """The value that no method can exceed; None where no bound is known."""
    of: str = ""
    """The sample that the interval is over: 24 conversations, 5 seeds."""
    decides: bool = True
    """Whether it is the claim's own setting."""
    timed: bool = False
    """Whether it was measured by the wall clock: another machine, or moment, gives other figures."""

    @property
    def verdict(self) -> Verdict | None:
        """Verdict of this row alone, or None where nothing is claimed."""
        return None if self.claimed is None else judged(self.found, self.claimed)


class Measurement(msgspec.Struct, frozen=True):
    """The rows that a claim's protocol measured, and what its remark says besides."""

    rows: tuple[ClaimRow, ...] = ()
    values: Mapping[str, float | str] = {}
    """Values of the names in braces in the claim's remark (`data/claims.toml`)."""


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
        """The row that decides the verdict."""
        return decisive(self.rows, self.verdict)


def judged(figure: Interval | Missing, claimed: Claimed) -> Verdict:
    """Return the verdict on one interval against the claimed range."""
    # A point alone never decides, however far it is from what is claimed (decision 29).
    if isinstance(figure, Missing) or isinstance(figure.low, Missing) or isinstance(figure.high, Missing):
        return "cannot tell"
    verdicts: list[Verdict] = []
    if claimed.least is not None:
        verdicts.append(_at_least(figure.low, figure.high, claimed.least, claimed.above))
    if claimed.most is not None:
        # x ≤ most is -x ≥ -most: the ends change places with their signs.
        verdicts.append(_at_least(-figure.high, -figure.low, -claimed.most, False))
    return together(verdicts)


def _at_least(low: float, high: float, least: float, above: bool) -> Verdict:
    if above:
        return "holds" if low > least else "fails" if high <= least else "cannot tell"
    return "holds" if low >= least else "fails" if high < least else "cannot tell"


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on several rows: all must hold, and no rows prove nothing."""
    if "fails" in verdicts:
        return "fails"
    # No rows would make `all` true.
    return "holds" if verdicts and all(verdict == "holds" for verdict in verdicts) else "cannot tell"


def verdict_of(rows: Sequence[ClaimRow]) -> Verdict:
    """Return the verdict by the rows that decide."""
    return together([row.verdict for row in rows if row.decides and row.verdict is not None])


def decisive(rows: Sequence[ClaimRow], verdict: Verdict) -> ClaimRow | None:
    """Return the first row that makes the verdict what it is, or None."""
    return next((row for row in rows if row.decides and row.verdict == verdict), None)


def exact(value: float) -> Interval:
    """Return an interval for a figure that is known exactly."""
    return Interval(value, value, value)


def without_extra(extra: str) -> Missing:
    """Return the figure of a row that cannot be measured until an extra is installed."""
    return Missing("unsupported", f"needs the extra `{extra}`")


def sentence(rows: Sequence[ClaimRow], verdict: Verdict) -> str:
    """Return why the verdict is what it is: the row that decides, then what should have decided and was not measured.

    A verdict never rests silently on what is installed: other rows may decide it, but the missing ones are named.
    """
    row = decisive(rows, verdict)
    said = [] if row is None else [_on(row)]
    said += [_on(other) for other in rows if _unmeasured(other) and other is not row]
    return " ".join(said)


def _unmeasured(row: ClaimRow) -> bool:
    return row.decides and row.claimed is not None and isinstance(row.found, Missing)


def _on(row: ClaimRow) -> str:
    head = f"{row.setting}: {row.figure}"
    if isinstance(row.found, Missing):
        return f"{head} is not measured: {row.found.detail or row.found.why}."
    if isinstance(row.found.low, Missing):
        return f"{head} is {shown(row.found.mean, row.unit)}, without an interval: {row.found.low.detail}."
    return f"{head} is {interval(row.found, row.unit)}, {where(row)}."


def where(row: ClaimRow) -> str:
    """Return where an interval lies against the claimed range."""
    claimed, figure = row.claimed, row.found
    assert claimed is not None
    assert not isinstance(figure, Missing)
    claimed_range = ends(claimed, row.unit)
    match row.verdict:
        case "fails":
            return f"not {claimed_range.removeprefix('= ')}"
        case "holds":
            return f"within {claimed_range}{_past_upper(figure, claimed)}"
        case _:
            return f"on both sides of {claimed_range}"


def _past_upper(figure: Interval, claimed: Claimed) -> str:
    """Return whether the figure is past the upper end of the range as well."""
    if claimed.upper is None or isinstance(figure.low, Missing) or isinstance(figure.high, Missing):
        return ""
    if figure.low > claimed.upper:
        return ", and above its upper end"
    return "" if figure.high <= claimed.upper else ", and may be above its upper end"


def ends(claimed: Claimed, unit: Unit) -> str:
    """Return a range in words: ≥ 30 % (to 60 %)."""
    if claimed.least is not None and claimed.least == claimed.most:
        return f"= {shown(claimed.least, unit)}"
    parts = []
    if claimed.least is not None:
        parts.append(f"{'>' if claimed.above else '≥'} {shown(claimed.least, unit)}")
    if claimed.most is not None:
        parts.append(f"≤ {shown(claimed.most, unit)}")
    words = " and ".join(parts)
    return words if claimed.upper is None else f"{words} (to {shown(claimed.upper, unit)})"


def interval(figure: Interval, unit: Unit) -> str:
    """Return a value with its interval: 86.8 % (80.1 to 91.2 %). An exact value stands alone."""
    if isinstance(figure.low, Missing) or isinstance(figure.high, Missing):
        return shown(figure.mean, unit)
    if figure.low == figure.mean == figure.high:
        return shown(figure.mean, unit)
    mean, low, high = (shown(value, unit) for value in (figure.mean, figure.low, figure.high))
    number, _, word = low.partition(" ")
    return f"{mean} ({number if high.endswith(f' {word}') else low} to {high})"


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
        case "ms":
            text = f"{value:,.2f} ms"
        case "MB/s":
            text = f"{value:,.0f} MB/s"
    return text.replace("-", "−")

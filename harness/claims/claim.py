"""What a claim is, what was measured of it, and the verdict: decided by intervals, never by a point.

holds         every interval that decides lies within what is claimed
fails         one of them lies wholly outside
cannot tell   everything else: an interval on both sides, or nothing that could be measured
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from ...metrics.statistics.intervals import Interval
from ...metrics.value import Missing, Value
from ...scenarios.errors import UserError

if TYPE_CHECKING:
    from .inputs import ClaimInputs


Verdict = Literal["holds", "fails", "cannot tell"]
Unit = Literal["share", "points", "tokens", "ms", "us", "MB/s", "times", "count"]
"""points: a difference of shares. times: one size, or time, over another."""


class Claimed(msgspec.Struct, frozen=True):
    """What a figure is claimed to be. All ends are in the figure's unit; None = it has none there."""

    least: float | None = None
    most: float | None = None
    upper: float | None = None
    """The upper end of a range that is promised: more than it is no failure, and is said."""
    above: bool = False
    """Whether it must be more than `least`, and not as much."""


class ClaimRow(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a claim: what was measured, and what was claimed of it."""

    setting: str
    figure: str
    unit: Unit
    found: Interval | Missing
    """What is exact has its value as both ends."""
    claimed: Claimed | None = None
    """None = nothing is claimed of it: it is shown beside what decides."""
    bound: Value | None = None
    """What no method can exceed; None where no bound is known."""
    of: str = ""
    """Over what the interval is: 24 conversations, 5 seeds."""
    decides: bool = True
    """Whether it is the claim's own setting."""
    timed: bool = False
    """By the clock on the wall: another machine, or moment, has other figures."""

    @property
    def verdict(self) -> Verdict | None:
        """Of this row alone; None where nothing is claimed."""
        return None if self.claimed is None else judged(self.found, self.claimed)


class Measurement(msgspec.Struct, frozen=True):
    """What came of a claim's protocol."""

    rows: tuple[ClaimRow, ...] = ()
    remark: str = ""
    """What is to be known beside the figures, in a sentence."""
    needed: str = ""
    """What would have to be there, where it fails or cannot be told."""


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
        """Whether the verdict rests on the clock."""
        return any(row.timed for row in self.rows if row.decides and row.claimed is not None)

    @property
    def deciding(self) -> ClaimRow | None:
        """The row that the verdict is by."""
        return decisive(self.rows, self.verdict)


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of the register."""

    id: str
    claim: str
    source: str
    """Design document and section."""
    protocol: str
    measure: Callable[[ClaimInputs], Measurement]
    strategies: tuple[str, ...] = ()
    """What must have been run on the run's own conversations; what has not is run beside it."""
    slow: bool = False
    """Whether `--quick` leaves it out."""

    def found(self, inputs: ClaimInputs) -> Finding:
        """Measure it. What cannot be measured says why, and keeps no other claim from being measured."""
        if self.slow and inputs.quick:
            made = Measurement((), "Left out by --quick: it takes most of a minute or more.", "A run without --quick.")
        else:
            try:
                made = self.measure(inputs)
            except UserError as error:
                made = Measurement((), f"It cannot be measured: {error}.")
        verdict = verdict_of(made.rows)
        why = " ".join(part for part in (sentence(made.rows, verdict), made.remark) if part)
        needed = "" if verdict == "holds" else made.needed
        return Finding(self.id, self.claim, self.source, self.protocol, verdict, why, made.rows, needed)


def judged(found: Interval | Missing, claimed: Claimed) -> Verdict:
    """One interval against what is claimed."""
    if isinstance(found, Missing) or isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return "cannot tell"
    words: list[Verdict] = []
    if claimed.least is not None:
        words.append(_at_least(found.low, found.high, claimed.least, claimed.above))
    if claimed.most is not None:
        words.append(_at_least(-found.high, -found.low, -claimed.most, False))
    return together(words)


def _at_least(low: float, high: float, least: float, above: bool) -> Verdict:
    if above:
        return "holds" if low > least else "fails" if high <= least else "cannot tell"
    return "holds" if low >= least else "fails" if high < least else "cannot tell"


def together(words: Sequence[Verdict]) -> Verdict:
    """All must hold. Nothing is no proof."""
    if "fails" in words:
        return "fails"
    return "holds" if words and all(word == "holds" for word in words) else "cannot tell"


def verdict_of(rows: Sequence[ClaimRow]) -> Verdict:
    """By the rows that decide."""
    return together([row.verdict for row in rows if row.decides and row.verdict is not None])


def decisive(rows: Sequence[ClaimRow], verdict: Verdict) -> ClaimRow | None:
    """The first row that makes the verdict what it is."""
    return next((row for row in rows if row.decides and row.verdict == verdict), None)


def exact(value: float) -> Interval:
    """What is known without any chance."""
    return Interval(value, value, value)


def sentence(rows: Sequence[ClaimRow], verdict: Verdict) -> str:
    """Why the verdict is what it is: of the row that decides."""
    row = decisive(rows, verdict)
    if row is None or row.claimed is None:
        return ""
    head = f"{row.setting}: {row.figure}"
    if isinstance(row.found, Missing):
        return f"{head} cannot be had: {row.found.detail or row.found.why}."
    if isinstance(row.found.low, Missing):
        return f"{head} is {shown(row.found.mean, row.unit)}, without an interval: {row.found.low.detail}."
    return f"{head} is {interval(row.found, row.unit)}, {where(row)}."


def where(row: ClaimRow) -> str:
    """Where an interval lies against what is claimed."""
    claimed, found = row.claimed, row.found
    assert claimed is not None
    assert not isinstance(found, Missing)
    words = ends(claimed, row.unit)
    match row.verdict:
        case "fails":
            return f"not {words.removeprefix('= ')}"
        case "holds":
            return f"within {words}{_against(found, claimed)}"
        case _:
            return f"on both sides of {words}"


def _against(found: Interval, claimed: Claimed) -> str:
    """Whether it is past the upper end of the range too."""
    if claimed.upper is None or isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return ""
    if found.low > claimed.upper:
        return ", and above its upper end"
    return "" if found.high <= claimed.upper else ", and may be above its upper end"


def ends(claimed: Claimed, unit: Unit) -> str:
    """A range in words: ≥ 30 % (to 60 %)."""
    if claimed.least is not None and claimed.least == claimed.most:
        return f"= {shown(claimed.least, unit)}"
    parts = []
    if claimed.least is not None:
        parts.append(f"{'>' if claimed.above else '≥'} {shown(claimed.least, unit)}")
    if claimed.most is not None:
        parts.append(f"≤ {shown(claimed.most, unit)}")
    words = " and ".join(parts)
    return words if claimed.upper is None else f"{words} (to {shown(claimed.upper, unit)})"


def interval(found: Interval, unit: Unit) -> str:
    """A value with its interval: 86.8 % (80.1 to 91.2 %). An exact one is its value alone."""
    if isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return shown(found.mean, unit)
    if found.low == found.mean == found.high:
        return shown(found.mean, unit)
    mean, low, high = (shown(value, unit) for value in (found.mean, found.low, found.high))
    number, _, word = low.partition(" ")
    return f"{mean} ({number if high.endswith(f' {word}') else low} to {high})"


def shown(value: float, unit: Unit) -> str:
    """A figure in its unit."""
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

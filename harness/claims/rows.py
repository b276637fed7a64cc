"""A run's figures as rows: by strategy, in pairs of strategies, and by turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...metrics.statistics.bootstrap import Floats, mean_of, resampled
from ...metrics.statistics.comparison import Pairs, difference
from ...metrics.statistics.intervals import Interval
from ...metrics.value import Form, Missing
from ..compare.figures import MeasuredRun as Figures
from .claim import Claimed, ClaimRow, Unit
from .inputs import ClaimInputs


def of_sums(sums: Floats, form: Form) -> Interval | Missing:
    """A figure with its interval, from what each conversation (a row) adds to its two sums.

    Conversations in which there is nothing to measure are left out.
    """
    if form == "total":
        raise ValueError("a total has no interval over conversations: it is theirs all")
    some = sums[np.isfinite(sums).all(axis=1) & (sums[:, 1] != 0)]
    if not len(some):
        return Missing("undefined", "there is nothing to measure")

    def statistic(each: Floats) -> Floats:
        found = mean_of(each)
        return 1 - found if form == "saving" else found

    value = float(statistic(some.sum(axis=0)))
    found = resampled(some, statistic)
    if isinstance(found, Missing):
        return Interval(value, found, found)
    low, high = _possible(some, form)
    ends = found.interval()
    return Interval(value, max(low, ends.low), min(high, ends.high))


def _possible(sums: Floats, form: Form) -> tuple[float, float]:
    """Between what the figure must lie: a share is never over 1, a time never below 0."""
    if (sums < 0).any():
        return -np.inf, np.inf
    low, high = 0.0, 1.0 if (sums[:, 0] <= sums[:, 1]).all() else np.inf
    return (1 - high, 1 - low) if form == "saving" else (low, high)


def sums_of(inputs: ClaimInputs, strategy: str, metric: str) -> tuple[Figures, Floats] | Missing:
    """The two sums of a figure by conversation, and the figures that they are of."""
    for figures in (inputs.figures, inputs.figures_beside):
        if figures is not None and strategy in figures.sums:
            if metric not in figures.sums[strategy]:
                return Missing("undefined", f"there is no {metric} under {strategy}")
            return figures, figures.sums[strategy][metric]
    return Missing("unsupported", f"{strategy} was not run")


def of_metric(inputs: ClaimInputs, strategy: str, metric: str) -> Interval | Missing:
    """One of the run's own figures (`metrics.figures.METRICS`)."""
    found = sums_of(inputs, strategy, metric)
    if isinstance(found, Missing):
        return found
    figures, sums = found
    return of_sums(sums, figures.metrics[metric].form)


def against(inputs: ClaimInputs, strategy: str, base: str, metric: str) -> Interval | Missing:
    """How much more a strategy has of a figure than another, in pairs of conversations."""
    one, other = sums_of(inputs, strategy, metric), sums_of(inputs, base, metric)
    if isinstance(one, Missing):
        return one
    if isinstance(other, Missing):
        return other
    return paired(other[1], one[1], one[0].metrics[metric].form)


def paired(before: Floats, after: Floats, form: Form) -> Interval | Missing:
    """After less before, of the conversations that both sides have."""
    both = np.isfinite(before).all(axis=1) & np.isfinite(after).all(axis=1)
    found = difference(Pairs(form, before[both], after[both]))
    if isinstance(found.value, Missing):
        return found.value
    if found.nothing:
        still = Missing("undefined", "in no conversation did anything move")
        return Interval(0.0, still, still)
    if isinstance(found.shown, Missing):
        return Interval(float(found.value), found.shown, found.shown)
    return Interval(float(found.value), *found.shown)


def row(
    inputs: ClaimInputs,
    strategy: str,
    metric: str,
    figure: str,
    claimed: Claimed | None,
    *,
    unit: Unit = "share",
    decides: bool = True,
) -> ClaimRow:
    """A figure of a strategy as a row."""
    found = of_metric(inputs, strategy, metric)
    return ClaimRow(
        setting=strategy, figure=figure, unit=unit, found=found, claimed=claimed, of=inputs.of, decides=decides
    )


def by_kind(inputs: ClaimInputs, strategy: str, metric: str, figure: str, claimed: Claimed | None) -> list[ClaimRow]:
    """The same by the scenario's kind: what stands before the slash in a conversation's name. None decides."""
    found = sums_of(inputs, strategy, metric)
    if isinstance(found, Missing):
        return []
    figures, sums = found
    kinds = [name.partition("/")[0] if "/" in name else "" for name in figures.digests]
    form = figures.metrics[metric].form
    rows = []
    for kind in dict.fromkeys(each for each in kinds if each):
        which = np.array([each == kind for each in kinds])
        rows.append(
            ClaimRow(
                setting=f"{strategy} · {kind}",
                figure=figure,
                unit="share",
                found=of_sums(sums[which], form),
                claimed=claimed,
                of=f"{int(which.sum())} conversations",
                decides=False,
            )
        )
    return rows


def of_groups(values: Sequence[tuple[float, float]], form: Form = "ratio") -> Interval | Missing:
    """A ratio of sums from one (upper, lower) pair a conversation."""
    return of_sums(np.array(values, np.float64).reshape(-1, 2), form)

"""Compare two runs conversation by conversation, for every strategy and metric, and give a verdict on each.

Whatever cannot be paired is listed: lost (there before, gone now), new (the other way round) or incomparable (another
version of the metric, another recording under the same name).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Literal, NamedTuple

import numpy as np

from ctxbench.metrics.figures import difference_unless_fixed
from ctxbench.metrics.statistics.comparison import (
    Difference,
    Direction,
    Margin,
    Pairs,
    Verdict,
    Word,
    difference,
    holm,
    in_both,
    judge,
)
from ctxbench.metrics.statistics.intervals import ALPHA, detectable
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import RunError

from .figures import About, MeasuredRun

MOST_MOVED = 3
"""Conversations that are named with a comparison: as many that got worse as got better."""
STILL = Missing("undefined", "nothing moved")


@dataclass(frozen=True, slots=True)
class ComparisonRule:
    """The margin and direction that a metric is judged by."""

    margin: Margin
    better: Direction
    each: float | None = None
    """The most that it may get worse in any single conversation, in its own unit; None = no limit."""


class MetricChange(NamedTuple):
    """A figure before and after, in one conversation."""

    conversation: str
    before: Value
    after: Value
    gain: float
    """Contribution to the difference over all conversations, positive if it got better."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one metric under one strategy."""

    strategy: str
    against: str
    """The strategy that it was compared with: usually the same one, in the other run."""
    metric: str
    about: About
    rule: ComparisonRule
    verdict: Verdict
    found: Difference | None = None
    """None where nothing could be paired."""
    p: Value = STILL
    """P-value, adjusted for the comparisons beside it."""
    detects: Value = STILL
    """The smallest change that would have been detected with a probability of 80 %."""
    moved: tuple[MetricChange, ...] = ()
    """The conversations that got worse, those that weigh most first, then those that got better."""
    beyond: tuple[str, ...] = ()
    """The conversations that got worse by more than the rule allows any single one."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All comparisons of two runs, and what could not be compared."""

    before: str
    after: str
    conversations: int
    """Number of paired conversations."""
    units: int
    """Number of independent units among them."""
    comparisons: tuple[Comparison, ...]
    unpaired: tuple[Unpaired, ...]
    family: int
    """Number of comparisons in which anything moved: p-values are adjusted for these. The others could raise no alarm
    (Tarone, "A Modified Bonferroni Method for Discrete Data", 1990)."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """By strategy of another package: that package and its version, or both versions where they differ."""

    def counted(self, word: Word) -> int:
        """Return how many comparisons have this verdict."""
        return sum(comparison.verdict.word == word for comparison in self.comparisons)


Rules = Callable[[str, About], ComparisonRule | None]
"""Maps a metric to its rule; None = the metric is not compared."""


def compare(
    before: MeasuredRun, after: MeasuredRun, strategies: Iterable[tuple[str, str]], rules: Rules
) -> RunComparison:
    """Compare strategies of `after` with strategies of `before`: pairs of names, each known on its side.

    Raises RunError if there is no conversation to pair.
    """
    if before.encoding != after.encoding:
        what = f"{after.source} counts tokens in {after.encoding}, {before.source} in {before.encoding}"
        raise RunError(f"{what}: run again with --encoding {before.encoding}, or compare with another")
    names = [name for name, digest in before.digests.items() if after.digests.get(name) == digest]
    if not names:
        raise RunError(
            f"{before.source} is of other recordings: none of its {len(before.digests)} conversations is in "
            f"{after.source}: compare runs of the same recordings"
        )
    units = {**before.units, **after.units}
    pairing = _Pairing(before, after, names, [units.get(name, name) for name in names])
    about = {**after.metrics, **before.metrics}
    comparisons = list[Comparison]()
    unpaired = _on_one_side("conversation", before, after, before.digests, after.digests)
    if changed := tuple(name for name, digest in before.digests.items() if after.digests.get(name, digest) != digest):
        unpaired.append(Unpaired("incomparable", "conversation", changed, "another recording under the same name"))
    libraries = dict[str, str]()
    for strategy, against in strategies:
        known = before.libraries.get(against, "") if strategy == against else ""
        now = after.libraries.get(strategy, "")
        if library := f"{known}, then {now}" if known and now and known != now else now or known:
            libraries[strategy] = library
        unpaired += pairing.failures(strategy, against)
        for metric, description in about.items():
            rule = rules(metric, description)
            if rule and (comparison := pairing.compared(strategy, against, metric, description, rule)):
                comparisons.append(comparison)
    judged, family = _judged(comparisons)
    counts = len(names), len(set(pairing.units))
    return RunComparison(before.source, after.source, *counts, tuple(judged), tuple(unpaired), family, libraries)


class _Pairing:
    """Two runs, and the conversations whose name and content are the same in both."""

    def __init__(self, before: MeasuredRun, after: MeasuredRun, names: Sequence[str], units: Sequence[str]) -> None:
        self.runs, self.names, self.units = (before, after), names, units
        places = ({name: at for at, name in enumerate(run.digests)} for run in self.runs)
        self._at = [[where[name] for name in names] for where in places]

    def compared(
        self, strategy: str, against: str, metric: str, about: About, rule: ComparisonRule
    ) -> Comparison | None:
        """Return the comparison of a metric before it is judged, or None if neither side has the metric."""
        before, after = self.runs
        one, other = before.sums[against].get(metric), after.sums[strategy].get(metric)
        if one is None and other is None:
            return None
        comparison = Comparison(strategy, against, metric, about, rule, Verdict("cannot tell"))
        versions = [run.metrics[metric].version for run in self.runs if metric in run.metrics]
        if len(set(versions)) > 1:
            why = f"version {versions[0]} in {before.source}, version {versions[1]} in {after.source}"
            return replace(comparison, verdict=Verdict("incomparable", why))
        if before is after and (one is None or other is None):
            lacks = against if one is None else strategy
            return replace(comparison, verdict=Verdict("cannot tell", f"{lacks} has nothing to measure it by"))
        if other is None:
            return replace(comparison, verdict=Verdict("lost", f"not measured in {after.source}"))
        if one is None:
            return replace(comparison, verdict=Verdict("new", f"not measured in {before.source}"))
        one, other = one[self._at[0]], other[self._at[1]]
        measured = in_both(one, other)
        if not measured.any():
            gone = bool(np.isnan(other).all()) and not np.isnan(one).all()
            return replace(
                comparison, verdict=Verdict("lost" if gone else "cannot tell", "no conversation has it on both sides")
            )
        names, units = (list(compress(every, measured)) for every in (self.names, self.units))
        pairs = Pairs(about.form, one[measured], other[measured], units)
        moved_by = difference_unless_fixed(metric, (strategy, against), difference(pairs, rule.margin.relative))
        return replace(comparison, found=moved_by, **_moved(pairs, names, rule))

    def failures(self, strategy: str, against: str) -> list[Unpaired]:
        """Return the conversations in which the strategy has figures on one side only: it failed on the other."""
        strategies = (against, strategy)
        no_figure = [
            np.all([np.ones(len(at), bool), *(np.isnan(sums[at, 0]) for sums in run.sums[name].values())], axis=0)
            for run, name, at in zip(self.runs, strategies, self._at, strict=True)
        ]
        unpaired = []
        for side in (1, 0):
            run, name = self.runs[side], strategies[side]
            reasons = run.failed.get(name, {})
            if names := tuple(compress(self.names, no_figure[side] & ~no_figure[1 - side])):
                why = f"{name} failed in {run.source}"
                why += next((f": {reasons[failed]}" for failed in names if failed in reasons), "")
                unpaired.append(Unpaired("lost" if side else "new", "conversation", names, why, strategy))
        return unpaired


def _judged(comparisons: Sequence[Comparison]) -> tuple[list[Comparison], int]:
    """Return the comparisons with verdicts, and in how many anything moved: p-values are adjusted for these."""
    # Replays repeat themselves, so most comparisons do not move: Holm over all 473 of `smoke` would leave little power.
    family = [
        at
        for at, comparison in enumerate(comparisons)
        if comparison.found is not None and not (isinstance(comparison.found.p, Missing) or comparison.found.nothing)
    ]
    adjusted = dict(zip(family, holm([float(comparisons[at].found.p) for at in family]), strict=True))  # type: ignore[union-attr, arg-type]
    level = ALPHA / max(len(family), 1)  # the strictest of Holm's levels
    judged = []
    for at, comparison in enumerate(comparisons):
        if comparison.found is None:
            judged.append(comparison)
            continue
        p, error = adjusted.get(at), comparison.found.error
        detects: Value = STILL
        if p is not None and not isinstance(error, Missing):
            detects = detectable(error, comparison.found.freedom, level)
            if comparison.found.typical is not None:  # of a log ratio: as a relative change
                detects = math.expm1(detects)
        verdict = judge(comparison.found, comparison.rule.margin, comparison.rule.better, p, ALPHA)
        if comparison.beyond:
            why = f"in {len(comparison.beyond)} by more than {comparison.rule.each:g}, which none may"
            verdict = Verdict("worse", why)
        judged.append(replace(comparison, verdict=verdict, p=STILL if p is None else p, detects=detects))
    return judged, len(family)


def _moved(pairs: Pairs, names: Sequence[str], rule: ComparisonRule) -> dict[str, Any]:
    """Return the conversations that moved most, those that got worse first, and those that moved beyond the rule."""
    sign = 1 if rule.better == "higher" else -1
    gain = pairs.contributions() * sign
    order = np.argsort(gain, kind="stable")
    worst = [at for at in order if gain[at] < 0][:MOST_MOVED]
    best = [at for at in order[::-1] if gain[at] > 0][:MOST_MOVED]
    before, after = pairs.figures()
    moved = [*worst, *best]
    changes = (MetricChange(names[at], _value(before[at]), _value(after[at]), float(gain[at])) for at in moved)
    # Both sides must have a figure: a comparison with NaN is false.
    beyond = () if rule.each is None else compress(names, (before - after) * sign > rule.each)
    return {"moved": tuple(changes), "beyond": tuple(beyond)}


def _value(number: float) -> Value:
    return Missing("undefined", "nothing to measure here") if np.isnan(number) else float(number)


class Unpaired(NamedTuple):
    """Conversations or strategies that are on one side only, or are not the same thing on both."""

    word: Literal["lost", "new", "incomparable"]
    what: Literal["conversation", "strategy"]
    names: tuple[str, ...]
    why: str
    strategy: str = ""
    """The strategy that has no figures of these conversations; empty = they are not there under any."""


def strategies(before: MeasuredRun, after: MeasuredRun) -> list[Unpaired]:
    """Return the strategies that only one of the two runs has."""
    return _on_one_side("strategy", before, after, before.sums, after.sums)


def _on_one_side(
    what: Literal["conversation", "strategy"],
    before: MeasuredRun,
    after: MeasuredRun,
    one: Collection[str],
    other: Collection[str],
) -> list[Unpaired]:
    unpaired = [
        Unpaired("lost", what, tuple(name for name in one if name not in other), f"not in {after.source}"),
        Unpaired("new", what, tuple(name for name in other if name not in one), f"not in {before.source}"),
    ]
    return [group for group in unpaired if group.names]

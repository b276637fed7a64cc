"""Compare two runs conversation by conversation, for every strategy and metric, and give a verdict on each.

Whatever cannot be paired is listed: lost (there before, gone now), new (the other way round) or incomparable (another
version of the metric, another recording under the same name).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

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

from ..folder.contexts import Floats
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
    before: MeasuredRun, after: MeasuredRun, strategies: Iterable[tuple[str, str]], rules: Rules, alpha: float = ALPHA
) -> RunComparison:
    """Compare strategies of `after` with strategies of `before`: pairs of names, each known on its side.

    Raises RunError if there is no conversation to pair.
    """
    if before.encoding != after.encoding:
        what = f"{after.source} counts tokens in {after.encoding}, {before.source} in {before.encoding}"
        raise RunError(f"{what}: run again with --encoding {before.encoding}, or compare with another")
    sides = paired(before, after)
    if sides is None:
        raise RunError(
            f"{before.source} is of other recordings: none of its {len(before.digests)} conversations is in "
            f"{after.source}: compare runs of the same recordings"
        )
    about = {**after.metrics, **before.metrics}
    comparisons, unpaired = list[Comparison](), conversations(before, after)
    libraries = dict[str, str]()
    for strategy, against in strategies:
        libraries[strategy] = _library(before.libraries.get(against) if strategy == against else None, after, strategy)
        unpaired += failures(sides, strategy, against)
        for metric, description in about.items():
            rule = rules(metric, description)
            comparison = None if rule is None else _compared(sides, strategy, against, metric, rule)
            comparisons += [comparison] if comparison else []
    judged, family = _judged(comparisons, alpha)
    names, units = len(sides.before.names), len(set(sides.units))
    named = {strategy: library for strategy, library in libraries.items() if library}
    return RunComparison(before.source, after.source, names, units, tuple(judged), tuple(unpaired), family, named)


def _library(before: str | None, after: MeasuredRun, strategy: str) -> str:
    """Return the package of a strategy with its version; with both versions where the run before had another."""
    now = after.libraries.get(strategy, "")
    return f"{before}, then {now}" if before and now and before != now else now or before or ""


def _compared(sides: Sides, strategy: str, against: str, metric: str, rule: ComparisonRule) -> Comparison | None:
    """Return the comparison of a metric before it is judged, or None if neither side has the metric."""
    one, other = sides
    sums = one.sums(against, metric), other.sums(strategy, metric)
    versions = one.version(metric), other.version(metric)
    about = one.about(metric) or other.about(metric)
    if about is None or (sums[0] is None and sums[1] is None):
        return None
    comparison = Comparison(strategy, against, metric, about, rule, Verdict("cannot tell"))
    if None not in versions and versions[0] != versions[1]:
        why = f"version {versions[0]} in {one.source}, version {versions[1]} in {other.source}"
        return replace(comparison, verdict=Verdict("incomparable", why))
    if one.measured is other.measured and (sums[0] is None or sums[1] is None):
        lacks = against if sums[0] is None else strategy
        return replace(comparison, verdict=Verdict("cannot tell", f"{lacks} has nothing to measure it by"))
    if sums[1] is None:
        return replace(comparison, verdict=Verdict("lost", f"not measured in {other.source}"))
    if sums[0] is None:
        return replace(comparison, verdict=Verdict("new", f"not measured in {one.source}"))
    measured = in_both(sums[0], sums[1])
    if not measured.any():
        gone = bool(np.isnan(sums[1]).all()) and not np.isnan(sums[0]).all()
        return replace(
            comparison, verdict=Verdict("lost" if gone else "cannot tell", "no conversation has it on both sides")
        )
    names, units = (
        [name for name, here in zip(every, measured, strict=True) if here] for every in (one.names, sides.units)
    )
    pairs = Pairs(about.form, sums[0][measured], sums[1][measured], units)
    moved_by = difference_unless_fixed(metric, (strategy, against), difference(pairs, rule.margin.relative))
    return replace(comparison, found=moved_by, moved=_moved(pairs, names, rule), beyond=_beyond(pairs, names, rule))


def _judged(comparisons: Sequence[Comparison], alpha: float) -> tuple[list[Comparison], int]:
    """Return the comparisons with verdicts, and in how many anything moved: p-values are adjusted for these."""
    # Replays repeat themselves, so most comparisons do not move: Holm over all 473 of `smoke` would leave little power.
    family = [
        at for at, comparison in enumerate(comparisons) if comparison.found is not None and _is_tested(comparison.found)
    ]
    adjusted = dict(zip(family, holm([float(comparisons[at].found.p) for at in family]), strict=True))  # type: ignore[union-attr, arg-type]
    level = alpha / max(len(family), 1)  # the strictest of Holm's levels
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
        verdict = judge(comparison.found, comparison.rule.margin, comparison.rule.better, p, alpha)
        if comparison.beyond:
            verdict = Verdict(
                "worse", f"in {len(comparison.beyond)} by more than {comparison.rule.each:g}, which none may"
            )
        judged.append(replace(comparison, verdict=verdict, p=STILL if p is None else p, detects=detects))
    return judged, len(family)


def _is_tested(moved_by: Difference) -> bool:
    return not isinstance(moved_by.p, Missing) and not moved_by.nothing


def _moved(pairs: Pairs, names: Sequence[str], rule: ComparisonRule) -> tuple[MetricChange, ...]:
    """Return the conversations that moved most, those that got worse first."""
    gain = pairs.contributions() * (1 if rule.better == "higher" else -1)
    order = np.argsort(gain, kind="stable")
    worst = [at for at in order if gain[at] < 0][:MOST_MOVED]
    best = [at for at in order[::-1] if gain[at] > 0][:MOST_MOVED]
    before, after = pairs.figures()
    return tuple(
        MetricChange(names[at], _value(before[at]), _value(after[at]), float(gain[at])) for at in (*worst, *best)
    )


def _beyond(pairs: Pairs, names: Sequence[str], rule: ComparisonRule) -> tuple[str, ...]:
    """Return the conversations that got worse by more than any single one may; both sides must have a figure."""
    if rule.each is None:
        return ()
    before, after = pairs.figures()
    loss = (before - after) * (1 if rule.better == "higher" else -1)
    return tuple(name for name, limit in zip(names, loss, strict=True) if limit > rule.each)


def _value(number: float) -> Value:
    return Missing("undefined", "nothing to measure here") if np.isnan(number) else float(number)


Flags = NDArray[np.bool_]


class Unpaired(NamedTuple):
    """Conversations or strategies that are on one side only, or are not the same thing on both."""

    word: Literal["lost", "new", "incomparable"]
    what: Literal["conversation", "strategy"]
    names: tuple[str, ...]
    why: str
    strategy: str = ""
    """The strategy that has no figures of these conversations; empty = they are not there under any."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs, confined to the conversations that both have, in one order."""

    measured: MeasuredRun
    names: tuple[str, ...]
    at: tuple[int, ...]
    """Their places in the run."""

    @property
    def source(self) -> str:
        """Folder or file of the run."""
        return self.measured.source

    def about(self, metric: str) -> About | None:
        """Return the description of a metric, or None if it was not measured here."""
        return self.measured.metrics.get(metric)

    def version(self, metric: str) -> str | None:
        """Return the version of a metric, or None if it was not measured here."""
        about = self.about(metric)
        return about.version if about else None

    def sums(self, strategy: str, metric: str) -> Floats | None:
        """Return the sums of a metric by conversation, or None where the strategy has no such figure."""
        sums = self.measured.sums[strategy].get(metric)
        return None if sums is None else sums[list(self.at)]


class Sides(NamedTuple):
    """The two runs that are compared."""

    before: Side
    after: Side

    @property
    def units(self) -> list[str]:
        """The independent unit of each paired conversation."""
        units = {**self.before.measured.units, **self.after.measured.units}
        return [units.get(name, name) for name in self.before.names]


def paired(before: MeasuredRun, after: MeasuredRun) -> Sides | None:
    """Pair the conversations whose name and content are the same; None if there are none."""
    names = tuple(name for name, digest in before.digests.items() if after.digests.get(name) == digest)
    if not names:
        return None
    places = [{name: at for at, name in enumerate(run.digests)} for run in (before, after)]
    one, other = (tuple(where[name] for name in names) for where in places)
    return Sides(Side(before, names, one), Side(after, names, other))


def conversations(before: MeasuredRun, after: MeasuredRun) -> list[Unpaired]:
    """Return the conversations that only one of the two runs has, and those with another content."""
    one, other = before.digests, after.digests
    changed = tuple(name for name in one if name in other and one[name] != other[name])
    incomparable = Unpaired("incomparable", "conversation", changed, "another recording under the same name")
    return [*_on_one_side("conversation", before, after, one, other), *[incomparable] * bool(changed)]


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


def failures(sides: Sides, strategy: str, against: str) -> list[Unpaired]:
    """Return the conversations in which the strategy has figures on one side only: it failed on the other."""
    one, other = _failed(sides.before, against), _failed(sides.after, strategy)
    unpaired = [
        Unpaired("lost", "conversation", *_named(sides.after, other & ~one, strategy), strategy),
        Unpaired("new", "conversation", *_named(sides.before, one & ~other, against), strategy),
    ]
    return [group for group in unpaired if group.names]


def _failed(side: Side, strategy: str) -> Flags:
    """Return in which conversations the strategy has no figure at all."""
    tables = [table[list(side.at), 0] for table in side.measured.sums[strategy].values()]
    none: Flags = np.ones(len(side.at), np.bool_)
    for table in tables:
        none &= np.isnan(table)
    return none


def _named(side: Side, which: Flags, strategy: str) -> tuple[tuple[str, ...], str]:
    """Return the names of the conversations, and why there are no figures of them."""
    names = tuple(name for name, here in zip(side.names, which, strict=True) if here)
    reasons = side.measured.failed.get(strategy, {})
    why = next((reasons[name] for name in names if name in reasons), "")
    return names, f"{strategy} failed in {side.source}" + (f": {why}" if why else "")

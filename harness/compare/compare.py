"""Two runs' figures in pairs of conversations, strategy by strategy and metric by metric: the verdict on each.

What cannot be paired is never passed over: it is lost (there before, gone now), new (the other way round) or
incomparable (another version of the metric, another recording under the same name).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...metrics.statistics.comparison import (
    Difference,
    Direction,
    Margin,
    Pairs,
    Verdict,
    Word,
    difference,
    holm,
    judge,
)
from ...metrics.statistics.intervals import ALPHA, detectable
from ...metrics.value import Missing, Value
from ...scenarios.errors import RunError
from .figures import About, Floats, MeasuredRun

MOST_MOVED = 3
"""Conversations that are named with a comparison: so many that got worse, and as many that got better."""
STILL = Missing("undefined", "nothing moved")


@dataclass(frozen=True, slots=True)
class ComparisonRule:
    """What is asked of a metric."""

    margin: Margin
    better: Direction
    each: float | None = None
    """The most that it may get worse in any one conversation, in its own unit; None = as much as it likes."""


class MetricChange(NamedTuple):
    """What a figure was and is in one conversation."""

    conversation: str
    before: Value
    after: Value
    gain: float
    """What it adds to the difference of all, positive if it got better."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one strategy."""

    strategy: str
    against: str
    """The strategy that it was compared with: mostly itself, in the other run."""
    metric: str
    about: About
    rule: ComparisonRule
    verdict: Verdict
    found: Difference | None = None
    """None where nothing could be paired."""
    p: Value = STILL
    """Adjusted for the comparisons beside it."""
    detects: Value = STILL
    """The smallest change that would have been found with a probability of 80 %."""
    moved: tuple[MetricChange, ...] = ()
    """The conversations that got worse, those that weigh most first; after them those that got better."""
    beyond: tuple[str, ...] = ()
    """Those that got worse by more than the rule allows any one."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All comparisons, and what could not be compared."""

    before: str
    after: str
    conversations: int
    """Pairs."""
    comparisons: tuple[Comparison, ...]
    unpaired: tuple[Unpaired, ...]
    family: int
    """Comparisons in which anything moved: p-values are adjusted for so many. The others could raise no alarm (Tarone,
    "A Modified Bonferroni Method for Discrete Data", 1990)."""

    def counted(self, word: Word) -> int:
        """How many comparisons have this verdict."""
        return sum(each.verdict.word == word for each in self.comparisons)


Rules = Callable[[str, About], ComparisonRule | None]
"""What is asked of a metric; None = it is not compared."""


def compare(
    before: MeasuredRun, after: MeasuredRun, strategies: Iterable[tuple[str, str]], rules: Rules, alpha: float = ALPHA
) -> RunComparison:
    """Compare strategies of `after` with those of `before`: pairs of names, each known on its side.

    Raises RunError if there is no conversation to pair.
    """
    if before.encoding != after.encoding:
        what = f"{after.source} counts tokens in {after.encoding}, {before.source} in {before.encoding}"
        raise RunError(f"{what}: run again with --encoding {before.encoding}, or compare with another")
    sides = paired(before, after)
    if sides is None:
        raise RunError(
            f"{before.source} is of other recordings: of its {len(before.digests)} conversations none is in "
            f"{after.source}: compare what was measured on the same recordings"
        )
    about = {**after.metrics, **before.metrics}
    found, apart = list[Comparison](), conversations(before, after)
    for strategy, against in strategies:
        apart += cells(sides, strategy, against)
        for metric, each in about.items():
            rule = rules(metric, each)
            made = None if rule is None else _compared(sides, strategy, against, metric, rule)
            found += [made] if made else []
    judged, family = _judged(found, alpha)
    names = len(sides.before.names)
    return RunComparison(before.source, after.source, names, tuple(judged), tuple(apart), family)


def _compared(sides: Sides, strategy: str, against: str, metric: str, rule: ComparisonRule) -> Comparison | None:
    """The comparison of a metric, before it is judged; None if neither side has it."""
    one, other = sides
    sums = one.sums(against, metric), other.sums(strategy, metric)
    versions = one.version(metric), other.version(metric)
    about = one.about(metric) or other.about(metric)
    if about is None or (sums[0] is None and sums[1] is None):
        return None
    made = Comparison(strategy, against, metric, about, rule, Verdict("cannot tell"))
    if None not in versions and versions[0] != versions[1]:
        why = f"version {versions[0]} in {one.source}, version {versions[1]} in {other.source}"
        return replace(made, verdict=Verdict("incomparable", why))
    if one.measured is other.measured and (sums[0] is None or sums[1] is None):
        lacks = against if sums[0] is None else strategy
        return replace(made, verdict=Verdict("cannot tell", f"{lacks} has nothing that it measures"))
    if sums[1] is None:
        return replace(made, verdict=Verdict("lost", f"not measured in {other.source}"))
    if sums[0] is None:
        return replace(made, verdict=Verdict("new", f"not measured in {one.source}"))
    there: Flags = ~np.isnan(np.hstack([sums[0], sums[1]])).any(axis=1)  # type: ignore[assignment]
    if not there.any():
        gone = bool(np.isnan(sums[1]).all()) and not np.isnan(sums[0]).all()
        return replace(made, verdict=Verdict("lost" if gone else "cannot tell", "no conversation has it on both sides"))
    pairs = Pairs(about.form, sums[0][there], sums[1][there])
    names = [name for name, here in zip(one.names, there, strict=True) if here]
    found = difference(pairs, rule.margin.relative)
    return replace(made, found=found, moved=_moved(pairs, names, rule), beyond=_beyond(pairs, names, rule))


def _judged(found: Sequence[Comparison], alpha: float) -> tuple[list[Comparison], int]:
    """Verdicts, with p-values adjusted for all comparisons in which anything moved; and how many those are."""
    family = [at for at, each in enumerate(found) if each.found is not None and _is_tested(each.found)]
    adjusted = dict(zip(family, holm([float(found[at].found.p) for at in family]), strict=True))  # type: ignore[union-attr, arg-type]
    level = alpha / max(len(family), 1)
    made = []
    for at, each in enumerate(found):
        if each.found is None:
            made.append(each)
            continue
        p, error = adjusted.get(at), each.found.error
        detects: Value = STILL
        if p is not None and not isinstance(error, Missing):
            detects = detectable(error, each.found.conversations - 1, level)
        verdict = judge(each.found, each.rule.margin, each.rule.better, p, alpha)
        if each.beyond:
            verdict = Verdict("worse", f"in {len(each.beyond)} by more than {each.rule.each:g}, which none may")
        made.append(replace(each, verdict=verdict, p=STILL if p is None else p, detects=detects))
    return made, len(family)


def _is_tested(found: Difference) -> bool:
    return not isinstance(found.p, Missing) and not found.nothing


def _moved(pairs: Pairs, names: Sequence[str], rule: ComparisonRule) -> tuple[MetricChange, ...]:
    """The conversations that moved most: the worse first."""
    gain = pairs.contributions() * (1 if rule.better == "higher" else -1)
    order = np.argsort(gain, kind="stable")
    worst = [at for at in order if gain[at] < 0][:MOST_MOVED]
    best = [at for at in order[::-1] if gain[at] > 0][:MOST_MOVED]
    before, after = pairs.figures()
    return tuple(
        MetricChange(names[at], _value(before[at]), _value(after[at]), float(gain[at])) for at in (*worst, *best)
    )


def _beyond(pairs: Pairs, names: Sequence[str], rule: ComparisonRule) -> tuple[str, ...]:
    """The conversations that got worse by more than any one may. Those without a figure on a side do not count."""
    if rule.each is None:
        return ()
    before, after = pairs.figures()
    loss = (before - after) * (1 if rule.better == "higher" else -1)
    return tuple(name for name, each in zip(names, loss, strict=True) if each > rule.each)


def _value(number: float) -> Value:
    return Missing("undefined", "nothing to measure here") if np.isnan(number) else float(number)


Flags = NDArray[np.bool_]


class Unpaired(NamedTuple):
    """What was there on one side only, or is not the same thing on both."""

    word: Literal["lost", "new", "incomparable"]
    what: Literal["conversation", "strategy"]
    names: tuple[str, ...]
    why: str
    strategy: str = ""
    """Of conversations that are there, but not under this strategy; empty = under none."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two, confined to the conversations that both have, in one order."""

    measured: MeasuredRun
    names: tuple[str, ...]
    at: tuple[int, ...]
    """Where they are."""

    @property
    def source(self) -> str:
        """Where it is from."""
        return self.measured.source

    def about(self, metric: str) -> About | None:
        """What a metric is; None if it was not measured here."""
        return self.measured.metrics.get(metric)

    def version(self, metric: str) -> str | None:
        """Of a metric; None if it was not measured here."""
        about = self.about(metric)
        return about.version if about else None

    def sums(self, strategy: str, metric: str) -> Floats | None:
        """Of the conversations; None where the strategy has no such figure."""
        found = self.measured.sums[strategy].get(metric)
        return None if found is None else found[list(self.at)]


class Sides(NamedTuple):
    """Both."""

    before: Side
    after: Side


def paired(before: MeasuredRun, after: MeasuredRun) -> Sides | None:
    """The conversations whose name and content are the same; None if there are none."""
    names = tuple(name for name, digest in before.digests.items() if after.digests.get(name) == digest)
    if not names:
        return None
    places = [{name: at for at, name in enumerate(each.digests)} for each in (before, after)]
    one, other = (tuple(where[name] for name in names) for where in places)
    return Sides(Side(before, names, one), Side(after, names, other))


def conversations(before: MeasuredRun, after: MeasuredRun) -> list[Unpaired]:
    """Those of one side, and those that have another content."""
    both = before.digests.keys() & after.digests.keys()
    made = [
        Unpaired("lost", "conversation", _without(before.digests, both), f"not in {after.source}"),
        Unpaired("new", "conversation", _without(after.digests, both), f"not in {before.source}"),
        Unpaired(
            "incomparable",
            "conversation",
            tuple(name for name in before.digests if name in both and before.digests[name] != after.digests[name]),
            "another recording under the same name",
        ),
    ]
    return [each for each in made if each.names]


def strategies(before: MeasuredRun, after: MeasuredRun) -> list[Unpaired]:
    """Those of one side."""
    both = before.sums.keys() & after.sums.keys()
    made = [
        Unpaired("lost", "strategy", _without(before.sums, both), f"not in {after.source}"),
        Unpaired("new", "strategy", _without(after.sums, both), f"not in {before.source}"),
    ]
    return [each for each in made if each.names]


def cells(sides: Sides, strategy: str, against: str) -> list[Unpaired]:
    """The conversations in which the strategy has figures on one side only: it failed on the other."""
    one, other = _failed(sides.before, against), _failed(sides.after, strategy)
    made = [
        Unpaired("lost", "conversation", *_those(sides.after, other & ~one, strategy), strategy),
        Unpaired("new", "conversation", *_those(sides.before, one & ~other, against), strategy),
    ]
    return [each for each in made if each.names]


def _failed(side: Side, strategy: str) -> Flags:
    """Where the strategy has no figure at all."""
    tables = [table[list(side.at), 0] for table in side.measured.sums[strategy].values()]
    none: Flags = np.ones(len(side.at), np.bool_)
    for table in tables:
        none &= np.isnan(table)
    return none


def _those(side: Side, which: Flags, strategy: str) -> tuple[tuple[str, ...], str]:
    """The conversations, and why there are no figures of them."""
    names = tuple(name for name, here in zip(side.names, which, strict=True) if here)
    said = side.measured.failed.get(strategy, {})
    why = next((said[name] for name in names if name in said), "")
    return names, f"{strategy} failed in {side.source}" + (f": {why}" if why else "")


def _without(names: Iterable[str], both: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in both)

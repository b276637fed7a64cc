"""Two runs' figures in pairs of conversations, strategy by strategy and metric by metric: the verdict on each.

What cannot be paired is never passed over: it is lost (there before, gone now), new (the other way round) or
incomparable (another version of the metric, another recording under the same name).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...metrics.statistics.holm import holm
from ...metrics.statistics.paired import Difference, Pairs, difference
from ...metrics.statistics.student import ALPHA, detectable
from ...metrics.statistics.verdict import Direction, Margin, Verdict, Word, judge
from ...metrics.value import Missing, Value
from ...scenarios.errors import RunError
from .measured import About, Measured
from .unpaired import Flags, Sides, Unpaired, cells, conversations, paired

MOST_MOVED = 3
"""Conversations that are named with a comparison: so many that got worse, and as many that got better."""
STILL = Missing("undefined", "nothing moved")


@dataclass(frozen=True, slots=True)
class Rule:
    """What is asked of a metric."""

    margin: Margin
    better: Direction
    each: float | None = None
    """The most that it may get worse in any one conversation, in its own unit; None = as much as it likes."""


class Moved(NamedTuple):
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
    rule: Rule
    verdict: Verdict
    found: Difference | None = None
    """None where nothing could be paired."""
    p: Value = STILL
    """Adjusted for the comparisons beside it."""
    detects: Value = STILL
    """The smallest change that would have been found with a probability of 80 %."""
    moved: tuple[Moved, ...] = ()
    """The conversations that got worse, those that weigh most first; after them those that got better."""
    beyond: tuple[str, ...] = ()
    """Those that got worse by more than the rule allows any one."""


@dataclass(frozen=True, slots=True)
class Compared:
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


Rules = Callable[[str, About], Rule | None]
"""What is asked of a metric; None = it is not compared."""


def compare(
    before: Measured, after: Measured, strategies: Iterable[tuple[str, str]], rules: Rules, alpha: float = ALPHA
) -> Compared:
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
    return Compared(before.source, after.source, names, tuple(judged), tuple(apart), family)


def _compared(sides: Sides, strategy: str, against: str, metric: str, rule: Rule) -> Comparison | None:
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


def _moved(pairs: Pairs, names: Sequence[str], rule: Rule) -> tuple[Moved, ...]:
    """The conversations that moved most: the worse first."""
    gain = pairs.contributions() * (1 if rule.better == "higher" else -1)
    order = np.argsort(gain, kind="stable")
    worst = [at for at in order if gain[at] < 0][:MOST_MOVED]
    best = [at for at in order[::-1] if gain[at] > 0][:MOST_MOVED]
    before, after = pairs.figures()
    return tuple(Moved(names[at], _value(before[at]), _value(after[at]), float(gain[at])) for at in (*worst, *best))


def _beyond(pairs: Pairs, names: Sequence[str], rule: Rule) -> tuple[str, ...]:
    """The conversations that got worse by more than any one may. Those without a figure on a side do not count."""
    if rule.each is None:
        return ()
    before, after = pairs.figures()
    loss = (before - after) * (1 if rule.better == "higher" else -1)
    return tuple(name for name, each in zip(names, loss, strict=True) if each > rule.each)


def _value(number: float) -> Value:
    return Missing("undefined", "nothing to measure here") if np.isnan(number) else float(number)

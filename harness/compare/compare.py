"""Compare two runs conversation by conversation, for every strategy and metric, and give a verdict on each.

A rule says how a metric is judged: by statistics, which is what to expect of other conversations, or exactly, which is
what changed in these. Replays of the same recordings have no noise, so the gate compares them exactly.

Whatever cannot be paired is listed: lost (there before, gone now), new (the other way round) or incomparable (another
version of the metric, another recording under the same name).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Literal, NamedTuple

import numpy as np

from ctxbench.metrics.figures import difference_unless_fixed, metric_of
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
    usual_margin,
)
from ctxbench.metrics.statistics.intervals import ALPHA
from ctxbench.metrics.value import Missing, Value, value
from ctxbench.scenarios.errors import RunError

from ..folder.run import Floats
from .figures import About, MeasuredRun

MOST_MOVED = 3  # conversations that are named with a comparison: as many that got worse as got better
STILL = Missing("undefined", "nothing moved")
NOISELESS = Missing("undefined", "compared exactly: a replay has no noise")
"""Takes the place of the interval of an exact comparison."""
NO_FIGURE = Missing("undefined", "nothing to measure here")
# What sums of whole numbers may differ by, as a share of the figure, and other sums: those of floating embeddings
# differ between machines.
_WHOLE, _FLOATING = 1e-12, 1e-6


@dataclass(frozen=True, slots=True)
class ComparisonRule:
    """How a metric is judged."""

    better: Direction
    margin: Margin | None = None
    """How much worse it may get over all conversations; None = the usual margin, or no limit where it is exact."""
    each: float | None = None  # how much worse it may get in any single conversation, in its own unit; None = no limit
    exact: bool = False  # whether figures are compared as they are, without statistics


class MetricChange(NamedTuple):
    """A figure before and after, in one conversation."""

    conversation: str
    before: Value
    after: Value
    gain: float
    """Contribution to the difference over all conversations, or its own where that is exact; positive if better."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one metric under one strategy."""

    strategy: str
    against: str  # the strategy that it was compared with: usually the same one, in the other run
    metric: str
    about: About
    rule: ComparisonRule
    verdict: Verdict
    found: Difference | None = None  # None where nothing could be paired
    p: Value = STILL  # P-value, adjusted for the comparisons beside it
    moved: tuple[MetricChange, ...] = ()
    """The conversations that got worse, those that weigh most first, then those that got better."""
    beyond: tuple[str, ...] = ()  # the conversations that got worse by more than the rule allows any single one
    better_in: int = 0
    """Number of conversations that got better: like `worse_in`, what happened here, whatever is to be expected."""
    worse_in: int = 0


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All comparisons of two runs, and what could not be compared."""

    before: str
    after: str
    conversations: int  # number of paired conversations
    units: int  # number of independent units among them
    comparisons: tuple[Comparison, ...]
    unpaired: tuple[Unpaired, ...]
    family: int
    """Number of comparisons in which anything moved: p-values are adjusted for these. The others could raise no alarm
    (Tarone, "A Modified Bonferroni Method for Discrete Data", 1990)."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """By strategy of another package: that package and its version, or both versions where they differ."""


Rules = Callable[[str, str, About], ComparisonRule | None]
"""Maps a strategy and a metric to a rule; None = the metric is not compared."""


def usual_rules(metrics: Collection[str] = ()) -> Rules:
    """Return rules by statistics, with the usual margins: of these metrics, or of all that do not restate others."""

    def rule(_: str, metric: str, about: About) -> ComparisonRule | None:
        described = metric_of(metric)
        wanted = metric in metrics if metrics else not (described and described.restates)
        return ComparisonRule(about.better, usual_margin(about.unit)) if wanted and about.better else None

    return rule


def compare(
    before: MeasuredRun, after: MeasuredRun, strategies: Iterable[tuple[str, str]], rules: Rules
) -> RunComparison:
    """Compare strategies of `after` with strategies of `before`. Raises RunError if there is nothing to pair."""
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
    unpaired = on_one_side("conversation", before, after)
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
            rule = rules(strategy, metric, description)
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
        """Return the comparison of a metric, or None if neither side has it. Statistics are judged later, together."""
        before, after = self.runs
        one, other = before.sums[against].get(metric), after.sums[strategy].get(metric)
        missing = after.missing.get(metric, before.missing.get(metric))
        if one is None and other is None and missing is None:
            return None
        versions = [run.metrics[metric].version for run in self.runs if metric in run.metrics]
        is_other, verdict = len(set(versions)) > 1, Verdict("cannot tell")
        if missing is not None:
            verdict = Verdict("incomparable" if one is None else "lost", missing.detail)
        elif before is after and (one is None or other is None):
            verdict = Verdict("cannot tell", f"{against if one is None else strategy} has nothing to measure it by")
        elif is_other:
            verdict = Verdict("incomparable", f"was version {versions[0]}, is version {versions[1]}")
        elif other is None:
            verdict = Verdict("lost", f"not measured in {after.source}")
        elif one is None:
            verdict = Verdict("new", f"not measured in {before.source}")
        comparison = Comparison(strategy, against, metric, about, rule, verdict)
        if one is None or other is None or (is_other and not rule.exact):
            return comparison
        one, other = one[self._at[0]], other[self._at[1]]
        measured = in_both(one, other)
        if not measured.any():
            word: Word = "lost" if before is not after and np.isfinite(one).all(axis=1).any() else "cannot tell"
            return replace(comparison, verdict=Verdict(word, "no conversation has it on both sides"))
        names, units = (list(compress(every, measured)) for every in (self.names, self.units))
        pairs = Pairs(about.form, one[measured], other[measured], units)
        if rule.exact:
            unknown = np.isfinite(one).all(axis=1) & ~measured
            failed = after.failed.get(strategy, {})  # they are listed apart, for all metrics at once
            gone = [name for name in compress(self.names, unknown) if name not in failed]
            exact = _exact(comparison, pairs, names, gone)
            return replace(exact, verdict=comparison.verdict) if is_other else exact
        margin = rule.margin or usual_margin(about.unit)
        rule = replace(rule, margin=margin)
        change = difference_unless_fixed(metric, (strategy, against), difference(pairs, margin.relative))
        losses, noise = _losses(pairs, rule)
        beyond = tuple(compress(names, losses > (np.inf if rule.each is None else rule.each)))
        moved = _moved(pairs, names, pairs.contributions() * (1 if rule.better == "higher" else -1))
        better, worse = int((losses < -noise).sum()), int((losses > noise).sum())
        return replace(
            comparison, rule=rule, found=change, moved=moved, beyond=beyond, better_in=better, worse_in=worse
        )

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


def _exact(comparison: Comparison, pairs: Pairs, names: Sequence[str], gone: Sequence[str]) -> Comparison:
    """Judge figures as they are. `gone` are conversations that had a figure and are not among the pairs.

    worse    a conversation, or all together, lost more than the rule allows: nothing, if it sets no limit
    better   some gained and none lost
    """
    rule, some = comparison.rule, pairs.informative()
    each = rule.each if rule.each is not None else np.inf if rule.margin else 0.0
    (losses, noise), (before, after) = _losses(pairs, rule), pairs.figures()
    is_gone = np.isfinite(before) & ~np.isfinite(after)
    beyond = (*compress(names, (losses > each + noise) | is_gone), *gone)
    form, sums = comparison.about.form, (side.sum(axis=0) for side in (some.before, some.after))
    was, now = (float(value(form, *of)) if form == "total" or of[1] else NO_FIGURE for of in sums)
    relative = usual_margin(comparison.about.unit).relative and was != 0.0
    change: Value = NO_FIGURE
    allowed = loss = 0.0
    if not isinstance(was, Missing) and not isinstance(now, Missing):
        change = now / was - 1 if relative else now - was
        loss = (was - now) * (1 if rule.better == "higher" else -1)
        if rule.margin is not None:
            allowed = rule.margin.amount * (abs(was) if rule.margin.relative else 1.0)
    size, none = len(some.before), NOISELESS
    better, lost = int((losses < -noise).sum()), int((losses > noise).sum())
    verdict = Verdict("better" if better and not lost else "same")
    if beyond:
        verdict = Verdict("worse", f"in {len(beyond)} of {len(names) + len(gone)}")
    elif rule.margin is not None and loss > allowed + float(np.nansum(noise)):
        verdict = Verdict("worse", "over all conversations")
    found = Difference(size, size, was, now, relative, change, none, none, none, none, none)
    moved = _moved(pairs, names, np.where(is_gone, -np.abs(before), -losses))
    worse = lost + int(is_gone.sum())
    return replace(
        comparison, found=found, moved=moved, beyond=beyond, verdict=verdict, better_in=better, worse_in=worse
    )


def _losses(pairs: Pairs, rule: ComparisonRule) -> tuple[Floats, Floats]:
    """Return how much worse each conversation got, and what of that may be rounding; NaN where a side has no figure."""
    before, after = pairs.figures()
    is_whole = (np.hstack([pairs.before, pairs.after]) % 1 == 0).all(axis=1)
    noise = np.where(is_whole, _WHOLE, _FLOATING) * np.fmax(np.abs(before), np.abs(after))
    return (before - after) * (1 if rule.better == "higher" else -1), noise


def _judged(comparisons: Sequence[Comparison]) -> tuple[list[Comparison], int]:
    """Return the comparisons with verdicts, and in how many anything moved: p-values are adjusted for these."""
    # Runs of one plan repeat each other, so most comparisons do not move: Holm over all would leave little power.
    p_values = {
        at: found.p
        for at, comparison in enumerate(comparisons)
        if (found := comparison.found) is not None and not (isinstance(found.p, Missing) or found.nothing)
    }
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    judged = list(comparisons)
    for at, comparison in enumerate(comparisons):
        rule, p = comparison.rule, adjusted.get(at)
        if comparison.found is None or rule.exact or rule.margin is None:
            continue
        verdict = judge(comparison.found, rule.margin, rule.better, p, ALPHA)
        if comparison.beyond:
            verdict = Verdict("worse", f"in {len(comparison.beyond)} by more than {rule.each:g}, which none may")
        judged[at] = replace(comparison, verdict=verdict, p=STILL if p is None else p)
    return judged, len(p_values)


def _moved(pairs: Pairs, names: Sequence[str], gain: Floats) -> tuple[MetricChange, ...]:
    """Return the conversations that moved most, by what each gained, those that got worse first."""
    order = np.argsort(gain, kind="stable")
    worst = [at for at in order if gain[at] < 0][:MOST_MOVED]
    best = [at for at in order[::-1] if gain[at] > 0][:MOST_MOVED]
    sides = ([NO_FIGURE if np.isnan(number) else float(number) for number in side] for side in pairs.figures())
    before, after = sides
    return tuple(MetricChange(names[at], before[at], after[at], float(gain[at])) for at in (*worst, *best))


class Unpaired(NamedTuple):
    """Conversations or strategies that are on one side only, or are not the same thing on both."""

    word: Literal["lost", "new", "incomparable"]
    what: Literal["conversation", "strategy"]
    names: tuple[str, ...]
    why: str
    strategy: str = ""  # the strategy that has no figures of these conversations; empty = they are not there under any


def on_one_side(what: Literal["conversation", "strategy"], before: MeasuredRun, after: MeasuredRun) -> list[Unpaired]:
    """Return the conversations, or strategies, that only one of the two runs has."""
    one, other = (run.sums if what == "strategy" else run.digests for run in (before, after))
    unpaired = [
        Unpaired("lost", what, tuple(name for name in one if name not in other), f"not in {after.source}"),
        Unpaired("new", what, tuple(name for name in other if name not in one), f"not in {before.source}"),
    ]
    return [group for group in unpaired if group.names]

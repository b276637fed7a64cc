"""From what was compared and a policy to whether it passes. Pure functions: printing and exit codes are elsewhere.

fails       worse, lost; cannot tell, if the policy says so
must mend   incomparable: nobody can say whether it passes until the baseline is made anew
passes      better, same, new; cannot tell, if the policy does not say otherwise
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...metrics.figures import METRICS
from ...metrics.statistics.comparison import Direction, Margin, Word, usual_margin
from ...scenarios.spec import meant, nearest
from ...scenarios.toml import Toml
from .compare import Comparison, ComparisonRule, RunComparison, Unpaired, compare, strategies
from .figures import CLOCK, About, MeasuredRun

FAILS: tuple[Word, ...] = ("worse", "lost")

Result = Literal["passes", "fails", "must be mended"]
CODES: dict[Result, int] = {"passes": 0, "fails": 1, "must be mended": 2}
"""Exit codes."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate's answer."""

    compared: RunComparison
    policy: GatePolicy
    not_guarded: tuple[str, ...]
    """Metrics of the baseline of which the policy asks nothing."""
    unknown: tuple[str, ...]
    """Metrics and strategies that the policy names and the baseline does not have: nobody can say whether they got
    worse."""

    @property
    def failing(self) -> tuple[Comparison, ...]:
        """The comparisons that fail it."""
        words = (*FAILS, "cannot tell") if self.policy.cannot_tell == "fail" else FAILS
        return tuple(each for each in self.compared.comparisons if each.verdict.word in words)

    @property
    def gone(self) -> tuple[Unpaired, ...]:
        """Conversations and strategies that were measured and are not any more: they fail it too."""
        return tuple(each for each in self.compared.unpaired if each.word == "lost")

    @property
    def incomparable(self) -> tuple[Comparison | Unpaired, ...]:
        """What is another thing than in the baseline."""
        metrics = [each for each in self.compared.comparisons if each.verdict.word == "incomparable"]
        return (*metrics, *(each for each in self.compared.unpaired if each.word == "incomparable"))

    @property
    def result(self) -> Result:
        """What fails is said first: it stays true when the baseline is made anew."""
        if self.failing or self.gone:
            return "fails"
        return "must be mended" if self.incomparable or self.unknown else "passes"


def gate(baseline: MeasuredRun, run: MeasuredRun, policy: GatePolicy) -> Gate:
    """Compare a run with a baseline. Raises RunError if there is nothing to compare."""
    guarded = policy.strategies or tuple(baseline.sums)
    pairs = [(name, name) for name in guarded if name in baseline.sums and name in run.sums]
    compared = compare(baseline, run, pairs, policy.rule)
    apart = [each for each in (_of(found, guarded) for found in strategies(baseline, run)) if each.names]
    asked = {name for name in policy.metrics if name != REST}
    left = () if REST in policy.metrics else tuple(sorted(name for name in baseline.metrics if name not in asked))
    unknown = (*sorted(asked - baseline.metrics.keys()), *(name for name in guarded if name not in baseline.sums))
    return Gate(replace(compared, unpaired=(*apart, *compared.unpaired)), policy, left, unknown)


def _of(found: Unpaired, guarded: Collection[str]) -> Unpaired:
    """What is lost, of the strategies that are guarded; all that is new."""
    if found.word == "new":
        return found
    return found._replace(names=tuple(name for name in found.names if name in guarded))


REST = "*"


class MetricPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one metric, as it is written."""

    absolute: float | None = None
    relative: float | None = None
    better: Direction | None = None
    each: float | None = None

    def rule(self, about: About) -> ComparisonRule | None:
        """What it comes to; None for a metric that has no direction, and is given none."""
        better = self.better or about.better
        if better == "":
            return None
        return ComparisonRule(self._margin(about.unit), better, self.each)

    def _margin(self, unit: str) -> Margin:
        if self.absolute is not None:
            return Margin(self.absolute)
        return usual_margin(unit) if self.relative is None else Margin(self.relative, relative=True)


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What is asked for."""

    metrics: Mapping[str, MetricPolicy] = field(default_factory=lambda: {REST: MetricPolicy()})
    cannot_tell: Literal["pass", "fail"] = "pass"
    strategies: tuple[str, ...] = ()
    """Those that are guarded; empty = all."""

    def rule(self, metric: str, about: About) -> ComparisonRule | None:
        """What is asked of a metric; None if it is not guarded."""
        asked = self.metrics.get(metric)
        if asked is None and not (metric in METRICS and METRICS[metric].restates):
            asked = self.metrics.get(REST)
        return asked.rule(about) if asked else None


class _Top(msgspec.Struct, forbid_unknown_fields=True):
    cannot_tell: Literal["pass", "fail"] = "pass"
    strategies: tuple[str, ...] = ()
    metrics: dict[str, Any] | None = None


def read(file: Path, known: Collection[str], strategies: Collection[str]) -> GatePolicy:
    """A policy. `known`: metrics and strategies that are measured. Raises SetupError, with the line, for all else."""
    toml = Toml.read(file)
    found = toml.convert((), _Top)
    for name in found.strategies:
        if name not in strategies:
            raise toml.wrong(("strategies",), f"{name!r} was not run{meant(name, dict.fromkeys(strategies))}")
    if found.metrics is None:
        return GatePolicy(cannot_tell=found.cannot_tell, strategies=found.strategies)
    metrics = {name: toml.convert(("metrics", name), MetricPolicy) for name in found.metrics}
    for name, asked in metrics.items():
        _check(toml, name, asked, known)
    return GatePolicy(metrics, found.cannot_tell, found.strategies)


def _check(toml: Toml, name: str, asked: MetricPolicy, known: Collection[str]) -> None:
    """Raise SetupError for a metric that there is not, or of which nothing sensible is asked."""
    keys = ("metrics", name)
    metric = METRICS.get(name)
    if metric is not None and metric.unit == CLOCK:
        raise toml.wrong(keys, "is of the clock on the wall, and in no baseline: another machine has another")
    if name != REST and name not in known and metric is None:
        every = dict.fromkeys([*known, *METRICS])
        raise toml.wrong(keys, f"unknown metric{nearest(name, every) or '; `ctxbench list metrics` has them all'}")
    if asked.absolute is not None and asked.relative is not None:
        raise toml.wrong((*keys, "relative"), "there is an absolute margin as well", "take one of them")
    for part in ("absolute", "relative", "each"):
        value = getattr(asked, part)
        if value is not None and not 0 <= value < float("inf"):
            raise toml.wrong((*keys, part), f"{value} is no margin", "0 or more")
    if name != REST and metric is not None and not metric.better and not asked.better:
        raise toml.wrong(keys, "has no direction of its own", 'add better = "lower" or better = "higher"')

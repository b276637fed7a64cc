"""Decide whether a comparison passes a policy. Pure functions: printing and exit codes are elsewhere.

fails       worse, lost; cannot tell, if the policy says so
must mend   incomparable: whether it passes is not known until the baseline is made anew
passes      better, same, new; cannot tell, if the policy does not say otherwise
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...metrics.figures import METRICS, metric_of
from ...metrics.statistics.comparison import Direction, Margin, Word, usual_margin
from ...scenarios.spec import nearest, suggestion
from ...scenarios.toml import Toml
from .compare import Comparison, ComparisonRule, RunComparison, Unpaired, compare, strategies
from .figures import CLOCK, About, MeasuredRun

FAILS: tuple[Word, ...] = ("worse", "lost")

Result = Literal["passes", "fails", "must be mended"]
CODES: dict[Result, int] = {"passes": 0, "fails": 1, "must be mended": 2}
"""Exit codes."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of the gate: every comparison, and what passes or fails by the policy."""

    compared: RunComparison
    policy: GatePolicy
    not_guarded: tuple[str, ...]
    """Metrics of the baseline that the policy does not name."""
    unknown: tuple[str, ...]
    """Metrics and strategies that the policy names and the baseline does not have: nothing can be said of them."""

    @property
    def failing(self) -> tuple[Comparison, ...]:
        """The comparisons that fail the gate."""
        words = (*FAILS, "cannot tell") if self.policy.cannot_tell == "fail" else FAILS
        return tuple(comparison for comparison in self.compared.comparisons if comparison.verdict.word in words)

    @property
    def gone(self) -> tuple[Unpaired, ...]:
        """Conversations and strategies that were measured before and are not any more: they fail the gate too."""
        return tuple(unpaired for unpaired in self.compared.unpaired if unpaired.word == "lost")

    @property
    def incomparable(self) -> tuple[Comparison | Unpaired, ...]:
        """Metrics and conversations that are another thing than in the baseline."""
        metrics = [comparison for comparison in self.compared.comparisons if comparison.verdict.word == "incomparable"]
        return (*metrics, *(unpaired for unpaired in self.compared.unpaired if unpaired.word == "incomparable"))

    @property
    def result(self) -> Result:
        """Whether the gate passes. A failure is reported first: it stays when the baseline is made anew."""
        if self.failing or self.gone:
            return "fails"
        return "must be mended" if self.incomparable or self.unknown else "passes"


def gate(baseline: MeasuredRun, run: MeasuredRun, policy: GatePolicy) -> Gate:
    """Compare a run with a baseline under a policy. Raises RunError if there is nothing to compare."""
    guarded = policy.strategies or tuple(baseline.sums)
    pairs = [(name, name) for name in guarded if name in baseline.sums and name in run.sums]
    compared = compare(baseline, run, pairs, policy.rule)
    unpaired = [group for group in (_guarded(group, guarded) for group in strategies(baseline, run)) if group.names]
    named = {name for name in policy.metrics if name != REST}
    left = () if REST in policy.metrics else tuple(sorted(name for name in baseline.metrics if name not in named))
    unknown = (*sorted(named - baseline.metrics.keys()), *(name for name in guarded if name not in baseline.sums))
    return Gate(replace(compared, unpaired=(*unpaired, *compared.unpaired)), policy, left, unknown)


def _guarded(unpaired: Unpaired, strategies: Collection[str]) -> Unpaired:
    """Return which guarded strategies are lost; new strategies are all returned."""
    if unpaired.word == "new":
        return unpaired
    return unpaired._replace(names=tuple(name for name in unpaired.names if name in strategies))


REST = "*"


class MetricPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy on one metric, as it is written in the file."""

    absolute: float | None = None
    relative: float | None = None
    better: Direction | None = None
    each: float | None = None

    def rule(self, about: About) -> ComparisonRule | None:
        """Return the rule that it comes to, or None for a metric without a direction of its own or a given one."""
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
    """The policy of a gate: which metrics and strategies are guarded, and by what margin."""

    metrics: Mapping[str, MetricPolicy] = field(default_factory=lambda: {REST: MetricPolicy()})
    cannot_tell: Literal["pass", "fail"] = "pass"
    strategies: tuple[str, ...] = ()
    """The strategies that are guarded; empty = all."""

    def rule(self, metric: str, about: About) -> ComparisonRule | None:
        """Return the rule of a metric, or None if it is not guarded."""
        policy = self.metrics.get(metric)
        known = metric_of(metric)
        if policy is None and not (known and known.restates):
            policy = self.metrics.get(REST)
        return policy.rule(about) if policy else None


class _Top(msgspec.Struct, forbid_unknown_fields=True):
    cannot_tell: Literal["pass", "fail"] = "pass"
    strategies: tuple[str, ...] = ()
    metrics: dict[str, Any] | None = None


def read(file: Path, known: Collection[str], strategies: Collection[str]) -> GatePolicy:
    """Read a policy file. `known` are the metrics, and `strategies` the strategies, that are measured.

    Raises SetupError, with the line, for anything else.
    """
    toml = Toml.read(file)
    top = toml.convert((), _Top)
    for name in top.strategies:
        if name not in strategies:
            raise toml.wrong(("strategies",), f"{name!r} was not run{suggestion(name, dict.fromkeys(strategies))}")
    if top.metrics is None:
        return GatePolicy(cannot_tell=top.cannot_tell, strategies=top.strategies)
    metrics = {name: toml.convert(("metrics", name), MetricPolicy) for name in top.metrics}
    for name, policy in metrics.items():
        _check(toml, name, policy, known)
    return GatePolicy(metrics, top.cannot_tell, top.strategies)


def _check(toml: Toml, name: str, policy: MetricPolicy, known: Collection[str]) -> None:
    """Raise SetupError for an unknown metric, or for a margin or direction that makes no sense."""
    keys = ("metrics", name)
    metric = metric_of(name)
    if metric is not None and metric.unit == CLOCK:
        raise toml.wrong(keys, "is measured by the wall clock and in no baseline: another machine has other figures")
    if name != REST and name not in known and name not in METRICS:
        every = dict.fromkeys([*known, *METRICS])
        raise toml.wrong(keys, f"unknown metric{nearest(name, every) or '; `ctxbench list metrics` has them all'}")
    if policy.absolute is not None and policy.relative is not None:
        raise toml.wrong((*keys, "relative"), "there is an absolute margin as well", "take one of them")
    for part in ("absolute", "relative", "each"):
        value = getattr(policy, part)
        if value is not None and not 0 <= value < float("inf"):
            raise toml.wrong((*keys, part), f"{value} is no margin", "0 or more")
    if name != REST and metric is not None and not metric.better and not policy.better:
        raise toml.wrong(keys, "has no direction of its own", 'add better = "lower" or better = "higher"')

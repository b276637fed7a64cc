"""What the gate asks for: `gate.toml`.

    cannot_tell = "pass"                # or "fail"; "pass" if left out
    strategies = ["smart", "archive"]   # those that are guarded; all if left out

    [metrics.grounding]
    absolute = 0.01                     # a margin in the metric's unit: one point
    each = 0.2                          # and no conversation may lose more than 20 points

    [metrics.tokens_sent]
    relative = 0.02                     # a margin as a share of what it was

    [metrics.steps]
    better = "lower"                    # for metrics that have no direction, or to turn one round

    [metrics."*"]                       # all others, with the usual margins; without it they are not guarded

Those that restate others (`Metric.restates`) are guarded only by name.

Without a file, and without `metrics` in it, all metrics are guarded that have a direction, with the usual margins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...metrics.figures import METRICS
from ...metrics.statistics.verdict import Direction, Margin, usual_margin
from ...scenarios.spec import meant, nearest
from ...scenarios.toml import Toml
from .comparing import Rule
from .measured import CLOCK, About

REST = "*"


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one metric, as it is written."""

    absolute: float | None = None
    relative: float | None = None
    better: Direction | None = None
    each: float | None = None

    def rule(self, about: About) -> Rule | None:
        """What it comes to; None for a metric that has no direction, and is given none."""
        better = self.better or about.better
        if better == "":
            return None
        return Rule(self._margin(about.unit), better, self.each)

    def _margin(self, unit: str) -> Margin:
        if self.absolute is not None:
            return Margin(self.absolute)
        return usual_margin(unit) if self.relative is None else Margin(self.relative, relative=True)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is asked for."""

    metrics: Mapping[str, Asked] = field(default_factory=lambda: {REST: Asked()})
    cannot_tell: Literal["pass", "fail"] = "pass"
    strategies: tuple[str, ...] = ()
    """Those that are guarded; empty = all."""

    def rule(self, metric: str, about: About) -> Rule | None:
        """What is asked of a metric; None if it is not guarded."""
        asked = self.metrics.get(metric)
        if asked is None and not (metric in METRICS and METRICS[metric].restates):
            asked = self.metrics.get(REST)
        return asked.rule(about) if asked else None


class _Top(msgspec.Struct, forbid_unknown_fields=True):
    cannot_tell: Literal["pass", "fail"] = "pass"
    strategies: tuple[str, ...] = ()
    metrics: dict[str, Any] | None = None


def read(file: Path, known: Collection[str], strategies: Collection[str]) -> Policy:
    """A policy. `known`: metrics and strategies that are measured. Raises SetupError, with the line, for all else."""
    toml = Toml.read(file)
    found = toml.convert((), _Top)
    for name in found.strategies:
        if name not in strategies:
            raise toml.wrong(("strategies",), f"{name!r} was not run{meant(name, dict.fromkeys(strategies))}")
    if found.metrics is None:
        return Policy(cannot_tell=found.cannot_tell, strategies=found.strategies)
    metrics = {name: toml.convert(("metrics", name), Asked) for name in found.metrics}
    for name, asked in metrics.items():
        _check(toml, name, asked, known)
    return Policy(metrics, found.cannot_tell, found.strategies)


def _check(toml: Toml, name: str, asked: Asked, known: Collection[str]) -> None:
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

"""The verdict on a run: which strategy to ship, what it saves and loses, what it breaks, and how sure that is.

The rule: of the strategies that break nothing that the whole history does not break, the cheapest one which in at least
95 % of the resamples of independent units (mostly conversations) costs less than the whole history and loses little
quality: at most 5 points, and at most a tenth of what the whole history has, so that a weak answer model does not hide
a loss. Cost is the bill of all calls under one model with the strategy's own model calls; quality is the best measure
that the run has. Both are over the same conversations, for all strategies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ctxbench.harness.answers.store import USUAL
from ctxbench.harness.folder.run import KEYS
from ctxbench.metrics.figures import METRICS, difference_unless_fixed, units_of
from ctxbench.metrics.frontier import FrontierSums, Point, Resamples, beyond_noise, how_often, resampled
from ctxbench.metrics.statistics.comparison import Difference, Pairs, difference
from ctxbench.metrics.statistics.intervals import by_unit
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.model import RECORDED

from .answers import evidence_rows, sums_of
from .render import about, count, exact
from .results import Results, RunSummary

WHOLE = "none"
"""The strategy that sends the whole history: what the others are measured against."""
BOUNDS = ("evidence_only",)
"""Strategies that read what no real one can: they are shown, dominate nothing, and are never recommended."""
ACCEPTED = 0.05
"""The loss of quality that is accepted at most, as a share of the questions."""
ACCEPTED_PART = 0.1
"""The same, as a part of the whole history's quality; the smaller loss of the two counts."""
SURE = 0.95
"""The share of resamples in which a strategy has to cost less and lose no more than that."""
FEWEST = 8
"""Independent units below which nothing is recommended: resamples of fewer are too alike."""

_ROUNDING = 1e-12


@dataclass(frozen=True)
class RunVerdict:
    """Place of every strategy on the frontier of cost and quality, and which of them to ship."""

    results: Results
    quality: MeasuredQuality
    model: str
    """Model whose bill counts."""
    base: str = WHOLE
    """Strategy that the others are measured against."""

    @cached_property
    def costs(self) -> Mapping[str, Mapping[str, float]]:
        """Dollars by model and strategy, with the strategy's own calls; NaN where a price is not known."""
        whole = self.results.totals.assign(whole=lambda rows: rows.cost + rows.cost_own)
        return {
            str(model): dict(zip(rows.strategy.astype(str), rows.whole, strict=True))
            for model, rows in whole.groupby("model", observed=True, sort=False)
        }

    def cost(self, name: str) -> float:
        """Return the cost of a strategy under the model; NaN where it is not known."""
        return self.costs.get(self.model, {}).get(name, nan)

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Quality of each strategy, over the conversations that are billed."""
        if not self.results.is_sampled:
            return self.quality.values
        sums = self.quality.sums[self.quality.sums.conversation.isin(self.results.billed_conversations)]
        by_strategy = sums.groupby("strategy", observed=True)[["got", "wanted"]].sum()
        shares = {str(name): got / wanted for name, got, wanted in by_strategy.itertuples() if wanted}
        return {**self.quality.values, **shares}

    @cached_property
    def broken(self) -> Mapping[str, Sequence[str]]:
        """Map from each strategy that breaks what the whole history does not break to what that is.

        Against another base the whole history is broken as well where it overflows the window and the base does not.
        """
        summary = self.results.summary
        every = {name: breakage(summary, name, self.model, self.base) for name in self.results.strategies}
        return {name: breaks for name, breaks in every.items() if breaks and name != self.base}

    @cached_property
    def points(self) -> dict[str, Point]:
        """Cost and quality of each strategy that has both."""
        return {
            name: Point(cost, value)
            for name, value in self.values.items()
            if name not in BOUNDS and not isinstance(value, Missing) and not isnan(cost := self.cost(name))
        }

    @property
    def candidates(self) -> dict[str, Point]:
        """Points of the strategies that break no more than the whole history."""
        return {name: point for name, point in self.points.items() if name not in self.broken}

    @cached_property
    def best(self) -> list[str]:
        """The strategies worth choosing, the most expensive first: a gain within its interval is none."""
        points = self.candidates

        def is_better(name: str, other: str) -> bool:
            shown = self.gain(name, other).shown
            # One conversation has no interval.
            return points[name].quality > points[other].quality if isinstance(shown, Missing) else shown.low > 0

        return beyond_noise(points, is_better)

    @cached_property
    def beaten_by(self) -> Mapping[str, str]:
        """Map from each candidate that is not worth choosing to the best one that costs no more."""
        points, best = self.candidates, self.best
        cheaper = {name: [other for other in best if points[other].cost <= points[name].cost] for name in points}
        quality = {name: point.quality for name, point in points.items()}
        return {name: max(others, key=quality.__getitem__) for name, others in cheaper.items() if name not in best}

    def gain(self, name: str, other: str) -> Difference:
        """Return how much better the quality of a strategy is than another's, in pairs of conversations."""
        _, got, wanted = self._sums
        before, after = (np.stack([got[one], wanted[one]], axis=1) for one in (other, name))
        change = difference(Pairs("ratio", before, after, self._units))
        return difference_unless_fixed(self.quality.metric, (name, other), change)

    def cost_change(self, name: str) -> Difference:
        """Return the bill of a strategy against that of the base, as a relative change."""
        return _change(self._sums.cost[self.base], self._sums.cost[name], self._units)

    def token_change(self, name: str) -> Difference:
        """Return the tokens sent and used by a strategy's own calls against the base's, as a change."""
        steps = self.results.common
        sums = steps.assign(used=steps.tokens_sent + steps.own_tokens).groupby([*KEYS[::-1]], observed=True)
        by_strategy = sums[["tokens_full", "used"]].sum()
        after = by_strategy.loc[name]
        before = after.tokens_full if self.base == WHOLE else by_strategy.loc[self.base].used.reindex(after.index)
        units = units_of(after.reset_index(), self.results.run.units)
        return difference_unless_fixed("net_saving", (name, self.base), _change(before, after.used, units))

    @cached_property
    def sure(self) -> Mapping[str, float]:
        """Share of resamples in which each candidate is on the frontier of the candidates; NaN if not known."""
        names = list(self.candidates)
        return dict(zip(names, how_often(self._resamples(names)).tolist(), strict=True))

    @cached_property
    def keeps(self) -> Mapping[str, float]:
        """Share of resamples in which each strategy costs less than the base and loses no more than accepted.

        Empty where the base has no place; NaN with one conversation.
        """
        names = list(self.points)
        if self.base not in names:
            return {}
        cost, quality = self._resamples(names)
        base_cost, base_quality = (part[:, [names.index(self.base)]] for part in (cost, quality))
        accepted = np.minimum(ACCEPTED, ACCEPTED_PART * base_quality)
        is_kept = (cost < base_cost) & (quality >= base_quality - accepted - _ROUNDING)
        shares = is_kept.mean(axis=0) if len(cost) else np.full(len(names), nan)
        return {name: share for name, share in zip(names, shares.tolist(), strict=True) if name != self.base}

    @property
    def accepted(self) -> float:
        """Accepted loss of quality, as a share of the questions; ACCEPTED where the base has no place."""
        base = self.points.get(self.base)
        return ACCEPTED if base is None else min(ACCEPTED, ACCEPTED_PART * base.quality)

    @property
    def crossed(self) -> list[str]:
        """The strategies that would be shipped but for what they break."""
        return [name for name in self._fit() if name in self.broken]

    @property
    def shipped(self) -> str | None:
        """The strategy to ship; None where no strategy is sure to keep the quality for less."""
        if self.units < FEWEST:
            return None
        points = self.candidates
        return min((name for name in self._fit() if name in points), key=lambda name: points[name].cost, default=None)

    def _fit(self) -> list[str]:
        """Return the strategies that are sure to cost less than the base and to keep its quality."""
        return [name for name, share in self.keeps.items() if share >= SURE and self.is_cheaper(name)]

    @property
    def nearest(self) -> str | None:
        """The strategy that comes nearest to being shipped, of those that break nothing; None if none ever is good."""
        keeps = {name: share for name, share in self.keeps.items() if name not in self.broken and share > 0}
        return max(keeps, key=keeps.__getitem__, default=None)

    def is_cheaper(self, name: str) -> bool:
        """Return whether the interval of the bill's change is below zero."""
        # Where few conversations make up the bill, resamples agree too much: the interval knows how few they are.
        shown = self.cost_change(name).shown
        return not isinstance(shown, Missing) and shown.high < 0

    @property
    def conversations(self) -> int:
        """Number of conversations that strategies are compared over."""
        return len(self._sums.cost)

    @property
    def units(self) -> int:
        """Number of independent units among them."""
        return len(set(self._units))

    @property
    def _units(self) -> list[str]:
        return units_of(self._sums.cost.reset_index(), self.results.run.units)

    def _resamples(self, names: Sequence[str]) -> Resamples:
        tables = (by_unit(part[list(names)].to_numpy(float), self._units) for part in self._sums)
        return resampled(FrontierSums(*tables))

    @cached_property
    def _sums(self) -> _Sums:
        names = list(self.points)

        def wide(rows: pd.DataFrame, column: str) -> pd.DataFrame:
            plain = rows.astype({"conversation": str, "strategy": str})
            return plain.pivot(index="conversation", columns="strategy", values=column).reindex(columns=names)

        bills = self.results.bills[self.results.bills.model == self.model]
        cost = wide(bills.assign(whole=bills.cost + bills.cost_own), "whole").dropna()
        got, wanted = (wide(self.quality.sums, part).reindex(cost.index).fillna(0) for part in ("got", "wanted"))
        return _Sums(cost, got, wanted)


class _Sums(NamedTuple):
    """A row for each conversation and a column for each strategy."""

    cost: pd.DataFrame
    got: pd.DataFrame
    wanted: pd.DataFrame


def _change(before: pd.Series[float], after: pd.Series[float], units: Sequence[str]) -> Difference:
    one, other = (np.stack([side.to_numpy(float), np.ones(len(side))], axis=1) for side in (before, after))
    return difference(Pairs("total", one, other, units), relative=True)


def verdict(results: Results) -> RunVerdict:
    """Return the verdict on a run, under its first model."""
    return RunVerdict(results, quality(results), results.models[0])


def breakage(summary: RunSummary, name: str, model: str, base: str = WHOLE) -> list[str]:
    """Return in words what a strategy breaks and `none` does not; without `none`, all that it breaks.

    Requests that a provider rejects count if it is the provider of `model`. Calls over the window count where `base`
    has fewer.
    """
    broken = []
    # Where a recording does not say what its agent sent, `recorded` has nothing to replay: that breaks nothing.
    if (lost := summary.failed_conversations[name]) and name != RECORDED:
        broken.append(f"failed in {count(lost, 'conversation')}")
    if name in summary.unrepeatable:
        broken.append(f"sends something else when it is replayed again ({summary.unrepeatable[name]})")
    if name in summary.unanswered:
        broken.append("no model answered")
    if name == RECORDED:  # its requests were answered as they were
        return broken
    usual = dict(summary.strategies.get(WHOLE, {}))
    if base != WHOLE:
        usual["overflows"] = summary.strategies[base]["overflows"]
    return [*broken, *faults(summary.strategies[name], usual, model)]


def faults(values: Mapping[str, Value], usual: Mapping[str, Value], model: str) -> Iterator[str]:
    """Yield in words the structural faults that figures have and the usual ones have not, with their numbers."""

    def more(column: str) -> int:
        """Return how many more than usual; 0 where it is not known."""
        value, before = (0 if isinstance(of, Missing) else int(of) for of in (values[column], usual.get(column, 0)))
        return max(0, value - before)

    # Those that may reject the requests of a model: all of them, where it is none of theirs.
    own = [provider for provider, names in _PROVIDERS.items() if names.search(model)] or list(_PROVIDERS)
    rejected = {provider: more(f"rejected_{provider.lower()}") for provider in own}
    if any(rejected.values()):
        yield "rejected: " + ", ".join(f"{number:,} by {provider}" for provider, number in rejected.items() if number)
    yield from (f"{words}: {number:,}" for column, words in _BROKEN.items() if (number := more(column)))


_PROVIDERS = {"OpenAI": re.compile(r"\bgpt-|\bo\d\b|codex"), "Anthropic": re.compile(r"claude")}
"""Providers whose rejections are counted, with what the names of their models contain."""
_BROKEN = {
    "without_newest": "newest message missing",
    "dropped_system": "system message dropped",
    "empty": "empty",
    "over_budget": "over budget",
    "overflows": "over the window",
}


@dataclass(frozen=True)
class MeasuredQuality:
    """One measure of quality, for every strategy."""

    metric: str
    """Key of the metric."""
    about: str
    values: Mapping[str, Value]
    """By strategy, over the conversations that all of them finished."""
    sums: pd.DataFrame
    """Parts of the shares: conversation, strategy, got, wanted."""

    @property
    def name(self) -> str:
        """Display name of the metric."""
        return METRICS[self.metric].name


def quality(results: Results) -> MeasuredQuality:
    """Return the best measure of quality that the run has: the nearest to a right answer.

    That is the share of right answers, else context recall, else grounding recall, which every run has.
    """
    summary, names = results.summary, results.strategies
    if (answers := summary.answers) is not None and answers.figures:
        best = answers.figures[0]
        apart = Missing("undefined", "too little of it is graded to be compared")
        shares = {of.strategy: of.correct if of.in_pairs else apart for of in best.strategies}
        values = {name: shares.get(name, Missing("undefined", "nothing was answered")) for name in names}
        if not all(isinstance(value, Missing) for value in values.values()):
            who = best.answerer + " (the extractive baseline)" * (best.answerer == USUAL[0])
            text = about("quality_answers", answerer=who, grader=best.grader)
            return MeasuredQuality("answer_quality", text, values, best.counts[best.counts.strategy.isin(names)])
    if (probes := summary.probes) is not None and probes.compared:
        known = {name: figures["context_recall"] for name, figures in probes.strategies.items()}
        values = {name: known.get(name, Missing("undefined", "nothing was sent for any probe")) for name in names}
        sums = sums_of("context_recall", evidence_rows(results.run, summary.uneven, probes.strategies))
        return MeasuredQuality("context_recall", about("quality_recall"), values, sums)
    values = {name: figures["grounding"] for name, figures in summary.strategies.items()}
    return MeasuredQuality("grounding", about("quality_grounding"), values, sums_of("grounding", results.common))


def in_order(verdict: RunVerdict) -> list[str]:
    """Return the strategy to ship, then the others from cheap to dear, and last what breaks."""

    costs = {name: np.nan_to_num(verdict.cost(name), nan=np.inf) for name in verdict.results.strategies}
    return sorted(costs, key=lambda name: (name != verdict.shipped, name in verdict.broken, costs[name]))


def as_json(verdict: RunVerdict) -> dict[str, Any]:
    """Return the exact figures of the verdict."""
    strategies = {
        name: {
            **verdict.points[name]._asdict(),
            "keeps": share,
            "cost_change": verdict.cost_change(name),
            "token_change": verdict.token_change(name),
            "quality_gain": verdict.gain(name, verdict.base),
        }
        for name, share in verdict.keeps.items()
    }
    figures: dict[str, Any] = exact(
        {
            "ship": verdict.shipped,
            "model": verdict.model,
            "quality": verdict.quality.name,
            "conversations": verdict.conversations,
            "independent_units": verdict.units,
            "accepted_loss": verdict.accepted,
            "sure_enough": SURE,
            "frontier": verdict.best,
            "breaks": verdict.broken,
            "strategies": strategies,
        }
    )
    return figures

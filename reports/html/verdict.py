"""The first screen: which strategies are worth choosing, what dominates the others, what each breaks.

Cost is the bill of all calls under one model with the strategy's own model calls; quality is the best measure that the
run has. Both are over the same conversations, for all strategies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan

import pandas as pd

from ...metrics.frontier import Point, Sums, dominators, frontier, how_often
from ...metrics.value import Missing, Value
from ..results import Results
from ..summary import Summary
from ..words import count
from .quality import Quality, quality

BOUNDS = ("evidence_only",)
"""Strategies that read what no real one can: they are shown, and dominate nothing."""


@dataclass(frozen=True)
class Verdict:
    """Of every strategy where it stands, under each model."""

    results: Results
    quality: Quality

    @property
    def model(self) -> str:
        """Whose bill counts."""
        return self.results.models[0]

    @cached_property
    def costs(self) -> Mapping[str, Mapping[str, float]]:
        """By model and strategy, in dollars, with the strategy's own calls; NaN where a price is not known."""
        whole = self.results.totals.assign(whole=lambda rows: rows.cost + rows.cost_own)
        return {
            str(model): dict(zip(rows.strategy.astype(str), rows.whole, strict=True))
            for model, rows in whole.groupby("model", observed=True, sort=False)
        }

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Quality by strategy, over the conversations that are billed."""
        if not self.results.is_sampled:
            return self.quality.values
        sums = self.quality.sums
        sums = sums[sums.conversation.isin(self.results.billed_conversations)]
        known = sums.groupby("strategy", observed=True)[["got", "wanted"]].sum()
        shares = {str(name): got / wanted for name, got, wanted in known.itertuples() if wanted}
        return {name: shares.get(name, value) for name, value in self.quality.values.items()}

    def points(self, model: str) -> dict[str, Point]:
        """Of each strategy that has both figures."""
        found = {}
        for name, value in self.values.items():
            cost = self.costs.get(model, {}).get(name, float("nan"))
            if name not in BOUNDS and not isinstance(value, Missing) and not isnan(cost):
                found[name] = Point(cost, value)
        return found

    def best(self, model: str) -> list[str]:
        """The frontier, the dearest first."""
        return frontier(self.points(model))

    @cached_property
    def under(self) -> Mapping[str, Sequence[str]]:
        """Of each that is dominated, by what of the frontier, the cheapest first."""
        return dominators(self.points(self.model))

    @cached_property
    def sure(self) -> Mapping[str, float]:
        """By strategy, how often it is on the frontier when the conversations are drawn anew; NaN if not known."""
        names = list(self.points(self.model))
        bills = self.results.bills[self.results.bills.model == self.model]
        cost = _wide(bills.assign(whole=bills.cost + bills.cost_own), "whole", names).dropna()
        got, wanted = (
            _wide(self.quality.sums, each, names).reindex(cost.index).fillna(0) for each in ("got", "wanted")
        )
        shares = how_often(Sums(*(each.to_numpy(float) for each in (cost, got, wanted))))
        return dict(zip(names, shares.tolist(), strict=True))


def _wide(rows: pd.DataFrame, column: str, names: Sequence[str]) -> pd.DataFrame:
    """A row a conversation, a column a strategy."""
    plain = rows.astype({"conversation": str, "strategy": str})
    return plain.pivot(index="conversation", columns="strategy", values=column).reindex(columns=list(names))


def verdict(results: Results) -> Verdict:
    """Where the strategies of a run stand."""
    return Verdict(results, quality(results))


def breakage(summary: Summary, name: str) -> list[str]:
    """What a strategy breaks that `none` does not, in words; without `none`, all that it breaks."""
    return list(_breakage(summary, name))


def _breakage(summary: Summary, name: str) -> Iterator[str]:
    if lost := summary.lost[name]:
        yield f"failed in {count(lost, 'conversation')}"
    if name in summary.unanswered:
        yield "no model answered"
    values, usual = summary.strategies[name], summary.strategies.get("none", {})
    refused = [(who, _more(values[f"refused_{who.lower()}"], usual.get(f"refused_{who.lower()}"))) for who in PROVIDERS]
    if any(number for _, number in refused):
        told = ", ".join(f"{number:,} {who}" for who, number in refused if number)
        yield f"refused: {told}"
    for column, words in BROKEN.items():
        if number := _more(values[column], usual.get(column)):
            yield f"{words}: {number:,}"


PROVIDERS = ("OpenAI", "Anthropic")
BROKEN = {"without_newest": "newest missing", "over_budget": "over its budget", "overflows": "over the window"}


def _more(value: Value, usual: Value | None) -> int:
    """How many more than usual; 0 where it is not known."""
    if isinstance(value, Missing):
        return 0
    return max(0, int(value) - (0 if usual is None or isinstance(usual, Missing) else int(usual)))

"""The verdict on a run: which strategy to use, what it saved and lost here, what it breaks, and what to expect of it.

One rule judges, and every surface shows it: headline, tables, picture, page, Python, MLflow. `RunVerdict.places` gives
each strategy exactly one place:

    chosen     the cheapest strategy that is sound, costs less than the whole history, and loses no more than accepted
    frontier   no sound strategy is both as cheap and as good
    beaten     one of these costs no more and is no worse
    doubtful   it is cheaper here, but not whichever unit is left out, or its interval includes no saving; or it loses
               too much once a unit is left out, or its quality is measured in fewer than FEWEST units
    broken     it breaks what the whole history does not break
    bound      a bound of what is possible, no strategy: it is never judged
    unknown    its bill or its quality is not known

Cost is the bill of all calls under one model with the strategy's own model calls; quality is the best measure that the
run has. Both are what happened here, over the same conversations for all strategies. With fewer than FEWEST independent
units nothing is chosen. Replay makes the recorded calls: where published live runs of its family made so many more that
the saving is gone, the chosen one is to be tried live first, however sure it is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import isnan, nan
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ctxbench.harness.answers.figures import BOUNDS, WHOLE, AnswerFigures, with_gain
from ctxbench.harness.answers.store import USUAL
from ctxbench.harness.bill import OWN_MODELS
from ctxbench.harness.bill.requests import own_models
from ctxbench.harness.engine.plan import family
from ctxbench.harness.folder.run import KEYS
from ctxbench.harness.probes import CEILING
from ctxbench.metrics.evidence import Range, published
from ctxbench.metrics.figures import METRICS, difference_unless_fixed, fixed, units_of
from ctxbench.metrics.frontier import Point, dominators, frontier
from ctxbench.metrics.statistics.comparison import Difference, Pairs, difference
from ctxbench.metrics.statistics.intervals import FEWEST
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.model import RECORDED

from .answers import evidence_rows, sums_of
from .render import about, count, exact, percent
from .results import Results, RunSummary

LOSSES = (0.0, 1.0, 5.0, 10.0)
"""Points of quality for which the first screen has a choice, besides the loss that the reader accepts."""

Place = Literal["chosen", "frontier", "beaten", "doubtful", "broken", "bound", "unknown"]

MODELS_NAMED = 3
_GUESSED = 0.05  # share of calls without a model, or with one of unknown price, from which on the headline says so
ROUNDING = 1e-9  # difference of shares up to which they are the same


class Doubt(NamedTuple):
    """Why a strategy that is cheaper here, and good enough, is not chosen."""

    words: str
    unit: str = ""  # the independent unit that carries it; empty where no single one does


@dataclass(frozen=True)
class RunVerdict:
    """Place of every strategy by cost and quality, and which of them to use."""

    results: Results
    quality: MeasuredQuality
    model: str  # model whose bill counts
    base: str = WHOLE  # strategy that the others are measured against

    @property
    def accepted(self) -> float:
        """Accepted loss of quality, as a share: the reader's `--lose`, which is in points."""
        return self.results.lose / 100

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
        sums = self.quality.sums
        return {**self.quality.values, **_shares(sums[sums.conversation.isin(self.results.billed_part.chosen or ())])}

    @cached_property
    def broken(self) -> Mapping[str, Sequence[str]]:
        """Map from each strategy that breaks what the whole history does not break to what that is.

        Against another base the whole history is broken as well where it overflows the window and the base does not.
        """
        summary, model = self.results.summary, self.model
        if model == OWN_MODELS:
            summary, model = replace(summary, strategies=_rejected_by_own(self.results)), ""
        every = {name: breakage(summary, name, model, self.base) for name in self.results.strategies}
        return {name: breaks for name, breaks in every.items() if breaks and name != self.base}

    @cached_property
    def points(self) -> dict[str, Point]:
        """Cost and quality of each strategy that has both; bounds are none."""
        return {
            name: Point(cost, value)
            for name, value in self.values.items()
            if name not in BOUNDS and not isinstance(value, Missing) and not isnan(cost := self.cost(name))
        }

    @cached_property
    def doubts(self) -> Mapping[str, Doubt]:
        """Map each sound strategy that is cheaper than the base here, and cannot be counted on, to the reason."""
        sound = [name for name in self.points if name not in self.broken and name != self.base]
        return {name: doubt for name in sound if self.base in self.points and (doubt := self._doubt(name))}

    def _doubt(self, name: str) -> Doubt | None:
        point, base = self.points[name], self.points[self.base]
        is_cheaper = point.cost < base.cost
        if self.units < 2 or not (is_cheaper or point.dominates(base)):
            return None
        # The heaviest unit first: it is the one that a reader can look at.
        for unit, change, loss in self.without_each(name).itertuples():
            if not change < (-ROUNDING if is_cheaper else ROUNDING):
                return Doubt(about("doubt_cost"), str(unit))
            if base.quality - point.quality <= self.accepted + ROUNDING and not loss <= self.accepted + ROUNDING:
                return Doubt(about("doubt_quality"), str(unit))
        gain, cost = self.gain(name, self.base), self.cost_change(name)
        if gain.units < FEWEST <= self.units and isinstance(gain.shown, Missing) and gain.shown.why == "few":
            return Doubt(about("doubt_few", units=count(gain.units, "independent unit"), fewest=FEWEST))
        # An interval ends at 0 where no conversation costs more and most cost the same: it is cheaper for sure.
        least = cost.shown if isinstance(cost.shown, Missing) or cost.shown.high < 0 else cost.across
        if is_cheaper and not isinstance(least, Missing) and least.high > 0:
            return Doubt(about("doubt_interval"))
        # Where right answers cannot tell, what is not there cannot be answered: the ceiling guards.
        lost = self.not_found(name)
        if self.quality.graded is not None and lost > self.accepted + ROUNDING and not self.surely_keeps(name):
            return Doubt(about("doubt_found", lost=f"{100 * lost:.0f}"))
        return None

    def not_found(self, name: str) -> float:
        """Return the share of answers that can be found in what the base sends, and not in what a strategy does."""
        here, whole = (self.quality.found.get(each, nan) for each in (name, self.base))
        return 0.0 if isinstance(here, Missing) or isinstance(whole, Missing) or isnan(whole - here) else whole - here

    def without_each(self, name: str) -> pd.DataFrame:
        """Return what a strategy costs and loses without each independent unit, the heaviest of the base's bill first.

        `change` is the relative change of the base's bill, `loss` that of its quality, as a share of the questions.
        """
        sums = self._by_unit
        got, wanted, base, of = (
            part.sum() - part for part in (sums.got[name], sums.wanted[name], *sums.compared(name, self.base))
        )
        cost = sums.cost.sum() - sums.cost
        loss = base / of.where(of > 0) - got / wanted.where(wanted > 0)
        frame = pd.DataFrame({"change": cost[name] / cost[self.base].where(cost[self.base] > 0) - 1, "loss": loss})
        return frame.loc[cost[self.base].sort_values(kind="stable").index]

    @cached_property
    def candidates(self) -> dict[str, Point]:
        """Points of the strategies that are judged: they break nothing and are not in doubt."""
        out = {*self.broken, *self.doubts}
        return {name: point for name, point in self.points.items() if name not in out}

    @cached_property
    def best(self) -> list[str]:
        """The frontier of the candidates, the most expensive first; of what is the same as the base only the base."""
        base = self.points.get(self.base)
        return [name for name in frontier(self.candidates) if name == self.base or self.points[name] != base]

    @cached_property
    def beaten_by(self) -> Mapping[str, str]:
        """Map each candidate that others beat to the best of the others."""
        better = dominators(self.candidates)
        beaten = {name: self.base for name in self.candidates if name not in (*self.best, *better)}
        return beaten | {
            name: max(others, key=lambda other: self.points[other].quality) for name, others in better.items()
        }

    def choice(self, points: float) -> str:
        """Return the cheapest sound strategy that lost at most so many points of quality here; else the base.

        With fewer than FEWEST units, where nothing is chosen, it is what was cheapest here, doubted or not.
        """
        least, is_few = self.points[self.base].quality - points / 100 - ROUNDING, self.units < FEWEST
        names = [name for name in self.points if name not in self.broken] if is_few else self.candidates
        good = [name for name in names if self.points[name].quality >= least]
        return min(good, key=lambda name: (self.points[name].cost, -self.points[name].quality, name != self.base))

    @property
    def careful(self) -> str:
        """Cheapest sound strategy whose loss of answers is accepted; else the base."""
        base, found = self.points[self.base], self.quality.found
        cheaper = [name for name, of in self.candidates.items() if of.cost < base.cost and name in found]
        good = [name for name in cheaper if self.not_found(name) <= self.accepted + ROUNDING]
        return min(good, key=lambda name: self.points[name].cost, default=self.base)

    @property
    def losses(self) -> list[float]:
        """Points of quality that the table of choices has rows for: LOSSES, and what the reader accepts."""
        return sorted({*LOSSES, self.results.lose})

    @property
    def is_comparable(self) -> bool:
        """Whether the base and another strategy have a place."""
        return self.base in self.points and len(self.points) > 1

    @property
    def shipped(self) -> str | None:
        """The strategy to use; None where that is the base, and where there are too few units to choose."""
        if not self.is_comparable or self.units < FEWEST:
            return None
        chosen = self.choice(self.results.lose)
        return None if chosen == self.base else chosen

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """The one place of each strategy: everything that is shown follows it."""
        chosen = [self.shipped or self.base] if self.is_comparable and self.units >= FEWEST else []
        names_of: dict[Place, Collection[str]] = {
            "chosen": chosen,
            "bound": BOUNDS,
            "broken": self.broken,
            "doubtful": self.doubts,
            "frontier": self.best,
            "beaten": self.candidates,
            "unknown": self.results.strategies,
        }
        return {name: next(of for of in names_of if name in names_of[of]) for name in self.results.strategies}

    @property
    def is_sure(self) -> bool:
        """Whether the strategy to use surely loses no more than accepted elsewhere, and its cost is not open there."""
        return self.shipped is not None and self.is_sure_of(self.shipped) and not self.overspent_live(self.shipped)

    def is_sure_of(self, name: str) -> bool:
        """Return whether a strategy's loss surely is within what is accepted, and its cost elsewhere is known."""
        return not isinstance(self.cost_change(name).shown, Missing) and self.surely_keeps(name)

    def surely_keeps(self, name: str) -> bool:
        """Return whether a strategy's loss of quality surely is within what is accepted: at 95 %, one-sided."""
        gain = self.gain(name, self.base)
        if fixed(self.quality.metric, name) == self.points[name].quality == 1:  # it cannot lose against anything
            return True
        # What cannot differ by construction has no interval, and loses nothing.
        if isinstance(gain.tested, Missing):
            return gain.tested.why == "fixed"
        return gain.tested.low >= -self.accepted - ROUNDING

    def break_even(self, name: str) -> float:
        """Return how many times as many calls use up the saving; NaN without one, and for `recorded`: it was live."""
        cost, whole = (nan if of in (*BOUNDS, RECORDED) else self.cost(of) for of in (name, WHOLE))
        return whole / cost if 0 < cost < whole else nan

    @property
    def is_cut_off(self) -> bool:
        """Whether the whole history outgrows the window here: published live runs of that kind are apart."""
        overflows = self.results.summary.strategies.get(WHOLE, {}).get("overflows", 0)
        return not isinstance(overflows, Missing) and overflows > 0

    def live(self, figure: Literal["calls", "success"], name: str) -> Range | None:
        """Return the range of a figure over published live runs of a strategy's family; None without any."""
        return published(figure, family(name), cut_off=self.is_cut_off)

    def overspent_live(self, name: str) -> tuple[int, int] | None:
        """Return how many of how many published live runs of its family used up its saving; None where none did.

        Against another base than the whole history, which no published run had, nothing is said.
        """
        calls = self.live("calls", name) if self.base == WHOLE else None
        gone = 0 if calls is None else sum(self.break_even(name) < times for times in calls.figures)
        return (gone, calls.arms) if calls is not None and gone else None

    @property
    def nearest(self) -> str | None:
        """Strategy that costs less here, breaks nothing, keeps any quality and loses least beyond what is accepted.

        A sound one comes first, but where there are too few units to choose.
        """
        base, doubts = self.points[self.base], self.doubts if self.units >= FEWEST else ()
        cheaper = {name: of for name, of in self.points.items() if name not in self.broken and of.cost < base.cost}
        kept = {name: of for name, of in cheaper.items() if of.quality > 0 or not base.quality}
        beyond = {name: max(base.quality - of.quality - self.accepted, 0) for name, of in kept.items()}
        return min(kept, key=lambda name: (beyond[name], name in doubts, kept[name].cost), default=None)

    def but_for(self, names: Collection[str]) -> list[str]:
        """Return which of some strategies would be chosen but for doubts or faults, cheapest first."""
        most, least = self.points[self.shipped or self.base].cost, self.points[self.base].quality - self.accepted
        points = {name: self.points[name] for name in names if name in self.points}
        good = [name for name, of in points.items() if of.cost < most and of.quality >= least - ROUNDING]
        return sorted(good, key=lambda name: points[name].cost)

    # The differences are drawn once each: a screen shows them in several places.
    @cached_property
    def gain(self) -> Callable[[str, str], Difference]:
        """Function of two strategies: how much better the quality of one is than the other's, by conversation."""

        @cache
        def gain(name: str, other: str) -> Difference:
            sums = self._sums
            before, after = sums.compared(name, other), (sums.got[name], sums.wanted[name])
            pairs = Pairs("ratio", np.stack(before, axis=1), np.stack(after, axis=1), self._units)
            return difference_unless_fixed(self.quality.metric, (name, other), difference(pairs))

        return gain

    @cached_property
    def cost_change(self) -> Callable[[str], Difference]:
        """Function from a strategy to the relative change of the bill against the base."""

        @cache
        def change(name: str) -> Difference:
            return _change(self._sums.cost[self.base], self._sums.cost[name], self._units)

        return change

    def token_change(self, name: str) -> Difference:
        """Return the tokens sent and used by a strategy's own calls against the base's, as a change."""
        steps = self.results.common
        sums = steps.assign(used=steps.tokens_sent + steps.own_tokens).groupby([*KEYS[::-1]], observed=True)
        by_strategy = sums[["tokens_full", "used"]].sum()
        after = by_strategy.loc[name]
        before = after.tokens_full if self.base == WHOLE else by_strategy.loc[self.base].used.reindex(after.index)
        units = units_of(after.reset_index(), self.results.run.units)
        return difference_unless_fixed("net_saving", (name, self.base), _change(before, after.used, units))

    def cheaper_in(self, name: str) -> int:
        """Return in how many conversations a strategy costs less than the base."""
        return int((self._sums.cost[name] < self._sums.cost[self.base]).sum())

    @property
    def heaviest(self) -> tuple[str, float]:
        """The independent unit with the largest share of the base's bill, and that share."""
        cost = self._by_unit.cost[self.base]
        shares = cost / (cost.sum() or 1.0)
        return str(shares.idxmax()), float(shares.max())

    def conversations_of(self, unit: str) -> list[str]:
        """Return the conversations of an independent unit."""
        return [name for name, of in zip(self._sums.cost.index, self._units, strict=True) if of == unit]

    @property
    def conversations(self) -> int:
        """Number of conversations that strategies are compared over."""
        return len(self._sums.cost)

    @property
    def units(self) -> int:
        """Number of independent units among them."""
        return len(set(self._units))

    @property
    def measured_in(self) -> tuple[int, int]:
        """How many questions, or values, quality is a share of, and the number of independent units that have any."""
        wanted = self._by_unit.wanted[self.base]
        return int(wanted.sum()), int((wanted > 0).sum())

    @cached_property
    def _units(self) -> list[str]:
        return units_of(self._sums.cost.reset_index(), self.results.run.units)

    @cached_property
    def _by_unit(self) -> _Sums:
        parts = (part for part in self._sums if part is not None)
        return _Sums(*(part.groupby(self._units, sort=False).sum() for part in parts))

    @cached_property
    def _sums(self) -> _Sums:
        names = list(self.points)

        def wide(rows: pd.DataFrame, column: str) -> pd.DataFrame:
            plain = rows.astype({"conversation": str, "strategy": str})
            return plain.pivot(index="conversation", columns="strategy", values=column).reindex(columns=names)

        bills = self.results.bills[self.results.bills.model == self.model]
        cost = wide(bills.assign(whole=bills.cost + bills.cost_own), "whole").dropna()
        parts = [part for part in ("got", "wanted", "base") if part in self.quality.sums]
        return _Sums(cost, *(wide(self.quality.sums, part).reindex(cost.index).fillna(0) for part in parts))


class _Sums(NamedTuple):
    """A row for each conversation or unit, and a column for each strategy."""

    cost: pd.DataFrame
    got: pd.DataFrame
    wanted: pd.DataFrame
    base: pd.DataFrame | None = None
    """Got by the whole history of what each strategy wants, where not all have the same questions."""

    def compared(self, name: str, other: str) -> tuple[pd.Series[float], pd.Series[float]]:
        """Return what another strategy gets and wants of what a strategy is compared over."""
        if other == WHOLE and self.base is not None:
            return self.base[name], self.wanted[name]
        return self.got[other], self.wanted[other]


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
        broken.append(f"failed in {lost:,} of {summary.conversations:,}")
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

    rejected = {provider: more(f"rejected_{provider.lower()}") for provider in _providers(model)}
    if any(rejected.values()):
        yield "rejected: " + ", ".join(f"{number:,} by {provider}" for provider, number in rejected.items() if number)
    yield from (f"{words}: {number:,}" for column, words in _BROKEN.items() if (number := more(column)))


_PROVIDERS = {"OpenAI": re.compile(r"\bgpt-|\bo\d\b|codex"), "Anthropic": re.compile(r"claude")}
"""Providers whose rejections are counted, with what the names of their models contain."""


def _providers(model: str) -> list[str]:
    """Return those that may reject the requests of a model: all of them, where it is none of theirs."""
    return [provider for provider, names in _PROVIDERS.items() if names.search(model)] or list(_PROVIDERS)


def _rejected_by_own(results: Results) -> dict[str, dict[str, Value]]:
    """Return the figures of each strategy, with the rejections that the model of each conversation has to fear."""
    own, rows = own_models(results.run, results.prices), results.common
    figures = {name: dict(values) for name, values in results.summary.strategies.items()}
    for provider in _PROVIDERS:
        key = f"rejected_{provider.lower()}"
        here = rows[[provider in _providers(own[str(name)]) for name in rows.conversation]]
        sums = here.groupby("strategy", observed=False)[key].sum()
        for name, values in figures.items():
            if not isinstance(values[key], Missing):
                values[key] = int(sums.get(name, 0))
    return figures


_BROKEN = {
    "without_newest": "newest dropped",
    "dropped_system": "system message dropped",
    "empty": "empty",
    "over_budget": "over budget",
    "overflows": "over the window",
}


@dataclass(frozen=True)
class MeasuredQuality:
    """One measure of quality, for every strategy."""

    metric: str  # key of the metric
    about: str
    values: Mapping[str, Value]  # by strategy, over the conversations that all of them finished
    sums: pd.DataFrame  # parts of the shares: conversation, strategy, got, wanted
    bounds: Mapping[str, Value] = field(default_factory=dict)
    """Of last_turn, which has no memory, and evidence_only, which has the evidence alone: no strategies."""
    failed: tuple[str, ...] = ()  # answer models none of whose answers counts
    graded: AnswerFigures | None = None  # the answers of a model that it is the share of right ones of
    reader: AnswerFigures | None = None  # the answers of the extractive baseline, the stand-in for a reader
    found: Mapping[str, Value] = field(default_factory=dict)
    """The ceiling, bounds too: share of the answers that can be found in what is sent."""
    tokens: Mapping[str, float] = field(default_factory=dict)  # mean tokens of what is sent for a question

    @property
    def name(self) -> str:
        """Display name of the metric."""
        return METRICS[self.metric].name


def quality(results: Results) -> MeasuredQuality:
    """Return the best measure of quality that the run has: the nearest to a right answer.

    That is the share of right answers of a model; else the ceiling, the share of the answers that can be found in what
    is sent; else context recall, else grounding recall, which every run has. Right answers are of the questions that a
    strategy and the whole history both answered. A strategy's quality is what the whole history has right, and its gain
    in these pairs. Answers that are fewer from the evidence alone say nothing of what a strategy leaves out: not used.
    """
    summary, names = results.summary, results.strategies
    stored = () if summary.answers is None else summary.answers.figures
    models = [of for of in stored if of.answerer != USUAL[0]]
    failed = tuple(dict.fromkeys(of.answerer for of in models if not of.is_answered))
    reader = next((of for of in stored if of.answerer == USUAL[0]), None)
    beside: dict[str, Any] = {"failed": failed, "reader": reader}
    if (probes := summary.probes) is not None:
        both = {**probes.bounds, **probes.strategies}
        beside["found"] = {name: of["answer_in_context"] for name, of in both.items()}
        beside["tokens"] = {name: of["tokens"] for name, of in both.items()}
    unknown = Missing("undefined", "nothing was sent for any probe")
    for of in models:
        shares = {each.strategy: each.correct for each in of.strategies if each.in_pairs}
        whole, ceiling = (shares.get(name, Missing("undefined")) for name in (WHOLE, CEILING))
        if isinstance(whole, Missing) or (not isinstance(ceiling, Missing) and ceiling < whole):
            continue
        sums = of.counts[of.counts.strategy.isin([name for name in names if name in shares])]
        apart = Missing("undefined", "too little of it is answered to be compared")
        text = about("quality_answers", answerer=of.answerer, grader=of.grader)
        bounds = {name: shares[name] for name in BOUNDS if name in shares}
        values = {name: shares.get(name, apart) for name in names}
        return MeasuredQuality("answer_quality", text, values, sums, bounds, graded=of, **beside)
    if probes is not None and probes.compared:
        for metric, text in (("answer_in_context", "quality_found"), ("context_recall", "quality_recall")):
            values = {name: probes.strategies.get(name, {}).get(metric, unknown) for name in names}
            if isinstance(values.get(WHOLE, 0.0), Missing):
                continue
            sums = sums_of(metric, evidence_rows(results.run, summary.uneven, probes.strategies))
            bounds = {name: figures[metric] for name, figures in probes.bounds.items()}
            return MeasuredQuality(metric, about(text), values, sums, bounds, **beside)
    values = {name: figures["grounding"] for name, figures in summary.strategies.items()}
    sums = sums_of("grounding", results.common)
    return MeasuredQuality("grounding", about("quality_grounding"), values, sums, **beside)


def _shares(sums: pd.DataFrame) -> dict[str, Value]:
    """Return the quality of each strategy from its parts: in pairs, that of the whole history and the gain over it."""
    by_strategy = sums.groupby(sums.strategy.astype(str)).sum(numeric_only=True)
    by_strategy = by_strategy[by_strategy.wanted > 0]
    shares = by_strategy.got / by_strategy.wanted
    if "base" in by_strategy and WHOLE in shares.index:
        parts = by_strategy[["got", "wanted", "base"]].assign(
            right=by_strategy.got[WHOLE], of=by_strategy.wanted[WHOLE]
        )
        shares[:] = np.clip(with_gain(parts.to_numpy(float)), 0.0, 1.0)
    return {str(name): float(share) for name, share in shares.items()}


def in_order(verdict: RunVerdict) -> list[str]:
    """Return the strategies as tables have them: the chosen one, the other sound ones by cost, bounds, what breaks."""
    costs = {name: np.nan_to_num(verdict.cost(name), nan=np.inf) for name in verdict.places}
    apart = {"chosen": 0, "unknown": 2, "bound": 3, "broken": 4}
    return sorted(costs, key=lambda name: (apart.get(verdict.places[name], 1), costs[name]))


def guess(verdict: RunVerdict) -> str:
    """Return which calls are billed under a model that nobody named, nor the recordings; empty for none."""
    results, summary = verdict.results, verdict.results.summary
    if results.named or verdict.model != results.models[0]:  # the other models are for comparison
        return ""
    priced = {name: number for name, number in summary.recorded.items() if results.prices.tariff(name) is not None}
    share = 1 - sum(priced.values()) / (summary.calls or 1)
    if share < _GUESSED:
        return ""
    unpriced = ", ".join([name for name in summary.recorded if name not in priced][:MODELS_NAMED])
    unnamed = "they name no model" if priced else "no recording names its model"
    why = f"no price of {unpriced} is known" if unpriced else unnamed
    model = next(iter(priced)) if verdict.model == OWN_MODELS else verdict.model
    return f"{percent(share)} of the calls " * bool(priced) + f"billed under {model}, a guess: {why}"


def as_json(verdict: RunVerdict) -> dict[str, Any]:
    """Return the exact figures of the verdict."""
    others = [name for name in verdict.points if name != verdict.base] if verdict.base in verdict.points else []
    strategies = {
        name: {
            **verdict.points[name]._asdict(),
            "cheaper_in": verdict.cheaper_in(name),
            "cost_change": verdict.cost_change(name),
            "token_change": verdict.token_change(name),
            "quality_gain": verdict.gain(name, verdict.base),
        }
        for name in others
    }
    heaviest = verdict.heaviest if others else None
    figures: dict[str, Any] = exact(
        {
            "ship": verdict.shipped,
            "sure": verdict.is_sure,
            "model": verdict.model,
            "guess": guess(verdict),
            "quality": verdict.quality.name,
            "conversations": verdict.conversations,
            "independent_units": verdict.units,
            "heaviest": heaviest and {"unit": heaviest[0], "share": heaviest[1]},
            "accepted_loss": verdict.accepted,
            "choices": {f"{points:g}": verdict.choice(points) for points in verdict.losses} if others else {},
            "places": verdict.places,
            "frontier": verdict.best,
            "doubts": verdict.doubts,
            "breaks": verdict.broken,
            "strategies": strategies,
        }
    )
    return figures

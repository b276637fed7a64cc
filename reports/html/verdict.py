"""The first screen: which strategies are worth choosing, which of them dominate the others, and what each breaks.

Cost is the bill of all calls under one model with the strategy's own model calls; quality is the best measure that the
run has. Both are over the same conversations, for all strategies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan

import pandas as pd

from ...harness.answers.store import USUAL
from ...metrics.frontier import DRAWS, FrontierSums, Point, dominators, frontier, how_often
from ...metrics.value import Missing, Value
from ..answers import evidence_rows, sums_of
from ..figures.frontier import frontier as frontier_figure
from ..render import Table, count, dollars, percent, reasons
from ..results import Results, RunSummary
from .page import InlineFigure, ReportSection, figure_of, section_of, texts

# Strategies that read what no real one can: they are shown and dominate nothing.
_BOUNDS = ("evidence_only",)


@dataclass(frozen=True)
class ReportVerdict:
    """Place of every strategy on the frontier of cost and quality, under each model."""

    results: Results
    quality: ReportQuality

    @property
    def model(self) -> str:
        """Model whose bill counts."""
        return self.results.models[0]

    @cached_property
    def costs(self) -> Mapping[str, Mapping[str, float]]:
        """Dollars by model and strategy, with the strategy's own calls; NaN where a price is not known."""
        whole = self.results.totals.assign(whole=lambda rows: rows.cost + rows.cost_own)
        return {
            str(model): dict(zip(rows.strategy.astype(str), rows.whole, strict=True))
            for model, rows in whole.groupby("model", observed=True, sort=False)
        }

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Quality of each strategy, over the conversations that are billed."""
        if not self.results.is_sampled:
            return self.quality.values
        sums = self.quality.sums
        sums = sums[sums.conversation.isin(self.results.billed_conversations)]
        known = sums.groupby("strategy", observed=True)[["got", "wanted"]].sum()
        shares = {str(name): got / wanted for name, got, wanted in known.itertuples() if wanted}
        return {name: shares.get(name, value) for name, value in self.quality.values.items()}

    def points(self, model: str) -> dict[str, Point]:
        """Return cost and quality of each strategy that has both."""
        points = {}
        for name, value in self.values.items():
            cost = self.costs.get(model, {}).get(name, float("nan"))
            if name not in _BOUNDS and not isinstance(value, Missing) and not isnan(cost):
                points[name] = Point(cost, value)
        return points

    def best(self, model: str) -> list[str]:
        """Return the names on the frontier, the most expensive first."""
        return frontier(self.points(model))

    @cached_property
    def dominated_by(self) -> Mapping[str, Sequence[str]]:
        """Map from each dominated strategy to the frontier strategies that dominate it, cheapest first."""
        return dominators(self.points(self.model))

    @cached_property
    def sure(self) -> Mapping[str, float]:
        """Share of resamples in which each strategy is on the frontier; NaN if not known."""
        names = list(self.points(self.model))
        bills = self.results.bills[self.results.bills.model == self.model]
        cost = _wide(bills.assign(whole=bills.cost + bills.cost_own), "whole", names).dropna()
        got, wanted = (
            _wide(self.quality.sums, part, names).reindex(cost.index).fillna(0) for part in ("got", "wanted")
        )
        shares = how_often(FrontierSums(*(table.to_numpy(float) for table in (cost, got, wanted))))
        return dict(zip(names, shares.tolist(), strict=True))


def _wide(rows: pd.DataFrame, column: str, names: Sequence[str]) -> pd.DataFrame:
    """Return a table with a row for each conversation and a column for each strategy."""
    plain = rows.astype({"conversation": str, "strategy": str})
    return plain.pivot(index="conversation", columns="strategy", values=column).reindex(columns=list(names))


def verdict(results: Results) -> ReportVerdict:
    """Return the places of the strategies of a run."""
    return ReportVerdict(results, quality(results))


def breakage(summary: RunSummary, name: str) -> list[str]:
    """Return in words what a strategy breaks and `none` does not; without `none`, all that it breaks."""
    return list(_breakage(summary, name))


def _breakage(summary: RunSummary, name: str) -> Iterator[str]:
    if lost := summary.failed_conversations[name]:
        yield f"failed in {count(lost, 'conversation')}"
    if name in summary.unanswered:
        yield "no model answered"
    values, usual = summary.strategies[name], summary.strategies.get("none", {})
    columns = {provider: f"rejected_{provider.lower()}" for provider in _PROVIDERS}
    rejected = {provider: _more(values[column], usual.get(column)) for provider, column in columns.items()}
    if any(rejected.values()):
        yield "rejected: " + ", ".join(f"{number:,} by {provider}" for provider, number in rejected.items() if number)
    for column, words in _BROKEN.items():
        if number := _more(values[column], usual.get(column)):
            yield f"{words}: {number:,}"


_PROVIDERS = ("OpenAI", "Anthropic")
_BROKEN = {"without_newest": "newest message missing", "over_budget": "over budget", "overflows": "over the window"}


def _more(value: Value, usual: Value | None) -> int:
    """Return how many more than usual; 0 where it is not known."""
    if isinstance(value, Missing):
        return 0
    return max(0, int(value) - (0 if usual is None or isinstance(usual, Missing) else int(usual)))


@dataclass(frozen=True)
class ReportQuality:
    """One measure of quality, for every strategy."""

    name: str
    """Column head."""
    about: str
    values: Mapping[str, Value]
    """By strategy, over the conversations that all of them finished."""
    sums: pd.DataFrame
    """Parts of the shares: conversation, strategy, got, wanted."""


def grounding(results: Results) -> ReportQuality | None:
    """Return grounding recall, which every run has."""
    return ReportQuality(
        "grounding recall",
        "the share of the values the recorded model used next that the context still has",
        {name: figures["grounding"] for name, figures in results.summary.strategies.items()},
        sums_of("grounding", results.common),
    )


def evidence(results: Results) -> ReportQuality | None:
    """Return context recall, or None in a run without probes."""
    probes = results.summary.probes
    if probes is None or not probes.compared:
        return None
    rows = evidence_rows(results.run, results.summary.uneven, probes.strategies)
    known = {name: figures.values["context_recall"] for name, figures in probes.strategies.items()}
    nothing = Missing("undefined", "nothing was sent for any probe")
    return ReportQuality(
        "context recall",
        "the share of the messages that the answers to the recordings' questions rest on that is sent word for word",
        {name: known.get(name, nothing) for name in results.strategies},
        sums_of("context_recall", rows),
    )


def answers(results: Results) -> ReportQuality | None:
    """Return the share of right answers, or None where nothing was answered and graded."""
    answered = results.summary.answers
    if answered is None or not answered.figures:
        return None
    best = answered.figures[0]
    shares = {strategy.strategy: strategy for strategy in best.strategies}
    nothing = Missing("undefined", "nothing was answered")
    apart = Missing("undefined", "too little of it is graded to be compared")
    values: dict[str, Value] = {
        name: nothing if name not in shares else shares[name].correct if shares[name].in_pairs else apart
        for name in results.strategies
    }
    if all(isinstance(value, Missing) for value in values.values()):
        return None
    baseline = " (the extractive baseline)" if best.answerer == USUAL[0] else ""
    return ReportQuality(
        "correct",
        f"the share of the recordings' answerable questions that {best.answerer}{baseline} answered right, "
        f"graded by {best.grader}",
        values,
        best.counts[best.counts.strategy.isin(results.strategies)],
    )


# The first that the run has data for counts: the nearest to a right answer stands first.
_SOURCES: tuple[Callable[[Results], ReportQuality | None], ...] = (answers, evidence, grounding)


def quality(results: Results) -> ReportQuality:
    """Return the best measure of quality that the run has."""
    return next(measure for source in _SOURCES if (measure := source(results)) is not None)


_ON_FRONTIER = "on the frontier"
# Points of quality below the best of the run.
_LOSSES = (0, 1, 2, 5, 10, 20, 30, 50)
_ROUNDING = 1e-12


def overview_section(results: Results) -> ReportSection:
    """Return the first screen, which every run has."""
    places = verdict(results)
    order = _order(places)
    points = places.points(places.model)
    parts: list[Table | InlineFigure] = []
    if points:
        parts += (_figure(places, order, points), _choices(places, points))
    parts.append(_table(places, order))
    if points:
        parts.append(_by_how_much(places, order, points))
        parts += [_under_others(places, order)] if len(results.models) > 1 else []
    frames = {"frontier": _frame(places, order)}
    return section_of("overview", parts, frames, lead=_lead(places, points), template="overview.html")


def _order(places: ReportVerdict) -> list[str]:
    """Return the frontier, most expensive first; then the dominated strategies, cheapest first; then the rest."""
    points, best = places.points(places.model), places.best(places.model)
    dominated = sorted((name for name in points if name not in best), key=lambda name: points[name].cost)
    return [*best, *dominated, *(name for name in places.results.strategies if name not in points)]


def _lead(places: ReportVerdict, points: dict[str, Point]) -> str:
    """Return the answer in words."""
    words = texts()["sections"]["overview"]
    if not points:
        return words["lead_empty"]
    share = f"{len(places.best(places.model))} of {count(len(points), 'strategy', 'strategies')}"
    quality = places.quality
    return words["lead"].format(places=share, model=places.model, quality=quality.name, about=quality.about)


def _choices(places: ReportVerdict, points: dict[str, Point]) -> Table:
    """Return the cheapest strategy for each loss of quality that a reader may accept."""
    top = max(point.quality for point in points.values())
    first = points[places.best(places.model)[0]]
    rows: dict[str, tuple[str, ...]] = {}
    for loss in _LOSSES:
        good = [name for name in points if points[name].quality >= top - loss / 100 - _ROUNDING]
        name = min(good, key=lambda name: points[name].cost)
        breaks = "; ".join(breakage(places.results.summary, name)) or "–"
        against = percent(points[name].cost / first.cost - 1) if first.cost else "–"
        figures = (percent(points[name].quality), dollars(points[name].cost), against)
        rows.setdefault(name, (count(loss, "point") if loss else "nothing", name, breaks, *figures))
    heads = ("acceptable loss", "choose", "what breaks", places.quality.name, "bill", "against the best")
    return Table("The cheapest strategy for a loss that you accept", heads, tuple(rows.values()), (), names=3)


def _figure(places: ReportVerdict, order: list[str], points: dict[str, Point]) -> InlineFigure:
    best = places.best(places.model)
    numbers = {name: at for at, name in enumerate(order, start=1)}
    up, along = f"{places.quality.name} (higher is better)", f"bill under {places.model}, US dollars (lower is better)"
    values = {"model": places.model, "about": places.quality.about}
    return figure_of("frontier", lambda: frontier_figure(points, best, numbers, up, along), **values)


def _table(places: ReportVerdict, order: list[str]) -> Table:
    """Return all strategies with their verdicts and what they break."""
    numbers = {name: at for at, name in enumerate(order, start=1)}
    costs = places.costs.get(places.model, {})
    rows = tuple(
        (
            str(numbers[name]),
            name,
            _verdict(places, numbers, name),
            "; ".join(breakage(places.results.summary, name)) or "–",
            percent(places.values[name]),
            dollars(costs.get(name, nan)),
        )
        for name in order
    )
    heads = ("#", "strategy", "verdict", "what breaks", places.quality.name, "bill")
    return Table("Verdict on each strategy", heads, rows, tuple(_notes(places)), names=4)


def _verdict(places: ReportVerdict, numbers: Mapping[str, int], name: str) -> str:
    if name in _BOUNDS:
        return "a bound, not a strategy"
    if name not in numbers or name not in places.points(places.model):
        return "no figure"
    if name in places.dominated_by:
        return f"dominated by {numbers[places.dominated_by[name][0]]}"
    return _ON_FRONTIER


def _by_how_much(places: ReportVerdict, order: list[str], points: dict[str, Point]) -> Table:
    """Return how sure each verdict is, and the gain of taking the dominating strategy instead."""
    none = points["none"].cost if "none" in points else nan
    rows = []
    for name in order:
        if name not in points:
            continue
        point, sure = points[name], places.sure[name]
        against = "–" if isnan(none) or not none else percent(point.cost / none - 1)
        gains = ("–", "–", "–")
        if name in places.dominated_by:
            by = places.dominated_by[name][0]
            more = points[by].quality - point.quality
            gains = (by, percent(1 - points[by].cost / (point.cost or 1)), f"{100 * more:.1f}" if more else "0")
        rows.append((name, "–" if isnan(sure) else percent(sure), against, *gains))
    heads = ("strategy", "how sure", "bill against none", "dominated by", "cheaper by", "better by, points")
    note = (
        f"How sure: the share of {DRAWS:,} resamples of whole conversations in which the strategy is on the "
        "frontier. Dominated by: the cheapest of the frontier that dominates it."
    )
    return Table("How sure is the verdict, and by how much?", heads, tuple(rows), (note,))


def _notes(places: ReportVerdict) -> Iterator[str]:
    summary = places.results.summary
    yield (
        f"Bill: under {places.model} with its prompt cache, and the strategy's own model calls. What breaks: number of "
        "calls, beyond those of none where it was run."
    )
    if places.results.is_sampled:
        yield from places.results.sampling_notes
        yield f"{places.quality.name.capitalize()} covers the same conversations."
    if summary.compared < summary.conversations:
        whole = count(summary.conversations, "conversation")
        yield f"Over the {summary.compared:,} of {whole} that every strategy finished."
    if why := reasons(value for value in places.values.values() if isinstance(value, Missing)):
        yield why


def _under_others(places: ReportVerdict, order: list[str]) -> Table:
    """Return the bills under the other models, and whether the strategy is on the frontier there."""
    best = {model: places.best(model) for model in places.results.models}
    rows = tuple(
        (
            name,
            *(cell for model in best for cell in (_cost(places, model, name), "yes" if name in best[model] else "–")),
        )
        for name in order
        if name in places.points(places.model)
    )
    heads = ("strategy", *(head for model in best for head in (model, "frontier")))
    return Table("Is it the same under other models?", heads, rows, ("Bill, and whether it is on the frontier there.",))


def _cost(places: ReportVerdict, model: str, name: str) -> str:
    return dollars(places.costs.get(model, {}).get(name, float("nan")))


def _frame(places: ReportVerdict, order: list[str]) -> pd.DataFrame:
    best = places.best(places.model)
    return pd.DataFrame(
        [
            {
                "strategy": name,
                "on_frontier": name in best,
                "dominated_by": " ; ".join(places.dominated_by.get(name, ())),
                "how_sure": places.sure.get(name, float("nan")),
                places.quality.name: places.values[name],
                **{f"cost {model}": costs.get(name, float("nan")) for model, costs in places.costs.items()},
                "breaks": "; ".join(breakage(places.results.summary, name)),
            }
            for name in order
        ]
    )

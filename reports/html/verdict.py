"""The first screen: which strategies are worth choosing, what dominates the others, what each breaks.

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
from ..figures.frontier import frontier as frontier_figure
from ..measures import evidence_rows, sums_of
from ..render import Table, count, dollars, percent, reasons
from ..results import Results
from ..summary import RunSummary
from .section import InlineFigure, ReportSection

BOUNDS = ("evidence_only",)
"""Strategies that read what no real one can: they are shown, and dominate nothing."""


@dataclass(frozen=True)
class ReportVerdict:
    """Of every strategy where it stands, under each model."""

    results: Results
    quality: ReportQuality

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
        shares = how_often(FrontierSums(*(each.to_numpy(float) for each in (cost, got, wanted))))
        return dict(zip(names, shares.tolist(), strict=True))


def _wide(rows: pd.DataFrame, column: str, names: Sequence[str]) -> pd.DataFrame:
    """A row a conversation, a column a strategy."""
    plain = rows.astype({"conversation": str, "strategy": str})
    return plain.pivot(index="conversation", columns="strategy", values=column).reindex(columns=list(names))


def verdict(results: Results) -> ReportVerdict:
    """Where the strategies of a run stand."""
    return ReportVerdict(results, quality(results))


def breakage(summary: RunSummary, name: str) -> list[str]:
    """What a strategy breaks that `none` does not, in words; without `none`, all that it breaks."""
    return list(_breakage(summary, name))


def _breakage(summary: RunSummary, name: str) -> Iterator[str]:
    if lost := summary.lost[name]:
        yield f"failed in {count(lost, 'conversation')}"
    if name in summary.unanswered:
        yield "no model answered"
    values, usual = summary.strategies[name], summary.strategies.get("none", {})
    refused = [
        (who, _more(values[f"rejected_{who.lower()}"], usual.get(f"rejected_{who.lower()}"))) for who in PROVIDERS
    ]
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


@dataclass(frozen=True)
class ReportQuality:
    """One measure, for every strategy."""

    name: str
    """Over a column."""
    about: str
    values: Mapping[str, Value]
    """By strategy, over the conversations that all of them finished."""
    sums: pd.DataFrame
    """What they are made of: conversation, strategy, got, wanted."""


def grounding(results: Results) -> ReportQuality | None:
    """Every run has it: what the recorded model used next, was it still there."""
    return ReportQuality(
        "grounded",
        "of the values that the recorded model used next, the share still in the context",
        {name: figures["grounding"] for name, figures in results.summary.strategies.items()},
        sums_of("grounding", results.common),
    )


def evidence(results: Results) -> ReportQuality | None:
    """Where questions were asked: is what their answers rest on still sent, word for word?"""
    found = results.summary.probes
    if found is None or not found.compared:
        return None
    rows = evidence_rows(results.run, results.summary.uneven, found.strategies)
    known = {name: figures.values["context_recall"] for name, figures in found.strategies.items()}
    nothing = Missing("undefined", "nothing was sent for any probe")
    return ReportQuality(
        "evidence sent",
        "of the messages that the answers to the recordings' questions rest on, the share that is sent word for word",
        {name: known.get(name, nothing) for name in results.strategies},
        sums_of("context_recall", rows),
    )


def answers(results: Results) -> ReportQuality | None:
    """Where the questions were answered: is the answer right?"""
    found = results.summary.answers
    if found is None or not found.found:
        return None
    best = found.found[0]
    shares = {each.strategy: each for each in best.strategies}
    nothing = Missing("undefined", "nothing was answered")
    apart = Missing("undefined", "too little of it is graded to be compared")
    values: dict[str, Value] = {
        name: nothing if name not in shares else shares[name].correct if shares[name].in_pairs else apart
        for name in results.strategies
    }
    if all(isinstance(value, Missing) for value in values.values()):
        return None
    reader = ", the embedded reader, which finds words and not meaning" if best.answerer == USUAL[0] else ""
    return ReportQuality(
        "correct",
        f"of the recordings' questions that have an answer, the share answered right by {best.answerer}{reader}; "
        f"graded by {best.grader}",
        values,
        best.counts[best.counts.strategy.isin(results.strategies)],
    )


SOURCES: tuple[Callable[[Results], ReportQuality | None], ...] = (answers, evidence, grounding)
"""Of these the first that the run has data for counts: what is nearest to a right answer stands first."""


def quality(results: Results) -> ReportQuality:
    """The best measure that the run has."""
    return next(found for source in SOURCES if (found := source(results)) is not None)


BEST = "on the frontier"
"""What is said of a strategy that nothing dominates."""
LOSSES = (0, 1, 2, 5, 10, 20, 30, 50)
"""Points of quality, against the best that there is."""
ROUNDING = 1e-12


def overview_section(results: Results) -> ReportSection:
    """The first screen. It is there whatever the run has."""
    found = verdict(results)
    order = _order(found)
    points = found.points(found.model)
    parts: list[Table | InlineFigure] = []
    if points:
        parts += (_figure(found, order, points), _choices(found, points))
    parts.append(_table(found, order))
    if points:
        parts.append(_by_how_much(found, order, points))
        parts += [_under_others(found, order)] if len(results.models) > 1 else []
    return ReportSection(
        "overview",
        "Which strategy?",
        _lead(found, points),
        tuple(parts),
        {"frontier": _frame(found, order)},
        "overview.html",
    )


def _order(found: ReportVerdict) -> list[str]:
    """The frontier first, the dearest of it first; then what is dominated, the cheapest first; then the rest."""
    points, best = found.points(found.model), found.best(found.model)
    dominated = sorted((name for name in points if name not in best), key=lambda name: points[name].cost)
    return [*best, *dominated, *(name for name in found.results.strategies if name not in points)]


def _lead(found: ReportVerdict, points: dict[str, Point]) -> str:
    """The answer in words."""
    if not points:
        return (
            "No strategy can be placed: the table says why. "
            "A frontier needs a bill and a measure of quality, over conversations that every strategy finished."
        )
    over = f"{len(found.best(found.model))} of {count(len(points), 'strategy', 'strategies')}"
    return (
        f"{over} can be worth choosing under {found.model}. Each of the others costs more than one of these and is no "
        f"better, or costs as much and is worse. Quality here is “{found.quality.name}”: {found.quality.about}."
    )


def _choices(found: ReportVerdict, points: dict[str, Point]) -> Table:
    """The cheapest strategy for what one is ready to lose."""
    top = max(point.quality for point in points.values())
    first = points[found.best(found.model)[0]]
    rows: dict[str, tuple[str, ...]] = {}
    for loss in LOSSES:
        good = [name for name in points if points[name].quality >= top - loss / 100 - ROUNDING]
        name = min(good, key=lambda name: points[name].cost)
        breaks = "; ".join(breakage(found.results.summary, name)) or "–"
        against = percent(points[name].cost / first.cost - 1) if first.cost else "–"
        figures = (percent(points[name].quality), dollars(points[name].cost), against)
        rows.setdefault(name, (count(loss, "point") if loss else "nothing", name, breaks, *figures))
    heads = ("ready to lose", "choose", "what breaks", found.quality.name, "bill", "against the best")
    return Table("The cheapest for what you are ready to lose", heads, tuple(rows.values()), (), names=3)


def _figure(found: ReportVerdict, order: list[str], points: dict[str, Point]) -> InlineFigure:
    best = found.best(found.model)
    numbers = {name: at for at, name in enumerate(order, start=1)}
    up, along = f"{found.quality.name}: the higher, the better", f"bill under {found.model}: the lower, the better"
    return InlineFigure(
        "frontier",
        f"Quality and cost under {found.model}",
        f"Each mark is a strategy, with its number in the table. Up: {found.quality.about}. To the right: the bill of "
        "all calls in US dollars, with the strategy's own model calls. Filled marks are on the frontier, which the "
        "line joins. A mark that would hide another stands beside its place, tied to it.",
        lambda: frontier_figure(points, best, numbers, up, along),
    )


def _table(found: ReportVerdict, order: list[str]) -> Table:
    """All strategies: where they stand, and what they break."""
    numbers = {name: at for at, name in enumerate(order, start=1)}
    costs = found.costs.get(found.model, {})
    rows = tuple(
        (
            str(numbers[name]),
            name,
            _verdict(found, numbers, name),
            "; ".join(breakage(found.results.summary, name)) or "–",
            percent(found.values[name]),
            dollars(costs.get(name, nan)),
        )
        for name in order
    )
    heads = ("#", "strategy", "verdict", "what breaks", found.quality.name, "bill")
    return Table("Verdict", heads, rows, tuple(_notes(found)), names=4)


def _verdict(found: ReportVerdict, numbers: Mapping[str, int], name: str) -> str:
    if name in BOUNDS:
        return "a bound, no strategy"
    if name not in numbers or name not in found.points(found.model):
        return "no figure"
    return f"dominated by {numbers[found.under[name][0]]}" if name in found.under else BEST


def _by_how_much(found: ReportVerdict, order: list[str], points: dict[str, Point]) -> Table:
    """How sure the verdict is, and what is gained by taking what dominates instead."""
    none = points["none"].cost if "none" in points else nan
    rows = []
    for name in order:
        if name not in points:
            continue
        point, sure = points[name], found.sure[name]
        against = "–" if isnan(none) or not none else percent(point.cost / none - 1)
        gains = ("–", "–", "–")
        if name in found.under:
            by = found.under[name][0]
            more = points[by].quality - point.quality
            gains = (by, percent(1 - points[by].cost / (point.cost or 1)), f"{100 * more:.1f}" if more else "0")
        rows.append((name, "–" if isnan(sure) else percent(sure), against, *gains))
    heads = ("strategy", "how sure", "against none", "dominated by", "cheaper by", "better by, points")
    note = (
        f"How sure: in how many of {DRAWS:,} draws of whole conversations, with replacement, the strategy is on the "
        "frontier. Against none: its bill. Where several dominate, the cheapest of the frontier is named."
    )
    return Table("How sure, and by how much", heads, tuple(rows), (note,))


def _notes(found: ReportVerdict) -> Iterator[str]:
    summary = found.results.summary
    yield (
        f"Bill: under {found.model} with its prompt cache, and the strategy's own model calls. What breaks: calls, "
        "beyond those that none breaks as well where it was run; newest missing: the newest message is not sent."
    )
    if found.results.is_sampled:
        yield from found.results.sampled
        yield f"{found.quality.name.capitalize()} is of the same conversations."
    if summary.compared < summary.conversations:
        whole = count(summary.conversations, "conversation")
        yield f"Over the {summary.compared:,} of {whole} that every strategy finished."
    if why := reasons(value for value in found.values.values() if isinstance(value, Missing)):
        yield why


def _under_others(found: ReportVerdict, order: list[str]) -> Table:
    """Whether the choice is another under other prices and caches."""
    best = {model: found.best(model) for model in found.results.models}
    rows = tuple(
        (name, *(cell for model in best for cell in (_cost(found, model, name), "yes" if name in best[model] else "–")))
        for name in order
        if name in found.points(found.model)
    )
    heads = ("strategy", *(head for model in best for head in (model, "frontier")))
    return Table(
        "The same under other models", heads, rows, ("Bills, and whether the strategy is on the frontier there.",)
    )


def _cost(found: ReportVerdict, model: str, name: str) -> str:
    return dollars(found.costs.get(model, {}).get(name, float("nan")))


def _frame(found: ReportVerdict, order: list[str]) -> pd.DataFrame:
    best = found.best(found.model)
    return pd.DataFrame(
        [
            {
                "strategy": name,
                "on_frontier": name in best,
                "dominated_by": " ; ".join(found.under.get(name, ())),
                "how_sure": found.sure.get(name, float("nan")),
                found.quality.name: found.values[name],
                **{f"cost {model}": costs.get(name, float("nan")) for model, costs in found.costs.items()},
                "breaks": "; ".join(breakage(found.results.summary, name)),
            }
            for name in order
        ]
    )

"""Which strategy: the frontier of quality and cost, what dominates the others, what each breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isnan, nan

import pandas as pd

from ....metrics.frontier import DRAWS, Point
from ....metrics.value import Missing
from ...figures.frontier import frontier
from ...main_table import reasons
from ...render import Table
from ...results import Results
from ...words import count, dollars, percent
from ..section import Drawn, Section
from ..verdict import BOUNDS, Verdict, breakage, verdict

BEST = "on the frontier"
"""What is said of a strategy that nothing dominates."""
LOSSES = (0, 1, 2, 5, 10, 20, 30, 50)
"""Points of quality, against the best that there is."""
ROUNDING = 1e-12


def section(results: Results) -> Section:
    """The first screen. It is there whatever the run has."""
    found = verdict(results)
    order = _order(found)
    points = found.points(found.model)
    parts: list[Table | Drawn] = []
    if points:
        parts += (_figure(found, order, points), _choices(found, points))
    parts.append(_table(found, order))
    if points:
        parts.append(_by_how_much(found, order, points))
        parts += [_under_others(found, order)] if len(results.models) > 1 else []
    return Section(
        "overview",
        "Which strategy?",
        _lead(found, points),
        tuple(parts),
        {"frontier": _frame(found, order)},
        "overview.html",
    )


def _order(found: Verdict) -> list[str]:
    """The frontier first, the dearest of it first; then what is dominated, the cheapest first; then the rest."""
    points, best = found.points(found.model), found.best(found.model)
    dominated = sorted((name for name in points if name not in best), key=lambda name: points[name].cost)
    return [*best, *dominated, *(name for name in found.results.strategies if name not in points)]


def _lead(found: Verdict, points: dict[str, Point]) -> str:
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


def _choices(found: Verdict, points: dict[str, Point]) -> Table:
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


def _figure(found: Verdict, order: list[str], points: dict[str, Point]) -> Drawn:
    best = found.best(found.model)
    numbers = {name: at for at, name in enumerate(order, start=1)}
    up, along = f"{found.quality.name}: the higher, the better", f"bill under {found.model}: the lower, the better"
    return Drawn(
        "frontier",
        f"Quality and cost under {found.model}",
        f"Each mark is a strategy, with its number in the table. Up: {found.quality.about}. To the right: the bill of "
        "all calls in US dollars, with the strategy's own model calls. Filled marks are on the frontier, which the "
        "line joins. A mark that would hide another stands beside its place, tied to it.",
        lambda: frontier(points, best, numbers, up, along),
    )


def _table(found: Verdict, order: list[str]) -> Table:
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


def _verdict(found: Verdict, numbers: Mapping[str, int], name: str) -> str:
    if name in BOUNDS:
        return "a bound, no strategy"
    if name not in numbers or name not in found.points(found.model):
        return "no figure"
    return f"dominated by {numbers[found.under[name][0]]}" if name in found.under else BEST


def _by_how_much(found: Verdict, order: list[str], points: dict[str, Point]) -> Table:
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


def _notes(found: Verdict) -> Iterator[str]:
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


def _under_others(found: Verdict, order: list[str]) -> Table:
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


def _cost(found: Verdict, model: str, name: str) -> str:
    return dollars(found.costs.get(model, {}).get(name, float("nan")))


def _frame(found: Verdict, order: list[str]) -> pd.DataFrame:
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

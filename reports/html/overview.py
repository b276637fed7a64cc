"""The report's first screen: the verdict, which strategies are worth choosing, and what each breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isnan, nan

import pandas as pd

from ctxbench.metrics.frontier import DRAWS, Point
from ctxbench.metrics.value import Missing

from ..figures.frames import PLACES
from ..figures.frontier import frontier
from ..render import CROSS, Table, count, dollars, percent, reasons
from ..results import Results
from ..traps import is_traps, trap_table
from ..verdict import BOUNDS, WHOLE, RunVerdict, verdict
from ..verdict_text import accepted_points, answer, points_of
from .charts import Chart
from .page import ReportSection, chart_of, left_out, section_of, texts

# Points of quality below the best of the run.
_LOSSES = (0, 1, 2, 5, 10, 20, 30, 50)
_ROUNDING = 1e-12


def overview_section(results: Results) -> ReportSection:
    """Return the first screen: of a run of traps those that break a strategy, of any other the verdict."""
    if is_traps(results):
        return section_of("traps", (trap_table(results),))
    first = verdict(results)
    by_model = [first, *(first.under(model) for model in results.models[1:])]
    section, *others = (_section(places, by_model, at) for at, places in enumerate(by_model, start=1))
    return replace(section, under=dict(zip(results.models[1:], others, strict=True)))


def _section(places: RunVerdict, by_model: Sequence[RunVerdict], number: int) -> ReportSection:
    """Return the first screen under one model, by its number."""
    order = _order(places)
    points = places.points
    parts: list[Table | Chart] = [answer(places)]
    if places.candidates:
        parts.append(_choices(places, points))
    parts.append(_chart(places, order, number) if places.candidates else left_out("frontier"))
    parts.append(_table(places, order))
    if places.candidates:
        parts.append(_by_how_much(places, order, points))
        parts += [_under_others(by_model, order)] if len(by_model) > 1 else []
    return section_of("overview", parts, {"frontier": _frame(places, order)}, lead=_lead(places, points))


def _order(places: RunVerdict) -> list[str]:
    """Return the frontier, most expensive first; then the others, what breaks last, cheapest first; then the rest."""
    points, best = places.points, places.best
    others = sorted(points.keys() - set(best), key=lambda name: (name in places.broken, points[name].cost, name))
    return [*best, *others, *(name for name in places.results.strategies if name not in points)]


def _lead(places: RunVerdict, points: dict[str, Point]) -> str:
    """Return the answer in words."""
    words = texts()["sections"]["overview"]
    if not points:
        return words["lead_empty"]
    share = f"{len(places.best)} of {count(len(points), 'strategy', 'strategies')}"
    quality = places.quality
    lead = words["lead"].format(places=share, model=places.model, quality=quality.name, about=quality.about)
    if places.shipped is not None and places.shipped in places.beaten_by:
        lead += " " + words["lead_shipped"].format(
            shipped=places.shipped, other=places.beaten_by[places.shipped], accepted=accepted_points(places)
        )
    return lead


def _choices(places: RunVerdict, points: dict[str, Point]) -> Table:
    """Return the cheapest strategy for each loss of quality that a reader may accept."""
    points = {name: point for name, point in points.items() if name not in places.broken}
    top = max(point.quality for point in points.values())
    first = points[places.best[0]]
    rows: dict[str, tuple[str, ...]] = {}
    for loss in _LOSSES:
        good = [name for name in points if points[name].quality >= top - loss / 100 - _ROUNDING]
        name = min(good, key=lambda name: points[name].cost)
        against = percent(points[name].cost / first.cost - 1) if first.cost else "–"
        figures = (percent(points[name].quality), dollars(points[name].cost), against)
        rows.setdefault(name, (count(loss, "point") if loss else "nothing", name, *figures))
    heads = ("acceptable loss", "choose", places.quality.name, "bill", "against the best")
    return Table("What is cheapest for a loss that you accept?", heads, tuple(rows.values()), (), names=2)


def _chart(places: RunVerdict, order: list[str], number: int) -> Chart:
    quality = places.quality
    up, along = f"{quality.name} (higher is better)", f"bill under {places.model}, US dollars (lower is better)"
    draw = partial(frontier, up=up, along=along)
    chart = chart_of("frontier", _rows(places, order), draw, about=quality.about)
    return chart if number == 1 else replace(chart, name=f"frontier-{number}")


def _rows(places: RunVerdict, order: list[str]) -> pd.DataFrame:
    """Return strategy, number, place, cost, quality, and the ends of the intervals of both, in the order given.

    Intervals are those of the differences from the whole history.
    """
    points, rows = places.points, []
    for number, name in enumerate(order, start=1):
        if name not in points:
            continue
        is_good = name in places.best or name == places.shipped
        place = PLACES[2] if name in places.broken else PLACES[0] if is_good else PLACES[1]
        ends = [nan, nan, nan, nan]
        if WHOLE in points and name != WHOLE:
            gain, change = places.gain(name, WHOLE).shown, places.cost_change(name).shown
            base = points[WHOLE]
            if not isinstance(gain, Missing):
                ends[:2] = max(0.0, base.quality + gain.low), min(1.0, base.quality + gain.high)
            if not isinstance(change, Missing):
                ends[2:] = base.cost * (1 + change.low), base.cost * (1 + change.high)
        rows.append((name, number, place, *points[name], *ends))
    columns = ["strategy", "number", "place", "cost", "quality", "low", "high", "cost_low", "cost_high"]
    return pd.DataFrame(rows, columns=columns)


def _table(places: RunVerdict, order: list[str]) -> Table:
    """Return all strategies with their verdicts and what they break."""
    numbers = {name: at for at, name in enumerate(order, start=1)}
    costs = places.costs.get(places.model, {})
    rows = tuple(
        (
            str(numbers[name]),
            name,
            _verdict(places, numbers, name),
            "; ".join(places.broken.get(name, ())) or "–",
            percent(places.values[name]),
            dollars(costs.get(name, nan)),
        )
        for name in order
    )
    heads = ("#", "strategy", "verdict", "what breaks", places.quality.name, "bill")
    return Table("What is the verdict on each strategy?", heads, rows, tuple(_notes(places)), names=4)


def _verdict(places: RunVerdict, numbers: Mapping[str, int], name: str) -> str:
    if name in BOUNDS:
        return "a bound, not a strategy"
    if name not in numbers or name not in places.points:
        return "no figure"
    if name in places.broken:
        return f"{CROSS} breaks more than {WHOLE}"
    if name == places.shipped and name in places.beaten_by:
        return "ship: surely good enough"
    if name in places.beaten_by:
        return f"no better than {numbers[places.beaten_by[name]]}"
    return PLACES[0]


def _by_how_much(places: RunVerdict, order: list[str], points: dict[str, Point]) -> Table:
    """Return how sure each verdict is, and the gain of taking the dominating strategy instead."""
    none = points["none"].cost if "none" in points else nan
    rows = []
    for name in order:
        if name not in points or name in places.broken:
            continue
        point, sure = points[name], places.sure[name]
        against = "–" if isnan(none) or not none else percent(point.cost / none - 1)
        gains = ("–", "–", "–")
        if name in places.beaten_by:
            by = places.beaten_by[name]
            gains = (by, percent(1 - points[by].cost / (point.cost or 1)), points_of(places.gain(by, name)))
        rows.append((name, "–" if isnan(sure) else percent(sure), against, *gains))
    heads = (
        "strategy",
        "how sure",
        "bill against none",
        "no better than",
        "which is cheaper by",
        "and better by, 95 %",
    )
    note = (
        f"How sure: the share of {DRAWS:,} resamples of independent units in which the strategy is on the "
        "frontier of those that break nothing. No better than: the best of the frontier that costs no more; a gain "
        "within its interval is none."
    )
    return Table("How sure is the verdict, and by how much?", heads, tuple(rows), (note,))


def _notes(places: RunVerdict) -> Iterator[str]:
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


def _under_others(by_model: Sequence[RunVerdict], order: list[str]) -> Table:
    """Return the bills under all models, and whether the strategy is on the frontier there."""
    rows = tuple(
        (
            name,
            *(
                cell
                for places in by_model
                for cell in (
                    dollars(places.costs.get(places.model, {}).get(name, nan)),
                    "yes" if name in places.best else "–",
                )
            ),
        )
        for name in order
        if any(name in places.points for places in by_model)
    )
    heads = ("strategy", *(head for places in by_model for head in (places.model, "frontier")))
    return Table("Is it the same under other models?", heads, rows, ("Bill, and whether it is on the frontier there.",))


def _frame(places: RunVerdict, order: list[str]) -> pd.DataFrame:
    best = places.best
    return pd.DataFrame(
        [
            {
                "strategy": name,
                "on_frontier": name in best,
                "no_better_than": places.beaten_by.get(name, ""),
                "how_sure": places.sure.get(name, float("nan")),
                places.quality.metric: places.values[name],
                **{f"cost {model}": costs.get(name, float("nan")) for model, costs in places.costs.items()},
                "breaks": "; ".join(places.broken.get(name, ())),
            }
            for name in order
        ]
    )

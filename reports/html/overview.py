"""The report's first screen: the verdict, which strategies are worth choosing, and what each breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import isnan, nan
from typing import Any

import pandas as pd

from ctxbench.metrics.frontier import DRAWS
from ctxbench.metrics.value import Missing

from ..figures.frontier import PLACES, frontier
from ..render import CROSS, STRATEGY, Column, Table, about, count, dollars, percent, table_of
from ..results import Results
from ..verdict import BOUNDS, WHOLE, RunVerdict, verdict
from ..verdict_text import accepted_points, answer, is_traps, points_of, trap_table
from .page import Chart, ReportSection, chart_of, left_out, section_of, texts

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
    points, best = places.points, places.best
    # The frontier, most expensive first; then the others, what breaks last, cheapest first; then what has no place.
    others = sorted(points.keys() - set(best), key=lambda name: (name in places.broken, points[name].cost, name))
    order = [*best, *others, *(name for name in places.results.strategies if name not in points)]
    rows = _rows(places, order)
    columns = (
        Column("#", "number"),
        STRATEGY,
        Column("verdict", "verdict"),
        Column("what breaks", "breaks", lambda text: text or "–"),
        Column(places.quality.name, "quality", percent),
        Column("bill", "bill", dollars),
    )
    table = table_of("What is the verdict on each strategy?", columns, rows, _notes(places), names=4)
    parts: list[Table | Chart] = [answer(places), left_out("frontier"), table]
    if places.candidates:
        parts[1:2] = [_choices(places), _chart(places, rows, number)]
        parts.append(_by_how_much(places, rows))
        parts += [_under_others(by_model, order)] * (len(by_model) > 1)
    frame = pd.DataFrame(rows)[["strategy", "on_frontier", "no_better_than", "how_sure", "quality"]]
    frame = frame.rename(columns={"quality": places.quality.metric})
    for model, costs in places.costs.items():
        frame[f"cost {model}"] = [costs.get(name, nan) for name in order]
    frame["breaks"] = [row["breaks"] for row in rows]
    return section_of("overview", parts, {"frontier": frame}, _lead(places))


def _rows(places: RunVerdict, order: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is said of each strategy, in the order given."""
    numbers = {name: at for at, name in enumerate(order, start=1)}
    rows = []
    for name, number in numbers.items():
        by, words = places.beaten_by.get(name, ""), PLACES[0]
        if name in BOUNDS:
            words = "a bound, not a strategy"
        elif name not in places.points:
            words = "no figure"
        elif name in places.broken:
            words = f"{CROSS} breaks more than {WHOLE}"
        elif by:
            words = "ship: surely good enough" if name == places.shipped else f"no better than {numbers[by]}"
        rows.append(
            {
                "number": number,
                "strategy": name,
                "verdict": words,
                "breaks": "; ".join(places.broken.get(name, ())),
                "quality": places.values[name],
                "bill": places.cost(name),
                "on_frontier": name in places.best,
                "no_better_than": by,
                "how_sure": places.sure.get(name, nan),
            }
        )
    return rows


def _lead(places: RunVerdict) -> str:
    """Return the answer in words."""
    words, shipped, quality = texts()["sections"]["overview"], places.shipped, places.quality
    if not places.points:
        return words["lead_empty"]
    share = f"{len(places.best)} of {count(len(places.points), 'strategy', 'strategies')}"
    lead = words["lead"].format(places=share, model=places.model, quality=quality.name, about=quality.about)
    if shipped is not None and (other := places.beaten_by.get(shipped)):
        more = words["lead_shipped"].format(shipped=shipped, other=other, accepted=accepted_points(places))
        lead += f" {more}"
    return lead


def _choices(places: RunVerdict) -> Table:
    """Return the cheapest strategy for each loss of quality that a reader may accept."""
    points = places.candidates
    top, first = max(point.quality for point in points.values()), points[places.best[0]]
    losses: dict[str, int] = {}
    for loss in _LOSSES:
        good = [name for name in points if points[name].quality >= top - loss / 100 - _ROUNDING]
        losses.setdefault(min(good, key=lambda name: points[name].cost), loss)
    columns = (
        Column("acceptable loss", losses.get, lambda loss: count(loss, "point") if loss else "nothing"),
        Column("choose", str),
        Column(places.quality.name, lambda name: points[name].quality, percent),
        Column("bill", lambda name: points[name].cost, dollars),
        Column("against the best", lambda name: percent(points[name].cost / first.cost - 1) if first.cost else "–"),
    )
    return table_of("What is cheapest for a loss that you accept?", columns, losses, names=2)


def _chart(places: RunVerdict, rows: Sequence[dict[str, Any]], number: int) -> Chart:
    """Return the frontier. Intervals are those of the differences from the whole history."""
    quality, points = places.quality, places.points
    base, marks = points.get(WHOLE), []
    for row in rows:
        if (name := row["strategy"]) not in points:
            continue
        place = PLACES[2 if name in places.broken else 0 if row["on_frontier"] else 1]
        mark = {"strategy": name, "number": row["number"], "place": place, **points[name]._asdict()}
        mark |= dict.fromkeys(("low", "high", "cost_low", "cost_high"), nan)
        if base is not None and name != WHOLE:
            gain, change = places.gain(name, WHOLE).shown, places.cost_change(name).shown
            if not isinstance(gain, Missing):
                mark |= {"low": max(0.0, base.quality + gain.low), "high": min(1.0, base.quality + gain.high)}
            if not isinstance(change, Missing):
                mark |= {"cost_low": base.cost * (1 + change.low), "cost_high": base.cost * (1 + change.high)}
        marks.append(mark)
    up, along = f"{quality.name} (higher is better)", f"bill under {places.model}, US dollars (lower is better)"
    chart = chart_of("frontier", pd.DataFrame(marks), partial(frontier, up=up, along=along), about=quality.about)
    return chart if number == 1 else replace(chart, name=f"frontier-{number}")


def _by_how_much(places: RunVerdict, rows: Sequence[dict[str, Any]]) -> Table:
    """Return how sure each verdict is, and the gain of taking the dominating strategy instead."""
    points = places.candidates
    none = places.points[WHOLE].cost if WHOLE in places.points else 0.0

    def beside(text: Callable[[str, str], str]) -> Callable[[dict[str, Any]], str]:
        """Return a function of a strategy and the one that it is no better than; – where it is worth choosing."""
        return lambda row: text(row["strategy"], row["no_better_than"]) if row["no_better_than"] else "–"

    def saved(name: str, by: str) -> str:
        return percent(1 - points[by].cost / (points[name].cost or 1))

    columns = (
        STRATEGY,
        Column("how sure", "how_sure", lambda share: "–" if isnan(share) else percent(share)),
        Column("bill against none", lambda row: percent(row["bill"] / none - 1) if none else "–"),
        Column("no better than", "no_better_than", lambda by: by or "–"),
        Column("which is cheaper by", beside(saved)),
        Column("and better by, 95 %", beside(lambda name, by: points_of(places.gain(by, name)))),
    )
    shown = [row for row in rows if row["strategy"] in points]
    notes = [about("frontier_sure", draws=DRAWS)]
    return table_of("How sure is the verdict, and by how much?", columns, shown, notes)


def _notes(places: RunVerdict) -> Iterator[str]:
    summary = places.results.summary
    yield about("frontier_bill", model=places.model)
    if places.results.is_sampled:
        yield from places.results.sampling_notes
        yield f"{places.quality.name.capitalize()} covers the same conversations."
    if summary.compared < summary.conversations:
        whole = count(summary.conversations, "conversation")
        yield f"Over the {summary.compared:,} of {whole} that every strategy finished."


def _under_others(by_model: Sequence[RunVerdict], order: Sequence[str]) -> Table:
    """Return the bills under all models, and whether the strategy is on the frontier there."""
    columns = [Column("strategy", str)]
    for places in by_model:
        columns.append(Column(places.model, places.cost, dollars))
        columns.append(Column("frontier", places.best.__contains__, lambda there: "yes" if there else "–"))
    shown = [name for name in order if any(name in places.points for places in by_model)]
    notes = ["Bill, and whether it is on the frontier there."]
    return table_of("Is it the same under other models?", columns, shown, notes)

"""The bill of a run, as tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

import pandas as pd

from ..harness.bill.bill import SUMS, Billed
from ..harness.bill.requests import PAUSE
from ..harness.bill.simulation import BOUND, Scheme, rule_of
from ..metrics.cache.automatic import AutomaticRules
from ..metrics.cache.boundary import UnitRules
from ..metrics.cache.cached_content import CachedContentRules
from ..metrics.models import STORAGE_SOURCE
from ..metrics.value import Missing, Value
from .render import Table, count, dollars, percent, tokens

KEYS = ["model", "placement", "strategy"]
HEADS = (
    "strategy",
    "cost",
    "own calls",
    "against none",
    "breaks even",
    "against uncached",
    "hit rate",
    "calls hit",
)
MORE = ("read", "written", "fresh")
SPARE = ("fresh", "written", "read", "calls hit", "own calls", "against uncached")
MOST_CAUSES = 3

HOW = (
    "Cost: input and recorded output of all calls, each conversation with a cache of its own. Against none: what is "
    "saved of the bill of the whole history, cached as well. Against uncached: of the same requests without a cache. "
    "Both with the strategy's own model calls; summaries that `offline` made for nothing cost what the billed model "
    "takes for as many tokens. Breaks even: the turn from which on it has cost less than none in all (the median), and "
    "the share of conversations that get there. Hit rate: of the input tokens, those read from the cache."
)
BROKE = (
    "A call breaks the prefix where it does not begin with all of the prompt before it. Lost: tokens of that prompt "
    "behind the break, which could have been read. Dropped: a message is no longer sent. Replaced: the strategy's text "
    "stands in its place. Rewritten: that text was written anew. Inserted: something was put before it. Taken back: "
    "the strategy's text is gone. Tools: others are offered."
)


def totals(bills: pd.DataFrame) -> pd.DataFrame:
    """Sums by model, placement and strategy, in this order, over the conversations that every strategy finished.

    `bills`: as `Billed.conversations` gives them. Added: hit_rate, hit_share (of calls), saved_against_none,
    saved_against_uncached (with the strategy's own model calls; NaN where they cannot be had), break_even_share and
    break_even (its median turn).
    """
    strategies = bills.strategy.nunique()
    having = bills.groupby("conversation", observed=True).strategy.nunique()
    rows = bills[bills.conversation.isin(having.index[having == strategies])]
    groups = rows.groupby(KEYS, observed=True, sort=False)
    found = groups[["calls", *SUMS, "base"]].agg(_sum)
    found["hit_rate"] = found.found / found.tokens
    found["hit_share"] = found.hits / found.calls
    whole = found.cost + found.cost_own
    found["saved_against_none"] = 1 - whole / found.base.where(found.base > 0)
    found["saved_against_uncached"] = 1 - whole / found.uncached
    found["break_even_share"] = groups.break_even.count() / groups.size()
    found["break_even"] = groups.break_even.median()
    return found.reset_index()


def tables(found: pd.DataFrame, breaks: pd.DataFrame, calls: int, notes: Sequence[str]) -> list[Table]:
    """What is saved under each model, where there are several; the bill under each; what broke the prefixes.

    `found`: as `totals` gives them. `breaks`: as `harness.billing.breaks` does, of a run of so many calls a strategy.
    """
    placements = found.placement.nunique()
    made = [against(found)] if found.model.nunique() > 1 or placements > 1 else []
    for (model, _), rows in found.groupby(["model", "placement"], observed=True, sort=False):
        if placements == 1:
            made.append(bill_of(f"The bill under {model}", rows))
    if placements > 1:
        made += [_placements(str(model), rows) for model, rows in found.groupby("model", observed=True, sort=False)]
    made.append(broken(breaks, list(found.strategy.unique()), calls))
    return [*made, Table("How it was billed", (), (), (HOW, *notes))]


def as_json(found: pd.DataFrame, breaks: pd.DataFrame, notes: Sequence[str]) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "bills": [{str(name): _plain(value) for name, value in row.items()} for row in found.to_dict(orient="records")],
        "breaks": [
            {str(name): _plain(value) for name, value in row.items()} for row in causes(breaks).to_dict("records")
        ],
        "assumed": list(notes),
    }


def _exact(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict(orient="records")]


def causes(breaks: pd.DataFrame) -> pd.DataFrame:
    """What broke prefixes: strategy, cause, reported, breaks, tokens_lost."""
    groups = breaks.groupby(["strategy", "cause", "deeds"], observed=True, sort=False).lost
    found = groups.agg(["size", "sum"]).reset_index()
    return found.set_axis(["strategy", "cause", "reported", "breaks", "tokens_lost"], axis=1)


def against(found: pd.DataFrame, *more: str) -> Table:
    """What is saved against none, a column for each model and placement. `more`: what is to be said besides."""
    columns = list(dict.fromkeys(zip(found.model, found.placement, strict=True)))
    saved = found.set_index(["strategy", "model", "placement"]).saved_against_none
    heads = tuple(
        model if found.placement.nunique() == 1 else placement if found.model.nunique() == 1 else f"{model} {placement}"
        for model, placement in columns
    )
    rows = tuple(
        (strategy, *(_share(saved.get((strategy, *column), math.nan)) for column in columns))
        for strategy in found.strategy.unique()
    )
    notes = [
        "Against the whole history under the same rules, cached as well, with the marks that are usual there; with the "
        "strategy's own model calls; summaries by `offline` at the price of the model billed."
    ]
    notes += more
    if BOUND in set(found.placement):
        notes.append("Hindsight: a bound, which no placement of marks can pass, for five minutes or an hour.")
    return Table("Saved of the bill of none", ("strategy", *heads), rows, tuple(notes))


def _placements(model: str, rows: pd.DataFrame) -> Table:
    """What each strategy costs with marks in different places."""
    cost = rows.set_index(["strategy", "placement"]).cost
    placements = tuple(rows.placement.unique())
    cells = tuple(
        (strategy, *(dollars(cost[strategy, placement]) for placement in placements))
        for strategy in rows.strategy.unique()
    )
    return Table(f"The bill under {model}, by where the cache marks are", ("strategy", *placements), cells)


def bill_of(title: str, rows: pd.DataFrame) -> Table:
    """One model's bill, a row a strategy."""
    stored = bool((rows.token_hours > 0).any())
    heads = (*HEADS, *(("storage",) if stored else ()), *MORE)
    cells = tuple(
        (
            row.strategy,
            dollars(row.cost),
            dollars(row.cost_own),
            _share(row.saved_against_none),
            _even(row),
            _share(row.saved_against_uncached),
            percent(row.hit_rate),
            "–" if row.placement == BOUND else percent(row.hit_share),
            *((dollars(row.cost_storage),) if stored else ()),
            tokens(row.read),
            tokens(row.written + row.written_1h + row.created),
            tokens(row.fresh),
        )
        for row in _rows(rows)
    )
    return Table(title, heads, cells, (), spare=SPARE)


def broken(breaks: pd.DataFrame, strategies: Sequence[str], calls: int) -> Table:
    """What broke the prefixes under each strategy, what lost the most first."""
    rows = []
    for strategy in strategies:
        these = breaks[breaks.strategy == strategy]
        lost = int(these.lost.sum())
        by = these.groupby("cause").lost.sum().sort_values(ascending=False, kind="stable")
        why = [f"{cause} {percent(part / lost)}" for cause, part in by.head(MOST_CAUSES).items()]
        deeds = these[these.deeds != ""].groupby("deeds").lost.sum().sort_values(ascending=False, kind="stable")
        kept = (these.before - these.lost) / these.before
        rows.append(
            (
                strategy,
                f"{len(these):,}",
                percent(len(these) / calls) if calls else "–",
                tokens(lost),
                percent(kept.median()) if len(these) else "–",
                ", ".join(why) or "–",
                str(deeds.index[0]) if len(deeds) else "–",
            )
        )
    heads = ("strategy", "breaks", "of calls", "tokens lost", "kept before it", "what happened", "reported with it")
    return Table("What broke the prefix", heads, tuple(rows), (BROKE,), spare=("reported with it", "kept before it"))


def _rows(frame: pd.DataFrame) -> Iterable[Any]:
    """Rows with a field a column, whose types only the table knows."""
    return frame.itertuples()


def _even(row: Any) -> str:
    if row.strategy == "none" or row.placement == BOUND:
        return "–"
    return f"turn {row.break_even:.0f}, {percent(row.break_even_share)}" if row.break_even_share else "never"


def _share(value: float) -> str:
    missing: Value = Missing("undefined", "there is nothing to compare with, or a price is not known")
    return percent(missing if math.isnan(value) else value)


def _sum(column: pd.Series) -> float:
    """Exact for what is not whole: the same whatever the order of the conversations."""
    return math.fsum(column) if column.dtype == float else int(column.sum())


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return value.item() if hasattr(value, "item") else value


RULES = {
    (False, False): "Rules: those of each recording's date.",
    (True, False): "Rules: the latest.",
    (False, True): "Rules and discounts: those that design document 000 states; marks where it puts them.",
}


def assumptions(billed: Billed, asked: Sequence[Scheme]) -> list[str]:
    """What was assumed, and what could not be done."""
    cells, notes = billed.cells, [f"Prices: {billed.prices.source}."]
    notes.append(RULES[billed.schemes[0].latest, billed.schemes[0].document])
    encoding = cells.run.manifest["plan"]["encoding"]
    notes.append(
        f"Tokens are counted in {encoding} for every model. A provider's own counts differ: on recordings with usage "
        "`ctxbench validate` says by how much."
    )
    if cells.untimed:
        notes.append(
            f"Assumed: {count(cells.untimed, 'conversation has', 'conversations have')} no times; calls are {PAUSE:g} "
            "s apart, under the latest rules and usual prices."
        )
    if cells.overmarked:
        notes.append(
            f"{count(cells.overmarked, 'call has', 'calls have')} more than 4 cache marks, which no provider takes; "
            "the last 4 count."
        )
    for scheme in billed.schemes:
        notes += _of_model(billed, scheme)
    dropped = dict.fromkeys(each.model for each in asked if each not in billed.schemes)
    notes += [f"{model} wants no marks: hindsight says nothing of it." for model in dropped]
    return list(dict.fromkeys(notes))


def _of_model(billed: Billed, scheme: Scheme) -> Iterator[str]:
    """The same of one model."""
    rule = rule_of(scheme, None)
    if said := billed.prices.instead(scheme.model):
        yield f"{said}."
    if rule is None:
        yield f"No cache rule is known for {scheme.model}: nothing is cached."
    elif isinstance(rule.rules, (AutomaticRules, UnitRules)) and rule.rules.lifetime < inf:
        minutes = f"{rule.rules.lifetime / 60:g} minutes"
        yield f"Assumed: what nobody asks {scheme.model} for stays cached for {minutes}; no exact time is published."
    elif isinstance(rule.rules, CachedContentRules):
        yield f"Storage prices: {STORAGE_SOURCE}."
    over = int((billed.cells.tokens > (billed.window(scheme) or inf)).sum())
    if over:
        larger = count(over, "request is", "requests are")
        yield f"{larger} larger than the window of {scheme.model}, and billed as if it took them."

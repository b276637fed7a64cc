"""The bill of a run under prompt caches and prices, as tables and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd

from ctxbench.harness.bill import OWN_MODELS
from ctxbench.harness.bill.bill import SUMS, Billed, under
from ctxbench.harness.bill.requests import PAUSE
from ctxbench.harness.bill.simulation import BOUND, Scheme, rule_of
from ctxbench.metrics.cache.mechanisms import AutomaticRules, CachedContentRules, UnitRules
from ctxbench.metrics.cache.rules import day_of, rules_of
from ctxbench.metrics.media import media_rule, media_tokens
from ctxbench.metrics.models import storage_source
from ctxbench.metrics.thinking import has_thinking, thinking_rule, thinking_tokens
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.media import media_counts
from ctxbench.scenarios.model import MediaKind

from .render import LACKING, MARKS, STRATEGY, Column, Table, about, count, dollars, integer, percent, table_of, tokens

_KEYS = ["model", "placement", "strategy"]
_MOST_CAUSES = 3
_NARROW = 0.01  # share of a cost below which a range is none


def totals(bills: pd.DataFrame) -> pd.DataFrame:
    """Return sums by model, placement and strategy, in this order, over the conversations that all strategies finished.

    `bills` are those of `Billed.conversations`. Added columns: hit_rate, hit_share (of calls), saved_against_none,
    saved_against_uncached (with the strategy's own model calls; NaN if unknown), break_even_share and break_even (its
    median turn).
    """
    strategies = bills.strategy.nunique()
    having = bills.groupby("conversation", observed=True).strategy.nunique()
    rows = bills[bills.conversation.isin(having.index[having == strategies])]
    groups = rows.groupby(_KEYS, observed=True, sort=False)
    sums = groups[["calls", *SUMS, "base"]].agg(_sum)
    sums["hit_rate"] = sums.found / sums.tokens
    sums["hit_share"] = sums.hits / sums.calls
    whole = sums.cost + sums.cost_own
    sums["saved_against_none"] = 1 - whole / sums.base.where(sums.base > 0)
    sums["saved_against_uncached"] = 1 - whole / sums.uncached
    sums["break_even_share"] = groups.break_even.count() / groups.size()
    sums["break_even"] = groups.break_even.median()
    return sums.reset_index()


def tables(
    sums: pd.DataFrame, breaks: pd.DataFrame, calls: int, notes: Sequence[str], lacking: Collection[str]
) -> list[Table]:
    """Return the savings under each of several models, the bill under each, and what broke the prefixes.

    `sums` are those of `totals`, `breaks` those of `harness.bill.prefix_breaks`; each strategy made `calls` calls.
    Savings of those that are `lacking` the newest message in some calls are marked.
    """
    placements = list(sums.placement.unique())
    shown = [against(sums, lacking)] if sums.model.nunique() > 1 or len(placements) > 1 else []
    for model, rows in sums.groupby("model", observed=True, sort=False):
        title = f"What does it cost under {model}"
        if len(placements) == 1:
            shown.append(bill_of(f"{title}?", rows, lacking))
        else:
            cost = rows.pivot(index="strategy", columns="placement", values="cost").reindex(rows.strategy.unique())
            columns = (STRATEGY, *(Column(name, name, dollars) for name in rows.placement.unique()))
            by_placement = cost.reset_index().to_dict(orient="records")
            shown.append(table_of(f"{title}, by where the cache marks are?", columns, by_placement))
    shown.append(broken(breaks, list(sums.strategy.unique()), calls))
    return [*shown, Table("How it was billed", (), (), (*how(), *notes))]


def causes(breaks: pd.DataFrame) -> pd.DataFrame:
    """Return the causes of prefix breaks: strategy, cause, reported, breaks, tokens_lost."""
    groups = breaks.groupby(["strategy", "cause", "actions"], observed=True, sort=False).lost
    sums = groups.agg(["size", "sum"]).reset_index()
    return sums.set_axis(["strategy", "cause", "reported", "breaks", "tokens_lost"], axis=1)


def _saved(head: str, key: str, lacking: Collection[str], spare: int = 0) -> Column:
    """Return a column of savings; those with calls that lack the newest message are marked: these would fail."""

    def share(row: Mapping[str, Any]) -> Value:
        value = float(row.get(key, math.nan))
        why = "there is nothing to compare with, or a price is not known"
        return Missing("undefined", why) if math.isnan(value) else value

    return Column(head, share, percent, spare, lambda row: MARKS[0] * (row["strategy"] in lacking))


def _star(rows: pd.DataFrame, lacking: Collection[str]) -> list[str]:
    return [f"{LACKING}."] * bool(set(rows.strategy.astype(str)) & set(lacking))


def against(sums: pd.DataFrame, lacking: Collection[str], *more: str) -> Table:
    """Return the savings against none, a column for each model and placement, with `more` notes."""
    several = [name for name in ("model", "placement") if sums[name].nunique() > 1] or ["model"]
    heads = sums[several].astype(str).agg(" ".join, axis=1)
    saved = sums.assign(head=heads, strategy=sums.strategy.astype(str))
    rows = [
        {"strategy": name, **dict(zip(own["head"], own.saved_against_none, strict=True))}
        for name, own in saved.groupby("strategy", sort=False)
    ]
    # Heads are names of models, which have dots.
    columns = [_saved(head, head, lacking) for head in dict.fromkeys(heads)]
    notes = [about("bill_against_none"), *_star(sums, lacking), *more]
    notes += [about("bill_hindsight")] * (BOUND in set(sums.placement))
    return table_of("How much of the bill of none is saved?", (STRATEGY, *columns), rows, notes)


def bill_of(title: str, rows: pd.DataFrame, lacking: Collection[str]) -> Table:
    """Return one model's bill: the cost if every call finds the cached prefix, and if only as many do as was seen."""

    def cost(row: Mapping[str, Any]) -> str:
        cost, missed = row["cost"] + row["cost_own"], row["cost_missed"]
        return f"{dollars(cost)}–{dollars(cost + missed)}" if missed > _NARROW * cost else dollars(cost)

    def break_even(row: Mapping[str, Any]) -> str:
        if row["strategy"] == "none" or row["placement"] == BOUND:
            return "–"
        share = row["break_even_share"]
        return f"turn {row['break_even']:.0f}, {percent(share)}" if share else "never"

    columns = [
        STRATEGY,
        Column("cost", cost),
        *[Column("of it own calls", "cost_own", dollars, spare=5)] * bool(rows.cost_own.ne(0).any()),
        Column("with re-fetching", lambda row: row["cost"] + row["cost_own"] + row["cost_refetch"], dollars, spare=6),
        _saved("saved against none", "saved_against_none", lacking),
        Column("breaks even", break_even),
        _saved("saved against uncached", "saved_against_uncached", lacking, spare=7),
        Column("cache hit rate", "hit_rate", percent),
        Column("calls with a hit", "hit_share", percent, spare=4),
        *[Column("storage", "cost_storage", dollars)] * bool((rows.token_hours > 0).any()),
        Column("read", "read", tokens, spare=3),
        Column("written", lambda row: row["written"] + row["written_1h"] + row["created"], tokens, spare=2),
        Column("fresh", "fresh", tokens, spare=1),
    ]
    if (rows.placement == BOUND).all():  # a sum over a conversation, which has no calls
        lacks = ("with re-fetching", "calls with a hit")
        columns = [Column(column.head, lambda _: "–") if column.head in lacks else column for column in columns]
    model = str(rows.model.iloc[0]) if len(rows) else ""
    return table_of(title, columns, rows.to_dict(orient="records"), _star(rows, lacking), model=model)


def broken(breaks: pd.DataFrame, strategies: Sequence[str], calls: int) -> Table:
    """Return what broke the prefixes under each strategy, the cause that lost most tokens first."""

    def row(strategy: str) -> dict[str, Any]:
        own = breaks[breaks.strategy == strategy]
        lost = int(own.lost.sum())
        by_cause, by_action = (
            rows.lost.sum().sort_values(ascending=False, kind="stable")
            for rows in (own.groupby("cause"), own[own.actions != ""].groupby("actions"))
        )
        causes = [f"{cause} {percent(part / lost)}" for cause, part in by_cause.head(_MOST_CAUSES).items()]
        return {
            "strategy": strategy,
            "breaks": len(own),
            "share": percent(len(own) / calls) if calls else "–",
            "lost": lost,
            "before": percent(((own.before - own.lost) / own.before).median()) if len(own) else "–",
            "causes": ", ".join(causes) or "–",
            "action": str(by_action.index[0]) if len(by_action) else "–",
        }

    columns = (
        STRATEGY,
        Column("breaks", "breaks", integer),
        Column("of calls", "share"),
        Column("tokens lost", "lost", tokens),
        Column("prefix before it", "before", spare=2),
        Column("cause", "causes"),
        Column("action at the break", "action", spare=1),
    )
    return table_of("What broke the prefix?", columns, map(row, strategies), [about("bill_breaks")])


def _sum(column: pd.Series) -> float:
    """Return a sum that does not depend on the order of the conversations, also of fractions."""
    return math.fsum(column) if column.dtype == float else int(column.sum())


def how() -> Iterator[str]:
    """Yield how every bill is made."""
    yield from map(about, ("bill_cost", "bill_break_even", "bill_refetching"))


def assumptions(billed: Billed, schemes: Sequence[Scheme]) -> list[str]:
    """Return what was assumed, and what could not be billed."""
    requests, notes = billed.requests, [f"Prices: {billed.prices.source}."]
    notes += [about("bill_summaries"), about(f"bill_rules_{billed.schemes[0].rules}")]
    notes.append(about("bill_encoding", encoding=requests.run.manifest.plan.encoding))
    if hidden := requests.hidden.values():
        mean, conversations = sum(hidden) / len(hidden), count(len(hidden), "conversation")
        notes.append(about("bill_hidden", tokens=f"{mean:,.0f}", conversations=conversations))
    if number := sum(not recording.timed for recording in requests.recordings.values()):
        which = count(number, "conversation has", "conversations have")
        notes.append(about("bill_untimed", conversations=which, seconds=f"{PAUSE:g}"))
    if number := requests.overmarked:
        notes.append(about("bill_overmarked", calls=count(number, "call has", "calls have")))
    for scheme in dict.fromkeys(one for of in billed.schemes for one in under(of, billed.own)):
        notes += [text for of in (_recorded, _media, _thinking, _caching) for text in of(billed, scheme)]
    dropped = dict.fromkeys(scheme.model for scheme in schemes if scheme not in billed.schemes)
    notes += [about("bill_no_marks", model=model) for model in dropped]
    return list(dict.fromkeys(notes))


def _recorded(billed: Billed, scheme: Scheme) -> Iterator[str]:
    """Yield how the model counted tokens, and its recorded cost beside the bill of the same calls."""
    model, factors = scheme.model, billed.factors[scheme.model]
    if factors.family is None:
        is_known = (factors.prompt, factors.answer) != (1, 1)
        yield about(f"bill_counted_{'here' if is_known else 'never'}", model=model, factors=factors)
    elif factors.prompt != 1:
        low, high = f"{factors.family.low:.2f}", f"{factors.family.high:.2f}"
        spread = f"{low} to {high}: " * (low != high)
        yield about("bill_counted_elsewhere", model=model, factors=factors, spread=spread)
    if (cost := billed.against_recorded(scheme)) is not None:
        calls, (recorded, bill) = count(cost[0], "call that says", "calls that say"), map(dollars, cost[1:])
        change = cost[2] / cost[1] - 1
        values = {"recorded": recorded, "billed": bill, "change": "+" * (change > 0) + percent(change)}
        yield about("bill_recorded", calls=calls, model=model, **values)
    for what, (number, share) in billed.special_prices(scheme).items():
        yield about("bill_special", model=model, what=what, calls=count(number, "recorded call"), share=percent(share))


def _media(billed: Billed, scheme: Scheme) -> Iterator[str]:
    """Yield how many of the recorded images, sounds, films and files the bill has, and why it has not the others."""
    model, by_reason = scheme.model, dict[str, list[MediaKind]]()
    for medium in chain.from_iterable(message.media for message in billed.requests.run.beyond_text.values()):
        tokens = media_tokens(model, medium)
        by_reason.setdefault(tokens.detail if isinstance(tokens, Missing) else "", []).append(medium.kind)
    parts = [
        f"{media_counts(kinds)} not billed, {reason}" if reason else f"{media_counts(kinds)} billed by its rule"
        for reason, kinds in sorted(by_reason.items())
    ]
    if parts:
        rule = media_rule(model)
        every = media_counts(chain.from_iterable(by_reason.values()))
        yield f"{model}, of {every}: {'; '.join(parts)}{f' ({rule.source})' if rule else ''}."


def _thinking(billed: Billed, scheme: Scheme) -> Iterator[str]:
    """Yield whether recorded reasoning is billed in later prompts, by which rule, and why it is not."""
    reasoned = list(filter(has_thinking, billed.requests.run.beyond_text.values()))
    rule, values = thinking_rule(scheme.model), {"model": scheme.model, "answers": count(len(reasoned), "answer")}
    if not reasoned:
        return
    if not billed.thinking:
        yield about("bill_thinking_off", **values)
    elif rule is None:
        yield about("bill_thinking_unknown", **values)
    else:
        hidden = sum(isinstance(thinking_tokens(message, len), Missing) for message in reasoned)
        lacks = hidden and rule.keeps != "none"
        lacking = f", but for {hidden:,} whose text and tokens are not recorded" if lacks else ""
        kept = about(f"bill_thinking_{rule.keeps or 'none'}")
        yield about("bill_thinking", kept=kept, lacking=lacking, source=rule.source, **values)


def without_cache(billed: Billed, scheme: Scheme) -> str:
    """Return which share of the requests is billed without a cache, and why not with one; empty for none."""
    requests, reasons = billed.requests, Counter[str]()
    for name, _, rows in requests.results:
        model = billed.own[name] if scheme.model == OWN_MODELS else scheme.model
        began, tariff = requests.started[rows.start], billed.prices.tariff(model)
        rule = rule_of(scheme._replace(model=model), None if math.isnan(began) else day_of(began))
        later, why = [of.since for of in rules_of(model) if rule is not None and of.since > rule.since], ""
        if rule is None or rule.rules is None:
            why = "uncached_before" if later else "uncached_rule"
        elif tariff is not None and tariff.at(0).read >= tariff.at(0).input and rule.pays is None:
            why = "uncached_price"
        if why and tariff is not None and tariff.at(0).input:  # the user's own machine is free
            reasons[about(why, model=model, since=min(later, default=""))] += rows.stop - rows.start
    share = percent(reasons.total() / max(1, sum(rows.stop - rows.start for *_, rows in requests.results)))
    return about("uncached", share=share, why="; ".join(reasons)) if reasons else ""


def _caching(billed: Billed, scheme: Scheme) -> Iterator[str]:
    """Yield what was assumed of the model's cache, and which requests are too large for it."""
    model, rule = scheme.model, rule_of(scheme, None)
    if rule is None:
        yield about("bill_no_cache", model=model)
    elif isinstance(rule.rules, (AutomaticRules, UnitRules)) and rule.rules.lifetime < math.inf:
        yield about("bill_lifetime", model=model, minutes=rule.rules.lifetime / 60)
        if rule.rules.reuse < 1:
            yield about("bill_reuse", model=model, share=percent(rule.rules.reuse))
    elif isinstance(rule.rules, CachedContentRules):
        yield f"Storage prices: {storage_source()}."
    reads = billed.requests.recorded_reads(model)
    if (warm := [tokens for tokens in reads.warm.values() if tokens]) and scheme.warm:
        conversations, tokens = count(len(warm), "conversation"), f"{sum(warm) / len(warm):,.0f}"
        yield about("bill_warm", model=model, conversations=conversations, tokens=tokens)
    if reads.found < 1 and scheme.reuse is None and rule is not None and rule.mechanism == "explicit":
        yield about("bill_found", model=model, share=percent(reads.found))
    if over := billed.over_window(scheme) if scheme in billed.usages else 0:
        yield about("bill_over_window", requests=count(over, "request is", "requests are"), model=model)

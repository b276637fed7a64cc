"""`ctxbench list prices`, `caches` and `evidence`: what models cost, rules of prompt caches, published live runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from math import inf
from typing import Any

import msgspec

from ctxbench.metrics.cache.rules import RULES, STORED, CacheRule, rule_for, rules_of
from ctxbench.metrics.evidence import FAMILIES, Arm, studies
from ctxbench.metrics.models import find_model, model_names, storage_source
from ctxbench.metrics.prices import BUNDLED, Prices, Tiers
from ctxbench.reports.render import Column, Table, about, table_of
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.spec import nearest, suggestion

from .output import put

_MAKERS = ("anthropic", "openai", "google", "deepseek")  # providers of the models that are listed by default
_BATCH = Prices(batch=True)
_PRICE_HEADS = (
    *("model", "prompt over", "input", "output", "cache read", "write 5m", "write 1h"),
    *("batch input", "cache rule", "since", "exact of seen"),
)
_EVIDENCE = ("setting", "agent and model", "tasks", "n", "calls ×", "cost ×", "success", "grade")
_MONEY = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


def print_prices(part: str | None, as_json: bool) -> None:
    """Print the prices of models with a part in their name, or of the makers. Raises SpecError if there is none."""
    shown = {name for name in model_names() if _is_shown(name, part)} | ({part} if part else set())
    names = sorted(name for name in shown if BUNDLED.tariff(name) is not None)
    if not names:
        raise SpecError(f"no model with a known price has {part!r} in its name{nearest(part or '', model_names())}")
    rows = {name: _price_row(name) for name in names}
    put(lambda: rows, lambda: [_price_table(part, rows)], as_json)


def print_evidence(family: str | None, as_json: bool) -> None:
    """Print the published live runs, of a family of strategies or all. Raises SpecError if there is no such family."""
    if family is not None and family not in FAMILIES:
        raise SpecError(f"unknown family {family!r}{suggestion(family, FAMILIES)}")
    found = {of: [(study, [arm for arm in study.arms if arm.family == of]) for study in studies()] for of in FAMILIES}
    found = {of: [(study, arms) for study, arms in rows if arms] for of, rows in found.items() if family in (None, of)}

    def amount(value: float | None, ends: tuple[float, float] | None, form: str) -> str:
        shown = "–" if value is None else format(value, form)
        shown += f" ({ends[0]:{form}} to {ends[1]:{form}})" if ends else ""
        return re.sub(r"[+-](0\.0+)(?!\d)", r"\1", shown).replace("-", "−")

    def row(arm: Arm) -> tuple[str, ...]:
        calls, success = amount(arm.calls, arm.calls_interval, ".2f"), amount(arm.success, arm.success_interval, "+.1f")
        named = (arm.setting, f"{arm.agent}, {arm.model}", arm.benchmark, str(arm.n))
        return (*named, calls, amount(arm.cost, None, ".2f"), success, arm.grade)

    def tables() -> list[Table]:
        shown = []
        for of, rows in found.items():
            none = () if rows else ("No live run with it beside the whole history is published.",)
            shown.append(Table(f"{of}: {FAMILIES[of]}", (), (), none))
            for study, arms in rows:
                shown.append(
                    Table(f"{study.name} ({study.year})", _EVIDENCE, tuple(map(row, arms)), (study.source,), 3)
                )
        return [*shown, Table("How to read it", (), (), (about("evidence"),))]

    def json() -> list[dict[str, Any]]:
        said = [(study, arm) for rows in found.values() for study, arms in rows for arm in arms]
        names = ("name", "source", "year")
        return [msgspec.structs.asdict(arm) | {name: getattr(study, name) for name in names} for study, arm in said]

    put(json, tables, as_json)


def _is_shown(name: str, part: str | None) -> bool:
    if part is not None:
        return part.casefold() in name.casefold()
    found = find_model(name)
    own_name = found is not None and found[0] in _MAKERS and found[1].id == name.removeprefix("gemini/")
    return own_name and rule_for(name, None) is not None


def _price_row(name: str) -> dict[str, Any]:
    tariff, batch, rule = BUNDLED.tariff(name), _BATCH.tariff(name), rule_for(name, None)
    assert tariff is not None  # the names have a tariff
    peak, off_peak = tariff.off_peak or (None, ())
    return {
        "provider": found[0] if (found := find_model(name)) else "",
        "window": tariff.window,
        "prices": _tiers(tariff.tiers),
        "batch": None if batch is None else _tiers(batch.tiers),
        "off_peak": None
        if peak is None
        else {
            "peak_hours_utc": [{"from": _clock(start), "until": _clock(end)} for start, end in peak.hours],
            "peak_weekdays": peak.days,
            "prices": _tiers(off_peak),
        },
        "storage_per_hour": {_day(since): _round(price) for since, price in tariff.storage} or None,
        "history": {_day(since): _tiers(tiers) for since, tiers in tariff.history} or None,
        "cache_rule": None
        if rule is None
        else {name: getattr(rule, name) for name in ("mechanism", "family", "since", "source")}
        | {"calls_seen": rule.seen, "calls_exact": rule.exact},
    }


def _tiers(tiers: Tiers) -> list[dict[str, float | None]]:
    """Return prices by the names of a price file. Without a separate price, writing for an hour has none."""
    rows = []
    for above, price in tiers:
        amounts = [_round(amount) for amount in (price.input, price.output, price.read, price.write)]
        hour = None if price.write_1h == price.write else _round(price.write_1h)
        rows.append({"above": above, **dict(zip(_MONEY, (*amounts, hour), strict=True))})
    return rows


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}"


def _day(since: float) -> str:
    return "" if since == -inf else datetime.fromtimestamp(since, UTC).date().isoformat()


def _round(price: float) -> float:
    return round(price * 1e6, 6)


def _price_table(part: str | None, rows: dict[str, dict[str, Any]]) -> Table:
    """Return the table: a line for each tier; what does not differ by tier stands in the first."""
    lines = []
    for name, row in rows.items():
        rule = row["cache_rule"]
        seen = f"{rule['calls_exact']:,} of {rule['calls_seen']:,}" if rule and rule["calls_seen"] else "–"
        last = ("–", "", seen) if rule is None else (rule["mechanism"], rule["since"], seen)
        for at, prices in enumerate(row["prices"]):
            batch = None if row["batch"] is None else row["batch"][at]["input"]
            money = [_money(price) for price in (*map(prices.get, _MONEY), batch)]
            lines.append((name, f"{prices['above']:,}" if at else "", *money, *(("", "", "") if at else last)))
    title, spare = "Prices in US dollars per million tokens", ("since", "exact of seen", "cache rule")
    return Table(title, _PRICE_HEADS, tuple(lines), tuple(_price_notes(part, rows)), 2, spare)


def _money(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:.6f}".rstrip("0").rstrip(".")


def _price_notes(part: str | None, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    if part is None:
        priced = sum(BUNDLED.tariff(name) is not None for name in model_names())
        yield about("prices_makers", shown=len(rows), priced=priced, makers=", ".join(_MAKERS))
    yield about("prices", source=BUNDLED.source)
    if cheaper := [name for name, row in rows.items() if row["off_peak"]]:
        yield about("prices_off_peak", models=", ".join(cheaper))
    stored = []
    for name, row in rows.items():
        if prices := row["storage_per_hour"]:
            (_, first), *later = prices.items()
            stored.append(f"{name} {_money(first)}" + "".join(f", from {day} {_money(price)}" for day, price in later))
    if stored:
        yield f"Storage of cached content for an hour ({storage_source()}): {'; '.join(stored)}."


_USUAL = {("reuse", 1.0), ("step", 1)}  # values that say nothing: every prefix is found, whatever its length


def print_caches(model: str | None, as_json: bool) -> None:
    """Print the cache rules of all models, or those of one. Raises SpecError if it has none."""
    rules = (*RULES, *STORED) if model is None else tuple(rules_of(model))
    if not rules:
        raise SpecError(f"no cache rule is known for {model!r}: nothing of its prompts is billed as cached")
    put(lambda: [_cache_row(rule) for rule in rules], lambda: _cache_tables(model, rules), as_json)


def _cache_row(rule: CacheRule) -> dict[str, Any]:
    row = {name: getattr(rule, name) for name in ("provider", "name", "models", "since", "mechanism")}
    row["rules"] = None if rule.rules is None else asdict(rule.rules)
    evidence = [msgspec.to_builtins(found) for found in rule.evidence]
    return row | {"source": rule.source, "note": rule.note, "evidence": evidence}


def _cache_tables(model: str | None, rules: tuple[CacheRule, ...]) -> Iterator[Table]:
    columns = (
        Column("provider", "provider"),
        Column("models", "name"),
        Column("since", "since", lambda since: since or "the beginning", spare=1),
        Column("mechanism", "mechanism", spare=2),
        Column("rules", _said),
        Column("exact of seen", lambda rule: f"{rule.exact:,} of {rule.seen:,}" if rule.seen else "–"),
    )
    title = "How do providers cache prompts?" if model is None else f"How are prompts of {model} cached?"
    yield table_of(title, columns, rules, [about("caches")], names=5)
    if model is not None:
        yield Table("Sources", (), (), tuple(dict.fromkeys(line for rule in rules for line in _sources(rule))))


def _said(rule: CacheRule) -> str:
    """Return the parameters of a rule that differ from none: `least 1024, step 128`."""
    told = {} if rule.rules is None else asdict(rule.rules)
    told = {name: value for name, value in told.items() if value and (name, value) not in _USUAL}
    words = (name if value is True else f"{name} {value:,g}".replace("_", " ") for name, value in told.items())
    return "–" if rule.rules is None else ", ".join(words)


def _sources(rule: CacheRule) -> Iterator[str]:
    since = f"Since {rule.since}" if rule.since else "From the beginning"
    yield f"{since}: {rule.source}."
    yield from filter(None, [rule.note])
    for found in rule.evidence:
        yield f"{found.exact:,} of {found.seen:,} calls of {found.model} exact: {found.recordings}."

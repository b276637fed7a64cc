"""`ctxbench list prices`: what models cost by the million tokens, with their cache rules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from typing import Any

from ctxbench.metrics.cache.rules import CacheRule, rule_for
from ctxbench.metrics.models import Peak, find_model, model_names, storage_source
from ctxbench.metrics.prices import BUNDLED, Price, Prices, Tiers
from ctxbench.reports.render import Table
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.spec import nearest

from .output import print_json, print_tables

# Providers of the models that are listed by default.
_MAKERS = ("anthropic", "openai", "google", "deepseek")

_MILLION = 1e6

_BATCH = Prices(batch=True)

_TITLE = "Prices in US dollars per million tokens"

_HEADS = (
    *("model", "prompt over", "input", "output", "cache read", "write 5m", "write 1h"),
    *("batch input", "cache rule", "since", "exact of seen"),
)

_MONEY = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


def print_prices(part: str | None, as_json: bool) -> None:
    """Print the prices of models with a part in their name, or of the makers. Raises SpecError if there is none."""
    shown = {name for name in model_names() if _shown(name, part)} | ({part} if part else set())
    names = sorted(name for name in shown if BUNDLED.tariff(name) is not None)
    if not names:
        raise SpecError(f"no model with a known price has {part!r} in its name{nearest(part or '', model_names())}")
    rows = {name: _row(name) for name in names}
    if as_json:
        print_json(rows)
    else:
        lines = tuple(line for name, row in rows.items() for line in _lines_price_list(name, row))
        print_tables(
            [Table(_TITLE, _HEADS, lines, tuple(_notes(part, rows)), 2, ("since", "exact of seen", "cache rule"))]
        )


def _shown(name: str, part: str | None) -> bool:
    if part is not None:
        return part.casefold() in name.casefold()
    found = find_model(name)
    own_name = found is not None and found[0] in _MAKERS and found[1].id == name.removeprefix("gemini/")
    return own_name and rule_for(name, None) is not None


def _row(name: str) -> dict[str, Any]:
    tariff, batch, rule = BUNDLED.tariff(name), _BATCH.tariff(name), rule_for(name, None)
    assert tariff is not None  # the names have a tariff
    return {
        "provider": found[0] if (found := find_model(name)) else "",
        "window": tariff.window,
        "prices": _tiers(tariff.tiers),
        "batch": None if batch is None else _tiers(batch.tiers),
        "off_peak": None if tariff.off_peak is None else _off_peak(*tariff.off_peak),
        "storage_per_hour": {_day(since): _round(price) for since, price in tariff.storage} or None,
        "history": {_day(since): _tiers(tiers) for since, tiers in tariff.history} or None,
        "cache_rule": None if rule is None else _rule(rule),
    }


def _rule(rule: CacheRule) -> dict[str, Any]:
    return {
        "mechanism": rule.mechanism,
        "family": rule.family,
        "since": rule.since,
        "source": rule.source,
        "calls_seen": rule.seen,
        "calls_exact": rule.exact,
    }


def _tiers(tiers: Tiers) -> list[dict[str, float | None]]:
    return [{"above": above, **_dollars(price)} for above, price in tiers]


def _dollars(price: Price) -> dict[str, float | None]:
    """Return prices by the names of a price file. Without a separate price, writing for an hour has none."""
    hour = None if price.write_1h == price.write else _round(price.write_1h)
    amounts = map(_round, (price.input, price.output, price.read, price.write))
    return dict(zip(_MONEY, (*amounts, hour), strict=True))


def _off_peak(peak: Peak, tiers: Tiers) -> dict[str, Any]:
    hours = [{"from": _clock(start), "until": _clock(end)} for start, end in peak.hours]
    return {"peak_hours_utc": hours, "peak_weekdays": peak.days, "prices": _tiers(tiers)}


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}"


def _day(since: float) -> str:
    return "" if since == -inf else datetime.fromtimestamp(since, UTC).date().isoformat()


def _round(price: float) -> float:
    return round(price * _MILLION, 6)


def _lines_price_list(name: str, row: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each tier; what does not differ by tier stands in the first."""
    rule = row["cache_rule"]
    seen = f"{rule['calls_exact']:,} of {rule['calls_seen']:,}" if rule and rule["calls_seen"] else "–"
    last = ("–", "", seen) if rule is None else (rule["mechanism"], rule["since"], seen)
    for at, prices in enumerate(row["prices"]):
        batch = None if row["batch"] is None else row["batch"][at]["input"]
        money = [_money(price) for price in (*map(prices.get, _MONEY), batch)]
        yield (name, f"{prices['above']:,}" if at else "", *money, *(("", "", "") if at else last))


def _money(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:.6f}".rstrip("0").rstrip(".")


def _notes(part: str | None, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    if part is None:
        priced = sum(BUNDLED.tariff(name) is not None for name in model_names())
        yield (
            f"{len(rows)} of {priced:,} models with a known price: those of {', '.join(_MAKERS)} with a cache rule, "
            "without dated copies. `ctxbench list prices PART` lists those with PART in their name."
        )
    yield (
        f"Source: {BUNDLED.source}. An unpublished cache price is the plain price of input; – is not sold or unknown."
    )
    if cheaper := [name for name, row in rows.items() if row["off_peak"]]:
        yield (
            f"Cheaper at off-peak hours, listed in --json: {', '.join(cheaper)}. The provider's holidays are unknown."
        )
    if stored := [_stored(name, row["storage_per_hour"]) for name, row in rows.items() if row["storage_per_hour"]]:
        yield f"Storage of cached content for an hour ({storage_source()}): {'; '.join(stored)}."


def _stored(name: str, prices: dict[str, float]) -> str:
    first, *later = prices.items()
    return f"{name} {_money(first[1])}" + "".join(f", from {day} {_money(price)}" for day, price in later)

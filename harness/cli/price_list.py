"""`ctxbench list prices`: models with a known price, in US dollars for a million tokens, and their cache rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ...metrics.cache.rules import Rule, rule_for
from ...metrics.listing import STORAGE_SOURCE, Since, Weekly, listed
from ...metrics.models import model_map
from ...metrics.prices import BUNDLED, Price, Prices, Tiers
from ...reports.render import Table
from ...scenarios.errors import SpecError
from ...scenarios.spec import nearest
from .summary import print_json, print_tables

MAKERS = ("anthropic", "openai", "gemini", "deepseek")
"""Providers of models that are listed unasked."""
_TALK = ("chat", "responses")
_DAY = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
_MILLION = 1e6
_BATCH = Prices(batch=True)
_TITLE = "Prices, US dollars for a million tokens"
_HEADS = (
    *("model", "prompt over", "input", "output", "cache read", "write 5m", "write 1h"),
    *("batch input", "cache rule", "since"),
)
_MONEY = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


def print_prices(part: str | None, as_json: bool) -> None:
    """Print the models that have that in their name, or those of the makers. Raises SpecError where there is none."""
    names = sorted(name for name in model_map() if _shown(name, part) and BUNDLED.tariff(name) is not None)
    if not names:
        raise SpecError(f"no model with a known price has {part!r} in its name{nearest(part or '', model_map())}")
    rows = {name: _row(name) for name in names}
    if as_json:
        print_json(rows)
    else:
        lines = tuple(line for name, row in rows.items() for line in _lines(name, row))
        print_tables([Table(_TITLE, _HEADS, lines, tuple(_notes(part, rows)), 2, ("since", "cache rule"))])


def _shown(name: str, part: str | None) -> bool:
    if part is not None:
        return part.casefold() in name.casefold()
    provider, mode = _sold(name)
    if provider not in MAKERS or mode not in _TALK or rule_for(name, None) is None:
        return False
    others = {_DAY.sub("", name), name.removeprefix(f"{provider}/")} - {name}
    return not any(_sold(other) == (provider, mode) for other in others)


def _sold(name: str) -> tuple[str, str]:
    """Who sells a model, and what it does."""
    entry = model_map().get(name, {})
    return str(entry.get("litellm_provider")), str(entry.get("mode"))


def _row(name: str) -> dict[str, Any]:
    tariff, batch, rule, listing = BUNDLED.tariff(name), _BATCH.tariff(name), rule_for(name, None), listed(name)
    assert tariff is not None  # that is what the names were chosen by
    assert listing is not None
    return {
        "provider": _sold(name)[0],
        "window": tariff.window,
        "prices": _tiers(tariff.tiers),
        "batch": None if batch is None else _tiers(batch.tiers),
        "off_peak": next((_off_peak(when, tiers) for when, tiers in tariff.times if isinstance(when, Weekly)), None),
        "storage_per_hour": {_day(since): _round(price) for since, price in listing.storage} or None,
        "cache_rule": None if rule is None else _rule(rule),
    }


def _rule(rule: Rule) -> dict[str, str]:
    mechanism = "nothing" if rule.rules is None else type(rule.rules).__name__.removesuffix("Rules").lower()
    return {"mechanism": mechanism, "family": rule.family, "since": rule.since, "source": rule.source}


def _tiers(tiers: Tiers) -> list[dict[str, float | None]]:
    return [{"above": above, **_dollars(price)} for above, price in tiers]


def _dollars(price: Price) -> dict[str, float | None]:
    """By the names of the file of overrides. Where writing for an hour is not sold apart, it has no price."""
    hour = None if price.write_1h == price.write else _round(price.write_1h)
    found = map(_round, (price.input, price.output, price.read, price.write))
    return dict(zip(_MONEY, (*found, hour), strict=True))


def _off_peak(week: Weekly, tiers: Tiers) -> dict[str, Any]:
    hours = [
        {"weekdays": sorted(days), "from": _clock(start), "until": _clock(end)} for days, start, end in week.windows
    ]
    return {"hours_utc": hours, "prices": _tiers(tiers)}


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}"


def _day(since: Since | None) -> str:
    return "" if since is None else datetime.fromtimestamp(since.start, UTC).date().isoformat()


def _round(price: float) -> float:
    return round(price * _MILLION, 6)


def _lines(name: str, row: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line a tier; what does not differ by tier stands in the first."""
    rule = row["cache_rule"]
    last = ("–", "") if rule is None else (rule["mechanism"], rule["since"])
    for at, prices in enumerate(row["prices"]):
        batch = None if row["batch"] is None else row["batch"][at]["input"]
        money = [_money(each) for each in (*map(prices.get, _MONEY), batch)]
        yield (name, f"{prices['above']:,}" if at else "", *money, *(("", "") if at else last))


def _money(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:.6f}".rstrip("0").rstrip(".")


def _notes(part: str | None, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    if part is None:
        known = sum(BUNDLED.tariff(name) is not None for name in model_map())
        yield (
            f"{len(rows)} of {known:,} models with a known price: those that {', '.join(MAKERS)} sell and for which "
            "there is a cache rule, without dated copies. `ctxbench list prices PART`: those with PART in their name."
        )
    yield (
        f"From {BUNDLED.source}. A cache price that is not published is the plain price of input. –: not sold, or not "
        "known."
    )
    if cheaper := [name for name, row in rows.items() if row["off_peak"]]:
        yield (
            f"At off-peak hours (they are in --json) these are cheaper: {', '.join(cheaper)}. The provider's days off "
            "are not known."
        )
    if stored := [_stored(name, row["storage_per_hour"]) for name, row in rows.items() if row["storage_per_hour"]]:
        yield f"Cached content kept for an hour ({STORAGE_SOURCE}): {'; '.join(stored)}."


def _stored(name: str, prices: dict[str, float]) -> str:
    first, *later = prices.items()
    return f"{name} {_money(first[1])}" + "".join(f", from {day} {_money(price)}" for day, price in later)

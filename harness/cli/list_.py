"""`ctxbench list`: names for the command line (strategies, scenarios, metrics …), explained."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field
from datetime import UTC, datetime
from enum import StrEnum
from inspect import getdoc
from textwrap import fill, indent
from typing import Annotated, Any, get_type_hints

import typer

from ...metrics.cache.rules import CacheRule, rule_for
from ...metrics.models import STORAGE_SOURCE, Since, Weekly, listed, model_map
from ...metrics.prices import BUNDLED, Price, Prices, Tiers
from ...reports.render import Table
from ...scenarios.errors import SpecError
from ...scenarios.spec import nearest
from .output import print_json, print_tables


class Kind(StrEnum):
    """Kinds of things to list."""

    strategies = "strategies"
    scenarios = "scenarios"
    formats = "formats"
    metrics = "metrics"
    encodings = "encodings"
    prices = "prices"


def list_(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"What to list: {', '.join(Kind)}.")] = Kind.strategies,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The one to explain, such as a strategy with its parameters. For prices, a part of the model's name.",
            show_default="all",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List strategies, scenarios, recorded formats, metrics, encodings or models' prices, or explain one of them."""
    kind = _what(what)
    if kind is Kind.prices:
        print_prices(name, as_json)
        return
    rows = _all(kind) if name is None else {name: _one(kind, name)}
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(rows, enc_hook=repr), indent=2).decode())
        return
    for row_name, row in rows.items():
        typer.secho(row["written"] if isinstance(row, dict) else row_name, bold=True)
        if name is not None and isinstance(row, dict):
            _explain(row)
            continue
        for line in _lines(row) if isinstance(row, dict) else [row]:
            typer.echo(fill(line, 96, initial_indent="    ", subsequent_indent="    "))


def _what(text: str) -> Kind:
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import suggestion

    known = {str(kind): kind for kind in Kind}
    if text not in known:
        raise SpecError(f"{text!r} cannot be listed{suggestion(text, known)}")
    return known[text]


def _all(what: Kind) -> dict[str, Any]:
    """Return every row by its name, in the order in which they are shown."""
    if what is Kind.strategies:
        return _strategies()
    rows = {row["written"]: row["about"] for row in _formats().values()} if what is Kind.formats else _rows(what)
    return rows if what is Kind.metrics else dict(sorted(rows.items()))


def _one(what: Kind, name: str) -> Any:
    """Return one row with all details. Raises SpecError with the nearest names."""
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import suggestion

    if what is Kind.strategies:
        return _strategy(name)
    known = _formats() if what is Kind.formats else _rows(what)
    if name not in known:
        raise SpecError(f"unknown {what.value.rstrip('s')} {name!r}{suggestion(name, known)}")
    return known[name]


def _strategies() -> dict[str, dict[str, Any]]:
    """Return strategies, recipes, and plug-ins that cannot be loaded, by name."""
    from ...strategies.chain import NAMED, load_errors, strategies

    rows: dict[str, dict[str, Any]] = {}
    for name, kind in strategies().items():
        rows[name] = {"written": _signature(name, kind), "about": _first(kind), "parameters": _defaults(kind)}
        rows[name] |= {key: getattr(kind, key) for key in ("source", "fails") if hasattr(kind, key)}
    for name, recipe in sorted(NAMED.items()):
        rows.setdefault(name, {"written": f"{name} = {recipe.chain}", **recipe._asdict()})
    return rows | {name: {"written": name, "about": f"cannot be used: {why}"} for name, why in load_errors().items()}


def _strategy(name: str) -> dict[str, Any]:
    """Return the details of a strategy, a recipe with its stages, or a strategy in a file. Raises SpecError."""
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import calls, suggestion
    from ...strategies import plugins
    from ...strategies.chain import strategies

    if plugins.is_file(name):
        kind = plugins.load(name)
        row = {"written": _signature(name, kind), "about": _first(kind), "parameters": _defaults(kind)}
        return row | {key: getattr(kind, key) for key in ("source", "fails") if hasattr(kind, key)} | _explained(kind)
    known = _strategies()
    if name not in known:
        raise SpecError(f"unknown strategy {name!r}{suggestion(name, known)}")
    if name in strategies():
        return known[name] | _explained(strategies()[name])
    if "chain" not in known[name]:
        return known[name]
    stages = dict.fromkeys(call.name for call in calls(known[name]["chain"], "strategy"))
    return known[name] | {"stages": {stage: _strategy(stage) for stage in stages}}


def _explained(kind: type[Any]) -> dict[str, Any]:
    """Return a class's whole docstring and the types of its parameters."""
    from ...scenarios.spec import parameters, type_text

    hints = get_type_hints(kind)
    types = {parameter.name: type_text(hints[parameter.name]) for parameter in parameters(kind)}
    return {"doc": getdoc(kind) or "", "types": types}


def _explain(row: Mapping[str, Any]) -> None:
    """Print all details of a row, for a recipe those of its stages too."""
    first = row.get("doc", row["about"]).split("\n\n", 1)
    typer.echo(indent(first[0] if "doc" in row else fill(first[0], 116), "    "))
    for line in _lines(row)[1:]:
        typer.echo(fill(line, 120, initial_indent="    ", subsequent_indent="    "))
    if len(first) > 1:
        typer.echo("\n" + indent(first[1], "    "))
    if row.get("types"):
        typer.echo("\n    Parameters")
        for name, kind in row["types"].items():
            default = row["parameters"][name]
            typer.echo(f"      {name}: {kind}" + (" (required)" if default == "required" else f" = {default!r}"))
    for stage in row.get("stages", {}).values():
        typer.echo()
        typer.secho(stage["written"], bold=True)
        _explain(stage)


def _lines(row: Mapping[str, Any]) -> list[str]:
    """Return what a strategy does, where it comes from, and when it fails."""
    lines = [row["about"]]
    if row.get("source"):
        lines.append(f"From {row['source']}.")
    if row.get("fails"):
        lines.append(f"Fails when {row['fails']}.")
    return lines


def _default(field: Field[Any]) -> Any:
    """Return a parameter's default, or "required"."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return "required" if field.default is MISSING else field.default


def _defaults(kind: type[Any]) -> dict[str, Any]:
    from ...scenarios.spec import parameters

    return {parameter.name: _default(parameter) for parameter in parameters(kind)}


def _formats() -> dict[str, dict[str, Any]]:
    """Return the recorded formats by name, each with the options of its reader."""
    from ...scenarios.readers import readers

    return {
        name: {"written": _signature(name, kind), "about": kind.about, "parameters": _defaults(kind)} | _explained(kind)
        for name, kind in readers().items()
    }


def _rows(what: Kind) -> dict[str, Any]:
    match what:
        case Kind.scenarios:
            from ...scenarios.embedded import SCENARIOS

            return dict(SCENARIOS)
        case Kind.metrics:
            from ...metrics.figures import METRICS

            return {
                key: {
                    "written": f"{key}: {metric.name}",
                    "name": metric.name,
                    "about": metric.about + (f" ({metric.better} is better)" if metric.better else ""),
                }
                for key, metric in METRICS.items()
            }
        case _:
            from ...metrics.tokens import ENCODINGS

            return dict(ENCODINGS)


def _signature(name: str, kind: type[Any]) -> str:
    """Return a name with its parameters: `window(max_tokens=None, reserve=0.1)`."""
    takes = [
        parameter if value == "required" else f"{parameter}={value!r}" for parameter, value in _defaults(kind).items()
    ]
    return f"{name}({', '.join(takes)})" if takes else name


def _first(kind: type[Any]) -> str:
    """Return the first paragraph of a class's docstring, in one line."""
    return " ".join((getdoc(kind) or "").split("\n\n")[0].split())


# Providers of the models that are listed by default.
_MAKERS = ("anthropic", "openai", "gemini", "deepseek")
_TALK = ("chat", "responses")
_DAY = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
_MILLION = 1e6
_BATCH = Prices(batch=True)
_TITLE = "Prices in US dollars per million tokens"
_HEADS = (
    *("model", "prompt over", "input", "output", "cache read", "write 5m", "write 1h"),
    *("batch input", "cache rule", "since"),
)
_MONEY = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


def print_prices(part: str | None, as_json: bool) -> None:
    """Print the prices of models with a part in their name, or of the makers. Raises SpecError if there is none."""
    names = sorted(name for name in model_map() if _shown(name, part) and BUNDLED.tariff(name) is not None)
    if not names:
        raise SpecError(f"no model with a known price has {part!r} in its name{nearest(part or '', model_map())}")
    rows = {name: _row(name) for name in names}
    if as_json:
        print_json(rows)
    else:
        lines = tuple(line for name, row in rows.items() for line in _lines_price_list(name, row))
        print_tables([Table(_TITLE, _HEADS, lines, tuple(_notes(part, rows)), 2, ("since", "cache rule"))])


def _shown(name: str, part: str | None) -> bool:
    if part is not None:
        return part.casefold() in name.casefold()
    provider, mode = _sold(name)
    if provider not in _MAKERS or mode not in _TALK or rule_for(name, None) is None:
        return False
    others = {_DAY.sub("", name), name.removeprefix(f"{provider}/")} - {name}
    return not any(_sold(other) == (provider, mode) for other in others)


def _sold(name: str) -> tuple[str, str]:
    """Return the provider of a model, and its mode."""
    entry = model_map().get(name, {})
    return str(entry.get("litellm_provider")), str(entry.get("mode"))


def _row(name: str) -> dict[str, Any]:
    tariff, batch, rule, listing = BUNDLED.tariff(name), _BATCH.tariff(name), rule_for(name, None), listed(name)
    assert tariff is not None  # the names have a tariff
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


def _rule(rule: CacheRule) -> dict[str, str]:
    mechanism = "nothing" if rule.rules is None else type(rule.rules).__name__.removesuffix("Rules").lower()
    return {"mechanism": mechanism, "family": rule.family, "since": rule.since, "source": rule.source}


def _tiers(tiers: Tiers) -> list[dict[str, float | None]]:
    return [{"above": above, **_dollars(price)} for above, price in tiers]


def _dollars(price: Price) -> dict[str, float | None]:
    """Return prices by the names of a price file. Without a separate price, writing for an hour has none."""
    hour = None if price.write_1h == price.write else _round(price.write_1h)
    amounts = map(_round, (price.input, price.output, price.read, price.write))
    return dict(zip(_MONEY, (*amounts, hour), strict=True))


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


def _lines_price_list(name: str, row: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each tier; what does not differ by tier stands in the first."""
    rule = row["cache_rule"]
    last = ("–", "") if rule is None else (rule["mechanism"], rule["since"])
    for at, prices in enumerate(row["prices"]):
        batch = None if row["batch"] is None else row["batch"][at]["input"]
        money = [_money(price) for price in (*map(prices.get, _MONEY), batch)]
        yield (name, f"{prices['above']:,}" if at else "", *money, *(("", "") if at else last))


def _money(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:.6f}".rstrip("0").rstrip(".")


def _notes(part: str | None, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    if part is None:
        known = sum(BUNDLED.tariff(name) is not None for name in model_map())
        yield (
            f"{len(rows)} of {known:,} models with a known price: those of {', '.join(_MAKERS)} with a cache rule, "
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
        yield f"Storage of cached content for an hour ({STORAGE_SOURCE}): {'; '.join(stored)}."


def _stored(name: str, prices: dict[str, float]) -> str:
    first, *later = prices.items()
    return f"{name} {_money(first[1])}" + "".join(f", from {day} {_money(price)}" for day, price in later)

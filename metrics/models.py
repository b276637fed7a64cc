"""Names, context windows and listed prices of models: those of the package genai-prices, and our own figures over it.

genai-prices is data of its version and asks no network. It is imported at the first look-up, which takes a quarter of a
second. `data/prices.toml` has what it lacks or has wrong, each with its source.

    provider/model      that provider's price, and none of another's: `groq/gpt-4o` is not known
    model               its maker's price: `gpt-4o` is `openai/gpt-4o`
    litellm_proxy/…     a route to a provider is removed, and so are openrouter/PROVIDER/, bedrock/converse/ and arn:…/
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.spec import nearest

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

_DOTTED = re.compile(r"(claude-(?:[a-z]+-)?\d)\.(\d)")
_TURNED = re.compile(r"claude-([4-9]-\d)-([a-z]+)")


def plain_name(model: str) -> str:
    """Return a model's name as its maker writes it: `claude-opus-4.5` and `claude-4.5-opus` are `claude-opus-4-5`."""
    return _TURNED.sub(r"claude-\2-\1", _DOTTED.sub(r"\1-\2", model.lower()))


class FamilyRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of a family of models, from a file of `data/`."""

    models: str  # regular expression of the models' names, without a host's prefix


Rule = TypeVar("Rule", bound=FamilyRule)


@cache
def _families(table: str, kind: type[Rule]) -> tuple[Rule, ...]:
    families = tomllib.loads(files(__package__).joinpath("data", f"{table}.toml").read_text("utf-8"))["families"]
    return tuple(msgspec.convert(family, kind) for family in families)


def family_rule(table: str, kind: type[Rule], model: str) -> Rule | None:
    """Return the rule of a model's family in `data/TABLE.toml`, by its name with or without `provider/`, or None."""
    # Bedrock's names have regions and the provider in front: us.anthropic.claude-…
    name = plain_name(model).rpartition("/")[2].rpartition("anthropic.")[2]
    return next((rule for rule in _families(table, kind) if re.fullmatch(rule.models, name)), None)


FIELDS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "read": "cache_read_mtok",
    "write": "cache_write_mtok",
    "write_1h": "cache_write_1h_mtok",
}
"""Name of each price in genai-prices, where it is for a million tokens."""
PARTS = {
    **{f"{kind}_{what}": f"{what}_{kind}_mtok" for kind in ("audio", "image") for what in ("input", "output")},
    **{f"{kind}_read": f"cache_{kind}_read_mtok" for kind in ("audio", "image")},
    "searches": "web_searches_kcount",
}
"""Likewise for parts of a call at prices of their own, by the fields of a recorded usage; searches are by thousands."""

# Amazon's names: us.anthropic.claude-sonnet-4-20250514-v1:0
_BEDROCK = re.compile(r"(?:(?:us|us-gov|eu|apac|au|jp|ca|global)\.)?[a-z][a-z0-9]*\.[a-z]")
# The part of a name that says how a call gets to the provider: the price is that of who serves the model in the end.
_ROUTES = re.compile(
    r"litellm(?:_proxy)?/|arn:aws[a-z-]*:bedrock:[^/]*/|codex/|models/|openrouter/(?=[^/]+/)|(?<=bedrock/)(?:converse|converse_like|invoke)/"
)
# Ways to choose among OpenRouter's hosts, behind a model's name.
_CHOICE = re.compile(r":(?:nitro|floor|online|exacto|beta)$")
_EVER = -math.inf
MILLION = 1e6


class PriceTier(NamedTuple):
    """Listed prices for prompts of more tokens than `above`, in US dollars per token, by `Price`'s fields."""

    above: int
    plain: Mapping[str, float]
    batch: Mapping[str, float]  # prices of batch calls, which may be answered hours later


class Peak(NamedTuple):
    """Hours of the week at which a model costs more."""

    hours: tuple[tuple[int, int], ...]  # first and last second of the day, in UTC
    days: tuple[int, ...]  # days of the week; 1 is Monday
    zone: str  # time zone in which the days begin and end

    def holds(self, when: float) -> bool:
        """Return whether a time, in seconds since 1970, falls in these hours."""
        day, second = datetime.fromtimestamp(when, ZoneInfo(self.zone)).isoweekday(), when % 86_400
        return day in self.days and any(start <= second < end for start, end in self.hours)


class Listing(NamedTuple):
    """Everything that is listed of one model's prices."""

    tiers: tuple[PriceTier, ...]
    """Today's prices, those of peak hours if there are any, in rising order of size; the first begins at 0."""
    window: int | None = None  # most tokens that a prompt may have
    claude: bool = False  # whether Anthropic's rule gives the price of writing for an hour where none is listed
    off_peak: tuple[Peak, tuple[PriceTier, ...]] | None = None  # today's prices at all other hours than these
    history: tuple[tuple[float, tuple[PriceTier, ...]], ...] = ()
    """Prices since each time at which they changed, in rising order; without those of peak hours."""
    storage: tuple[tuple[float, float], ...] = ()
    """US dollars for a token of cached content stored for an hour, since each time, in rising order."""
    variants: Mapping[str, Mapping[str, float]] = {}
    """Today's prices of a service tier, a speed or a region of inference, as shares of the usual ones."""


FREE = Listing((PriceTier(0, dict.fromkeys(FIELDS, 0.0), dict.fromkeys(FIELDS, 0.0)),))


class _Figure(msgspec.Struct, forbid_unknown_fields=True):
    """A figure of ours, for the models whose id in genai-prices fits a pattern."""

    models: str
    tokens: int = 0  # window
    price: float = 0.0  # of storage
    prices: dict[str, float] = {}
    read: float = 0.0  # price of reading as a share of the price of input, until a day
    variant: str = ""  # service tier, speed or region at `price` times the usual prices
    since: date | None = None
    until: date | None = None
    days: tuple[int, ...] = ()  # days of the week that have peak hours, in a time zone
    zone: str = "UTC"


class _Figures(msgspec.Struct, forbid_unknown_fields=True):
    """`data/prices.toml`."""

    today: date
    storage_source: str
    own: tuple[str, ...]
    makers: tuple[str, ...]
    aliases: dict[str, str]
    window: list[_Figure]
    storage: list[_Figure]
    peak: list[_Figure]
    former: list[_Figure]
    variants: list[_Figure]
    listed: list[_Figure]


@cache
def _figures() -> _Figures:
    return msgspec.toml.decode(files(__package__).joinpath("data", "prices.toml").read_bytes(), type=_Figures)


def storage_source() -> str:
    """Return the source of the prices of storage."""
    return _figures().storage_source


def prices_version() -> str:
    """Return the version of the prices: `genai-prices 0.2.3`."""
    return f"genai-prices {version('genai-prices')}"


def own(model: str) -> bool:
    """Return whether a model runs on the user's own machine, at no price. Ollama's `-cloud` models do not."""
    return model.partition("/")[0].partition(":")[0] in _figures().own and not model.endswith("-cloud")


@cache
def _providers() -> dict[str, Provider]:
    from genai_prices.data import providers

    return {provider.id: provider for provider in providers}


@cache
def find_model(model: str) -> tuple[str, ModelInfo] | None:
    """Return the provider of a model and what genai-prices has of it, or None."""
    direct, providers = _CHOICE.sub("", _ROUTES.sub("", model, count=1)), _providers()
    if direct != model and (found := find_model(direct)) is not None:
        return found
    first, slash, rest = model.partition("/")
    by_alias = None if model in _routed() else providers.get(_figures().aliases.get(first, ""))
    provider = (providers.get(first) or by_alias) if rest else None
    if provider is not None and (info := provider.find_model(rest, all_providers=list(providers.values()))):
        return provider.id, info
    if slash and model in _routed():
        return "openrouter", _routed()[model]
    makers = () if slash or not model else ("aws",) if _BEDROCK.match(model) else _figures().makers
    models = ((maker, providers[maker].find_model(model)) for maker in makers)
    return next(((maker, info) for maker, info in models if info is not None), None)


@cache
def _routed() -> Mapping[str, ModelInfo]:
    """Return OpenRouter's models by their names, which begin with their makers'."""
    models = _providers()["openrouter"].models
    return {name: model for model in models for name in (model.id, *_exact_names(model.match)) if "/" in name}


def api_host(model: str) -> str:
    """Return the host of the provider that a model's name begins with, or of its maker; else the provider's name."""
    found = None if "/" in model else find_model(model)
    first = found[0] if found else model.partition("/")[0]
    provider = _providers().get(_figures().aliases.get(first, first))
    return re.sub(r"https://|\\|[(\[].*", "", provider.api_pattern if provider else "").rstrip(".") or first


@cache
def model_names() -> Mapping[str, str]:
    """Return the provider of each model by its names: a maker's models have no provider before it, Google's have."""
    return {
        _name(id, name): id
        for id, provider in _providers().items()
        for model in provider.models
        for name in (model.id, *_exact_names(model.match))
    }


def _exact_names(match: Any) -> Iterator[str]:
    """Yield the names that a clause of genai-prices takes letter by letter."""
    if hasattr(match, "equals"):
        yield match.equals
    for clause in getattr(match, "or_", ()):
        yield from _exact_names(clause)


def _name(provider: str, model: str) -> str:
    if provider == "google":
        return f"{'vertex_ai' if model.startswith('claude') else 'gemini'}/{model}"
    if provider == "aws":  # its prices by region are listed of a region that there is not
        return f"bedrock/{model.replace('regional.', 'us.', 1)}"
    return model if provider in _figures().makers else f"{provider}/{model}"


def names(model: str) -> Iterator[str]:
    """Yield the names by which a file of prices may list a model, starting with the one given."""
    yield model
    direct = _ROUTES.sub("", model, count=1)
    if direct != model:
        yield from names(direct)
        return
    rest = model.partition("/")[2]
    if rest and (found := find_model(model)) is not None:
        others = (rest, f"gemini/{rest}") if found[0] == "google" else (rest,)
        yield from (other for other in others if other != model and find_model(other) == found)


def context_window(model: str) -> int | None:
    """Return the most tokens that a model takes in a prompt; None where that is not known."""
    if ours := _of(_figures().window, plain_name(model).rpartition("/")[2]):
        return ours[0].tokens
    found = find_model(model) or find_model(plain_name(model).rpartition("/")[2])
    return None if found is None else found[1].context_window


def window_of(model: str) -> int:
    """Return a model's context window, in tokens. Raises SpecError with the nearest names."""
    size = context_window(model)
    if size is None and find_model(model) is None:
        raise SpecError(f"unknown model {model!r}{nearest(model, model_names())}")
    if size is None:
        raise SpecError(f"no context window is known for model {model!r}: give max_tokens")
    return size


@cache
def listed(model: str) -> Listing | None:
    """Return what is listed of a model; None if no price of input is."""
    if own(model):
        return FREE
    if model.endswith(":free"):  # at OpenRouter
        return FREE._replace(window=context_window(model))
    found = find_model(model)
    if found is None:
        return None
    figures, info = _figures(), found[1]
    name, today = info.id, _start(figures.today)
    changes, peaks = _changes(info, figures.today)
    for before in _of(figures.former, name):
        changes[_start(before.until or figures.today)] = changes[_EVER]
        changes[_EVER] = tuple(
            tier._replace(plain={**tier.plain, "read": tier.plain["input"] * before.read}) for tier in changes[_EVER]
        )
    for ours in _of(figures.listed, plain_name(model).rpartition("/")[2]):
        prices = {field: float(f"{dollars}e-6") for field, dollars in ours.prices.items()}
        changes[_start(ours.since)], peaks = (PriceTier(0, prices, {}),), {}
    current, off_peak = changes[max(since for since in changes if since <= today)], None
    if peaks:
        days, zone = next(((ours.days, ours.zone) for ours in _of(figures.peak, name)), (tuple(range(1, 8)), "UTC"))
        off_peak, current = (Peak(tuple(peaks), days, zone), current), list(peaks.values())[-1]
    if not current[0].plain.get("input"):
        return None
    history = tuple(sorted(changes.items())) if len(changes) > 1 else ()
    storage = tuple((_start(ours.since), ours.price / MILLION) for ours in _of(figures.storage, name))
    variants = _variants(info, current[0].plain)
    for ours in _of(figures.variants, name):
        variants[ours.variant] = dict.fromkeys((*FIELDS, *PARTS), ours.price) | {"searches": 1.0}
    return Listing(current, context_window(model), "claude" in name, off_peak, history, storage, variants)


def _variants(info: ModelInfo, usual: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return what a service tier or speed costs as shares of today's prices: since when it does is mostly not known."""
    variants: dict[str, dict[str, float]] = {}
    for variant in info.price_variants or ():
        [(kind, name), *more] = variant.when.items()
        if kind in ("service_tier", "speed") and not more:
            dollars = _prices(variant.prices, 0)
            variants[name] = {field: dollars[field] / usual[field] for field in dollars if usual.get(field)}
    return variants


def _of(figures: Sequence[_Figure], name: str) -> list[_Figure]:
    """Return those of our figures that are of a model."""
    return [figure for figure in figures if re.fullmatch(figure.models, name)]


def _changes(
    info: ModelInfo, today: date
) -> tuple[dict[float, tuple[PriceTier, ...]], dict[tuple[int, int], tuple[PriceTier, ...]]]:
    """Return the prices since each time at which they changed, and those of hours of the day (seconds, in UTC)."""
    from genai_prices.types import ConditionalPrice, StartDateConstraint

    # Today's prices of batches: what is not among them costs as ever.
    batch = next(
        (
            variant.prices
            for variant in info.price_variants or ()
            if variant.when == {"processing": "batch"}
            and ((start := getattr(variant.constraint, "start_date", None)) is None or start <= today)
        ),
        None,
    )
    changes, peaks = dict[float, tuple[PriceTier, ...]](), dict[tuple[int, int], tuple[PriceTier, ...]]()
    for one in info.prices if isinstance(info.prices, list) else [ConditionalPrice(prices=info.prices)]:
        priced = [getattr(listed_prices, key, None) for listed_prices in (one.prices, batch) for key in FIELDS.values()]
        sizes = {tier.start for price in priced for tier in getattr(price, "tiers", ())}
        tiers = tuple(
            PriceTier(above, _prices(one.prices, above), _prices(batch, above)) for above in (0, *sorted(sizes))
        )
        when = one.constraint
        if when is None or isinstance(when, StartDateConstraint):
            changes[_start(when.start_date if when else None)] = tiers
        else:
            start, stop = (clock.hour * 3600 + clock.minute * 60 for clock in (when.start_time, when.end_time))
            peaks[start, stop] = tiers
    return changes, peaks


def _prices(prices: ModelPrice | None, above: int) -> dict[str, float]:
    """Return the prices of prompts of more tokens. A write that is cheaper than plain input costs as input.

    Some hosts list what Google asks for storage as the price of a write: tokens are processed before they are written.
    """
    dollars: dict[str, float] = {}
    for field, key in (*FIELDS.items(), *PARTS.items()):
        price: Any = getattr(prices, key, None)
        if price is not None:
            larger = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= above]
            # Divided as decimals: 0.2 / 1e6 is another number than 2e-7.
            unit = 1000 if field == "searches" else int(MILLION)
            dollars[field] = float((larger[-1] if larger else getattr(price, "base", price)) / unit)
    if "write" in dollars:
        dollars["write"] = max(dollars["write"], dollars.get("input", 0.0))
    return dollars


def _start(day: date | None) -> float:
    """Return the time at which a day begins in UTC, in seconds since 1970; without a day it is ever."""
    return _EVER if day is None else datetime.combine(day, time(), UTC).timestamp()

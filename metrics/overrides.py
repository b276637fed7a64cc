"""The user's prices, from a TOML file, over those that are listed.

    [models."NAME"]                one table a model, by the name that it is billed under
    like = "OTHER"                 start from another model's prices, as listed or as given further up
    input = 3.00                   all in US dollars for a million tokens, as price pages have them
    output = 15.00
    cache_read = 0.30
    cache_write_5m = 3.75
    cache_write_1h = 6.00
    storage_per_hour = 1.00        for a million tokens of cached content, kept for an hour
    batch = {input = 1.50, …}      the first five, in batches

    [[models."NAME".tiers]]        other prices for longer prompts; `tiers = []` for none
    above = 200000                 tokens
    input = 6.00

What is not given stays as it was listed, in a tier as in the tier below. Prices that are given hold at all hours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..scenarios.spec import nearest
from ..scenarios.toml import Keys, Toml, written
from .listing import Listing, Tier, listed, own
from .models import model_map

MILLION = 1e6
LEAST = 1e-4
"""No token is sold at less for a million: a price below is one for a token."""
SHORTEST = 1000
"""No tier begins at fewer tokens: a number below is one of thousands."""


_CURRENCY = ("prices are in US dollars", "convert them yourself, and leave this key out")
_ABOVE = "write tokens, as 200000"
_ORDER = "put the tiers in rising order"


class Overrides(NamedTuple):
    """The user's prices, by the model's name."""

    listings: Mapping[str, Listing]
    file: str


NOTHING = Overrides({}, "")


class _Prices(msgspec.Struct, forbid_unknown_fields=True):
    """The prices of a table, by `Price`'s fields."""

    input: float | None = None
    output: float | None = None
    read: float | None = msgspec.field(default=None, name="cache_read")
    write: float | None = msgspec.field(default=None, name="cache_write_5m")
    write_1h: float | None = msgspec.field(default=None, name="cache_write_1h")


class _Tier(_Prices, kw_only=True, forbid_unknown_fields=True):
    above: int
    batch: _Prices | None = None


class _Model(_Prices, kw_only=True, forbid_unknown_fields=True):
    like: str | None = None
    storage_per_hour: float | None = None
    tiers: list[_Tier] | None = None
    batch: _Prices | None = None


def read_prices(path: Path) -> Overrides:
    """The prices in a file. Raises SetupError with file, line, field and what to do."""
    file = Toml.read(path)
    if "currency" in file.tables:
        raise file.wrong(("currency",), *_CURRENCY)
    for key in file.tables:
        if key != "models":
            raise file.wrong((key,), f"unknown key{nearest(key, {'models': 0})}", 'a table is [models."NAME"]')
    models = file.tables.get("models")
    if not isinstance(models, dict) or not models:
        raise file.wrong(("models",), "no model is priced", 'begin with [models."NAME"]')
    made: dict[str, Listing] = {}
    for name in models:
        made[name] = _listing(file, name, made)
    return Overrides(made, path.name)


def _listing(file: Toml, name: str, before: Mapping[str, Listing]) -> Listing:
    """One model's table over what is listed of it, or of the model that it is like."""
    at: Keys = ("models", name)
    given = _checked(file, at)
    prices, batch = _dollars(given), _dollars(given.batch)
    if not (prices or batch or given.storage_per_hour is not None) and given.like is None and given.tiers is None:
        raise file.wrong(at, "prices nothing", "give input and output, or like = the name of another model")
    base = _base(file, at, given.like, before)
    if base is None:
        if not {"input", "output"} <= prices.keys():
            what = "litellm's map has no price for this model" + ("" if own(name) else nearest(name, model_map()))
            raise file.wrong(at, what, "correct the name (see `ctxbench list prices NAME`), or give input and output")
        base = Listing((Tier(0, {}, {}),), claude="claude" in name)
    if prices and given.tiers is None and len(base.tiers) > 1:
        above = base.tiers[1].above
        remedy = f"add [[{written((*at, 'tiers'))}]] tables, or tiers = [] for none"
        raise file.wrong(at, f"prompts of more than {above} tokens have prices of their own", remedy)
    first = Tier(0, {**base.tiers[0].plain, **prices}, {**base.tiers[0].batch, **batch})
    longer = base.tiers[1:] if given.tiers is None else tuple(map(_tier, given.tiers))
    stored = base.storage if given.storage_per_hour is None else ((None, given.storage_per_hour / MILLION),)
    off_peak = None if prices or given.tiers else base.off_peak
    return base._replace(tiers=(first, *longer), storage=stored, off_peak=off_peak)


def _base(file: Toml, at: Keys, like: str | None, before: Mapping[str, Listing]) -> Listing | None:
    """What a table starts from; None if there is nothing."""
    if like is None:
        name = str(at[-1])
        return None if own(name) else listed(name)
    found = before.get(like) or listed(like)
    if found is None:
        what = f"the price of {like} is not known{nearest(like, {**model_map(), **before})}"
        raise file.wrong((*at, "like"), what, "name a model of `ctxbench list prices`, or one further up")
    return found


def _tier(given: _Tier) -> Tier:
    return Tier(given.above, _dollars(given), _dollars(given.batch))


def _dollars(given: _Prices | None) -> dict[str, float]:
    """Those of the prices that are given, for a token."""
    if given is None:
        return {}
    found = {each: getattr(given, each) for each in _Prices.__struct_fields__}
    return {each: value / MILLION for each, value in found.items() if value is not None}


def _checked(file: Toml, at: Keys) -> _Model:
    """A model's table of which every number can be a price."""
    table = file.tables["models"][at[1]]
    if not at[1]:
        raise file.wrong(at, "a model has a name", "write it as litellm does")
    if isinstance(table, dict) and "currency" in table:
        raise file.wrong((*at, "currency"), *_CURRENCY)
    given = file.convert(at, _Model)
    for keys, value in _numbers(at, given):
        if not math.isfinite(value) or value < 0:
            raise file.wrong(keys, f"{value:g} is no price", "US dollars for a million tokens, 0 or more")
        if 0 < value < LEAST:
            remedy = f"write {value * MILLION:g} if it is for one token"
            raise file.wrong(keys, f"{value:g} is too little for a million tokens", remedy)
    below = 0
    for number, tier in enumerate(given.tiers or ()):
        keys = (*at, "tiers", number)
        if tier.above < SHORTEST:
            raise file.wrong((*keys, "above"), f"{tier.above} is no number of tokens from which prices change", _ABOVE)
        if tier.above <= below:
            raise file.wrong((*keys, "above"), f"{tier.above} is not more than {below} of the tier before", _ORDER)
        if not _dollars(tier) and not _dollars(tier.batch):
            raise file.wrong(keys, "prices nothing", "give input, output, cache_read … or leave the tier out")
        below = tier.above
    return given


def _numbers(at: Keys, given: _Model) -> Iterator[tuple[Keys, float]]:
    """Every price of a table, with the way to it."""
    tables: list[tuple[Keys, _Prices | None]] = [(at, given), ((*at, "batch"), given.batch)]
    for number, tier in enumerate(given.tiers or ()):
        keys = (*at, "tiers", number)
        tables += [(keys, tier), ((*keys, "batch"), tier.batch)]
    for keys, table in tables:
        for field in msgspec.structs.fields(_Prices):
            value = getattr(table, field.name, None)
            if value is not None:
                yield (*keys, field.encode_name), value
    if given.storage_per_hour is not None:
        yield (*at, "storage_per_hour"), given.storage_per_hour

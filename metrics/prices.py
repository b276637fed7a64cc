"""Cost of a call: its tokens times the prices for the size of its prompt.

Prices come from genai-prices with our own figures over it (`models.py`), overridden by the user's file. Where no source
gives a price, the rules of docs/prices.md do, and nothing else; a tier, a speed or a region is a share of the usual
price (`Prices.tariff`). A bill charges today's prices, whenever a conversation was recorded: what would it cost now?
`Tariff.then` has those of the time, for what a recording says that it cost. A model whose price is not known is
missing, never free. The user's own machine is free.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ctxbench.scenarios.model import Call, Usage
from ctxbench.scenarios.spec import nearest
from ctxbench.scenarios.toml import Keys, Toml, dotted

from .models import MILLION, PARTS, Listing, Peak, PriceTier, listed, model_names, names, own, prices_version

LEAST = 1e-4  # least price for a million tokens: a smaller number is a price for one token, by mistake
SHORTEST = 1000  # least size at which a tier begins: a smaller number counts thousands, by mistake


class _Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a table, by `Price`'s fields, in US dollars for a million tokens."""

    input: float | None = None
    output: float | None = None
    read: float | None = msgspec.field(default=None, name="cache_read")
    write: float | None = msgspec.field(default=None, name="cache_write_5m")
    write_1h: float | None = msgspec.field(default=None, name="cache_write_1h")


class _Tier(_Prices, frozen=True, kw_only=True, forbid_unknown_fields=True):
    above: int
    batch: _Prices = _Prices()


class _Model(_Prices, frozen=True, kw_only=True, forbid_unknown_fields=True):
    like: str | None = None
    storage_per_hour: float | None = None
    tiers: list[_Tier] | None = None
    batch: _Prices = _Prices()


def read_prices(path: Path) -> dict[str, Listing]:
    """Read the prices in a file, by the model's name. Raises SetupError with file, line, field and remedy."""
    file = Toml.read(path)
    if other := file.tables.keys() - {"models"}:
        key = min(other)
        raise file.wrong(
            (key,), f"unknown key{nearest(key, {'models': 0})}", 'a table is [models."NAME"], in US dollars'
        )
    models = file.tables.get("models")
    if not isinstance(models, dict) or not models:
        raise file.wrong(("models",), "no model is priced", 'begin with [models."NAME"]')
    listings: dict[str, Listing] = {}
    for name in models:
        listings[name] = _listing(file, name, listings)
    return listings


def _listing(file: Toml, name: str, before: Mapping[str, Listing]) -> Listing:
    """Return one model's table, laid over the listing of that model or of the one it is like."""
    at: Keys = ("models", name)
    if not name:
        raise file.wrong(at, "a model has a name", "write it as `ctxbench list prices` does")
    given = file.convert(at, _Model)
    prices, batch, tiers, below = _dollars(file, at, given), _dollars(file, (*at, "batch"), given.batch), [], 0
    for number, tier in enumerate(given.tiers or ()):
        keys = (*at, "tiers", number)
        if tier.above < SHORTEST or tier.above <= below:
            what = f"{tier.above} is not more than {max(below, SHORTEST - 1)}"
            raise file.wrong((*keys, "above"), what, "write tokens, as 200000, and put the tiers in rising order")
        plain, of_batch = _dollars(file, keys, tier), _dollars(file, (*keys, "batch"), tier.batch)
        if not plain and not of_batch:
            raise file.wrong(keys, "prices nothing", "give input, output, cache_read … or leave the tier out")
        tiers.append(PriceTier(tier.above, plain, of_batch))
        below = tier.above
    storage = given.storage_per_hour and _per_token(file, (*at, "storage_per_hour"), given.storage_per_hour)
    if not (prices or batch or storage is not None) and given.like is None and given.tiers is None:
        raise file.wrong(at, "prices nothing", "give input and output, or like = the name of another model")
    base = None if own(name) else listed(name)
    if given.like is not None and (base := before.get(given.like) or listed(given.like)) is None:
        what = f"the price of {given.like} is not known{nearest(given.like, {**model_names(), **before})}"
        raise file.wrong((*at, "like"), what, "name a model of `ctxbench list prices`, or one further up")
    if base is None:
        if not {"input", "output"} <= prices.keys():
            what = "no price is listed for this model" + ("" if own(name) else nearest(name, model_names()))
            raise file.wrong(at, what, "correct the name (see `ctxbench list prices NAME`), or give input and output")
        base = Listing((PriceTier(0, {}, {}),), claude="claude" in name)
    if prices and given.tiers is None and len(base.tiers) > 1:
        what = f"prompts of more than {base.tiers[1].above} tokens have prices of their own"
        raise file.wrong(at, what, f"add [[{dotted((*at, 'tiers'))}]] tables, or tiers = [] for none")
    first = PriceTier(0, {**base.tiers[0].plain, **prices}, {**base.tiers[0].batch, **batch})
    longer = base.tiers[1:] if given.tiers is None else tuple(tiers)
    stored = base.storage if storage is None else ((-math.inf, storage),)
    off_peak, history = (None, ()) if prices or tiers else (base.off_peak, base.history)
    return base._replace(tiers=(first, *longer), storage=stored, off_peak=off_peak, history=history)


def _dollars(file: Toml, at: Keys, given: _Prices) -> dict[str, float]:
    """Return the prices that a table gives, in US dollars per token."""
    prices = [(field, getattr(given, field.name)) for field in msgspec.structs.fields(_Prices)]
    return {
        field.name: _per_token(file, (*at, field.encode_name), price) for field, price in prices if price is not None
    }


def _per_token(file: Toml, at: Keys, price: float) -> float:
    if not 0 <= price < math.inf:
        raise file.wrong(at, f"{price:g} is no price", "US dollars for a million tokens, 0 or more")
    if 0 < price < LEAST:
        what = f"{price:g} is too little for a million tokens"
        raise file.wrong(at, what, f"write {price * MILLION:g} if it is for one token")
    return price / MILLION


HOUR_MULTIPLE = 2.0  # price of writing for an hour over that of plain input, where none is listed (Anthropic's rule)


class TokenUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of a call as the provider reported them."""

    input: int  # tokens of the whole prompt, cached ones included
    output: int
    cached: int = 0  # input tokens read from the provider's cache
    written: int = 0  # input tokens written to the provider's cache
    written_1h: int = 0  # the part of `written` that was written for an hour

    @staticmethod
    def recorded(usage: Usage) -> TokenUsage:
        """Return the usage of a recorded call; counts that it does not report are 0."""
        counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cache_write_1h)
        return TokenUsage(*(count or 0 for count in counts))


class Price(NamedTuple):
    """US dollars per token."""

    input: float
    output: float
    read: float  # for input read from the provider's cache
    write: float  # for input written to it
    write_1h: float  # for input written to it for an hour
    storage: float | None = None
    """For a token of cached content stored for an hour; None where that is not sold, or its price not known."""
    parts: Mapping[str, float] = {}
    """For audio, images and searches, by the fields of `Usage`, where they have prices of their own."""

    def recorded(self, usage: Usage) -> float:
        """Return the US dollars of a recorded call."""
        return self.of(TokenUsage.recorded(usage)) + self.beyond_text(usage)

    def beyond_text(self, usage: Usage) -> float:
        """Return the US dollars that a call's audio, images and searches cost more than text tokens."""
        parts, more = self.parts, (usage.searches or 0) * self.parts.get("searches", 0.0)
        for kind in ("audio", "image"):
            whole, read, output = (getattr(usage, f"{kind}_{what}") or 0 for what in ("input", "read", "output"))
            more += (whole - read) * (parts.get(f"{kind}_input", self.input) - self.input)
            more += read * (parts.get(f"{kind}_read", self.read) - self.read)
            more += output * (parts.get(f"{kind}_output", self.output) - self.output)
        return more

    def of(self, usage: TokenUsage) -> float:
        """Return the US dollars of a call, without storage."""
        plain = max(0, usage.input - usage.cached - usage.written)
        written = (usage.written - usage.written_1h) * self.write + usage.written_1h * self.write_1h
        return plain * self.input + usage.cached * self.read + written + usage.output * self.output


Tiers = tuple[tuple[int, Price], ...]


class Tariff(NamedTuple):
    """A model's prices by the size of the prompt."""

    tiers: Tiers  # (for prompts of more tokens than this, today's price), rising; the first is 0
    window: int | None  # most tokens that a prompt may have, where that is known
    off_peak: tuple[Peak, Tiers] | None = None  # today's prices at all hours but these
    history: tuple[tuple[float, Tiers], ...] = ()  # prices since each time at which they changed, in rising order
    storage: tuple[tuple[float, float], ...] = ()  # US dollars for a token stored for an hour, since each time

    def at(self, tokens: int, when: float | None = None) -> Price:
        """Return today's price of a prompt of so many tokens, at the hour of a time in seconds since 1970.

        None = at peak hours. The price of storage is that of the time itself.
        """
        tiers = self.tiers
        if when is not None and self.off_peak is not None and not self.off_peak[0].holds(when):
            tiers = self.off_peak[1]
        return self._of_size(tiers, tokens, when)

    def then(self, tokens: int, when: float | None) -> Price:
        """Return the price at a time for a prompt of so many tokens; today's, where the time is not known."""
        past = [tiers for since, tiers in self.history if when is not None and since <= when]
        if not past or (self.off_peak is not None and past[-1] == self.off_peak[1]):
            return self.at(tokens, when)
        return self._of_size(past[-1], tokens, when)

    def _of_size(self, tiers: Tiers, tokens: int, when: float | None) -> Price:
        price = tiers[0][1]
        if len(tiers) > 1:
            price = next((longer for above, longer in reversed(tiers) if tokens > above), price)
        if self.storage:
            begun = [dollars for since, dollars in self.storage if since <= (-math.inf if when is None else when)]
            price = price._replace(storage=begun[-1])
        return price


class Prices:
    """Tariffs by a model's name: from the user's `file`, else the listed ones, which the first look-up reads."""

    def __init__(self, file: Path | None = None, batch: bool = False) -> None:
        self._own, self._file, self._batch = {} if file is None else read_prices(file), file, batch
        self._tariffs: dict[tuple[str, str], Tariff | None] = {}

    def tariff(self, model: str, tier: str = "") -> Tariff | None:
        """Return a model's prices; None if they are not known. `tier` is that of a recorded call (`Call.tier`)."""
        if (model, tier) not in self._tariffs:
            listing, words = self._listing(model), tier_words(tier, model)
            batch = self._batch or "batch" in words
            self._tariffs[model, tier] = None if listing is None else _tariff(listing, batch, words - {"batch"})
        return self._tariffs[model, tier]

    def special(self, name: str, call: Call, usage: Usage) -> dict[str, bool]:
        """Map the parts of a recorded call that are not usual text, or at another tier, to whether they have prices."""
        tariff = self.tariff(name)
        parts = {} if tariff is None else tariff.at(usage.input or 0).parts
        return {
            what: all(field in parts for field in fields) if fields else self.tariff(name, call.tier) is not None
            for what, fields in special_parts(name, call, usage).items()
        }

    def sold_as(self, call: Call, model: str) -> str:
        """Return the name by which a model of a recorded call is priced: hosts sell it at prices of their own."""
        name = f"{call.provider}/{model}"
        return name if call.provider and self.tariff(name) else model

    def then(self, call: Call, model: str, used: Usage, when: float | None, is_usual: bool = False) -> Price | None:
        """Return the price of a part of a recorded call at its time, and at its tier if that is listed, or None."""
        name = self.sold_as(call, model)
        tariff = (None if is_usual else self.tariff(name, call.tier)) or self.tariff(name)
        return tariff and tariff.then(used.input or 0, when)

    def cost(self, model: str, usage: TokenUsage) -> float | None:
        """Return the cost of a call in US dollars at the usual price; None if the price is not known."""
        tariff = self.tariff(model)
        return None if tariff is None else tariff.at(usage.input).of(usage)

    def unknown(self, model: str) -> str:
        """Return the message for a model without a price, with its remedy."""
        table = f'in a file of prices (CTXBENCH_PRICES): [models."{model}"]'
        if self._batch and self._listing(model) is not None:
            return f"the batch price of {model} is not known: give it {table} with batch = {{input = …, output = …}}"
        if "," in model:
            each = " ".join(f"-m {name.strip()}" for name in model.split(","))
            return f"{model} is no model: give one at a time, {each}"
        close = nearest(model, {**self._own, **model_names()})
        why = f"{close} Or give it" if close else ": give it"
        return f"the price of {model} is not known{why} {table} with input and output, or with like = 'another model'"

    @property
    def source(self) -> str:
        """Source of the prices: `genai-prices 0.2.3, 2 overrides from my.toml`."""
        count = len(self._own)
        ours = f", {count} override{'s' * (count != 1)} from {self._file.name}" if self._file else ""
        return f"{prices_version()}{', batch prices' * self._batch}{ours}"

    def _listing(self, model: str) -> Listing | None:
        return next((self._own[name] for name in names(model) if name in self._own), None) or listed(model)


_USUAL_TIERS = {"standard", "default", "auto", "on_demand"}
_FAST = re.compile(r"claude-.*-fast\b")  # OpenRouter's names of Claude in fast mode
_KINDS = {"audio": ("audio_input", "audio_output"), "image": ("image_output",), "searches": ("searches",)}


def tier_words(tier: str, model: str) -> set[str]:
    """Return the words of a recorded tier, speed and region that have prices of their own: flex, fast, us …"""
    return set(tier.lower().split()) - _USUAL_TIERS | ({"fast"} if _FAST.search(model) else set())


def special_parts(model: str, call: Call, usage: Usage) -> dict[str, list[str]]:
    """Return the parts of a recorded call that may not be priced as usual text, each with its fields in usage."""
    words: dict[str, list[str]] = {word: [] for word in sorted(tier_words(call.tier, model))}
    used = {kind: [field for field in fields if getattr(usage, field)] for kind, fields in _KINDS.items()}
    return {**words, **{kind: fields for kind, fields in used.items() if fields}}


BUNDLED = Prices()  # the listed prices, without overrides


def _tariff(listing: Listing, batch: bool, variants: Collection[str] = ()) -> Tariff | None:
    """Return all prices of a listing by the rules above; None if it lacks those of batches or variants."""
    first = listing.tiers[0]
    if not listing.variants.keys() >= set(variants):
        return None
    if batch and not ("input" in first.batch and ("output" in first.batch or not first.plain.get("output"))):
        return None

    def complete(tiers: tuple[PriceTier, ...]) -> Tiers:
        """Return the prices of all tiers. A price that a tier does not list is that of the tier below."""
        plain, prices, first = dict[str, float](), list[tuple[int, Price]](), tiers[0]
        for tier in tiers:
            plain |= tier.plain
            known = dict(plain)
            if batch:
                shares = {
                    name: price / first.plain[name] for name, price in first.batch.items() if first.plain.get(name)
                }
                known |= {**first.batch, **{name: plain[name] * share for name, share in shares.items()}, **tier.batch}
            for variant in variants:
                times = listing.variants[variant]
                known = {name: price * times.get(name, 1.0) for name, price in known.items()}
            full = known["input"]
            write = known.get("write", full)
            hour = HOUR_MULTIPLE * full if listing.claude and "write" in known else write
            price = Price(full, known.get("output", 0.0), known.get("read", full), write, known.get("write_1h", hour))
            parts = {name: dollars for name, dollars in known.items() if name in PARTS}
            prices.append((tier.above, price._replace(parts=parts)))
        return tuple(prices)

    return Tariff(
        complete(listing.tiers),
        listing.window,
        None if listing.off_peak is None or batch else (listing.off_peak[0], complete(listing.off_peak[1])),
        () if batch else tuple((since, complete(tiers)) for since, tiers in listing.history),
        listing.storage,
    )

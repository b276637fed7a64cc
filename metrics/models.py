"""Context windows and listed prices of models, from litellm's bundled map, read as a file.

litellm is never imported: it takes seconds and tries the network. The file inside its wheel is dated by its version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import distribution, version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.spec import nearest

_MAP = "litellm/model_prices_and_context_window_backup.json"


@cache
def model_map() -> dict[str, dict[str, Any]]:
    """Return litellm's map of prices and context windows by model name (4 000 entries, 3 MB, 30 ms)."""
    path = distribution("litellm").locate_file(_MAP)
    entries: dict[str, dict[str, Any]] = msgspec.json.decode(Path(str(path)).read_bytes())
    return entries


def map_version() -> str:
    """Return the version of the map: `litellm 1.106.2`."""
    return f"litellm {version('litellm')}"


_DOTTED = re.compile(r"(claude-(?:[a-z]+-)?\d)\.(\d)")
_TURNED = re.compile(r"claude-([4-9]-\d)-([a-z]+)")


def plain_name(model: str) -> str:
    """Return a model's name as its maker writes it: `claude-opus-4.5` and `claude-4.5-opus` are `claude-opus-4-5`."""
    return _TURNED.sub(r"claude-\2-\1", _DOTTED.sub(r"\1-\2", model.lower()))


def window_of(model: str) -> int:
    """Return a model's context window, in tokens. Raises SpecError with the nearest names."""
    entries = model_map()
    entry = entries.get(model) or entries.get(model.rpartition("/")[2])
    if entry is None:
        raise SpecError(f"unknown model {model!r}{nearest(model, entries)}")
    size = entry.get("max_input_tokens") or entry.get("max_tokens")
    if not isinstance(size, int):
        raise SpecError(f"no context window is known for model {model!r}: give max_tokens")
    return size


OWN = (
    *("docker_model_runner", "hosted_vllm", "lemonade", "llamafile", "lm_studio", "local"),
    *("ollama", "ollama_chat", "vllm", "xinference"),
)
"""Providers that run on the user's own machine, where a token has no price."""

FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "read": "cache_read_input_token_cost",
    "write": "cache_creation_input_token_cost",
    "write_1h": "cache_creation_input_token_cost_above_1hr",
}
"""Name of each price in the map."""
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")

# The part of a name that says how a call gets to the provider: the price is that of who serves the model in the end.
_ROUTES = re.compile(r"litellm_proxy/|codex/|openrouter/(?=[^/]+/)|(?<=bedrock/)(?:converse|converse_like|invoke)/")
# What hosts put around a model's own name.
_HOSTED = re.compile(r"^(?:(?:us|eu|apac|au|jp|global)\.)?anthropic\.|-v\d+:\d+$")
# Providers that litellm calls by another name.
_ALIASES = {"google": "gemini"}


class PriceTier(NamedTuple):
    """Listed prices for prompts of more tokens than `above`, in US dollars per token, by `Price`'s fields."""

    above: int
    plain: Mapping[str, float]
    batch: Mapping[str, float]
    """Prices of batch calls, which may be answered hours later."""


class Weekly(NamedTuple):
    """Hours of the week."""

    windows: tuple[tuple[frozenset[int], int, int], ...]
    """Days (1 = Monday), with the first and last second of the day in UTC."""
    zone: str
    """Time zone in which the days begin and end."""

    def holds(self, when: float) -> bool:
        """Return whether a time, in seconds since 1970, falls in these hours."""
        day, second = datetime.fromtimestamp(when, ZoneInfo(self.zone)).isoweekday(), when % 86_400
        return any(day in days and start <= second < end for days, start, end in self.windows)


class Since(NamedTuple):
    """All times from `start` on, in seconds since 1970."""

    start: float

    def holds(self, when: float) -> bool:
        """Return whether a time, in seconds since 1970, is not before the start."""
        return when >= self.start

    @classmethod
    def day(cls, day: str) -> Since:
        """Return the times from a day on, such as 2027-01-01, in UTC."""
        return cls(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


class Until(NamedTuple):
    """All times before `end`, in seconds since 1970."""

    end: float

    def holds(self, when: float) -> bool:
        """Return whether a time, in seconds since 1970, is before the end."""
        return when < self.end


class During(NamedTuple):
    """Times since a start that are in a period too."""

    since: Since
    period: Weekly | Until

    def holds(self, when: float) -> bool:
        """Return whether a time, in seconds since 1970, is one of both."""
        return self.since.holds(when) and self.period.holds(when)


class _Storage(msgspec.Struct, forbid_unknown_fields=True):
    models: str
    price: float
    since: str | None = None


class _Former(msgspec.Struct, forbid_unknown_fields=True):
    models: str
    until: str
    read: float
    source: str


class _Unlisted(msgspec.Struct, forbid_unknown_fields=True):
    """Prices that the map has no field for."""

    storage_source: str
    storage: list[_Storage]
    former: list[_Former]


@cache
def _unlisted() -> _Unlisted:
    return msgspec.toml.decode(files(__package__).joinpath("data", "prices.toml").read_bytes(), type=_Unlisted)


def storage_source() -> str:
    """Return the source of the prices of storage."""
    return _unlisted().storage_source


class Listing(NamedTuple):
    """Everything that is listed of one model's prices."""

    tiers: tuple[PriceTier, ...]
    """In rising order of size; the first begins at 0."""
    window: int | None = None
    """Most tokens that a prompt may have."""
    claude: bool = False
    """Whether Anthropic's rules fill in what is not listed: writing for an hour, and batches of cached prompts."""
    off_peak: tuple[Weekly, Mapping[str, float]] | None = None
    storage: tuple[tuple[Since | None, float], ...] = ()
    """US dollars for a token of cached content stored for an hour, each with its start; the first has none."""
    former: tuple[tuple[Until, float], ...] = ()
    """Prices of reading until a time, as shares of the input price."""


FREE = Listing((PriceTier(0, dict.fromkeys(FIELDS, 0.0), dict.fromkeys(FIELDS, 0.0)),))


def names(model: str) -> Iterator[str]:
    """Yield the names by which a model's price may be listed, starting with the one given.

    `openai/gpt-4o` is `gpt-4o` too, if the map says that OpenAI sells that. A route before the name (a proxy, a
    kind of call) is removed.
    """
    yield model
    direct = _ROUTES.sub("", model, count=1)
    if direct != model:
        yield from names(direct)
        return
    provider, _, rest = model.partition("/")
    if rest and _sells(_ALIASES.get(provider, provider), rest):
        yield rest
    if provider in _ALIASES:
        yield f"{_ALIASES[provider]}/{rest}"


def listed(model: str) -> Listing | None:
    """Return what is listed of a model by its litellm name; None if nothing is, or only part of a price."""
    if own(model):
        return FREE
    listing = next((_listed(name) for name in names(model) if name in model_map()), None)
    if listing is None and (host := elsewhere(model)) is not None:
        return _listed(host)
    return listing


def elsewhere(model: str) -> str | None:
    """Return a name under which other hosts still list a model that its maker has retired, or None.

    All hosts must charge the same for what they list; the host that lists the most prices is chosen.
    """
    *_, bare = names(model)
    bare = bare.removeprefix("anthropic/")
    if "/" in bare or bare in model_map():
        return None
    sold = {name: tariff for name in _hosts().get(bare, ()) if (tariff := _listed(name)) is not None}
    prices = [dict(tariff.tiers[0].plain) for tariff in sold.values()]
    if not prices or any(len({price[field] for price in prices if field in price}) > 1 for field in FIELDS):
        return None
    return max(sold, key=lambda name: len(sold[name].tiers[0].plain))


@cache
def _hosts() -> Mapping[str, Sequence[str]]:
    """Return the map's names of each model on other hosts, by its maker's own name."""
    names_by_model: dict[str, list[str]] = {}
    for name in model_map():
        maker = _HOSTED.sub("", name.rpartition("/")[2]).replace("@", "-")
        if maker != name:
            names_by_model.setdefault(maker, []).append(name)
    return names_by_model


def own(model: str) -> bool:
    """Return whether a model runs on the user's own machine. Ollama's `-cloud` models do not."""
    return model.partition("/")[0].partition(":")[0] in OWN and not model.endswith("-cloud")


@cache
def _listed(name: str) -> Listing | None:
    entry = model_map()[name]
    tiers = (_tier(entry), *(_tier(entry, over) for over in _overs(entry)))
    if not tiers[0].plain:
        tiers = tuple(_ranged(tier) for tier in entry.get("tiered_pricing", ()) if "range" in tier)
    if not tiers or not _priced(entry, tiers[0].plain):
        return None
    window = entry.get("max_input_tokens")
    storage = [stored for stored in _unlisted().storage if re.fullmatch(stored.models, name)]
    former = [before for before in _unlisted().former if re.fullmatch(before.models, name)]
    return Listing(
        tiers,
        int(window) if window else None,
        "claude" in name,
        _off_peak(entry),
        tuple((Since.day(one.since) if one.since else None, one.price / 1e6) for one in storage),
        tuple((Until(Since.day(before.until).start), before.read) for before in former),
    )


def _priced(entry: Mapping[str, Any], plain: Mapping[str, float]) -> bool:
    """Return whether a price is listed. The map has 0 for free models and for unknown prices, so 0 counts as none."""
    return bool(plain.get("input") and (plain.get("output") or entry.get("mode") == "embedding"))


def _overs(entry: Mapping[str, Any]) -> list[int]:
    """Return the sizes, in thousands of tokens, from which a prompt has another price."""
    return sorted(int(match[1]) for name in entry if (match := _TIER.fullmatch(name)))


def _tier(entry: Mapping[str, Any], over: int = 0) -> PriceTier:
    ending = f"_above_{over}k_tokens" if over else ""
    return PriceTier(over * 1000, _prices(entry, ending), _prices(entry, f"{ending}_batches"))


def _ranged(entry: Mapping[str, Any]) -> PriceTier:
    """Return a tier in the form of Alibaba's entries."""
    return PriceTier(int(entry["range"][0]), _prices(entry), {})


def _prices(entry: Mapping[str, Any], ending: str = "") -> dict[str, float]:
    """Return the prices with that ending, by `Price`'s fields, without writes that are cheaper than plain input.

    The map has 0 as the price of DeepSeek's writes, and the price of a read as that of some of Gemini's and Azure's:
    neither is a price of writing, since tokens are processed before they are written.
    """
    prices = {field: float(entry[name + ending]) for field, name in FIELDS.items() if name + ending in entry}
    return {field: price for field, price in prices.items() if field != "write" or price >= prices.get("input", 0.0)}


def _off_peak(entry: Mapping[str, Any]) -> tuple[Weekly, Mapping[str, float]] | None:
    entry_hours = entry.get("off_peak_pricing")
    if entry_hours is None:
        return None
    windows = tuple(
        (frozenset(window["weekdays"]), *_span(hours))
        for window in entry_hours["windows"]
        for hours in ([window["hours_utc"]] if isinstance(window["hours_utc"], str) else window["hours_utc"])
    )
    return Weekly(windows, entry_hours.get("weekday_timezone", "UTC")), _prices(entry_hours)


def _span(hours: str) -> tuple[int, int]:
    """Convert `10:00-00:00` to seconds of the day; midnight as an end is the end of the day."""
    start, end = (int(hour) * 3600 + int(minute) * 60 for hour, minute in (at.split(":") for at in hours.split("-")))
    return start, end or 86_400


def _sells(provider: str, name: str) -> bool:
    """Return whether the map says that this provider sells the model of that name."""
    seller = str(model_map().get(name, {}).get("litellm_provider", ""))
    return seller in (provider, f"{provider}_converse", f"{provider}_chat") or seller.startswith(f"{provider}-")

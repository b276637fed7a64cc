"""What is known of models: their context windows, from litellm's bundled map, read as a file.

litellm is never imported: it takes seconds and tries the network. The file inside its wheel is dated by its version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from ..scenarios.errors import SpecError
from ..scenarios.spec import nearest

_MAP = "litellm/model_prices_and_context_window_backup.json"


@cache
def model_map() -> dict[str, dict[str, Any]]:
    """litellm's map of prices and context windows by model name (4 000 entries, 3 MB, 30 ms)."""
    path = distribution("litellm").locate_file(_MAP)
    found: dict[str, dict[str, Any]] = msgspec.json.decode(Path(str(path)).read_bytes())
    return found


def map_version() -> str:
    """What the map is dated by: `litellm 1.106.2`."""
    return f"litellm {version('litellm')}"


def window_of(model: str) -> int:
    """A model's context window: the tokens that a request may hold. Raises SpecError with the nearest names."""
    known = model_map()
    entry = known.get(model) or known.get(model.rpartition("/")[2])
    if entry is None:
        raise SpecError(f"unknown model {model!r}{nearest(model, known)}")
    size = entry.get("max_input_tokens") or entry.get("max_tokens")
    if not isinstance(size, int):
        raise SpecError(f"no context window is known for model {model!r}: give max_tokens")
    return size


OWN = (
    *("docker_model_runner", "hosted_vllm", "lemonade", "llamafile", "lm_studio", "local"),
    *("ollama", "ollama_chat", "vllm", "xinference"),
)
"""Providers that are the user's own machine: a token has no price."""

FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "read": "cache_read_input_token_cost",
    "write": "cache_creation_input_token_cost",
    "write_1h": "cache_creation_input_token_cost_above_1hr",
}
"""What the map calls each price."""
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")

STORAGE: tuple[tuple[str, tuple[tuple[str | None, float], ...]], ...] = (
    (r"(?:gemini/|vertex_ai/)?gemini-3\.1-pro(?:-preview)?(?:-customtools)?", ((None, 4.50), ("2027-01-01", 9.00))),
    (r"(?:gemini/|vertex_ai/)?gemini-3\.8-flash", ((None, 0.50), ("2027-01-01", 1.00))),
)
"""US dollars for a million tokens of cached content kept for an hour, from a day on, by the map's names.

They are the Gemini API's, which announces the second; Vertex AI is taken to ask the same.
"""
STORAGE_SOURCE = "ai.google.dev/gemini-api/docs/caching, 2026-10-13"

_ROUTES = re.compile(r"litellm_proxy/|openrouter/(?=[^/]+/)|(?<=bedrock/)(?:converse|converse_like|invoke)/")
"""What a name says about the way to the provider: the price is that of who serves the model in the end."""
_HOSTED = re.compile(r"^(?:(?:us|eu|apac|au|jp|global)\.)?anthropic\.|-v\d+:\d+$")
"""What hosts put around a model's own name."""
_ALIASES = {"google": "gemini"}
"""Providers whom litellm calls otherwise."""


class PriceTier(NamedTuple):
    """Prices for prompts of more tokens than `above`: US dollars per token by `Price`'s fields, of each as found."""

    above: int
    plain: Mapping[str, float]
    batch: Mapping[str, float]
    """Of calls that may be answered hours later."""


class Weekly(NamedTuple):
    """Hours of the week."""

    windows: tuple[tuple[frozenset[int], int, int], ...]
    """Days (1 = Monday), from and until which second of the day in UTC."""
    zone: str
    """Where the days begin and end."""

    def holds(self, when: float) -> bool:
        """Whether a time, in seconds since 1970, is in them."""
        day, second = datetime.fromtimestamp(when, ZoneInfo(self.zone)).isoweekday(), when % 86_400
        return any(day in days and start <= second < end for days, start, end in self.windows)


class Since(NamedTuple):
    """From a time on, in seconds since 1970."""

    start: float

    def holds(self, when: float) -> bool:
        """Whether a time, in seconds since 1970, is not before it."""
        return when >= self.start

    @classmethod
    def day(cls, day: str) -> Since:
        """From a day such as 2027-01-01, in UTC."""
        return cls(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


class Listing(NamedTuple):
    """What is known of one model's prices."""

    tiers: tuple[PriceTier, ...]
    """Rising; the first is above 0."""
    window: int | None = None
    """The most tokens that a prompt may have."""
    claude: bool = False
    """Anthropic's rules count for what is not listed: writing for an hour, and batches of cached prompts."""
    off_peak: tuple[Weekly, Mapping[str, float]] | None = None
    storage: tuple[tuple[Since | None, float], ...] = ()
    """US dollars for a token of cached content kept for an hour, from when on; the first from the beginning."""


FREE = Listing((PriceTier(0, dict.fromkeys(FIELDS, 0.0), dict.fromkeys(FIELDS, 0.0)),))


def names(model: str) -> Iterator[str]:
    """The names by which a model's price may be found, as it was written first.

    `openai/gpt-4o` is `gpt-4o` too, if the map says that OpenAI sells that. A route before the name (a proxy, a
    kind of call) is taken away.
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
    """What is published of a model by its litellm name; None if nothing is, or only part of a price."""
    if own(model):
        return FREE
    found = next((_listed(name) for name in names(model) if name in model_map()), None)
    if found is None and (host := elsewhere(model)) is not None:
        return _listed(host)
    return found


def elsewhere(model: str) -> str | None:
    """A name in the map by which others sell a model that its maker's own name is gone of, as of one that was retired.

    Only if all who list it ask the same for what they list; then the one who lists the most.
    """
    *_, bare = names(model)
    bare = bare.removeprefix("anthropic/")
    if "/" in bare or bare in model_map():
        return None
    sold = {name: found for name in _hosts().get(bare, ()) if (found := _listed(name)) is not None}
    asked = [dict(found.tiers[0].plain) for found in sold.values()]
    if not asked or any(len({each[field] for each in asked if field in each}) > 1 for field in FIELDS):
        return None
    return max(sold, key=lambda name: len(sold[name].tiers[0].plain))


@cache
def _hosts() -> Mapping[str, Sequence[str]]:
    """The map's names of each model that others than its maker sell, by what the maker called it."""
    found: dict[str, list[str]] = {}
    for name in model_map():
        maker = _HOSTED.sub("", name.rpartition("/")[2]).replace("@", "-")
        if maker != name:
            found.setdefault(maker, []).append(name)
    return found


def own(model: str) -> bool:
    """Whether a model is on the user's own machine. Some that Ollama names are on its own, and it says so."""
    return model.partition("/")[0].partition(":")[0] in OWN and not model.endswith("-cloud")


@cache
def _listed(name: str) -> Listing | None:
    entry = model_map()[name]
    tiers = (_tier(entry), *(_tier(entry, over) for over in _overs(entry)))
    if not tiers[0].plain:
        tiers = tuple(_ranged(each) for each in entry.get("tiered_pricing", ()) if "range" in each)
    if not tiers or not _priced(entry, tiers[0].plain):
        return None
    window = entry.get("max_input_tokens")
    storage = next((prices for pattern, prices in STORAGE if re.fullmatch(pattern, name)), ())
    return Listing(
        tiers,
        int(window) if window else None,
        "claude" in name,
        _off_peak(entry),
        tuple((None if day is None else Since.day(day), dollars / 1e6) for day, dollars in storage),
    )


def _priced(entry: Mapping[str, Any], plain: Mapping[str, float]) -> bool:
    """Whether a price is listed. The map has 0 for what is free and for what nobody looked up: neither is a price."""
    return bool(plain.get("input") and (plain.get("output") or entry.get("mode") == "embedding"))


def _overs(entry: Mapping[str, Any]) -> list[int]:
    """The thousands of tokens from which a prompt has another price."""
    return sorted(int(found[1]) for name in entry if (found := _TIER.fullmatch(name)))


def _tier(entry: Mapping[str, Any], over: int = 0) -> PriceTier:
    ending = f"_above_{over}k_tokens" if over else ""
    return PriceTier(over * 1000, _found(entry, ending), _found(entry, f"{ending}_batches"))


def _ranged(entry: Mapping[str, Any]) -> PriceTier:
    """A tier as Alibaba's models have it."""
    return PriceTier(int(entry["range"][0]), _found(entry), {})


def _found(entry: Mapping[str, Any], ending: str = "") -> dict[str, float]:
    """The prices with that ending. A write below the plain price is none: such tokens are read in full first.

    The map has 0 as the price of DeepSeek's writes, and the price of a read as that of some of Gemini's and Azure's.
    """
    found = {field: float(entry[name + ending]) for field, name in FIELDS.items() if name + ending in entry}
    return {field: each for field, each in found.items() if field != "write" or each >= found.get("input", 0.0)}


def _off_peak(entry: Mapping[str, Any]) -> tuple[Weekly, Mapping[str, float]] | None:
    said = entry.get("off_peak_pricing")
    if said is None:
        return None
    windows = tuple(
        (frozenset(each["weekdays"]), *_span(hours))
        for each in said["windows"]
        for hours in ([each["hours_utc"]] if isinstance(each["hours_utc"], str) else each["hours_utc"])
    )
    return Weekly(windows, said.get("weekday_timezone", "UTC")), _found(said)


def _span(hours: str) -> tuple[int, int]:
    """`10:00-00:00` in seconds of the day: until midnight is until its end."""
    start, end = (int(hour) * 3600 + int(minute) * 60 for hour, minute in (at.split(":") for at in hours.split("-")))
    return start, end or 86_400


def _sells(provider: str, name: str) -> bool:
    """Whether the map says that it is this provider who sells what has that name."""
    seller = str(model_map().get(name, {}).get("litellm_provider", ""))
    return seller in (provider, f"{provider}_converse", f"{provider}_chat") or seller.startswith(f"{provider}-")

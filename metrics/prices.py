"""What a call costs: prices per token from litellm's bundled map (`metrics.models`), times the tokens used."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import msgspec

from .models import model_map

OWN = ("hosted_vllm", "llamafile", "lm_studio", "local", "ollama", "ollama_chat", "vllm", "xinference")
"""Providers that are the user's own machine: a token has no price."""

_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


HOUR_MULTIPLE = 2.0
"""Writing for an hour, by the plain input price, where the map has no price for it (Anthropic's rule)."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of a call, as the provider reported them."""

    input: int
    """Of the whole prompt, cached ones included."""
    output: int
    cached: int = 0
    """Of the input, read from the provider's cache."""
    written: int = 0
    """Of the input, written to the provider's cache."""
    written_1h: int = 0
    """Of `written`, for an hour."""


class Price(NamedTuple):
    """US dollars per token."""

    input: float
    output: float
    read: float
    """Of input that comes from the provider's cache."""
    write: float
    """Of input that goes into it."""
    write_1h: float
    """Of input that goes into it for an hour."""

    def of(self, usage: Usage) -> float:
        """US dollars of a call."""
        plain = max(0, usage.input - usage.cached - usage.written)
        written = (usage.written - usage.written_1h) * self.write + usage.written_1h * self.write_1h
        return plain * self.input + usage.cached * self.read + written + usage.output * self.output


def price_of(model: str, tokens: int = 0) -> Price | None:
    """The price of a model by its litellm name, for prompts of that many tokens; None if it is not known.

    `openai/gpt-4o` is looked up as `gpt-4o` too, if OpenAI is who sells that. The user's own machine is free.
    """
    return _price(model, max((tier for tier in _tiers(model) if tokens > tier * 1000), default=0))


@cache
def _price(model: str, over: int) -> Price | None:
    """The price of a prompt that is over so many thousand tokens; 0 = over no tier."""
    if model.partition("/")[0].partition(":")[0] in OWN:
        return Price(0.0, 0.0, 0.0, 0.0, 0.0)
    entry = _entry(model)
    if entry is None or not isinstance(entry.get("input_cost_per_token"), (int, float)):
        return None
    ending = f"_above_{over}k_tokens" if over else ""

    def per_token(name: str, otherwise: float) -> float:
        return float(entry.get(name + ending, entry.get(name, otherwise)))

    full = per_token("input_cost_per_token", 0.0)
    hour = HOUR_MULTIPLE * full if entry.get("cache_creation_input_token_cost") else full
    return Price(
        full,
        per_token("output_cost_per_token", 0.0),
        per_token("cache_read_input_token_cost", full),
        per_token("cache_creation_input_token_cost", full),
        per_token("cache_creation_input_token_cost_above_1hr", hour),
    )


@cache
def _tiers(model: str) -> tuple[int, ...]:
    """The thousands of tokens from which a prompt has another price."""
    return tuple(int(found[1]) for name in _entry(model) or () if (found := _TIER.fullmatch(name)))


def _entry(model: str) -> dict[str, Any] | None:
    """What the map has of a model."""
    provider, _, rest = model.partition("/")
    known = model_map()
    if model in known or not rest:
        return known.get(model)
    sold = str(known.get(rest, {}).get("litellm_provider", "")).startswith(provider)
    return known[rest] if sold and rest in known else None

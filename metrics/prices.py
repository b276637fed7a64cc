"""What a call costs: prices per token from litellm's bundled map (`metrics.models`), times the tokens used."""

from __future__ import annotations

import re
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
    provider, _, rest = model.partition("/")
    if provider.partition(":")[0] in OWN:
        return Price(0.0, 0.0, 0.0, 0.0, 0.0)
    known = model_map()
    entry = known.get(model)
    if entry is None and rest and str(known.get(rest, {}).get("litellm_provider", "")).startswith(provider):
        entry = known[rest]
    if entry is None or not isinstance(entry.get("input_cost_per_token"), (int, float)):
        return None
    over = _tier(entry, tokens)

    def per_token(name: str, otherwise: float) -> float:
        return float(entry.get(name + over, entry.get(name, otherwise)))

    full = per_token("input_cost_per_token", 0.0)
    hour = HOUR_MULTIPLE * full if entry.get("cache_creation_input_token_cost") else full
    return Price(
        full,
        per_token("output_cost_per_token", 0.0),
        per_token("cache_read_input_token_cost", full),
        per_token("cache_creation_input_token_cost", full),
        per_token("cache_creation_input_token_cost_above_1hr", hour),
    )


def _tier(entry: dict[str, Any], tokens: int) -> str:
    """How the names of the prices of a long prompt end: `_above_200k_tokens`; empty for one that is not."""
    tiers = [int(found[1]) for name in entry if (found := _TIER.fullmatch(name))]
    over = max((tier for tier in tiers if tokens > tier * 1000), default=0)
    return f"_above_{over}k_tokens" if over else ""

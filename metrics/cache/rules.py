"""Rules of providers' caches by model and date, as data: when a provider changes a rule, a line is added here.

A recording is billed by the rules of its own date. The first family with a line that fits a model's name counts, and of
that family the latest line in force. Values that no source gives are marked *assumed*.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .mechanisms import (
    AutomaticCache,
    AutomaticRules,
    BoundaryCache,
    BoundaryRules,
    CachedContent,
    CachedContentRules,
    ExplicitCache,
    ExplicitRules,
    UnitCache,
    UnitRules,
)

ANTHROPIC = "platform.claude.com/docs/en/build-with-claude/prompt-caching"
OPENAI = "developers.openai.com/api/docs/guides/prompt-caching"
DEEPSEEK = "api-docs.deepseek.com/guides/kv_cache"
GEMINI = "ai.google.dev/gemini-api/docs/caching"

LOOK_BACK = "2025-03-13"
"""Day from which Anthropic looks for shorter prefixes than those marked ("simpler prompt caching")."""
UNITS = "2026-05-01"
"""Day from which DeepSeek caches whole units (V4; the recordings of April 2026 are under the rule before)."""
DEEPSEEK_LIFETIME = 2 * 3600.0
"""Assumed: its page says "a few hours to a few days"."""
GEMINI_LIFETIME = 300.0
"""Assumed: its page gives none."""
OPENAI_LIFETIME = 600.0
"""Assumed: its page says 5 to 10 minutes without use, at most an hour."""


Rules = ExplicitRules | AutomaticRules | BoundaryRules | UnitRules | CachedContentRules
Cache = ExplicitCache | AutomaticCache | BoundaryCache | UnitCache | CachedContent


def cache_of(rules: Rules) -> Cache:
    """Return an empty cache under these rules."""
    match rules:
        case ExplicitRules():
            return ExplicitCache(rules)
        case AutomaticRules():
            return AutomaticCache(rules)
        case BoundaryRules():
            return BoundaryCache(rules)
        case UnitRules():
            return UnitCache(rules)
        case CachedContentRules():
            return CachedContent(rules)


@dataclass(frozen=True, slots=True)
class CacheRule:
    """How one provider caches the prompts of some models, from a date on."""

    family: str
    models: str
    """Regular expression of names, with the host's prefixes; the whole name must match."""
    since: str
    """First day, as 2025-03-13; empty = from the beginning."""
    rules: Rules | None
    """None = nothing is cached."""
    source: str
    pays: tuple[float, float] | None = None
    """Prices of reading and writing as shares of the input price, where these are not the provider's."""
    system_first: bool = False
    """Whether system messages stand before all others in the prompt, wherever they are among the messages."""

    def cache(self) -> Cache | None:
        """Return an empty cache under this rule; None where nothing is cached."""
        return None if self.rules is None else cache_of(self.rules)


_BEDROCK = r"(?:.*/)?(?:bedrock/(?:.*/)?(?:(?:[a-z-]+\.)?anthropic\.)?|(?:[a-z-]+\.)?anthropic\.)"
_VERSION = r"(?:[-@.:].*)?"
_DOTTED = re.compile(r"(claude-(?:[a-z]+-)?\d)\.(\d)")
_TURNED = re.compile(r"claude-([4-9]-\d)-([a-z]+)")
_HOST = r"(?:.*/)?"
# Models that DeepSeek itself serves: others host its weights, with caches of their own or none.
_SERVED = r"(?:chat|reasoner|coder|r1|v2|v3)(?:[-.](?!.*distill)(?!\d+b).*)?"
_DEEPSEEK = r"(?:(?:litellm_proxy|openrouter)/)?(?:deepseek/)?deepseek-"
_OPENAI = rf"{_HOST}(?:gpt-4o|gpt-4\.1|gpt-5(?!\.[5-9])|o1|o3|o4)(?:[-.].*)?"


def _claude(least: int, *names: str, in_place: bool = False, old: bool = False) -> list[CacheRule]:
    """Return the rules of models with one shortest prefix, at Anthropic or Vertex, and on Bedrock.

    `in_place`: they take system messages among the others where they stand. `old`: they date from before the
    look-back, and before Bedrock cached.
    """
    models = "|".join(names)
    ours, theirs = rf"(?:(?!bedrock/)[^/]+/)*(?:{models}){_VERSION}", rf"{_BEDROCK}(?:{models}){_VERSION}"
    bedrock = "aws.amazon.com/bedrock/prompt-caching (general availability 2025-04-07)"
    name, first = f"claude {models}", not in_place
    # A model that came after a rule had changed never had the old one: Sonnet 5 under the rules of 2024 made the whole
    # `none` 37 % dearer (decision 18).
    before = [
        CacheRule(name, ours, "", ExplicitRules(least, 1), f"{ANTHROPIC} as of 2024-12", None, first),
        CacheRule(f"bedrock {models}", theirs, "", None, bedrock),
    ]
    since = (LOOK_BACK, "2025-04-07") if old else ("", "")
    return [
        *(before if old else ()),
        CacheRule(name, ours, since[0], ExplicitRules(least, 20), ANTHROPIC, None, first),
        CacheRule(f"bedrock {models}", theirs, since[1], ExplicitRules(least, 20), bedrock, None, first),
    ]


RULES: tuple[CacheRule, ...] = (
    *_claude(512, "claude-sonnet-5-5", "claude-haiku-5-5"),
    *_claude(512, "claude-opus-5", "claude-fable-5", "claude-mythos-5", in_place=True),
    *_claude(1024, "claude-opus-4-8", in_place=True),
    *_claude(2048, "claude-opus-4-7", "claude-mythos-preview"),
    *_claude(2048, "claude-3-5-haiku", "claude-3-haiku", old=True),
    *_claude(4096, "claude-opus-4-6", "claude-opus-4-5", "claude-haiku-4-5"),
    *_claude(1024, r"claude-3.*", old=True),
    *_claude(1024, r"claude-.*"),
    CacheRule("deepseek 4", rf"{_DEEPSEEK}(?:v[4-9]|flash){_VERSION}", "", UnitRules(DEEPSEEK_LIFETIME), DEEPSEEK),
    CacheRule(
        "deepseek",
        rf"{_DEEPSEEK}{_SERVED}",
        "",
        AutomaticRules(64, 64, DEEPSEEK_LIFETIME, answers=True),
        f"{DEEPSEEK} as of 2024-08",
    ),
    CacheRule("deepseek", rf"{_DEEPSEEK}{_SERVED}", UNITS, UnitRules(DEEPSEEK_LIFETIME), DEEPSEEK),
    CacheRule("openai", _OPENAI, "2024-10-01", AutomaticRules(1024, 128, OPENAI_LIFETIME), f"{OPENAI} as of 2024-10"),
    CacheRule("openai 5.5", rf"{_HOST}gpt-5\.5{_VERSION}", "", AutomaticRules(2048, 2048, 1800.0), OPENAI),
    CacheRule("openai 5.6", rf"{_HOST}gpt-(?:5\.[6-9]|[6-9]){_VERSION}", "", BoundaryRules(), OPENAI),
    CacheRule(
        "gemini 2", rf"{_HOST}gemini-2\.5{_VERSION}", "", AutomaticRules(2048, 1, GEMINI_LIFETIME), GEMINI, None, True
    ),
    CacheRule(
        "gemini", rf"{_HOST}gemini-[3-9]{_VERSION}", "", AutomaticRules(4096, 1, GEMINI_LIFETIME), GEMINI, None, True
    ),
)


STORED: tuple[CacheRule, ...] = (
    CacheRule("gemini 2, stored", rf"{_HOST}gemini-2\.5{_VERSION}", "", CachedContentRules(2048), GEMINI, None, True),
    CacheRule("gemini, stored", rf"{_HOST}gemini-[3-9]{_VERSION}", "", CachedContentRules(4096), GEMINI, None, True),
)
"""Rules of Gemini for content that the caller creates, which replaces its automatic cache."""

_000 = "design document 000, §2.5 and §3.1.2"
DOCUMENT: tuple[CacheRule, ...] = (
    CacheRule("document anthropic", r".*claude.*", "", ExplicitRules(1024, 1), _000, (0.1, 1.0)),
    CacheRule("document deepseek", r".*deepseek.*", "", ExplicitRules(64, 1), _000, (0.1, 1.0)),
    CacheRule("document openai", r".*gpt.*|o1.*", "", AutomaticRules(1024, 1, math.inf), _000, (0.5, 1.0)),
)
"""Rules as design document 000 assumes them: writing costs nothing more, and lifetimes are five minutes.

Its table has a discount of 50 % for DeepSeek, its code one of 90 %: this is the code's."""


def rule_for(model: str, when: float | None, rules: Sequence[CacheRule] = RULES) -> CacheRule | None:
    """Return the rule for a model at a time, in seconds since 1970 (None = the latest rule); None if there is none."""
    name = _plain(model)
    family = next((rule.family for rule in rules if re.fullmatch(rule.models, name)), None)
    day = "9999" if when is None else day_of(when)  # after every first day
    lines = [rule for rule in rules if rule.family == family and rule.since <= day]
    return max(lines, key=lambda rule: rule.since, default=None)


def _plain(model: str) -> str:
    """Return a model's name as its maker writes it: `claude-opus-4.5` and `claude-4.5-opus` are `claude-opus-4-5`."""
    return _TURNED.sub(r"claude-\2-\1", _DOTTED.sub(r"\1-\2", model.lower()))


def day_of(when: float) -> str:
    """Return the day of a time in seconds since 1970, as 2025-03-13 (UTC)."""
    return datetime.fromtimestamp(when, UTC).date().isoformat()

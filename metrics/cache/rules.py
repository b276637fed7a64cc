"""The rules of providers' caches by model and date. Data: a provider changes a rule, a line is added here.

A recording is judged by the rules of its own date. Of the lines that fit a model's name the first family counts, and of
that family the latest line that was in force. What no source gives is marked *assumed*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from .automatic import Automatic, AutomaticRules
from .boundary import Boundary, BoundaryRules, UnitRules, Units
from .explicit import Explicit, ExplicitRules

ANTHROPIC = "platform.claude.com/docs/en/build-with-claude/prompt-caching"
OPENAI = "developers.openai.com/api/docs/guides/prompt-caching"
DEEPSEEK = "api-docs.deepseek.com/guides/kv_cache"
GEMINI = "ai.google.dev/gemini-api/docs/caching"

LOOK_BACK = "2025-03-13"
"""From when Anthropic looks for shorter prefixes than those marked (it announced "simpler prompt caching" that day)."""
UNITS = "2026-05-01"
"""From when DeepSeek caches whole units (V4; the recordings of April 2026 are under the rule before)."""
DEEPSEEK_LIFETIME = 2 * 3600.0
"""Assumed: its page says "a few hours to a few days"."""
GEMINI_LIFETIME = 300.0
"""Assumed: its page gives none."""
OPENAI_LIFETIME = 600.0
"""Assumed: its page says 5 to 10 minutes without use, at most an hour."""


Rules = ExplicitRules | AutomaticRules | BoundaryRules | UnitRules
Cache = Explicit | Automatic | Boundary | Units


@dataclass(frozen=True, slots=True)
class Rule:
    """How one provider caches the prompts of some models, from a date on."""

    family: str
    models: str
    """A pattern of names, with the host's prefixes; the whole name must fit."""
    since: str
    """The first day, as 2025-03-13; empty = from the beginning."""
    rules: Rules | None
    """None = nothing is cached."""
    source: str

    def cache(self) -> Cache | None:
        """An empty cache of this kind."""
        match self.rules:
            case ExplicitRules():
                return Explicit(self.rules)
            case AutomaticRules():
                return Automatic(self.rules)
            case BoundaryRules():
                return Boundary(self.rules)
            case UnitRules():
                return Units(self.rules)
            case _:
                return None


_BEDROCK = r"(?:.*/)?(?:bedrock/)?(?:(?:us|eu|apac|global)\.)?anthropic\."
_VERSION = r"(?:[-@.:].*)?"
_HOST = r"(?:.*/)?"
_DEEPSEEK = rf"{_HOST}deepseek-.*"
_OPENAI = rf"{_HOST}(?:gpt-4o|gpt-4\.1|gpt-5(?!\.[5-9])|o1|o3|o4)(?:[-.].*)?"


def _claude(least: int, *names: str) -> list[Rule]:
    """Models with one shortest prefix, at Anthropic itself or Vertex, and on Bedrock, which came to caching later."""
    models = "|".join(names)
    ours, theirs = rf"(?:.*/)?(?:{models}){_VERSION}", rf"{_BEDROCK}(?:{models}){_VERSION}"
    bedrock = "aws.amazon.com/bedrock/prompt-caching (general availability 2025-04-07)"
    return [
        Rule(f"claude {models}", ours, "", ExplicitRules(least, 1), f"{ANTHROPIC} as of 2024-12"),
        Rule(f"claude {models}", ours, LOOK_BACK, ExplicitRules(least, 20), ANTHROPIC),
        Rule(f"bedrock {models}", theirs, "", None, bedrock),
        Rule(f"bedrock {models}", theirs, "2025-04-07", ExplicitRules(least, 20), bedrock),
    ]


RULES: tuple[Rule, ...] = (
    *_claude(512, "claude-opus-5", "claude-fable-5", "claude-mythos-5", "claude-sonnet-5-5", "claude-haiku-5-5"),
    *_claude(2048, "claude-opus-4-7", "claude-mythos-preview", "claude-3-5-haiku", "claude-3-haiku"),
    *_claude(4096, "claude-opus-4-6", "claude-opus-4-5", "claude-haiku-4-5"),
    *_claude(1024, r"claude-.*"),
    Rule(
        "deepseek",
        _DEEPSEEK,
        "",
        AutomaticRules(64, 64, DEEPSEEK_LIFETIME, answers=True),
        f"{DEEPSEEK} as of 2024-08",
    ),
    Rule("deepseek", _DEEPSEEK, UNITS, UnitRules(DEEPSEEK_LIFETIME), DEEPSEEK),
    Rule("openai", _OPENAI, "2024-10-01", AutomaticRules(1024, 128, OPENAI_LIFETIME), f"{OPENAI} as of 2024-10"),
    Rule("openai 5.5", rf"{_HOST}gpt-5\.5{_VERSION}", "", AutomaticRules(2048, 2048, 1800.0), OPENAI),
    Rule("openai 5.6", rf"{_HOST}gpt-(?:5\.[6-9]|[6-9]){_VERSION}", "", BoundaryRules(), OPENAI),
    Rule("gemini 2", rf"{_HOST}gemini-2\.5{_VERSION}", "", AutomaticRules(2048, 1, GEMINI_LIFETIME), GEMINI),
    Rule("gemini", rf"{_HOST}gemini-[3-9]{_VERSION}", "", AutomaticRules(4096, 1, GEMINI_LIFETIME), GEMINI),
)


def rule_for(model: str, when: float | None) -> Rule | None:
    """The rule for a model at a time, in seconds since 1970 (None = the latest rule); None if there is none for it."""
    family = next((rule.family for rule in RULES if re.fullmatch(rule.models, model)), None)
    day = "9999" if when is None else datetime.fromtimestamp(when, UTC).date().isoformat()
    found = [rule for rule in RULES if rule.family == family and rule.since <= day]
    return max(found, key=lambda rule: rule.since, default=None)

"""Rules of providers' caches by model, host and date, read from `data/`, one file per provider.

When a provider changes a rule, a line is added there. A recording is billed by the rules of its own date: the first
family whose pattern fits a model's name counts, and of that family the latest line in force.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from importlib.resources import files
from itertools import chain
from typing import Any

import msgspec

from ..models import plain_name
from . import mechanisms
from .mechanisms import AutomaticRules, BoundaryRules, Cache, CachedContentRules, ExplicitRules, UnitRules

Rules = ExplicitRules | AutomaticRules | BoundaryRules | UnitRules | CachedContentRules

_MECHANISMS: Mapping[str, tuple[type[Rules], Callable[[Any], Cache]]] = {
    "explicit": (ExplicitRules, mechanisms.ExplicitCache),
    "automatic": (AutomaticRules, mechanisms.AutomaticCache),
    "boundary": (BoundaryRules, mechanisms.BoundaryCache),
    "unit": (UnitRules, mechanisms.UnitCache),
    "stored": (CachedContentRules, mechanisms.CachedContent),
}


def cache_of(rules: Rules | None) -> Cache:
    """Return an empty cache under these rules; None = nothing is cached."""
    return next((cache(rules) for kind, cache in _MECHANISMS.values() if type(rules) is kind), Cache())


class CacheEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often a rule was right, over recorded calls after the first of their conversation."""

    model: str
    seen: int
    exact: int  # calls whose tokens read are predicted to the token
    folder: str
    recordings: str  # names the recordings: agent, number, year
    since: str = ""  # first day of the line that they were recorded under
    host: str = ""


@dataclass(frozen=True, slots=True)
class CacheRule:
    """How one provider caches the prompts of some models, from a date on."""

    family: str
    name: str  # name of the models, with the host where it has rules of its own
    provider: str
    models: str  # regular expression of names, with the host's prefixes; the whole name must match
    since: str  # first day, as 2025-03-13; empty = from the beginning
    rules: Rules | None  # None = nothing is cached
    source: str
    note: str = ""  # says what was assumed, or measured, where the source has no figure
    evidence: tuple[CacheEvidence, ...] = ()  # recorded calls that it was compared with; empty = none was seen
    pays: tuple[float, float] | None = None
    """Prices of reading and writing as shares of the input price, where these are not the provider's."""
    system_first: bool = False
    """Whether system messages stand before all others in the prompt, wherever they are among the messages."""

    @property
    def seen(self) -> int:
        return sum(found.seen for found in self.evidence)

    @property
    def exact(self) -> int:
        return sum(found.exact for found in self.evidence)

    @property
    def mechanism(self) -> str:
        """Name of the mechanism: explicit, automatic, boundary, unit, stored, or none."""
        return next((name for name, (kind, _) in _MECHANISMS.items() if type(self.rules) is kind), "none")


_VERSION = r"(?:[-@.:].*)?"
# What a family or one of its lines states beside the parameters of its mechanism: of a family also which models it is
# of, and the day on which the line in force holds from the beginning, as the models came later than what held before.
_ABOUT = {
    *("since", "mechanism", "source", "note", "pays"),
    *("name", "models", "host", "system_first", "first_day", "stored", "changes"),
}


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("data", f"{name}.toml").read_text("utf-8"))


def _rules(file: Mapping[str, Any], stored: bool = False) -> tuple[CacheRule, ...]:
    """Return the rules of a provider's file in its order, those of content that the caller stores or the others."""
    families = (family for family in file["families"] if family.get("stored", False) == stored)
    rules = tuple(chain.from_iterable(_of_family(file, family) for family in families))
    # Of stored content nothing was seen. The family of what was seen is found by the name, as bills find it.
    seen = [] if stored else msgspec.convert(file.get("evidence", []), list[CacheEvidence])
    evidence: dict[tuple[str | None, str], list[CacheEvidence]] = {}
    for found in seen:
        name = f"{found.host}/{found.model}" if found.host else found.model
        evidence.setdefault((_family(name, rules), found.since), []).append(found)
    return tuple(replace(rule, evidence=tuple(evidence.get((rule.family, rule.since), ()))) for rule in rules)


def _family(name: str, rules: Sequence[CacheRule]) -> str | None:
    return next((rule.family for rule in rules if re.fullmatch(rule.models, name)), None)


def _of_family(file: Mapping[str, Any], family: Mapping[str, Any]) -> Iterable[CacheRule]:
    changes, hosts, first_day = file.get("changes", {}), file["hosts"], family.get("first_day", "")
    # A family without a host is at all hosts that have changes or, where none has, at the last one.
    usual = list(changes) or [list(hosts)[-1]]
    for host in [family["host"]] if "host" in family else usual:
        lines = family.get("changes") or changes.get(host) or [family]
        # Lines that ended before these models came are left out, and the one then in force loses its first day.
        days = [line.get("since", "") for line in lines]
        first = max((day for day in days if day <= first_day), default="")
        for line, day in zip(lines, days, strict=True):
            if day < first:
                continue
            told = {**file, **family, **line}
            yield CacheRule(
                family=f"{host} {family['models']}",
                name=family["name"] if host == usual[0] else f"{family['name']} on {host.title()}",
                provider=file["provider"],
                models=f"{hosts[host]}(?:{family['models']}){_VERSION}",
                since="" if day == first and first_day else day,
                rules=_parameters(told["mechanism"], family, line),
                source=told["source"],
                note=told.get("note", ""),
                pays=tuple(line["pays"]) if "pays" in line else None,
                system_first=family.get("system_first", False),
            )


def _parameters(mechanism: str, family: Mapping[str, Any], line: Mapping[str, Any]) -> Rules | None:
    """Return the rules that a line states. Raises TypeError for a parameter that the mechanism has not."""
    if mechanism == "none":
        return None
    kind = _MECHANISMS[mechanism][0]
    # The family states some parameters for lines of several mechanisms; a line states its own alone.
    shared = {field.name: family[field.name] for field in fields(kind) if field.name in family}
    return kind(**shared | {name: value for name, value in line.items() if name not in _ABOUT})


PROVIDERS = ("anthropic", "deepseek", "openai", "gemini")
_FILES = {name: _read(name) for name in PROVIDERS}

RULES = tuple(chain.from_iterable(_rules(file) for file in _FILES.values()))

STORED = tuple(chain.from_iterable(_rules(file, stored=True) for file in _FILES.values()))
"""Rules of content that the caller creates, which replaces the automatic cache."""

DOCUMENT = _rules(_read("document_000"))  # rules as design document 000 assumes them


def rule_for(model: str, when: float | None, rules: Sequence[CacheRule] = RULES, host: str = "") -> CacheRule | None:
    """Return the rule for a model at a time, in seconds since 1970 (None = the latest rule); None if there is none.

    `host` is who answered, where a recording says so: its own rules go before those of the name alone.
    """
    return in_force(rules_of(model, rules, host), when)


def in_force(rules: Iterable[CacheRule], when: float | None) -> CacheRule | None:
    """Return which of a model's rules holds at a time (None = the latest); None if it has no rule then."""
    # Days as 2025-03-13 sort as texts, and "" before all of them.
    day = "9999" if when is None else day_of(when)  # after every first day
    return max((rule for rule in rules if rule.since <= day), key=lambda rule: rule.since, default=None)


def rules_of(model: str, rules: Sequence[CacheRule] = RULES, host: str = "") -> list[CacheRule]:
    """Return all rules that a model ever had, by date; empty if no rule is known."""
    name = plain_name(model)
    family = _family(f"{host.lower()}/{name}", rules) if host else None
    family = family or _family(name, rules)
    return [rule for rule in rules if rule.family == family]


def day_of(when: float) -> str:
    """Return the day of a time in seconds since 1970, as 2025-03-13 (UTC)."""
    return datetime.fromtimestamp(when, UTC).date().isoformat()

"""Rules of providers' caches by model, host and date, read from `data/`, one file per provider.

When a provider changes a rule, a line is added there. A recording is billed by the rules of its own date: the first
family whose pattern fits a model's name counts, and of that family the latest line in force.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from importlib.resources import files
from itertools import chain

import msgspec

from ..models import plain_name
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

Rules = ExplicitRules | AutomaticRules | BoundaryRules | UnitRules | CachedContentRules
Cache = ExplicitCache | AutomaticCache | BoundaryCache | UnitCache | CachedContent

_MECHANISMS: dict[str, type[Rules]] = {
    "explicit": ExplicitRules,
    "automatic": AutomaticRules,
    "boundary": BoundaryRules,
    "unit": UnitRules,
    "stored": CachedContentRules,
}


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


class CacheEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often a rule was right, over recorded calls after the first of their conversation."""

    model: str
    """Model as the recordings name it."""
    seen: int
    """Calls compared."""
    exact: int
    """Calls whose tokens read are predicted to the token."""
    folder: str
    """Folder of the sample recordings."""
    recordings: str
    """Names the recordings: agent, number, year."""
    since: str = ""
    """First day of the line that they were recorded under."""
    host: str = ""


@dataclass(frozen=True, slots=True)
class CacheRule:
    """How one provider caches the prompts of some models, from a date on."""

    family: str
    name: str
    """Name of the models, with the host where it has rules of its own."""
    provider: str
    models: str
    """Regular expression of names, with the host's prefixes; the whole name must match."""
    since: str
    """First day, as 2025-03-13; empty = from the beginning."""
    rules: Rules | None
    """None = nothing is cached."""
    source: str
    note: str = ""
    """Says what was assumed, or measured, where the source has no figure."""
    evidence: tuple[CacheEvidence, ...] = ()
    """Recorded calls that it was compared with; empty = none was seen."""
    pays: tuple[float, float] | None = None
    """Prices of reading and writing as shares of the input price, where these are not the provider's."""
    system_first: bool = False
    """Whether system messages stand before all others in the prompt, wherever they are among the messages."""

    @property
    def seen(self) -> int:
        """Number of recorded calls that it was compared with."""
        return sum(found.seen for found in self.evidence)

    @property
    def exact(self) -> int:
        """Number of those that it predicts to the token."""
        return sum(found.exact for found in self.evidence)

    @property
    def mechanism(self) -> str:
        """Name of the mechanism: explicit, automatic, boundary, unit, stored, or none."""
        return next((name for name, kind in _MECHANISMS.items() if type(self.rules) is kind), "none")

    def cache(self) -> Cache | None:
        """Return an empty cache under this rule; None where nothing is cached."""
        return None if self.rules is None else cache_of(self.rules)


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """Rules in force from a day on. Parameters are those of the mechanism's class; what is not given is its default."""

    since: str = ""
    mechanism: str = ""
    source: str = ""
    note: str = ""
    pays: tuple[float, float] | None = None
    least: int | None = None
    look_back: int | None = None
    runs: bool | None = None
    step: int | None = None
    block: int | None = None
    hidden: int | None = None
    lifetime: float | None = None
    answers: bool | None = None
    reuse: float | None = None


class _Family(_Line, kw_only=True, forbid_unknown_fields=True):
    name: str
    models: str
    """Names after the host's prefix; a version may follow."""
    host: str = ""
    """Empty = all hosts that have changes or, where none has, the last one."""
    system_first: bool = False
    first_day: str = ""
    """The line in force on this day holds from the beginning: the models came later than what held before."""
    stored: bool = False
    """Whether the rules are those of content that the caller stores."""
    changes: list[_Line] = []


class _Provider(msgspec.Struct, forbid_unknown_fields=True):
    """The file of one provider."""

    provider: str
    mechanism: str
    hosts: dict[str, str]
    families: list[_Family]
    source: str = ""
    changes: dict[str, list[_Line]] = {}
    evidence: list[CacheEvidence] = []


_VERSION = r"(?:[-@.:].*)?"


def _read(name: str) -> _Provider:
    text = files(__package__).joinpath("data", f"{name}.toml").read_bytes()
    return msgspec.toml.decode(text, type=_Provider)


def _rules(file: _Provider, stored: bool = False) -> tuple[CacheRule, ...]:
    """Return the rules of a provider's file in its order, those of content that the caller stores or the others."""
    families = (family for family in file.families if family.stored == stored)
    rules = tuple(chain.from_iterable(_of_family(file, family) for family in families))
    if stored:  # what was seen is the implicit cache
        return rules
    return tuple(replace(rule, evidence=tuple(_evidence(file, rule, rules))) for rule in rules)


def _evidence(file: _Provider, rule: CacheRule, rules: Sequence[CacheRule]) -> Iterator[CacheEvidence]:
    for found in file.evidence:
        name = f"{found.host}/{found.model}" if found.host else found.model
        # The family is found by the name, as bills find it: an earlier pattern may fit too and then takes the evidence.
        if rule.since == found.since and _family(name, rules) == rule.family:
            yield found


def _family(name: str, rules: Sequence[CacheRule]) -> str | None:
    return next((rule.family for rule in rules if re.fullmatch(rule.models, name)), None)


def _of_family(file: _Provider, family: _Family) -> Iterator[CacheRule]:
    usual = list(file.changes) or [list(file.hosts)[-1]]
    every_host = [family.host] if family.host else usual
    for host in every_host:
        lines = family.changes or file.changes.get(host) or [family]
        # Lines that ended before these models came are left out, and the one then in force loses its first day.
        first = max((line.since for line in lines if line.since <= family.first_day), default="")
        for line in lines:
            if line.since < first:
                continue
            mechanism = line.mechanism or family.mechanism or file.mechanism
            yield CacheRule(
                family=f"{host} {family.models}",
                name=family.name if host == usual[0] else f"{family.name} on {host.title()}",
                provider=file.provider,
                models=f"{file.hosts[host]}(?:{family.models}){_VERSION}",
                since="" if line.since == first and family.first_day else line.since,
                rules=_parameters(mechanism, family, line),
                source=line.source or family.source or file.source,
                note=line.note or family.note,
                pays=line.pays,
                system_first=family.system_first,
            )


def _parameters(mechanism: str, family: _Family, line: _Line) -> Rules | None:
    """Return the rules that a line states. Raises TypeError for a parameter that the mechanism has not."""
    if mechanism == "none":
        return None
    told = {field for field in _Line.__struct_fields__ if field not in _NO_PARAMETERS}
    given = {name: value for at in (family, line) for name in told if (value := getattr(at, name)) is not None}
    kind = _MECHANISMS[mechanism]
    known = {field.name for field in fields(kind)}
    # The family states some parameters for lines of several mechanisms; a line states its own alone.
    if wrong := {name for name in told if getattr(line, name) is not None} - known:
        raise TypeError(f"{family.models}: {mechanism} has no {', '.join(sorted(wrong))}")
    return kind(**{name: value for name, value in given.items() if name in known})


_NO_PARAMETERS = {"since", "mechanism", "source", "note", "pays"}

PROVIDERS = ("anthropic", "deepseek", "openai", "gemini")
_FILES = {name: _read(name) for name in PROVIDERS}

RULES = tuple(chain.from_iterable(_rules(file) for file in _FILES.values()))

STORED = tuple(chain.from_iterable(_rules(file, stored=True) for file in _FILES.values()))
"""Rules of content that the caller creates, which replaces the automatic cache."""

DOCUMENT = _rules(_read("document_000"))
"""Rules as design document 000 assumes them."""


def rule_for(model: str, when: float | None, rules: Sequence[CacheRule] = RULES, host: str = "") -> CacheRule | None:
    """Return the rule for a model at a time, in seconds since 1970 (None = the latest rule); None if there is none.

    `host` is who answered, where a recording says so: its own rules go before those of the name alone.
    """
    return in_force(rules_of(model, rules, host), when)


def in_force(rules: Iterable[CacheRule], when: float | None) -> CacheRule | None:
    """Return the rule of a model's that holds at a time (None = the latest); None if there is none."""
    # Days as 2025-03-13 sort as texts, and "" before all of them.
    day = "9999" if when is None else day_of(when)  # after every first day
    return max((rule for rule in rules if rule.since <= day), key=lambda rule: rule.since, default=None)


def rules_of(model: str, rules: Sequence[CacheRule] = RULES, host: str = "") -> list[CacheRule]:
    """Return the rules for a model of all dates; none if it has none."""
    name = plain_name(model)
    family = _family(f"{host.lower()}/{name}", rules) if host else None
    family = family or _family(name, rules)
    return [rule for rule in rules if rule.family == family]


def day_of(when: float) -> str:
    """Return the day of a time in seconds since 1970, as 2025-03-13 (UTC)."""
    return datetime.fromtimestamp(when, UTC).date().isoformat()

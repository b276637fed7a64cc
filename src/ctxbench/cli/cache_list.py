"""`ctxbench list caches`: the rules of providers' prompt caches, with their dates, sources and evidence."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from ctxbench.metrics.cache.rules import RULES, STORED, CacheRule, rules_of
from ctxbench.reports.render import Table
from ctxbench.scenarios.errors import SpecError

from .output import print_json, print_tables

_HEADS = ("provider", "models", "since", "mechanism", "rules", "exact of seen")
# Values that say nothing: every prefix is found, whatever its length.
_USUAL = {("reuse", 1.0), ("step", 1)}
_NOTE = (
    "Exact of seen: recorded calls after the first of their conversation whose tokens read from the cache the rule "
    "predicts to the token, of all that were compared; – where no recording was. `ctxbench list caches MODEL` has the "
    "rules of one model with their sources; `ctxbench lab validate` compares them with your recordings."
)


def print_caches(model: str | None, as_json: bool) -> None:
    """Print the rules of all models, or those of one. Raises SpecError if it has none."""
    every = (*RULES, *STORED)
    rules = every if model is None else tuple(rules_of(model))
    if not rules:
        raise SpecError(f"no cache rule is known for {model!r}: nothing of its prompts is billed as cached")
    if as_json:
        print_json([_exact(rule) for rule in rules])
        return
    rows = tuple(
        (rule.provider, rule.name, rule.since or "the beginning", rule.mechanism, _said(rule), _seen(rule))
        for rule in rules
    )
    title = "How do providers cache prompts?" if model is None else f"How are prompts of {model} cached?"
    tables = [Table(title, _HEADS, rows, (_NOTE,), 5, ("since", "mechanism"))]
    if model is not None:
        tables.append(Table("Sources", (), (), tuple(dict.fromkeys(line for rule in rules for line in _sources(rule)))))
    print_tables(tables)


def _said(rule: CacheRule) -> str:
    """Return the parameters of a rule that differ from none: `least 1024, step 128`."""
    if rule.rules is None:
        return "–"
    told = asdict(rule.rules)
    told = {name: value for name, value in told.items() if value and (name, value) not in _USUAL}
    return ", ".join(name if value is True else f"{name} {value:,g}".replace("_", " ") for name, value in told.items())


def _seen(rule: CacheRule) -> str:
    return f"{rule.exact:,} of {rule.seen:,}" if rule.seen else "–"


def _sources(rule: CacheRule) -> list[str]:
    since = f"Since {rule.since}" if rule.since else "From the beginning"
    lines = [f"{since}: {rule.source}.", *([rule.note] if rule.note else [])]
    lines += [
        f"{found.exact:,} of {found.seen:,} calls of {found.model} exact: {found.recordings}."
        for found in rule.evidence
    ]
    return lines


def _exact(rule: CacheRule) -> dict[str, Any]:
    return {
        "provider": rule.provider,
        "name": rule.name,
        "models": rule.models,
        "since": rule.since,
        "mechanism": rule.mechanism,
        "rules": None if rule.rules is None else asdict(rule.rules),
        "source": rule.source,
        "note": rule.note,
        "evidence": [msgspec.to_builtins(found) for found in rule.evidence],
    }

"""The figures of a run for `--json`."""

from __future__ import annotations

from ..metrics.figures import METRICS
from .answers import all_json
from .probing import as_json as probes_as_json
from .summary import Summary, growth_table
from .tier_deeds import as_json as tiers_as_json


def as_json(summary: Summary) -> dict[str, object]:
    """The figures for `--json`: exact numbers; a missing one is `{"why": "undefined", "detail": "no second step"}`.

    `strategies` and `growth` are over the `compared` conversations, the numbers before them over all.
    """
    return {
        "complete": summary.manifest["complete"],
        "plan": summary.manifest["plan"],
        "versions": summary.manifest["versions"],
        "digest": summary.manifest["digest"],
        "conversations": summary.conversations,
        "messages": summary.messages,
        "calls": summary.calls,
        "tokens": summary.tokens,
        "metrics": {name: {"unit": each.unit, "version": each.version} for name, each in METRICS.items()},
        "compared": summary.compared,
        "lost": summary.lost,
        "strategies": summary.strategies,
        "did": summary.did,
        "why": summary.why,
        "unanswered": summary.unanswered,
        "shown": summary.shown,
        "tiers": tiers_as_json(summary.tiers),
        "grounding": {
            name: {kind: {"values": values, "kept": kept} for kind, (values, kept) in found.items()}
            for name, found in summary.grounding.items()
        },
        "survival": {name: [row._asdict() for row in found] for name, found in summary.survival.items()},
        "probes": probes_as_json(summary.probes),
        "answers": all_json(summary.answers),
        "growth": growth_table(summary.growth),
        "counter_error": summary.counter,
        "failed": summary.failed,
        "problems": summary.manifest["problems"],
        "ignored": summary.manifest["ignored"],
    }

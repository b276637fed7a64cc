"""What was compared, with exact figures."""

from __future__ import annotations

from typing import Any

from ..harness.gating.comparing import Compared, Comparison
from ..metrics.value import Missing


def as_json(compared: Compared) -> dict[str, Any]:
    """Everything. A missing figure is `{"why": "undefined", "detail": …}`."""
    return {
        "before": compared.before,
        "after": compared.after,
        "conversations": compared.conversations,
        "corrected_for": compared.family,
        "unpaired": [each._asdict() for each in compared.unpaired],
        "comparisons": [_comparison(each) for each in compared.comparisons],
    }


def _comparison(each: Comparison) -> dict[str, Any]:
    found = each.found
    row: dict[str, Any] = {
        "strategy": each.strategy,
        "against": each.against,
        "metric": each.metric,
        "unit": each.about.unit,
        "version": each.about.version,
        "better": each.rule.better,
        "margin": {"amount": each.rule.margin.amount, "relative": each.rule.margin.relative},
        "verdict": each.verdict.word,
        "why": each.verdict.why,
        "no_worse": each.verdict.no_worse,
    }
    if found is None:
        return row
    return row | {
        "conversations": found.conversations,
        "before": found.before,
        "after": found.after,
        "relative": found.relative,
        "difference": found.value,
        "interval_95": found.shown if isinstance(found.shown, Missing) else list(found.shown),
        "interval_90": found.tested if isinstance(found.tested, Missing) else list(found.tested),
        "error": found.error,
        "p": found.p,
        "p_adjusted": each.p,
        "finds": each.detects,
        "moved": [moved._asdict() for moved in each.moved],
        "beyond": list(each.beyond),
    }

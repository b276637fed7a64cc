"""The cache models beside what providers reported, as JSON: exact figures, and every call."""

from __future__ import annotations

from typing import Any

from ..metrics.validation.agreement import Agreement
from ..metrics.validation.pricing import Costs
from ..metrics.validation.recorded import Compared
from ..metrics.validation.validation import Validation
from ..metrics.value import Missing, Value
from .validation import ASSUMED


def as_json(found: Validation) -> dict[str, Any]:
    """What `tables` shows. What cannot be had is null."""
    replayed = found.replayed
    return {
        "models": [_model(found, model, since, each) for (model, since), each in found.agreements.items()],
        "costs": [_cost(model, each) for model, each in found.costs.items()],
        "calls": [_call(row) for row in found.rows],
        "assumed": {each: ASSUMED[each] for each in sorted(replayed.assumed)},
        "without_rule": dict(replayed.without_rule),
        "left_out": [str(error) for error in replayed.left_out],
        "prices": found.prices.source,
    }


def _model(found: Validation, model: str, since: str, each: Agreement) -> dict[str, Any]:
    return {
        "model": model,
        "rule_since": since,
        "calls": each.calls,
        "exact": each.exact,
        "later_calls": each.later,
        "later_exact": each.later_exact,
        "not_reported": each.unreported,
        "prompt_tokens": each.tokens,
        "read_reported": each.read,
        "read_predicted": each.predicted,
        "read_absolute_error": each.off,
        "read_absolute_error_median": _plain(each.median_off),
        "hit_rate": _plain(each.hit_rate),
        "hit_rate_error": _plain(each.hit_rate_error),
        "money": {
            "calls": each.money.calls,
            "unpriced": each.money.unpriced,
            "not_reported": each.money.unreported,
            "reported_usd": each.money.reported,
            "predicted_usd": each.money.predicted,
            "error": _plain(each.money_error),
        },
        "hits": {f"{_word(p)} / {_word(r)}": n for (p, r), n in sorted(each.hits.items())},
        "pauses": {f"{_gone(p)} / {_gone(r)}": n for (p, r), n in sorted(each.expired.items())},
        "own_counts": _own(found, model, each),
        "reasons": dict(sorted(each.reasons.items())),
    }


def _own(found: Validation, model: str, each: Agreement) -> dict[str, Any]:
    own, calibration = each.own, found.replayed.calibration
    return {
        "encoding": found.counters.used[model],
        "calls": own.calls,
        "factor": calibration.factor(model),
        "factors": {name: calibration.factor(model, name) for name in calibration.growths.get(model, {})},
        "prompt_error_raw": _plain(own.raw_error),
        "prompt_error": _plain(own.error),
        "prompt_error_median": _plain(own.median_error),
        "read_error": _plain(own.read_error),
        "hit_rate_error": _plain(own.hit_rate_error),
        "money_error": _plain(each.own_money_error),
    }


def _cost(model: str, each: Costs) -> dict[str, Any]:
    return {
        "model": model,
        "calls": len(each.recorded),
        "unpriced": each.unpriced,
        "free": each.free,
        "recorded": sum(each.recorded),
        "unit": each.unit,
        "by_cache_prices_usd": sum(each.cached),
        "error": _plain(each.error),
        "worst": _plain(each.worst),
        "by_plain_prices_usd": sum(each.plain),
        "plain_error": _plain(each.plain_error),
        "plain_worst": _plain(each.plain_worst),
        "follows": None if isinstance(each.error, Missing) else each.follows,
    }


def _call(row: Compared) -> dict[str, Any]:
    return {
        "conversation": row.conversation,
        "at": row.asked.at,
        "model": row.model,
        "rule_since": row.rule.since,
        "source": row.rule.source,
        "prompt_tokens": row.usage.input,
        "read_predicted": row.predicted.read,
        "read_reported": row.usage.cache_read,
        "written_predicted": row.predicted.written + row.predicted.written_1h,
        "written_reported": row.usage.cache_write,
        "own_prompt_tokens": row.own.read + row.own.written + row.own.written_1h + row.own.fresh,
        "own_read": row.own.read,
        "gap_seconds": row.gap,
        "reason": row.reason,
    }


def _plain(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)


def _word(read: bool) -> str:
    return "hit" if read else "miss"


def _gone(gone: bool) -> str:
    return "gone" if gone else "kept"

"""The cache models against what providers reported, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxbench.metrics.validation.calibration import Calibration
from ctxbench.metrics.validation.comparison import UNKNOWN, ComparedCall
from ctxbench.metrics.validation.validation import CacheAgreement, Costs, Validation
from ctxbench.metrics.value import Missing, Value

from .render import Table, count, number, percent

# Calls that are listed.
_MOST_CALLS = 20
# (predicted, reported).
_PAIRS = ((True, True), (True, False), (False, True), (False, False))

_ASSUMED = {
    "no start": "calls without a recorded start began when the message before them was there, or, where that has no "
    "time, when they were answered",
    "no time": "conversations without any time came one after the other, their calls a second apart, under the latest "
    "rules",
    "marks": "where a recording reports cache writes and no breakpoints, there was one at the end of each prompt",
    "head marks": "where the tokens read or written are always the same while prompts grow, and no breakpoints are "
    "recorded, there was one at the end of what stands before the messages",
    "constant": "what the first prompt of a model has over our own count (a system prompt or tools that the recording "
    "lacks, and what the provider puts around them) stands before its messages",
}


def tables(validation: Validation) -> list[Table]:
    """Return a row for each model and rule; then hits, our own counts, costs, disagreements and assumptions."""
    shown = (
        [_agreements(validation), _hits(validation), *_pauses(validation), _own(validation)]
        if validation.agreements
        else []
    )
    if validation.costs:
        shown.append(_costs(validation))
    wrong = [row for row in validation.rows if row.reason]
    if wrong:
        shown += [_reasons(validation), _calls(wrong)]
    if notes := tuple(_notes(validation)):
        shown.append(Table("Assumptions", (), (), notes))
    return shown


def _agreements(validation: Validation) -> Table:
    heads = (
        *("model", "rule since", "calls", "exact", "exact, later calls", "reuse", "tokens off", "off, median call"),
        *("cache hit rate", "prediction error", "cost error"),
    )
    rows = tuple(
        (
            *_name(model, since),
            f"{agreement.calls:,}",
            percent(agreement.exact_share),
            percent(agreement.later_share),
            percent(agreement.reuse),
            _tokens(agreement.off),
            _tokens(agreement.median_off),
            percent(agreement.hit_rate),
            _points(agreement.hit_rate_error),
            _signed(agreement.money_error),
        )
        for (model, since), agreement in validation.agreements.items()
    )
    note = (
        "Exact: the tokens read from the cache are predicted to the token; later calls leave out the first of each "
        "conversation, which reads what earlier runs left. Reuse: of those and the calls that read what an earlier "
        "call could, the share that found the newest prefix (`ctxbench bill --reuse`). Cache hit rate is the reported "
        "one; cost error is the cost of the predicted usage against that of the reported usage."
    )
    spare = ("off, median call", "tokens off", "exact")
    return Table("How well do the cache models predict recorded usage?", heads, rows, (note,), 2, spare)


def _hits(validation: Validation) -> Table:
    heads = ("model", "rule since", "both hit", "only predicted", "only reported", "neither")
    rows = tuple(
        (*_name(model, since), *(f"{agreement.hits[pair]:,}" for pair in _PAIRS))
        for (model, since), agreement in validation.agreements.items()
    )
    note = "A hit is a call that reads something from the cache."
    return Table("Predicted and reported hits, in calls", heads, rows, (note,), 2)


def _pauses(validation: Validation) -> list[Table]:
    """Return what was read after pauses longer than the lifetime; no table without such a pause."""
    heads = ("model", "rule since", "pauses", "predicted gone", "reported gone", "both")
    rows = tuple(
        (*_name(model, since), *(f"{pauses:,}" for pauses in _gone(agreement.expired)))
        for (model, since), agreement in validation.agreements.items()
        if agreement.expired
    )
    note = (
        "Pauses between calls of a conversation that continue the same context. Gone: the call reads less than the one "
        "before had read and written."
    )
    return [Table("Pauses longer than the lifetime", heads, rows, (note,), 2)] if rows else []


def _gone(expired: Mapping[tuple[bool, bool], int]) -> tuple[int, int, int, int]:
    """Return the numbers of pauses: all, predicted gone, reported gone, both."""
    both, predicted, reported, neither = (expired.get(pair, 0) for pair in _PAIRS)
    return both + predicted + reported + neither, both + predicted, both + reported, both


def _own(validation: Validation) -> Table:
    heads = (
        *("model", "encoding", "factor", "fitted on", "prompts off, raw", "calibrated", "median call"),
        *("read tokens off", "cache hit rate", "cost error"),
    )
    calibration = validation.replayed.calibration
    rows = tuple(
        (
            model,
            validation.counters.used[model],
            f"{calibration.factor(model):.3f}",
            _fitted(calibration, model),
            percent(agreement.own.raw_error),
            percent(agreement.own.error),
            percent(agreement.own.median_error),
            percent(agreement.own.read_error),
            _points(agreement.own.hit_rate_error),
            _signed(agreement.own_money_error),
        )
        for (model, _), agreement in validation.agreements.items()
    )
    note = (
        "The same caches with our token counts, over later calls: tokens = constant + factor × our count. The constant "
        "comes from the first prompt of each conversation, the factor from the growth of prompts in the other "
        "conversations."
    )
    return Table("And with our own token counts?", heads, rows, (note,), 2, ("median call", "fitted on"))


def _costs(validation: Validation) -> Table:
    heads = (
        *("model", "calls", "recorded", "by cache prices", "worst call", "by plain prices", "worst call"),
        "follows",
    )
    rows = tuple(
        (
            model,
            f"{len(costs.recorded) + costs.unpriced + costs.free:,}",
            f"${sum(costs.recorded):,.4f}" if costs.recorded else "–",
            *map(_signed, (costs.error, costs.worst, costs.plain_error, costs.plain_worst)),
            _follows(costs),
        )
        for model, costs in validation.costs.items()
    )
    notes = [
        "The cost of the reported usage against the recorded cost. By plain prices: as if there were no cache, as "
        f"loggers compute that do not know of caches. Prices: {validation.prices.source}."
    ]
    for model, costs in validation.costs.items():
        if costs.unit != 1.0:
            notes.append(
                f"{model}: a dollar of usage is recorded as {costs.unit:,g}. Is that another unit, such as cents? The "
                "costs are not compared, and nothing is corrected."
            )
        if costs.free:
            notes.append(f"{model}: {count(costs.free, 'call')} with a recorded cost of 0 are not compared.")
    return Table("Recorded costs", heads, rows, tuple(notes), 1)


def _follows(costs: Costs) -> str:
    return "–" if isinstance(costs.error, Missing) else costs.follows


def _reasons(validation: Validation) -> Table:
    rows = tuple(
        (model, reason, f"{calls:,}")
        for (model, _), agreement in validation.agreements.items()
        for reason, calls in sorted(agreement.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return Table("Why do calls disagree?", ("model", "likely reason", "calls"), rows, names=2)


def _calls(wrong: Sequence[ComparedCall]) -> Table:
    heads = ("conversation", "reason", "message", "gap, s", "predicted", "reported")
    unexplained = [row for row in wrong if row.reason.startswith(UNKNOWN)]
    listed = unexplained or wrong
    worst = sorted(listed, key=lambda row: -abs(row.predicted.read - row.read))[:_MOST_CALLS]
    rows = tuple(
        (
            row.conversation,
            row.reason.removeprefix(UNKNOWN),
            f"{row.asked.at:,}",
            "–" if row.gap is None else f"{row.gap:,.0f}",
            f"{row.predicted.read:,}",
            f"{row.read:,}",
        )
        for row in worst
    )
    notes = ["Gap: seconds since the call before began."]
    if len(listed) > _MOST_CALLS:
        notes.append(f"The {_MOST_CALLS} furthest off, of {len(listed):,}; --json has all.")
    title = "Calls that disagree for no reason in the recording" if unexplained else "Calls that disagree"
    return Table(title, heads, rows, tuple(notes), names=2)


def _notes(validation: Validation) -> Iterator[str]:
    replayed = validation.replayed
    yield from (f"Assumed: {_ASSUMED[agreement]}." for agreement in sorted(replayed.assumed))
    if replayed.left_out:
        yield "Calls that cannot be compared are named on standard error, all of them in --json."
    for model, calls in replayed.without_rule.items():
        yield f"No cache rule is known for {model}: {count(calls, 'call')} not compared."
    for (model, _), agreement in validation.agreements.items():
        if agreement.unreported:
            calls_left = count(agreement.unreported, "call")
            yield f"{model}: {calls_left} not compared: the provider does not say what was read."
        if agreement.money.unreported:
            some = count(agreement.money.unreported, "call")
            yield f"{model}: {some} not in the cost error: the provider does not say what was written."
    for model in dict.fromkeys(model for model, agreement in _unpriced(validation) if agreement):
        yield f"Costs are missing: {validation.prices.unknown(model)}."
    for model in dict.fromkeys(model for model, _ in validation.agreements):
        if substitute := validation.prices.instead(model):
            yield f"{substitute}."
    for model, what in validation.counters.lacking.items():
        yield f"{model} is counted in {validation.counters.used[model]}: {what}."


def _unpriced(validation: Validation) -> Iterator[tuple[str, int]]:
    yield from ((model, agreement.money.unpriced) for (model, _), agreement in validation.agreements.items())
    yield from ((model, agreement.unpriced) for model, agreement in validation.costs.items())


def _fitted(calibration: Calibration, model: str) -> str:
    known = len(calibration.growths.get(model, {}))
    if not known:
        return "nothing"
    return "itself" if known == 1 else f"{known - 1} other" + "s" * (known > 2)


def _name(model: str, since: str) -> tuple[str, str]:
    return model, since or "the beginning"


def _tokens(value: Value) -> str:
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            return f"{value:,.0f}"


def _points(value: Value) -> str:
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            return f"{100 * value:+.2f} points".replace("-", "−")


def _signed(value: Value) -> str:
    """Return a relative difference: +1.25 %."""
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            return f"{100 * value + 0.0:+.2f} %".replace("-", "−").replace("−0.00", "+0.00")


def as_json(validation: Validation) -> dict[str, Any]:
    """Return the exact figures of `tables`; a missing one is null."""
    replayed = validation.replayed
    return {
        "models": [
            _model(validation, model, since, agreement) for (model, since), agreement in validation.agreements.items()
        ],
        "costs": [_cost(model, agreement) for model, agreement in validation.costs.items()],
        "calls": [_call(row) for row in validation.rows],
        "assumed": {agreement: _ASSUMED[agreement] for agreement in sorted(replayed.assumed)},
        "without_rule": dict(replayed.without_rule),
        "left_out": [str(error) for error in replayed.left_out],
        "prices": validation.prices.source,
    }


def _model(validation: Validation, model: str, since: str, agreement: CacheAgreement) -> dict[str, Any]:
    return {
        "model": model,
        "rule_since": since,
        "calls": agreement.calls,
        "exact": agreement.exact,
        "later_calls": agreement.later,
        "later_exact": agreement.later_exact,
        "earlier_prefix": agreement.earlier,
        "reuse": number(agreement.reuse),
        "not_reported": agreement.unreported,
        "prompt_tokens": agreement.tokens,
        "read_reported": agreement.read,
        "read_predicted": agreement.predicted,
        "read_absolute_error": agreement.off,
        "read_absolute_error_median": number(agreement.median_off),
        "hit_rate": number(agreement.hit_rate),
        "hit_rate_error": number(agreement.hit_rate_error),
        "money": {
            "calls": agreement.money.calls,
            "unpriced": agreement.money.unpriced,
            "not_reported": agreement.money.unreported,
            "reported_usd": agreement.money.reported,
            "predicted_usd": agreement.money.predicted,
            "error": number(agreement.money_error),
        },
        "hits": {f"{_word(p)} / {_word(r)}": n for (p, r), n in sorted(agreement.hits.items())},
        "pauses": {f"{_gone_word(p)} / {_gone_word(r)}": n for (p, r), n in sorted(agreement.expired.items())},
        "own_counts": _own_counts(validation, model, agreement),
        "reasons": dict(sorted(agreement.reasons.items())),
    }


def _own_counts(validation: Validation, model: str, agreement: CacheAgreement) -> dict[str, Any]:
    own, calibration = agreement.own, validation.replayed.calibration
    return {
        "encoding": validation.counters.used[model],
        "calls": own.calls,
        "factor": calibration.factor(model),
        "factors": {name: calibration.factor(model, name) for name in calibration.growths.get(model, {})},
        "prompt_error_raw": number(own.raw_error),
        "prompt_error": number(own.error),
        "prompt_error_median": number(own.median_error),
        "read_error": number(own.read_error),
        "hit_rate_error": number(own.hit_rate_error),
        "money_error": number(agreement.own_money_error),
    }


def _cost(model: str, costs: Costs) -> dict[str, Any]:
    return {
        "model": model,
        "calls": len(costs.recorded),
        "unpriced": costs.unpriced,
        "free": costs.free,
        "recorded": sum(costs.recorded),
        "unit": costs.unit,
        "by_cache_prices_usd": sum(costs.cached),
        "error": number(costs.error),
        "worst": number(costs.worst),
        "by_plain_prices_usd": sum(costs.plain),
        "plain_error": number(costs.plain_error),
        "plain_worst": number(costs.plain_worst),
        "follows": None if isinstance(costs.error, Missing) else costs.follows,
    }


def _call(row: ComparedCall) -> dict[str, Any]:
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


def _word(read: bool) -> str:
    return "hit" if read else "miss"


def _gone_word(gone: bool) -> str:
    return "gone" if gone else "kept"

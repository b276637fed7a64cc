"""The cache models beside what providers reported, as tables. As JSON: `validation_json.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..metrics.validation.agreement import CacheAgreement
from ..metrics.validation.calibration import Calibration
from ..metrics.validation.comparison import ComparedCall
from ..metrics.validation.costs import Costs
from ..metrics.validation.disagreements import UNKNOWN
from ..metrics.validation.validation import Validation
from ..metrics.value import Missing, Value
from .render import Table, count, percent

MOST = 20
"""Calls that are listed."""
PAIRS = ((True, True), (True, False), (False, True), (False, False))
"""What is predicted, what is reported."""

ASSUMED = {
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


def tables(found: Validation) -> list[Table]:
    """One row a model and rule; then hits, our own counts, costs, why calls disagree, and what was assumed."""
    made = [_agreements(found), _hits(found), *_pauses(found), _own(found)] if found.agreements else []
    if found.costs:
        made.append(_costs(found))
    wrong = [row for row in found.rows if row.reason]
    if wrong:
        made += [_reasons(found), _calls(wrong)]
    if notes := tuple(_notes(found)):
        made.append(Table("Assumptions", (), (), notes))
    return made


def _agreements(found: Validation) -> Table:
    heads = (
        *("model", "rule since", "calls", "exact", "exact, later calls", "tokens off", "off, middle call"),
        *("hit rate", "predicted less that", "money"),
    )
    rows = tuple(
        (
            *_name(model, since),
            f"{each.calls:,}",
            percent(each.exact_share),
            percent(each.later_share),
            _tokens(each.off),
            _tokens(each.median_off),
            percent(each.hit_rate),
            _points(each.hit_rate_error),
            _signed(each.money_error),
        )
        for (model, since), each in found.agreements.items()
    )
    note = (
        "Exact: the tokens read from the cache are predicted to the token. Later calls: without the first of each "
        "conversation, which reads what runs before it left. Tokens off: read tokens, predicted against reported, all "
        "differences added. Hit rate: tokens read, by tokens of all prompts; reported. Money: what the predicted usage "
        "costs, less what the reported one does at the same prices."
    )
    spare = ("off, middle call", "tokens off", "exact")
    return Table("Cache models against recorded usage", heads, rows, (note,), 2, spare)


def _hits(found: Validation) -> Table:
    heads = ("model", "rule since", "both hit", "only predicted", "only reported", "neither")
    rows = tuple(
        (*_name(model, since), *(f"{each.hits[pair]:,}" for pair in PAIRS))
        for (model, since), each in found.agreements.items()
    )
    note = "A hit: a call that reads something from the cache."
    return Table("Hits, by calls", heads, rows, (note,), 2)


def _pauses(found: Validation) -> list[Table]:
    """What was read after pauses longer than the lifetime; no table without such a pause."""
    heads = ("model", "rule since", "pauses", "predicted gone", "reported gone", "both")
    rows = tuple(
        (*_name(model, since), *(f"{number:,}" for number in _gone(each.expired)))
        for (model, since), each in found.agreements.items()
        if each.expired
    )
    note = (
        "Between calls of a conversation that go on from the same context. Gone: less is read than the call before "
        "had read and written."
    )
    return [Table("Pauses longer than the lifetime", heads, rows, (note,), 2)] if rows else []


def _gone(expired: Mapping[tuple[bool, bool], int]) -> tuple[int, int, int, int]:
    """Pauses; predicted gone; reported gone; both."""
    both, predicted, reported, neither = (expired.get(pair, 0) for pair in PAIRS)
    return both + predicted + reported + neither, both + predicted, both + reported, both


def _own(found: Validation) -> Table:
    heads = (
        *("model", "encoding", "factor", "fitted on", "prompts off, raw", "calibrated", "middle call"),
        *("read tokens off", "hit rate", "money"),
    )
    calibration = found.replayed.calibration
    rows = tuple(
        (
            model,
            found.counters.used[model],
            f"{calibration.factor(model):.3f}",
            _fitted(calibration, model),
            percent(each.own.raw_error),
            percent(each.own.error),
            percent(each.own.median_error),
            percent(each.own.read_error),
            _points(each.own.hit_rate_error),
            _signed(each.own_money_error),
        )
        for (model, _), each in found.agreements.items()
    )
    note = (
        "The same caches, told nothing of the provider's counts but the first prompt of each conversation, from which "
        "the constant is taken: tokens = constant + factor × our count. Over later calls. Factor: how much the prompts "
        "grew from call to call, by how much our count of them did; for each conversation from the others, if there "
        "are others. Read tokens off: all differences, by the tokens reported."
    )
    return Table("With our own token counts", heads, rows, (note,), 2, ("middle call", "fitted on"))


def _costs(found: Validation) -> Table:
    heads = (
        *("model", "calls", "recorded", "by cache prices", "worst call", "by plain prices", "worst call"),
        "follows",
    )
    rows = tuple(
        (
            model,
            f"{len(each.recorded) + each.unpriced + each.free:,}",
            f"${sum(each.recorded):,.4f}" if each.recorded else "–",
            *map(_signed, (each.error, each.worst, each.plain_error, each.plain_worst)),
            _follows(each),
        )
        for model, each in found.costs.items()
    )
    notes = [
        "What the reported usage costs, less what is recorded, of that. By plain prices: as if no token came from a "
        f"cache or went into one, as loggers compute that know nothing of caches. Prices: {found.prices.source}."
    ]
    for model, each in found.costs.items():
        if each.unit != 1.0:
            notes.append(
                f"{model}: a dollar of usage is recorded as {each.unit:,g}. Is that another unit, such as cents? The "
                "costs are not compared, and nothing is corrected."
            )
        if each.free:
            notes.append(f"{model}: {count(each.free, 'call')} cost nothing as recorded, and are not compared.")
    return Table("Recorded costs", heads, rows, tuple(notes), 1)


def _follows(costs: Costs) -> str:
    return "–" if isinstance(costs.error, Missing) else costs.follows


def _reasons(found: Validation) -> Table:
    rows = tuple(
        (model, reason, f"{calls:,}")
        for (model, _), each in found.agreements.items()
        for reason, calls in sorted(each.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return Table("Why calls disagree", ("model", "likely reason", "calls"), rows, names=2)


def _calls(wrong: Sequence[ComparedCall]) -> Table:
    heads = ("conversation", "reason", "message", "gap, s", "predicted", "reported")
    unexplained = [row for row in wrong if row.reason.startswith(UNKNOWN)]
    listed = unexplained or wrong
    worst = sorted(listed, key=lambda row: -abs(row.predicted.read - row.read))[:MOST]
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
    if len(listed) > MOST:
        notes.append(f"The {MOST} that are furthest off, of {len(listed):,}; --json has all.")
    title = "Calls that disagree, and nothing in the recording says why" if unexplained else "Calls that disagree"
    return Table(title, heads, rows, tuple(notes), names=2)


def _notes(found: Validation) -> Iterator[str]:
    replayed = found.replayed
    yield from (f"Assumed: {ASSUMED[each]}." for each in sorted(replayed.assumed))
    if replayed.left_out:
        yield "Calls that cannot be compared are named on standard error, all of them in --json."
    for model, calls in replayed.without_rule.items():
        yield f"No cache rule is known for {model}: {count(calls, 'call')} not compared."
    for (model, _), each in found.agreements.items():
        if each.unreported:
            yield f"{model}: {count(each.unreported, 'call')} not compared: the provider does not say what was read."
        if each.money.unreported:
            some = count(each.money.unreported, "call")
            yield f"{model}: {some} not in the money: the provider does not say what was written."
    for model in dict.fromkeys(model for model, each in _unpriced(found) if each):
        yield f"Money is missing: {found.prices.unknown(model)}."
    for model in dict.fromkeys(model for model, _ in found.agreements):
        if said := found.prices.instead(model):
            yield f"{said}."
    for model, what in found.counters.lacking.items():
        yield f"{model} is counted in {found.counters.used[model]}: {what}."


def _unpriced(found: Validation) -> Iterator[tuple[str, int]]:
    yield from ((model, each.money.unpriced) for (model, _), each in found.agreements.items())
    yield from ((model, each.unpriced) for model, each in found.costs.items())


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
    """A difference by what it is a difference to: +1.25 %."""
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            return f"{100 * value + 0.0:+.2f} %".replace("-", "−").replace("−0.00", "+0.00")


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


def _model(found: Validation, model: str, since: str, each: CacheAgreement) -> dict[str, Any]:
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
        "pauses": {
            f"{_gone_validation_json(p)} / {_gone_validation_json(r)}": n for (p, r), n in sorted(each.expired.items())
        },
        "own_counts": _own_validation_json(found, model, each),
        "reasons": dict(sorted(each.reasons.items())),
    }


def _own_validation_json(found: Validation, model: str, each: CacheAgreement) -> dict[str, Any]:
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


def _plain(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)


def _word(read: bool) -> str:
    return "hit" if read else "miss"


def _gone_validation_json(gone: bool) -> str:
    return "gone" if gone else "kept"

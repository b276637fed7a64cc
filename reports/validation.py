"""The cache models against what providers reported, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ctxbench.metrics.validation.comparison import UNKNOWN, CacheReplay, ComparedCall
from ctxbench.metrics.validation.validation import Figures, Validation
from ctxbench.metrics.value import Missing, Value

from .render import Column, Table, about, count, percent, table_of

_MOST_CALLS = 20  # calls that are listed


def _or_why(show: Callable[[float], str]) -> Callable[[Value], str]:
    """Return a function that shows a figure, or in brackets why it is missing."""
    return lambda value: f"({value.why})" if isinstance(value, Missing) else show(value)


_tokens = _or_why(lambda value: f"{value:,.0f}")
_points = _or_why(lambda value: f"{round(100 * value, 2) + 0.0:+.2f} points".replace("-", "−").replace("+0.00", "0.00"))
_signed = _or_why(lambda value: f"{round(100 * value, 2) + 0.0:+.2f} %".replace("-", "−").replace("+0.00", "0.00"))


def _counts(field: str, *keys: str) -> Callable[[Figures], int]:
    """Return a function that adds up some of the counts in a field of a row."""
    return lambda row: sum(row[field].get(key, 0) for key in keys)


_NONE = Missing("undefined", "nothing could be read")
_NAMES = (Column("model", "model"), Column("rule since", "rule_since", lambda since: since or "the beginning"))
_AGREEMENT = (
    *_NAMES,
    Column("calls", "calls", _tokens),
    Column("can read", "readable", _tokens),
    Column("exact of these", lambda of: of["readable_exact"] / of["readable"] if of["readable"] else _NONE, percent),
    Column("bill error", "money.error", _signed),
    Column("error with reuse", "money.error_at_hit_rate", _signed),
    Column("reuse", "reuse", percent, spare=3),
    Column("tokens off", "read_absolute_error", _tokens, spare=2),
    Column("off, median call", "read_absolute_error_median", _tokens, spare=1),
    Column("cache hit rate", "hit_rate", percent),
    Column("prediction error", "hit_rate_error", _points),
)
_HITS = (
    *_NAMES,
    Column("both hit", _counts("hits", "hit / hit"), _tokens),
    Column("only predicted", _counts("hits", "hit / miss"), _tokens),
    Column("only reported", _counts("hits", "miss / hit"), _tokens),
    Column("neither", _counts("hits", "miss / miss"), _tokens),
)
_PAUSES = (
    *_NAMES,
    Column("pauses", lambda row: sum(row["pauses"].values()), _tokens),
    Column("predicted gone", _counts("pauses", "gone / gone", "gone / kept"), _tokens),
    Column("reported gone", _counts("pauses", "gone / gone", "kept / gone"), _tokens),
    Column("both", _counts("pauses", "gone / gone"), _tokens),
)
_FITTED = {0: "nothing", 1: "itself"}
_OWN = (
    Column("model", "model"),
    Column("encoding", "own_counts.encoding"),
    Column("factor", "own_counts.factor", "{:.3f}".format),
    # The factor of each conversation is fitted on the others that grew.
    Column("fitted on", "own_counts.factors", lambda of: _FITTED.get(len(of)) or count(len(of) - 1, "other"), spare=2),
    Column("prompts off, raw", "own_counts.prompt_error_raw", percent),
    Column("calibrated", "own_counts.prompt_error", percent),
    Column("median call", "own_counts.prompt_error_median", percent, spare=1),
    Column("read tokens off", "own_counts.read_error", percent),
    Column("cache hit rate", "own_counts.hit_rate_error", _points),
    Column("cost error", "own_counts.money_error", _signed),
)
_COSTS = (
    Column("model", "model"),
    Column("calls", lambda row: row["calls"] + row["unpriced"] + row["free"], _tokens),
    Column("recorded", lambda row: f"${row['recorded']:,.4f}" if row["calls"] else "–"),
    Column("by cache prices", "error", _signed),
    Column("worst call", "worst", _signed),
    Column("by plain prices", "plain_error", _signed),
    Column("worst call", "plain_worst", _signed),
    Column("follows", "follows", lambda follows: "–" if isinstance(follows, Missing) else follows),
)
_CALL = (
    Column("conversation", "conversation"),
    Column("reason", "reason", lambda reason: reason.removeprefix(UNKNOWN)),
    Column("message", "at", _tokens),
    Column("gap, s", "gap_seconds", lambda gap: "–" if gap is None else f"{gap:,.0f}"),
    Column("predicted", "read_predicted", _tokens),
    Column("reported", lambda row: row["read_reported"] or 0, _tokens),
)


def tables(validation: Validation) -> list[Table]:
    """Return a row for each model and rule; then hits, our own counts, costs, disagreements and assumptions."""
    agreements, note = validation.agreements, "A hit is a call that reads something from the cache."
    expired = [row for row in agreements if row["pauses"]]
    by_model = (
        ("How well do the cache models predict recorded usage?", _AGREEMENT, agreements, about("validation_exact")),
        ("Predicted and reported hits, in calls", _HITS, agreements, note),
        ("Pauses longer than the lifetime", _PAUSES, expired, about("validation_pauses")),
        ("And with our own token counts?", _OWN, agreements, about("validation_own_counts")),
    )
    shown = [table_of(title, columns, rows, [note], names=2) for title, columns, rows, note in by_model if rows]
    if validation.costs:
        free = [(row["model"], count(row["free"], "call")) for row in validation.costs if row["free"]]
        of_costs = [about("validation_costs", source=validation.prices.source)]
        of_costs += [f"{model}: {calls} with a recorded cost of 0 are not compared." for model, calls in free]
        shown.append(table_of("Recorded costs", _COSTS, validation.costs, of_costs))
    reasons = [
        (row["model"], reason, calls)
        for row in agreements
        for reason, calls in sorted(row["reasons"].items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    if reasons:
        rows = tuple((model, reason, _tokens(calls)) for model, reason, calls in reasons)
        heads = ("model", "likely reason", "calls")
        shown += [Table("Why do calls disagree?", heads, rows, names=2), _calls(validation.rows)]
    if notes := tuple(_notes(validation)):
        shown.append(Table("Assumptions", (), (), notes))
    return shown


def _calls(rows: Sequence[ComparedCall]) -> Table:
    wrong = [_call(row) for row in rows if row.reason]
    unexplained = [row for row in wrong if row["reason"].startswith(UNKNOWN)]
    listed = unexplained or wrong
    worst = sorted(listed, key=lambda row: -abs(row["read_predicted"] - (row["read_reported"] or 0)))[:_MOST_CALLS]
    notes = ["Gap: seconds since the call before began."]
    if len(listed) > _MOST_CALLS:
        notes.append(f"The {_MOST_CALLS} furthest off, of {len(listed):,}; --json has all.")
    title = "Calls that disagree for no reason in the recording" if unexplained else "Calls that disagree"
    return table_of(title, _CALL, worst, notes, names=2)


def _notes(validation: Validation) -> Iterator[str]:
    replayed, prices = validation.replayed, validation.prices
    yield from (f"Assumed: {text}." for text in _assumed(replayed).values())
    if replayed.left_out:
        yield "Calls that cannot be compared are named on standard error, all of them in --json."
    for model, calls in replayed.without_rule.items():
        yield f"No cache rule is known for {model}: {count(calls, 'call')} not compared."
    for row in validation.agreements:
        if number := row["not_reported"]:
            yield f"{row['model']}: {count(number, 'call')} not compared: the provider does not say what was read."
        if number := row["money"]["not_reported"]:
            some = count(number, "call")
            yield f"{row['model']}: {some} not in the cost error: the provider does not say what was written."
    for row in validation.special:
        how = "prices of its own" if row["listed"] else "the usual prices of text, as none of its own are listed"
        share = f"{count(row['calls'], 'call')} ({percent(row['share'])} of its bill)"
        yield f"{row['model']}, {row['part']}: {share} billed at {how}."
    unpriced = [row["model"] for row in validation.agreements if row["money"]["unpriced"]]
    unpriced += [row["model"] for row in validation.costs if row["unpriced"]]
    yield from (f"Costs are missing: {prices.unknown(model)}." for model in dict.fromkeys(unpriced))
    for model, what in validation.counters.lacking.items():
        yield f"{model} is counted in {validation.counters[model].encoding}: {what}."


def _assumed(replayed: CacheReplay) -> dict[str, str]:
    return {name: about(f"assumed_{name.replace(' ', '_')}") for name in sorted(replayed.assumed)}


def as_json(validation: Validation) -> dict[str, Any]:
    """Return the exact figures of `tables`."""
    replayed = validation.replayed
    return {
        "models": validation.agreements,
        "costs": validation.costs,
        "special_prices": validation.special,
        "calls": [_call(row) for row in validation.rows],
        "assumed": _assumed(replayed),
        "without_rule": dict(replayed.without_rule),
        "left_out": [str(error) for error in replayed.left_out],
        "prices": validation.prices.source,
    }


def _call(row: ComparedCall) -> Figures:
    """Return the figures of one call, by their keys in --json."""
    return {
        "conversation": row.asked.conversation.id,
        "at": row.asked.at,
        "model": row.model,
        "rule_since": row.rule.since,
        "source": row.rule.source,
        "prompt_tokens": row.usage.input,
        "read_predicted": row.predicted.read,
        "read_reported": row.usage.cache_read,
        "written_predicted": row.predicted.written + row.predicted.written_1h,
        "written_reported": row.usage.cache_write,
        "own_prompt_tokens": row.own.prompt,
        "own_read": row.own.read,
        "gap_seconds": row.gap,
        "reason": row.reason,
    }

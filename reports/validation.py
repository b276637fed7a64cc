"""The cache models beside what providers reported, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from ..metrics.cache.agreement import Agreement
from ..metrics.cache.recorded import Compared
from ..metrics.value import Missing, Value
from .render import Table
from .words import count, percent

MOST = 20
"""Calls that are listed."""

ASSUMED = {
    "no start": "calls without a recorded start began when they were answered",
    "no time": "calls without any time came a second apart, under the latest rules",
    "marks": "where a recording reports cache writes and no breakpoints, the breakpoint was at the end of the prompt",
    "constant": "what the first prompt of a model has over our own count (a system prompt or tools that the recording "
    "lacks) stands before its messages",
}

Agreements = Mapping[tuple[str, str], Agreement]


def tables(
    found: Agreements, rows: Sequence[Compared], assumed: Set[str], without: Mapping[str, int], overmarked: int = 0
) -> list[Table]:
    """One row a model and rule; then why calls disagree, the calls, and what was assumed."""
    made = [_agreements(found)] if found else []
    wrong = [row for row in rows if row.reason]
    if wrong:
        made += [_reasons(found), _calls(wrong)]
    notes = [f"Assumed: {ASSUMED[each]}." for each in sorted(assumed)]
    notes += [f"No rule is known for {model}: {calls:,} calls are not compared." for model, calls in without.items()]
    if overmarked:
        notes.append(
            f"More than 4 cache breakpoints, which no provider takes: {count(overmarked, 'call')} not compared."
        )
    if notes:
        made.append(Table("Assumptions", (), (), tuple(notes)))
    return made


def as_json(
    found: Agreements, rows: Sequence[Compared], assumed: Set[str], without: Mapping[str, int], overmarked: int = 0
) -> dict[str, Any]:
    """The same with exact figures, and every call."""
    return {
        "models": [
            {
                "model": model,
                "rule_since": since,
                "calls": each.calls,
                "exact": each.exact,
                "later_calls": each.later,
                "later_exact": each.later_exact,
                "prompt_tokens": each.tokens,
                "read_reported": each.read,
                "read_predicted": each.predicted,
                "read_absolute_error": each.off,
                "hit_rate": _plain(each.hit_rate),
                "hit_rate_error": _plain(each.hit_rate_error),
                "hits": {f"{_word(p)} / {_word(r)}": n for (p, r), n in sorted(each.hits.items())},
                "reasons": dict(sorted(each.reasons.items())),
            }
            for (model, since), each in found.items()
        ],
        "calls": [
            {
                "conversation": row.conversation,
                "at": row.at,
                "model": row.model,
                "rule_since": row.rule.since,
                "source": row.rule.source,
                "read_predicted": row.predicted.read,
                "read_reported": row.usage.cache_read,
                "written_predicted": row.predicted.written + row.predicted.written_1h,
                "written_reported": row.usage.cache_write,
                "gap_seconds": row.gap,
                "reason": row.reason,
            }
            for row in rows
        ],
        "assumed": {each: ASSUMED[each] for each in sorted(assumed)},
        "without_rule": dict(without),
        "overmarked": overmarked,
    }


def _agreements(found: Agreements) -> Table:
    heads = ("model", "rule since", "calls", "exact", "exact, later calls", "hit rate", "predicted less that")
    rows = tuple(
        (
            model,
            since or "the beginning",
            f"{each.calls:,}",
            percent(each.exact_share),
            percent(each.later_share),
            percent(each.hit_rate),
            _points(each.hit_rate_error),
        )
        for (model, since), each in found.items()
    )
    note = (
        "Exact: the tokens read from the cache are predicted to the token. Later calls: without the first of each "
        "conversation, which reads what runs before it left. Hit rate: tokens read, by tokens of all prompts; reported."
    )
    return Table("Cache models against recorded usage", heads, rows, (note,), names=2)


def _reasons(found: Agreements) -> Table:
    rows = tuple(
        (model, reason, f"{count:,}")
        for (model, _), each in found.items()
        for reason, count in sorted(each.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return Table("Why calls disagree", ("model", "likely reason", "calls"), rows, names=2)


def _calls(wrong: Sequence[Compared]) -> Table:
    heads = ("conversation", "reason", "message", "gap, s", "predicted", "reported")
    worst = sorted(wrong, key=lambda row: -abs(row.predicted.read - row.read))[:MOST]
    rows = tuple(
        (
            row.conversation,
            row.reason,
            f"{row.at:,}",
            "–" if row.gap is None else f"{row.gap:,.0f}",
            f"{row.predicted.read:,}",
            f"{row.read:,}",
        )
        for row in worst
    )
    notes = ["Gap: seconds since the call before began."]
    if len(wrong) > MOST:
        notes.append(f"The {MOST} that are furthest off, of {len(wrong):,}; --json has all.")
    return Table("Calls that disagree", heads, rows, tuple(notes), names=2)


def _points(value: Value) -> str:
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            return f"{100 * value:+.2f} points".replace("-", "−")


def _plain(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)


def _word(read: bool) -> str:
    return "hit" if read else "miss"

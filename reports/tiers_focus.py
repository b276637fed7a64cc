"""What the Focus tier's truncations keep, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..harness.focusing import BOUND, WHOLE, Row
from ..metrics.statistics.interval import Interval
from ..metrics.value import Missing, Value
from .render import Table
from .words import count, percent, tokens

HEADS = ("way", "tokens", "kept", "over", "refused", "recall", "±", "answer", "grounded", "p50", "p99")
HOW = (
    "Tokens: of all requests. Kept: of the tokens of the whole history. Over: requests that take more than the limit, "
    "tool schemas and priming counted. Refused: calls at which the way says that its limit cannot be kept.",
    "Recall: of the messages that a probe rests on, the share that is sent as it was said when the probe is asked; ±: "
    "half the 95 % interval over conversations. Answer: probes of which an accepted answer stands in what is sent, "
    "also in what the way wrote, of those whose answer was said word for word. Grounded: of the values that the "
    "recorded model used next, the share still there. p50, p99: what deciding took at a call, on the clock, without "
    "models.",
    "Bound: the most evidence that fits within the limit beside system messages, tool schemas and the question.",
)
Failed = Sequence[tuple[str, str, str]]
"""(conversation, way, why)"""


def tables(rows: Sequence[Row], limit: int, conversations: int, failed: Failed = ()) -> list[Table]:
    """A row a way, then how to read it."""
    calls = next((row.calls for row in rows if row.way == WHOLE), 0)
    probes = next((row.probes for row in rows if row.way == WHOLE), 0)
    title = f"Focus, {limit:,} tokens: {count(conversations, 'conversation')}, {count(calls, 'call')}, "
    made = [
        Table(title + count(probes, "probe"), HEADS, tuple(map(_cells, rows)), (), spare=("±", "p50", "tokens")),
        Table("How to read it", (), (), HOW),
    ]
    if failed:
        note = "These conversations are in no figure."
        made.append(Table("Failed", ("conversation", "way", "why"), tuple(failed), (note,), prose=True))
    return made


def _cells(row: Row) -> tuple[str, ...]:
    recall, reach = _interval(row.recall)
    if row.way == BOUND:
        return (row.way, "", "", "", "", recall, reach, "", "", "", "")
    times = ("", "") if isinstance(row.micros, Missing) else (_micros(row.micros.p50), _micros(row.micros.p99))
    said = (tokens(row.tokens), percent(row.share), f"{row.over:,}", f"{row.refused:,}")
    return (row.way, *said, recall, reach, _interval(row.reachable)[0], percent(row.grounded), *times)


def _interval(found: Interval | Missing) -> tuple[str, str]:
    if isinstance(found, Missing):
        return percent(found), "–"
    if isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return percent(found.mean), "–"
    return percent(found.mean), f"{(found.high - found.low) * 50:.1f}"


def _micros(value: float) -> str:
    return f"{value:,.0f} µs"


def as_json(rows: Sequence[Row], limit: int, conversations: int, failed: Failed = ()) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "limit": limit,
        "conversations": conversations,
        "rows": [
            {
                **{name: getattr(row, name) for name in ("way", "calls", "tokens", "over", "refused", "probes")},
                **{name: _plain(getattr(row, name)) for name in ("share", "grounded")},
                **{name: _three(getattr(row, name)) for name in ("recall", "reachable")},
                "micros": None if isinstance(row.micros, Missing) else row.micros._asdict(),
            }
            for row in rows
        ],
        "failed": [dict(zip(("conversation", "way", "why"), each, strict=True)) for each in failed],
    }


def _three(found: Interval | Missing) -> list[float | dict[str, str]]:
    return [_plain(each) for each in ((found,) * 3 if isinstance(found, Missing) else found)]


def _plain(value: Value) -> float | dict[str, str]:
    return {"missing": value.why, "detail": value.detail} if isinstance(value, Missing) else value

"""The design documents' claims, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..harness.claims.claim import Claimed, ClaimRow, Finding, Verdict, ends, interval, shown
from ..metrics.statistics.intervals import Interval
from ..metrics.value import Missing, Value
from .render import Table

WORDS: tuple[Verdict, ...] = ("holds", "fails", "cannot tell")
NOTHING = "–"
VERSION = 1
HOW = (
    "Holds: the 95 % interval lies within what is claimed; of a range, at or above its lower end. Fails: it lies "
    "wholly outside. Cannot tell: it has values on both sides, or could not be measured. Where a claim has several "
    "settings, all of its own must hold; the first that decides is shown. Bound: what no method can exceed, where that "
    "is known. By the clock: measured on this machine at this moment."
)


def tables(found: Sequence[Finding], every: bool = False) -> list[Table]:
    """The verdicts, and why; with `every`, all settings that were measured."""
    by = {word: sum(each.verdict == word for each in found) for word in WORDS}
    said = ", ".join(
        f"{number} {word}" if word == "cannot tell" else f"{number} {word[:-1] if number > 1 else word}"
        for word, number in by.items()
        if number
    )
    verdicts = Table(
        f"Claims of the design documents: {said}",
        ("id", "claim", "verdict", "measured", "claimed", "bound", "by the clock"),
        tuple(map(_verdict, found)),
        (HOW,),
        names=3,
        spare=("bound",),
    )
    why = Table(
        "Why", ("id", "verdict", "why"), tuple((each.id, each.verdict, reason(each)) for each in found), prose=True
    )
    return [verdicts, why, *(_settings(each) for each in found if every and each.rows)]


def reason(each: Finding) -> str:
    """Why, and what would be needed."""
    return f"{each.why} Needed: {each.needed}" if each.needed else each.why


def _verdict(each: Finding) -> tuple[str, ...]:
    row = each.deciding
    if row is None or row.claimed is None:
        return (each.id, each.claim, each.verdict, *[NOTHING] * 4)
    measured = _found(row)
    return (
        each.id,
        each.claim,
        each.verdict,
        NOTHING if row.timed else measured,
        ends(row.claimed, row.unit),
        _bound(row),
        measured if row.timed else NOTHING,
    )


def _settings(each: Finding) -> Table:
    rows = tuple(
        (
            row.setting,
            row.figure,
            row.verdict or NOTHING,
            _found(row),
            NOTHING if row.claimed is None else ends(row.claimed, row.unit),
            _bound(row),
            ("yes" if row.decides else "no") if row.claimed is not None else NOTHING,
            row.of or NOTHING,
        )
        for row in each.rows
    )
    heads = ("setting", "figure", "verdict", "measured", "claimed", "bound", "decides", "over")
    missing = dict.fromkeys(
        row.found.detail for row in each.rows if isinstance(row.found, Missing) and row.found.detail
    )
    return Table(
        f"{each.id}: {each.claim}",
        heads,
        rows,
        (f"{each.source}. Protocol: {each.protocol}.", *(f"Missing: {why}." for why in missing)),
        names=3,
        spare=("over", "bound"),
    )


def _found(row: ClaimRow) -> str:
    return f"({row.found.why})" if isinstance(row.found, Missing) else interval(row.found, row.unit)


def _bound(row: ClaimRow) -> str:
    return NOTHING if row.bound is None or isinstance(row.bound, Missing) else shown(row.bound, row.unit)


def as_json(found: Sequence[Finding]) -> dict[str, Any]:
    """Exact figures. What the clock has a part in stands apart: all else is the same for the same run."""
    return {
        "version": VERSION,
        "claims": [
            {
                "id": each.id,
                "claim": each.claim,
                "source": each.source,
                "protocol": each.protocol,
                "timed": each.timed,
                "verdict": None if each.timed else each.verdict,
                "why": None if each.timed else each.why,
                "needed": None if each.timed else each.needed,
                "rows": [_row(row) for row in each.rows if not row.timed],
            }
            for each in found
        ],
        "timed": [
            {
                "id": each.id,
                "verdict": each.verdict if each.timed else None,
                "why": each.why if each.timed else None,
                "needed": each.needed if each.timed else None,
                "rows": [_row(row) for row in each.rows if row.timed],
            }
            for each in found
            if any(row.timed for row in each.rows)
        ],
    }


def _row(row: ClaimRow) -> dict[str, Any]:
    found = row.found if isinstance(row.found, Interval) else None
    why = row.found if isinstance(row.found, Missing) else row.found.low
    return {
        "setting": row.setting,
        "figure": row.figure,
        "unit": row.unit,
        "value": None if found is None else found.mean,
        "low": None if found is None else _number(found.low),
        "high": None if found is None else _number(found.high),
        "missing": {"why": why.why, "detail": why.detail} if isinstance(why, Missing) else None,
        "claimed": None if row.claimed is None else _claimed(row.claimed),
        "bound": None if row.bound is None else _number(row.bound),
        "of": row.of,
        "decides": row.decides and row.claimed is not None,
        "verdict": row.verdict,
    }


def flat(row: ClaimRow) -> dict[str, Any]:
    """A row for a table of figures: no value is a mapping."""
    found = _row(row)
    claimed, missing = found.pop("claimed") or {}, found.pop("missing") or {}
    return {**found, "missing": missing.get("detail", ""), "least": claimed.get("least"), "most": claimed.get("most")}


def _claimed(each: Claimed) -> dict[str, Any]:
    return {"least": each.least, "most": each.most, "upper": each.upper, "above": each.above}


def _number(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)

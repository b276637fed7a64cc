"""The claims and their verdicts, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ctxbench.harness.claims.claim import ClaimRow, Finding, Verdict, ends, interval, shown
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing

from .render import Column, Table, about, number, table_of

_WORDS: tuple[Verdict, ...] = ("holds", "fails", "cannot tell")
_NOTHING = "–"


def _found(row: ClaimRow) -> str:
    return f"({row.found.why})" if isinstance(row.found, Missing) else interval(row.found, row.unit)


def _claimed(row: ClaimRow) -> str:
    return _NOTHING if row.claimed is None else ends(row.claimed, row.unit)


def _bound(row: ClaimRow) -> str:
    return _NOTHING if row.bound is None or isinstance(row.bound, Missing) else shown(row.bound, row.unit)


def _deciding(head: str, show: Callable[[ClaimRow], str]) -> Column:
    """Return a column of the row that decides a claim."""
    return Column(head, "deciding", lambda row: _NOTHING if row is None else show(row))


_CLAIM_COLUMNS = (
    *(Column(name, name) for name in ("id", "claim", "verdict")),
    _deciding("measured", lambda row: _NOTHING if row.timed else _found(row)),
    _deciding("claimed", _claimed),
    _deciding("bound", _bound)._replace(spare=1),
    _deciding("measured time", lambda row: _found(row) if row.timed else _NOTHING),
)
_WHY_COLUMNS = (
    *(Column(name, name) for name in ("id", "verdict")),
    Column("why", lambda finding: f"{finding.why} Needed: {finding.needed}" if finding.needed else finding.why),
)
_ROW_COLUMNS = (
    *(Column(name, name) for name in ("setting", "figure")),
    Column("verdict", "verdict", lambda verdict: verdict or _NOTHING),
    Column("measured", _found),
    Column("claimed", _claimed),
    Column("bound", _bound, spare=2),
    Column("decides", lambda row: _NOTHING if row.claimed is None else "yes" if row.decides else "no"),
    Column("over", "of", lambda of: of or _NOTHING, spare=1),
)


def tables(findings: Sequence[Finding], every: bool = False) -> list[Table]:
    """Return the verdicts and their reasons; with `every`, also all settings that were measured."""
    by = Counter(finding.verdict for finding in findings)
    counts = [
        f"{by[word]} {word[:-1] if by[word] > 1 and word != 'cannot tell' else word}" for word in _WORDS if by[word]
    ]
    title = f"Do the claims hold? {', '.join(counts)}"
    shown = [
        table_of(title, _CLAIM_COLUMNS, findings, [about("claims")], names=3),
        table_of("Why?", _WHY_COLUMNS, findings, prose=True),
    ]
    for finding in findings if every else ():
        found = [row.found for row in finding.rows]
        why = dict.fromkeys(part.detail for part in found if isinstance(part, Missing) and part.detail)
        notes = [f"Protocol: {finding.protocol}.", *(f"Missing: {detail}." for detail in why)]
        if finding.rows:
            shown.append(table_of(f"{finding.id}: {finding.claim}", _ROW_COLUMNS, finding.rows, notes, names=3))
    return shown


def brief(findings: Sequence[Finding]) -> str:
    """Return in a line how many claims hold, fail, and cannot be told."""
    times = Counter(finding.verdict for finding in findings)
    found = f"{times['holds']} hold, {times['fails']} fail, {times['cannot tell']} cannot be told"
    return f"Of {len(findings)} claims of the design documents {found} (ctxbench lab claims)"


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the exact figures. Those that depend on time stand apart: all others are the same for the same run."""

    def part(finding: Finding, timed: bool) -> dict[str, Any]:
        decided = {name: getattr(finding, name) for name in ("verdict", "why", "needed")}
        rows = [_row(row) for row in finding.rows if row.timed == timed]
        return {**(decided if finding.timed == timed else dict.fromkeys(decided)), "rows": rows}

    names = ("id", "claim", "source", "protocol", "timed")
    timed = [finding for finding in findings if any(row.timed for row in finding.rows)]
    return {
        "version": 1,
        "claims": [{name: getattr(each, name) for name in names} | part(each, False) for each in findings],
        "timed": [{"id": finding.id, **part(finding, True)} for finding in timed],
    }


def _row(row: ClaimRow) -> dict[str, Any]:
    value, low, high = row.found if isinstance(row.found, Interval) else (None,) * 3
    why = row.found if isinstance(row.found, Missing) else row.found.low
    return {
        **{name: getattr(row, name) for name in ("setting", "figure", "unit")},
        "value": value,
        "low": number(low),
        "high": number(high),
        "missing": {"why": why.why, "detail": why.detail} if isinstance(why, Missing) else None,
        "claimed": None if row.claimed is None else msgspec.structs.asdict(row.claimed),
        "bound": number(row.bound),
        "of": row.of,
        "decides": row.decides and row.claimed is not None,
        "verdict": row.verdict,
    }


def flat(row: ClaimRow) -> dict[str, Any]:
    """Return a row for a table of figures, in which no value is a mapping."""
    figures = _row(row)
    claimed, missing = figures.pop("claimed") or {}, figures.pop("missing") or {}
    return {**figures, "missing": missing.get("detail", ""), "least": claimed.get("least"), "most": claimed.get("most")}

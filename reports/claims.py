"""The claims and their verdicts, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from ctxbench.harness.claims.claim import ClaimRow, Finding, Verdict, ends, interval, shown
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing

from .render import Table, number

_WORDS: tuple[Verdict, ...] = ("holds", "fails", "cannot tell")
_NOTHING = "–"
_VERSION = 1
_HOW = (
    "A claim holds if the 95 % interval lies within what is claimed, fails if it lies wholly outside, and otherwise "
    "cannot be told. Of several settings all must hold, and the first that decides is shown."
)


def tables(findings: Sequence[Finding], every: bool = False) -> list[Table]:
    """Return the verdicts and their reasons; with `every`, also all settings that were measured."""
    by = Counter(finding.verdict for finding in findings)
    counts = [
        f"{by[word]} {word[:-1] if by[word] > 1 and word != 'cannot tell' else word}" for word in _WORDS if by[word]
    ]
    verdicts = Table(
        f"Do the claims hold? {', '.join(counts)}",
        ("id", "claim", "verdict", "measured", "claimed", "bound", "measured time"),
        tuple(map(_verdict, findings)),
        (_HOW,),
        names=3,
        spare=("bound",),
    )
    reasons = (f"{finding.why} Needed: {finding.needed}" if finding.needed else finding.why for finding in findings)
    why = Table(
        "Why?",
        ("id", "verdict", "why"),
        tuple((finding.id, finding.verdict, reason) for finding, reason in zip(findings, reasons, strict=True)),
        prose=True,
    )
    return [verdicts, why, *(_settings(finding) for finding in findings if every and finding.rows)]


def brief(findings: Sequence[Finding]) -> str:
    """Return in a line how many claims hold, fail, and cannot be told."""
    times = Counter(finding.verdict for finding in findings)
    found = f"{times['holds']} hold, {times['fails']} fail, {times['cannot tell']} cannot be told"
    return f"Of {len(findings)} claims of the design documents {found} (ctxbench lab claims)"


def _verdict(finding: Finding) -> tuple[str, ...]:
    row = finding.deciding
    if row is None:
        return (finding.id, finding.claim, finding.verdict, *[_NOTHING] * 4)
    measured = (_NOTHING, _found(row)) if row.timed else (_found(row), _NOTHING)
    return (finding.id, finding.claim, finding.verdict, measured[0], _claimed(row), _bound(row), measured[1])


def _settings(finding: Finding) -> Table:
    rows = tuple(
        (
            row.setting,
            row.figure,
            row.verdict or _NOTHING,
            _found(row),
            _claimed(row),
            _bound(row),
            _NOTHING if row.claimed is None else "yes" if row.decides else "no",
            row.of or _NOTHING,
        )
        for row in finding.rows
    )
    why = dict.fromkeys(row.found.detail for row in finding.rows if isinstance(row.found, Missing) and row.found.detail)
    return Table(
        f"{finding.id}: {finding.claim}",
        ("setting", "figure", "verdict", "measured", "claimed", "bound", "decides", "over"),
        rows,
        (f"Protocol: {finding.protocol}.", *(f"Missing: {detail}." for detail in why)),
        names=3,
        spare=("over", "bound"),
    )


def _claimed(row: ClaimRow) -> str:
    return _NOTHING if row.claimed is None else ends(row.claimed, row.unit)


def _found(row: ClaimRow) -> str:
    return f"({row.found.why})" if isinstance(row.found, Missing) else interval(row.found, row.unit)


def _bound(row: ClaimRow) -> str:
    return _NOTHING if row.bound is None or isinstance(row.bound, Missing) else shown(row.bound, row.unit)


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the exact figures. Those that depend on time stand apart: all others are the same for the same run."""

    def part(finding: Finding, timed: bool) -> dict[str, Any]:
        decided = {"verdict": finding.verdict, "why": finding.why, "needed": finding.needed}
        rows = [_row(row) for row in finding.rows if row.timed == timed]
        return {**(decided if finding.timed == timed else dict.fromkeys(decided)), "rows": rows}

    about = ("id", "claim", "source", "protocol", "timed")
    return {
        "version": _VERSION,
        "claims": [
            {**{name: getattr(finding, name) for name in about}, **part(finding, False)} for finding in findings
        ],
        "timed": [
            {"id": finding.id, **part(finding, True)} for finding in findings if any(row.timed for row in finding.rows)
        ],
    }


def _row(row: ClaimRow) -> dict[str, Any]:
    measured = row.found if isinstance(row.found, Interval) else None
    why = row.found if isinstance(row.found, Missing) else row.found.low
    return {
        "setting": row.setting,
        "figure": row.figure,
        "unit": row.unit,
        "value": None if measured is None else measured.mean,
        "low": None if measured is None else number(measured.low),
        "high": None if measured is None else number(measured.high),
        "missing": {"why": why.why, "detail": why.detail} if isinstance(why, Missing) else None,
        "claimed": None if row.claimed is None else msgspec.structs.asdict(row.claimed),
        "bound": None if row.bound is None else number(row.bound),
        "of": row.of,
        "decides": row.decides and row.claimed is not None,
        "verdict": row.verdict,
    }


def flat(row: ClaimRow) -> dict[str, Any]:
    """Return a row for a table of figures, in which no value is a mapping."""
    figures = _row(row)
    claimed, missing = figures.pop("claimed") or {}, figures.pop("missing") or {}
    return {**figures, "missing": missing.get("detail", ""), "least": claimed.get("least"), "most": claimed.get("most")}

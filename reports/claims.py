"""The claims and their verdicts, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ctxbench.harness.claims.claim import Claimed, ClaimRow, Finding, Verdict, ends, interval, shown
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
    by = {word: sum(finding.verdict == word for finding in findings) for word in _WORDS}
    counts = ", ".join(
        f"{number} {word}" if word == "cannot tell" else f"{number} {word[:-1] if number > 1 else word}"
        for word, number in by.items()
        if number
    )
    verdicts = Table(
        f"Do the claims hold? {counts[:1].upper()}{counts[1:]}",
        ("id", "claim", "verdict", "measured", "claimed", "bound", "measured time"),
        tuple(map(_verdict, findings)),
        (_HOW,),
        names=3,
        spare=("bound",),
    )
    why = Table(
        "Why?",
        ("id", "verdict", "why"),
        tuple((finding.id, finding.verdict, reason(finding)) for finding in findings),
        prose=True,
    )
    return [verdicts, why, *(_settings(finding) for finding in findings if every and finding.rows)]


def brief(findings: Sequence[Finding]) -> str:
    """Return in a line how many claims hold, fail, and cannot be told."""
    times = Counter(finding.verdict for finding in findings)
    found = f"{times['holds']} hold, {times['fails']} fail, {times['cannot tell']} cannot be told"
    return f"Of {len(findings)} claims of the design documents {found} (ctxbench lab claims)"


def reason(finding: Finding) -> str:
    """Return why, and what would be needed."""
    return f"{finding.why} Needed: {finding.needed}" if finding.needed else finding.why


def _verdict(finding: Finding) -> tuple[str, ...]:
    row = finding.deciding
    if row is None or row.claimed is None:
        return (finding.id, finding.claim, finding.verdict, *[_NOTHING] * 4)
    measured = _found(row)
    return (
        finding.id,
        finding.claim,
        finding.verdict,
        _NOTHING if row.timed else measured,
        ends(row.claimed, row.unit),
        _bound(row),
        measured if row.timed else _NOTHING,
    )


def _settings(finding: Finding) -> Table:
    rows = tuple(
        (
            row.setting,
            row.figure,
            row.verdict or _NOTHING,
            _found(row),
            _NOTHING if row.claimed is None else ends(row.claimed, row.unit),
            _bound(row),
            ("yes" if row.decides else "no") if row.claimed is not None else _NOTHING,
            row.of or _NOTHING,
        )
        for row in finding.rows
    )
    heads = ("setting", "figure", "verdict", "measured", "claimed", "bound", "decides", "over")
    missing = dict.fromkeys(
        row.found.detail for row in finding.rows if isinstance(row.found, Missing) and row.found.detail
    )
    return Table(
        f"{finding.id}: {finding.claim}",
        heads,
        rows,
        (f"Protocol: {finding.protocol}.", *(f"Missing: {why}." for why in missing)),
        names=3,
        spare=("over", "bound"),
    )


def _found(row: ClaimRow) -> str:
    return f"({row.found.why})" if isinstance(row.found, Missing) else interval(row.found, row.unit)


def _bound(row: ClaimRow) -> str:
    return _NOTHING if row.bound is None or isinstance(row.bound, Missing) else shown(row.bound, row.unit)


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the exact figures. Those that depend on time stand apart: all others are the same for the same run."""
    return {
        "version": _VERSION,
        "claims": [
            {
                "id": finding.id,
                "claim": finding.claim,
                "source": finding.source,
                "protocol": finding.protocol,
                "timed": finding.timed,
                "verdict": None if finding.timed else finding.verdict,
                "why": None if finding.timed else finding.why,
                "needed": None if finding.timed else finding.needed,
                "rows": [_row(row) for row in finding.rows if not row.timed],
            }
            for finding in findings
        ],
        "timed": [
            {
                "id": finding.id,
                "verdict": finding.verdict if finding.timed else None,
                "why": finding.why if finding.timed else None,
                "needed": finding.needed if finding.timed else None,
                "rows": [_row(row) for row in finding.rows if row.timed],
            }
            for finding in findings
            if any(row.timed for row in finding.rows)
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
        "claimed": None if row.claimed is None else _claimed(row.claimed),
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


def _claimed(claimed: Claimed) -> dict[str, Any]:
    return {"least": claimed.least, "most": claimed.most, "upper": claimed.upper, "above": claimed.above}

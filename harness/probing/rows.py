"""Probes as rows of the table `probes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..store import Constant, Part
from .interview import Probed

FIELDS = ("kept", "marks", "tokens_full", "tokens_sent")
"""What a failed probe has none of, and any other as it is."""


def write_probes(
    part: Part, strategies: Mapping[str, Sequence[tuple[str, Sequence[Probed]]]], digest: str = ""
) -> None:
    """Write the probes of one part: by strategy, each conversation with its probes."""
    rows = [(spec, name, each) for spec, cells in strategies.items() for name, probes in cells for each in probes]
    only = next(iter(strategies)) if len(strategies) == 1 else None
    part.write(
        "probes",
        {
            "conversation": [name for _, name, _ in rows],
            "strategy": Constant(only, len(rows)) if only is not None else [spec for spec, _, _ in rows],
            **_columns([each for _, _, each in rows]),
        },
        digest,
    )


def _columns(rows: Sequence[Probed]) -> dict[str, Sequence[Any]]:
    asked = [each.asked for each in rows]
    done = [not each.failed for each in rows]

    def of(values: Sequence[Any]) -> list[Any]:
        """Null where the probe failed."""
        return [value if ok else None for value, ok in zip(values, done, strict=True)]

    return {
        "number": [each.number for each in asked],
        "probe": [each.probe.id for each in asked],
        "category": [each.probe.category for each in asked],
        "answerable": [each.probe.answerable for each in asked],
        "at": [each.stop for each in asked],
        "step": [each.step for each in rows],
        "failed": [each.failed for each in rows],
        "evidence": [[one.id for one in each.evidence] for each in asked],
        **{name: of([getattr(each, name) for each in rows]) for name in FIELDS},
        "added_from": of([[start for start, _ in each.added] for each in rows]),
        "added_to": of([[stop for _, stop in each.added] for each in rows]),
        "written": of([_json(each.written) for each in rows]),
        "written_tokens": of([each.tokens_written for each in rows]),
        "tools": [None if each.tools is None else _json(each.tools) for each in rows],
        "events": of([_json(each.events) for each in rows]),
        "loadable": of([[name for name, _ in each.loadable] for each in rows]),
        "loadable_by": of([[key for _, key in each.loadable] for each in rows]),
        "recalled": [each.recalled for each in rows],
        "evidence_state": of([[one.state for one in each.evidence] for each in rows]),
        "evidence_share": of([[one.share for one in each.evidence] for each in rows]),
        "evidence_tokens": of([sum(one.tokens for one in each.evidence) for each in rows]),
        "evidence_place": of([_place(each) for each in rows]),
        "answer": of([each.answer for each in rows]),
    }


def _json(values: Sequence[Any]) -> list[str]:
    return [msgspec.json.encode(value).decode() for value in values]


def _place(probed: Probed) -> float | None:
    """Where the evidence is, its tokens together; None if none of it is there."""
    tokens = sum(each.tokens for each in probed.evidence)
    return round(sum(each.tokens * each.place for each in probed.evidence) / tokens, 6) if tokens else None

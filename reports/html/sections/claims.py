"""The design documents' claims, where `ctxbench claims` has measured them on this run."""

from __future__ import annotations

import pandas as pd

from ....harness.claiming.stored import read
from ... import claims
from ...results import Results
from ..section import Section


def section(results: Results) -> Section | None:
    """None where they were not measured."""
    stored = read(results.run)
    if stored is None:
        return None
    rows = [
        {"id": each.id, "claim": each.claim, "timed": row.timed, **claims.flat(row)}
        for each in stored.findings
        for row in each.rows
    ]
    lead = "Each claim by its protocol: on this run, on scenarios and traces made for it, or by today's prices."
    if stored.quick:
        lead += " Measured with --quick: what takes most of a minute is left out, and says so."
    if stored.recordings:
        lead += f" With the recordings {', '.join(stored.recordings)}."
    frames = {"claims": pd.DataFrame(rows)} if rows else {}
    return Section(
        "claims",
        "Do the design documents' claims hold?",
        lead,
        tuple(claims.tables(stored.findings, every=True)),
        frames,
    )

"""How the run was made: what was asked for, versions, digests, how far the token counter is off."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ...render import Table
from ...results import Results
from ...tables import counter_table
from ..section import Section

ASKED = ("names", "form", "turns", "seed", "encoding", "model", "summariser", "embedder")


def section(results: Results) -> Section:
    """Every run has it."""
    manifest = results.run.manifest
    rows = tuple(_rows(manifest))
    parts = [Table("The run", ("what", "value"), rows, names=2, prose=True)]
    frames = {}
    if results.summary.counter:
        parts.insert(0, counter_table(results.summary))
        frames["counter"] = pd.DataFrame(results.summary.counter)
    lead = "The same recordings, strategies and versions give the same figures, those of time aside."
    return Section("method", "How it was made", lead, tuple(parts), frames)


def _rows(manifest: dict[str, object]) -> Iterator[tuple[str, str]]:
    plan = manifest["plan"]
    assert isinstance(plan, dict)
    for name in ASKED:
        value = plan.get(name)
        if value not in (None, ""):
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    versions = manifest["versions"]
    assert isinstance(versions, dict)
    yield from ((f"version: {name}", str(version)) for name, version in versions.items())
    yield "digest of the recordings", str(manifest["digest"])
    yield "run folder format", str(manifest["format"])

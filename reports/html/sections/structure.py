"""Contexts that a provider would not accept, or that lack what they are about."""

from __future__ import annotations

from ... import context_tables
from ...results import Results
from ..section import Section


def section(results: Results) -> Section:
    """Every run has it: none is a finding too."""
    lead = "A request with a result whose call was cut off, or with no user message, is refused, whatever it saves."
    return Section("structure", "Structural faults", lead, (context_tables.faults(results.summary),))

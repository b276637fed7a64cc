"""The sections of the report, in their order. One more is a file with a function, and a line here.

A function gets the results of a run, and gives None where the run has no data for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...results import Results
from ..section import Section
from . import (
    answers,
    bill,
    cache,
    calibration,
    claims,
    conversations,
    decisions,
    deeds,
    evidence,
    grounding,
    growth,
    method,
    overview,
    strategies,
    structure,
    survival,
    tiers,
)

SECTIONS: tuple[Callable[[Results], Section | None], ...] = (
    overview.section,
    strategies.section,
    growth.section,
    bill.section,
    cache.section,
    grounding.section,
    evidence.section,
    answers.section,
    calibration.section,
    survival.section,
    tiers.section,
    structure.section,
    decisions.section,
    deeds.section,
    conversations.section,
    claims.section,
    method.section,
)


def sections(results: Results) -> Iterator[Section]:
    """Those that the run has data for."""
    yield from (found for make in SECTIONS if (found := make(results)) is not None)

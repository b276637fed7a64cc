"""Attacks on what ctxbench promises: each tries many things with one seed, and says what held and what was lost."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """Counts of an attack. Each text in `lost` says what was done, and what came of it."""

    tried: int
    held: int
    lost: list[str]


def outcome(tried: int, lost: list[str]) -> Outcome:
    """Return an outcome in which all held but what is lost."""
    return Outcome(tried, tried - len(lost), lost)

"""Attacks: damage, faults and races, many times from one seed, and a count of what gave way."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """How often an attack was tried, how often what it attacked held, and what was lost, each with its seed."""

    tried: int
    held: int
    lost: list[str]

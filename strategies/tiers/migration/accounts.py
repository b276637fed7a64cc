"""What migration did: of each edge between two tiers how many items, tokens and bytes, how long they waited, and what
came of the rest.

Waits are recorded seconds, from when a move was asked for to when it was committed. Nothing here is measured: who
measures what a move took gives it to `Edge.wall_seconds`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class Why(StrEnum):
    """Why something was not moved. It is where it was."""

    COLD = "colder than the threshold"
    COOLING = "it came the other way just now"
    TOO_LARGE = "larger than the tier"
    NO_ROOM = "nothing there can leave"
    STALE = "it is not there any more"
    USED = "it was used since it was to leave"
    EXPIRED = "the prediction is too old"
    DAMAGED = "no copy of it is as it was written"
    CORRUPT = "the copy is not what was copied"
    FAILED = "the tier could not store it"


@dataclass(slots=True)
class Edge:
    """From one tier to another."""

    moves: int = 0
    revived: int = 0
    """Those that needed no copying: the copy of before was still there, and sound."""
    late: int = 0
    """Those that were committed after their deadline."""
    tokens: int = 0
    bytes: int = 0
    """What was copied."""
    waits: list[float] = field(default_factory=list)
    """Recorded seconds."""
    wall_seconds: list[float] = field(default_factory=list)
    """What the caller measured."""
    refused: Counter[Why] = field(default_factory=Counter)


@dataclass(slots=True)
class Accounts:
    """All edges, by the names of their tiers, and what is not of an edge."""

    edges: dict[tuple[str, str], Edge] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)
    """Items read, by the tier that they were in."""
    cleaned: int = 0
    """Copies deleted."""
    salvaged: int = 0
    """Items whose content was damaged or gone, and another copy was not."""
    damaged: int = 0
    """Copies that were not deleted, because nothing sound would have been left."""
    undeleted: int = 0
    """Times that a tier could not delete a copy; it is tried again."""

    def edge(self, source: str, to: str) -> Edge:
        """One edge."""
        return self.edges.setdefault((source, to), Edge())

"""Where everything is, how hot it is and what is queued, as plain data that JSON can hold."""

from __future__ import annotations

from typing import Any

import msgspec

from .jobs import Job
from .records import Locations, Record
from .store import TierError
from .tuning import Tuning

VERSION = 2


class State(msgspec.Struct, forbid_unknown_fields=True):
    """All that the moves to come depend on, but for the content, which is the tiers'."""

    now: float
    records: list[Record]
    uses: dict[str, tuple[float, float]]
    tuning: Tuning
    jobs: list[Job]
    looked: dict[str, tuple[float, int]]
    replacements: dict[str, Any]
    version: int = VERSION

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def read(snapshot: dict[str, Any]) -> tuple[State, Locations]:
    """A snapshot, and what its records come to. Raises TierError if it is none of this version."""
    try:
        state = msgspec.convert(snapshot, State)
        if state.version != VERSION:
            raise ValueError(f"it is of version {state.version}, this is {VERSION}")
        locations = Locations()
        for record in state.records:
            locations.apply(record)
    except (msgspec.ValidationError, ValueError) as error:
        raise TierError(f"this is no snapshot of a migration: {error}") from None
    return state, locations

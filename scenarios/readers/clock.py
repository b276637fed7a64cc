"""Times as recordings write them, as seconds since 1970 (UTC)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from ..errors import Place, RecordingError


def seconds(text: str, form: str, place: Place, example: str) -> float:
    """A time written in the `strptime` form, taken as UTC; a RecordingError that shows an example if it is not."""
    try:
        return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise RecordingError(place, f"{text!r} is no time", f"write it like {example!r}") from None


def iso_seconds(text: str, place: Place) -> float:
    """A time in ISO 8601; one without a zone is taken as UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise RecordingError(place, f"{text!r} is no time", "write it like '2025-06-15T12:00:00'") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def forward(times: Iterable[float | None]) -> tuple[list[float | None], int]:
    """The times without those that run behind an earlier one (None instead), and how many those were.

    >>> forward([1, 3, 2, 4])
    ([1, 3, None, 4], 1)
    """
    kept: list[float | None] = []
    clock, dropped = 0.0, 0
    for time in times:
        if time is not None and time < clock:
            kept.append(None)
            dropped += 1
        else:
            kept.append(time)
            clock = clock if time is None else time
    return kept, dropped

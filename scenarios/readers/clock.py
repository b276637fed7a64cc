"""Times as recordings write them, as seconds since 1970 (UTC)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
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
    """The times without as few as may be that run behind an earlier one (None instead), and how many those were.

    >>> forward([1, 3, 2, 4])
    ([1, 3, None, 4], 1)
    >>> forward([1, 99, 2, 3])
    ([1, None, 2, 3], 1)
    """
    given = list(times)
    kept = set(rising(given))
    made = [time if at in kept else None for at, time in enumerate(given)]
    return made, sum(time is not None for time in given) - len(kept)


def rising(times: Sequence[float | None]) -> list[int]:
    """Places of the most times that can be kept so that none is before an earlier one; of as many, those first said.

    From the end: `tails[n]` is the latest time that n + 1 times from there on can begin with.
    """
    tails: list[float] = []
    places: list[int] = []
    after: dict[int, int] = {}
    for at in range(len(times) - 1, -1, -1):
        time = times[at]
        if time is None:
            continue
        length = bisect_right(tails, -time)
        if length:
            after[at] = places[length - 1]
        tails[length : length + 1], places[length : length + 1] = [-time], [at]
    kept, next_one = [], places[-1] if places else None
    while next_one is not None:
        kept.append(next_one)
        next_one = after.get(next_one)
    return kept

"""Responses by the provider's ids: one that is written twice, as some loggers do with streams, is one call."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import Place, RecordingError
from ..source import Problems


@dataclass(slots=True)
class Responses:
    """The responses of one log or session that have been read."""

    problems: Problems
    _places: dict[str, Place] = field(default_factory=dict)

    def new(self, name: str | None, place: Place) -> bool:
        """Whether no response of this id has been read. Another one at `place` is a problem, and does not count."""
        if not name:
            return True
        first = self._places.setdefault(name, place)
        if first is not place:
            what = f"response {name!r} stands at {first} already"
            self.problems.add(RecordingError(place, what, "its call counts once; remove the second one"))
        return first is place

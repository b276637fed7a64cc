"""Fields of a decoded record by their paths, `metadata.model`: down by keys and numbers, into JSON that is text too."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from ..errors import Place, RecordingError
from ..source import MISFIT, convert

T = TypeVar("T")
# As types to decode or convert to, plain: msgspec looks at what `dict[str, Any]` means anew each time.
OBJECT: type[dict[str, Any]] = dict
LIST: type[list[Any]] = list
_NUMBER = re.compile(r"\.(\d+)(?![^.])")


class Fields:
    """The fields of one record. Of several paths, separated by `|`, the first that holds something counts."""

    def __init__(self, record: Any, place: Place) -> None:
        self.record, self.place = record, place
        self._decoded: dict[str, Any] = {"": record}

    def at(self, path: str) -> Any:
        """Return what stands at one path; None if nothing does."""
        outer, _, step = path.rpartition(".")
        held = self._decoded.get(outer, self)
        if held is self:  # it was not decoded yet
            held = self._decoded[outer] = decoded(self.at(outer))
        if isinstance(held, dict):
            return held.get(step)
        return held[int(step)] if isinstance(held, list) and step.isdecimal() and int(step) < len(held) else None

    def get(self, paths: str) -> Any:
        """Return the first value that holds something."""
        return next(filter(None, map(self.at, paths.split("|"))), None)

    def text(self, paths: str) -> str:
        """Return the first text that is not empty."""
        return next(filter(None, map(text_of, map(self.at, paths.split("|")))), "")

    def typed(self, paths: str, kind: type[T]) -> T | None:
        """Return the first value that is not null. Raises RecordingError if it is not of the type."""
        path = self.first(paths)
        value = self.at(path)
        return None if value is None else self._converted(value, kind, path)

    def one_of(self, paths: str, kinds: Any) -> Any:
        """Return the first value that is not null, as `typed` does, of one of several types."""
        return self.typed(paths, kinds)

    def needed(self, paths: str, kind: type[T]) -> T:
        """Return the first value that holds something. Raises RecordingError if there is none, or not of the type."""
        path = next((path for path in paths.split("|") if self.at(path) not in (None, "")), "")
        if not path:
            remedy = "correct it, or leave this record out" + ("" if self.place.field else MISFIT)
            raise RecordingError(self.place, f"object missing required field {paths.partition('|')[0]}", remedy)
        return self._converted(self.at(path), kind, path)

    def _converted(self, value: Any, kind: type[T], path: str) -> T:
        # Most values are what they should be: no place is made for them, and no type looked at twice.
        if type(value) is kind:
            return value
        try:
            return msgspec.convert(value, kind, strict=True)
        except (msgspec.ValidationError, RecursionError):
            return convert(value, kind, self.below(path))

    def below(self, path: str) -> Place:
        """Return the place of a path: `choices[0].message` of `choices.0.message`."""
        return self.place.below(_NUMBER.sub(r"[\1]", path))

    def first(self, paths: str) -> str:
        """Return the first path with a value that is not null; the first of all if there is none."""
        if "|" not in paths:
            return paths
        several = paths.split("|")
        return next((path for path in several if self.at(path) is not None), several[0])


def decoded(logged: Any) -> Any:
    """Return the object or list that a text holds as JSON; anything else as it is."""
    if isinstance(logged, str) and logged.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(logged)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return logged
    return logged


def as_object(value: Any) -> dict[str, Any]:
    """Return an object, or that which a text holds as JSON; an empty one for anything else."""
    value = decoded(value)
    return value if isinstance(value, dict) else {}


def text_of(value: Any) -> str:
    """Return a text; an empty one for anything else."""
    return value if isinstance(value, str) else ""

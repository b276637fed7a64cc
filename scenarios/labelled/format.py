"""What a format of labelled answers is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..errors import Place, RecordingError
from ..source import Problems, convert, decode, records
from .labelled import Labelled

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is recognised and read."""

    about: str
    shapes: tuple[frozenset[str], ...]
    """Key paths (`source.key_paths`) of which all must be in a file; any one set is enough."""
    read: Callable[[Path, Problems, Any], Iterator[Labelled]]
    """From a file, the problems, and LoCoMo's corrections."""


def rows(path: Path, kind: type[T], problems: Problems) -> Iterator[tuple[int, Place, T]]:
    """The records of a file as `kind`, each with its number from 0 and its place. A bad one is a problem."""
    for at, (place, raw) in enumerate(records(path, problems)):
        try:
            yield at, place, decode(raw, kind, place)
        except RecordingError as error:
            problems.add(error)


def parts(values: list[Any], kind: type[T], place: Place, problems: Problems) -> Iterator[tuple[int, Place, T]]:
    """The same for the elements of a list that stands at `place`."""
    for at, value in enumerate(values):
        where = place.at(f"{place.field}[{at}]")
        try:
            yield at, where, convert(value, kind, where)
        except RecordingError as error:
            problems.add(error)

"""Recorded formats. A reader turns the files of its format into conversations.

Readers are registered in the entry point group `ctxbench.readers`, the built-in ones and those of plug-ins alike. A
reader with options is a frozen dataclass: its options are written like a strategy's, `locomo(corrections='a.json')`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation
from ..source import MISFIT, Problems, convert, decode, loads, objects, records

Recordings = Iterator[tuple[Place, Conversation]]
"""Conversations as they are read, each with its place in the files."""
UNNAMED = "\0"  # id of a conversation that has none of its own: it is named after its file
# As types to decode or convert to, plain: msgspec looks at what `dict[str, Any]` means anew each time.
OBJECT: type[dict[str, Any]] = dict
LIST: type[list[Any]] = list


@dataclass(frozen=True)
class Reader:
    """How one recorded format is recognised and read: a reader overrides `conversations`, or `read` itself."""

    about: ClassVar[str]  # one line for `ctxbench list formats`
    checked: ClassVar[str] = ""
    """The program that writes the format, and the newest version that the reader was checked with: `Codex 0.147`."""
    shapes: ClassVar[tuple[frozenset[str], ...]] = ()
    """Sets of key paths (`source.key_paths`). A file is of this format if it has all paths of one set; `*` stands for
    any one key. If several formats fit, the one with the larger set is taken."""
    folder: ClassVar[bool] = False
    """True if the files of a folder make the recordings together; False if each file is read alone."""
    record_type: ClassVar[Any] = OBJECT  # what a record is decoded to

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004
        """Return whether a file that no shape tells is of this format, by its name and its first bytes."""
        return False

    @staticmethod
    def each_record(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
        """Yield the records of a file."""
        return records(path, problems)

    @staticmethod
    def folder_of(path: Path) -> Path:
        """Return the folder whose files make a recording together."""
        return path.parent

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        """Yield the conversations of one file, or of one folder's files, which come in sorted order.

        A damaged conversation goes to `problems.add`, and the rest is read. A RecordingError that is raised ends the
        reading of these files only.
        """
        for path in files:
            for place, raw in self.each_record(path, problems):
                with problems.collect():
                    record = Fields(decode(raw, self.record_type, place), place)
                    del raw  # it takes as much memory as its conversation, which is used for long
                    yield from self.conversations(record, problems)

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        """Yield the conversations of one record. Raises RecordingError if it is damaged."""
        raise NotImplementedError


class Session(Protocol):
    """Session that the records of one file make together."""

    def add(self, record: Fields) -> None:
        """Add the next record. Raises RecordingError if it cannot be read."""

    def conversations(self, path: Path) -> Recordings:
        """Yield the conversations of all records, which stand in the file at `path`."""


class SessionReader(Reader):
    """A reader of files to which a program appends, and whose records make one session."""

    each_record = staticmethod(objects)

    def session(self, problems: Problems) -> Session:
        """Return a session without records."""
        raise NotImplementedError

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            session = self.session(problems)
            for place, raw in self.each_record(path, problems):
                with problems.collect():
                    session.add(Fields(decode(raw, self.record_type, place), place))
            yield from session.conversations(path)


def anywhere(*forms: Sequence[str], under: Sequence[str] = ("", "[]")) -> tuple[frozenset[str], ...]:
    """Return the shapes of files whose records have all key paths of one of these forms, wherever the records stand."""
    return tuple(frozenset(f"{outer}{key}" for key in keys) for outer in under for keys in forms)


@cache
def readers() -> dict[str, type[Reader]]:
    """Return the reader classes by name, in the order of their names."""
    points = sorted(entry_points(group="ctxbench.readers"), key=lambda point: point.name)
    return {point.name: point.load() for point in points}


T = TypeVar("T")
_NUMBER = re.compile(r"\.(\d+)(?![^.])")


@cache
def _holder(kind: Any) -> Any:
    """Return a type with a value of some type: msgspec looks at what a union means anew each time, but for a class."""
    return msgspec.defstruct("Holder", [("value", kind)])


class Fields:
    """The fields of one record. Of several paths, separated by `|`, the first that holds something counts."""

    __slots__ = ("_decoded", "place", "record")

    def __init__(self, record: Any, place: Place) -> None:
        self.record, self.place = record, place
        self._decoded: dict[str, Any] | None = None

    def at(self, path: str) -> Any:
        """Return what stands at one path; None if nothing does."""
        held, step = self.record, path
        if "." in path:
            outer, _, step = path.rpartition(".")
            held = self.at(outer)
            if isinstance(held, str):  # decoded once
                self._decoded = self._decoded or {}
                if outer not in self._decoded:
                    self._decoded[outer] = decoded(held)
                held = self._decoded[outer]
        if isinstance(held, dict):
            return held.get(step)
        return held[int(step)] if isinstance(held, list) and step.isdecimal() and int(step) < len(held) else None

    def get(self, paths: str) -> Any:
        """Return the first value that holds something."""
        return next(filter(None, map(self.at, paths.split("|"))), None)

    def text(self, paths: str) -> str:
        """Return the first text that is not empty."""
        for path in paths.split("|"):
            if isinstance(value := self.at(path), str) and value:
                return value
        return ""

    def typed(self, paths: str, kind: type[T]) -> T | None:
        """Return the first value that is not null. Raises RecordingError if it is not of the type."""
        for path in paths.split("|"):
            if (value := self.at(path)) is not None:
                return value if type(value) is kind else self._converted(value, kind, path)
        return None

    def needed(self, paths: str, kind: type[T], blank: bool = False) -> T:
        """Return the first value that holds something. Raises RecordingError if there is none, or not of the type.

        With `blank` an empty text is a value as well.
        """
        for path in paths.split("|"):
            value = self.at(path)
            if value is not None and (blank or value != ""):
                return value if type(value) is kind else self._converted(value, kind, path)
        remedy = "correct it, or leave this record out" + ("" if self.place.field else MISFIT)
        raise RecordingError(self.place, f"object missing required field {paths.partition('|')[0]}", remedy)

    def each(self, paths: str) -> Iterator[Fields]:
        """Yield the elements of a list, if it is there. Raises RecordingError for another value."""
        path = self.first(paths)
        if elements := self.typed(path, LIST):
            where = self.below(path)
            for at, element in enumerate(elements):
                yield Fields(element, Place(where.file, where.line, f"{where.field}[{at}]"))

    def _converted(self, value: Any, kind: type[T], path: str) -> T:
        # Most values are what they should be: no place is made for them, and no type looked at twice.
        try:
            holder = _holder(kind)  # type: ignore[arg-type]  # mypy takes type[T] for unhashable
            held: T = msgspec.convert({"value": value}, holder, strict=True).value
            return held
        except (msgspec.ValidationError, RecursionError):
            return convert(value, kind, self.below(path))

    def below(self, path: str) -> Place:
        """Return the place of a path: `choices[0].message` of `choices.0.message`."""
        return self.place.below(_NUMBER.sub(r"[\1]", path) if "." in path else path)

    def first(self, paths: str) -> str:
        """Return the first path whose value is not null; without any, the first path."""
        if "|" not in paths:
            return paths
        several = paths.split("|")
        return next((path for path in several if self.at(path) is not None), several[0])


def decoded(logged: Any) -> Any:
    """Return the object or list that a text holds as JSON; anything else as it is."""
    if isinstance(logged, str) and logged.lstrip()[:1] in ("{", "["):
        try:
            return loads(logged)
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

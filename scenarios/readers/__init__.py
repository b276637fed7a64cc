"""Recorded formats. A reader turns the files of its format into conversations.

Readers are registered in the entry point group `ctxbench.readers`, the built-in ones and those of plug-ins alike. A
reader with options is a frozen dataclass: its options are written like a strategy's, `locomo(corrections='a.json')`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar

from ..errors import Place
from ..model import Conversation
from ..source import Problems, records

Recordings = Iterator[tuple[Place, Conversation]]
"""Conversations as they are read, each with its place in the files."""


@dataclass(frozen=True)
class Reader:
    """How one recorded format is recognised and read: a reader overrides `conversations`, or `read` itself."""

    about: ClassVar[str]
    """One line for `ctxbench list formats`."""
    shapes: ClassVar[tuple[frozenset[str], ...]] = ()
    """Sets of key paths (`source.key_paths`). A file is of this format if it has all paths of one set; `*` stands for
    any one key. If several formats fit, the one with the larger set is taken."""
    folder: ClassVar[bool] = False
    """True if the files of a folder make the recordings together; False if each file is read alone."""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004
        """Return whether a file that no shape tells is of this format, by its name and its first bytes."""
        return False

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
            for place, raw in records(path, problems):
                with problems.collect():
                    yield from self.conversations(raw, place, problems)

    def conversations(self, raw: bytes, place: Place, problems: Problems) -> Recordings:
        """Yield the conversations of one record. Raises RecordingError if it is damaged."""
        raise NotImplementedError


def anywhere(*forms: Sequence[str], under: Sequence[str] = ("", "[]")) -> tuple[frozenset[str], ...]:
    """Return the shapes of files whose records have all key paths of one of these forms, wherever the records stand."""
    return tuple(frozenset(f"{outer}{key}" for key in keys) for outer in under for keys in forms)


@cache
def readers() -> dict[str, type[Reader]]:
    """Return the reader classes by name, in the order of their names."""
    points = sorted(entry_points(group="ctxbench.readers"), key=lambda point: point.name)
    return {point.name: point.load() for point in points}

"""Recorded formats, one file each. A reader turns the files of its format into conversations.

Readers are found through the entry point group `ctxbench.readers`, ours like anyone's. A reader is a frozen
dataclass, so its options are written like a strategy's: `locomo(corrections='errors.json')`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ..errors import Place
from ..model import Conversation
from ..source import Problems

Found = Iterator[tuple[Place, Conversation]]
"""Conversations as they are read, each with where it stands."""


class Reader(Protocol):
    """How one recorded format is recognised and read."""

    about: ClassVar[str]
    """One line for `ctxbench list formats`."""
    shapes: ClassVar[tuple[frozenset[str], ...]]
    """Key paths (`source.key_paths`) of which all must be in a file for it to be of this format; any one set is
    enough; `*` stands for any one key. Of two formats that fit, the one with the larger set is taken."""
    folder: ClassVar[bool]
    """Whether all files of one folder make the recordings together; else each file is read alone."""

    def read(self, files: Sequence[Path], problems: Problems) -> Found:
        """Read one file, or one folder's files in sorted order.

        Yields what is whole. What is not goes to `problems.add` and the rest is read; a RecordingError that is
        raised ends these files only.
        """
        ...


@cache
def readers() -> dict[str, type[Any]]:
    """The reader classes by name, in the order of their names."""
    found = {point.name: point.load() for point in entry_points(group="ctxbench.readers")}
    return dict(sorted(found.items()))

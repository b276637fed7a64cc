"""Errors that the user can fix, and other people's text made fit to be shown.

    UserError                 prints as one line, exit code 2, no traceback
    ├── RecordingError        a recording: file, line, field
    ├── SpecError             a strategy or reader written as text
    ├── RunError              a run folder, or where it should go
    ├── SetupError            the models of a run: a name, a cassette, weights, a price or limit that cannot be used
    ├── NotLogged             a run that MLflow did not take
    ├── WorkerError           a library that runs in another Python
    ├── Unsupported           a recording that a strategy cannot be replayed on (`strategies.base`)
    ├── SystemOverBudget      system messages that alone are over a strategy's budget (`strategies.base`)
    └── MissingExtra          a library that an extra brings

Any other exception is a bug of ours, and shows a traceback. Third-party code (strategies, readers) may raise anything,
SystemExit included: that is its failure. Only Stopped is the user's wish, wherever it is raised.
"""

from __future__ import annotations

from itertools import takewhile
from os.path import dirname, join
from traceback import extract_tb, format_list

import msgspec


class Stopped(SystemExit):
    """The user interrupted the command. If not caught, the command ends with the exit code that shells give it."""


class UserError(Exception):
    """An error that the user can fix. Its text says where, what was wrong and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in a notebook: the user's own lines, without its and ours, and the text."""
        ours, shell = dirname(dirname(__file__)), join("IPython", "core")
        frames = takewhile(lambda frame: not frame.filename.startswith(ours), extract_tb(self.__traceback__))
        lines = format_list([frame for frame in frames if shell not in frame.filename])
        return [*map(str.rstrip, lines), f"{type(self).__name__}: {self}"]


class Place(
    msgspec.Struct, frozen=True, gc=False
):  # made for every message that is read: a data class takes 5 times as long
    """A place in a file: line from 1 (0 = the whole file), field as `messages[3].role`."""

    file: str
    line: int = 0
    field: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.field}" if self.field else where

    def at(self, field: str) -> Place:
        """Return the same place, narrowed to a field."""
        return Place(self.file, self.line, field)

    def below(self, field: str) -> Place:
        """Return the same place, narrowed to a field of its field."""
        return self.at(f"{self.field}.{field}" if self.field else field)


class RecordingError(UserError):
    """A recording, or one record of it, that cannot be read."""

    def __init__(self, place: Place, what: str, remedy: str = "") -> None:
        self.place, self.what, self.remedy = place, what, remedy
        super().__init__(f"{place}: {what}" + (f" ({remedy})" if remedy else ""))

    # Worker processes send their errors by pickle, which would call __init__ with the text alone.
    def __reduce__(self) -> tuple[type[RecordingError], tuple[Place, str, str]]:
        return RecordingError, (self.place, self.what, self.remedy)


class SpecError(UserError):
    """Text that names no strategy or reader, gives one a parameter that it does not have, or is no query."""


class RunError(UserError):
    """A run folder that cannot be written, read or continued."""


class SetupError(UserError):
    """A model, a cassette, weights or a limit that a run cannot use."""


class NotLogged(UserError):
    """A run that MLflow did not accept. The run folder is unchanged, and can be logged later."""


class WorkerError(UserError):
    """A library that runs in another Python and failed there, or a Python that no library can run in."""


class MissingExtra(UserError):
    """A library that is not installed or has another `problem`, and the extra that brings it; `also` would help too."""

    def __init__(self, library: str, extra: str, also: str = "", problem: str = "is not installed") -> None:
        super().__init__(f"{library} {problem}: pip install 'ctxbench[{extra}]'{also}")
        self.extra = extra


def printable(text: str) -> str:
    """Return text that cannot steer a terminal: control, bidirectional and invisible characters become `·`."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else "·" for char in text)


def printable_line(text: str) -> str:
    """Return printable text on one line: line breaks become `·`."""
    return printable(text).replace("\n", "·")


def csv_text(text: str) -> str:
    """Return such text for a CSV file's cell or column name: no spreadsheet takes it for a formula."""
    return f"'{printable(text)}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else printable(text)

"""What the user can mend.

    UserError                 prints as one line, exit code 2, no traceback
    ├── RecordingError        a recording: file, line, field
    ├── SpecError             a strategy or reader written as text
    ├── RunError              a run folder, or where it should go
    ├── SetupError            the models of a run: a name, a cassette, weights, a price or limit that cannot be used
    ├── NotLogged             a run that MLflow did not take
    └── MissingExtra          a library that an extra brings

Anything else that is raised is a bug of ours, and shows a traceback. Code of others (strategies, readers) may raise
what it likes, sys.exit among it: that is its failure, but for Stopped, which is the user's wish wherever it is raised.
"""

from __future__ import annotations

from dataclasses import dataclass


class Stopped(SystemExit):
    """The user wants the command to end. If nobody minds, that is what happens, with the code that shells give it."""


class UserError(Exception):
    """Something that the user can mend. Its text says where, what was wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a file: line from 1 (0 = the whole file), field as `messages[3].role`."""

    file: str
    line: int = 0
    field: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.field}" if self.field else where

    def at(self, field: str) -> Place:
        """The same place, narrowed to a field."""
        return Place(self.file, self.line, field)


class RecordingError(UserError):
    """A recording, or one record of it, that cannot be read."""

    def __init__(self, place: Place, what: str, remedy: str = "") -> None:
        self.place, self.what, self.remedy = place, what, remedy
        super().__init__(f"{place}: {what}" + (f" ({remedy})" if remedy else ""))

    def __reduce__(self) -> tuple[type[RecordingError], tuple[Place, str, str]]:
        return RecordingError, (self.place, self.what, self.remedy)


class SpecError(UserError):
    """Text that names no strategy or reader, or gives it a parameter that it does not take."""


class RunError(UserError):
    """A run folder that cannot be written, read or continued."""


class SetupError(UserError):
    """A model, a cassette, weights or a limit that a run cannot use."""


class NotLogged(UserError):
    """A run that MLflow did not take. It is kept, and can be logged later."""


class MissingExtra(UserError):
    """A library that is not installed, and the extra that brings it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed: pip install 'ctxbench[{extra}]'")

"""Standard output and standard error: streams that may go away, messages and signals."""

from __future__ import annotations

import atexit
import io
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

import typer

from ctxbench.scenarios.errors import RunError, Stopped, printable_line
from ctxbench.scenarios.secrets import without_secrets, without_values

if TYPE_CHECKING:
    from ctxbench.scenarios.source import Problems

_MOST_FILES = 4  # files and notes that are printed one by one
# Longer than most paths and addresses: a value that somebody pasted, of which the ends are enough to know it by.
_LONG_VALUE = re.compile(r"(\S{160})(\S{400,})(\S{40})")
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Output(io.FileIO):
    """Standard output. What no reader is left for is dropped: the exit code stays. A full disk is an error."""

    _ended = False

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        if self._ended:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._ended = True
            if isinstance(error, BrokenPipeError):
                return len(data)
            raise RunError(f"standard output: cannot be written: {error.strerror or error}") from None


class _Errors(io.FileIO):
    """Standard error. Messages that cannot be written are dropped: the work goes on."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError:
            return len(data)


class _Text(io.TextIOWrapper):
    """A stream of text in which no secret value of this machine stands, whoever prints it."""

    def write(self, text: str, /) -> int:
        super().write(without_values(text))
        return len(text)


def guard() -> None:
    """Guard both streams, so that no command has to handle their errors, or to think of secrets."""
    sys.stdout = _guarded(sys.stdout, _Output)
    sys.stderr = _guarded(sys.stderr, _Errors)


def _guarded(stream: TextIO | None, kind: type[io.FileIO]) -> TextIO:
    if stream is None:  # it was closed before we started
        return open(os.devnull, "w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if sys.platform == "win32" and stream.isatty():  # which takes no bytes
        stream.reconfigure(errors="replace")
        return stream
    return _Text(
        io.BufferedWriter(kind(stream.fileno(), "wb", closefd=False)),
        stream.encoding,
        "replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def listen() -> None:
    """Raise Stopped on a signal to stop, except those that we were started to ignore (nohup, a background job).

    A library's callback, or a destructor, may swallow it: it is raised again until it is on its way.
    """
    _heard.extend(number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)
    for number in _heard:
        signal.signal(number, _stop)
    if _ALARM:
        signal.signal(_ALARM, _stop)
    # Python prints a trace of what a callback or a destructor swallows.
    sys.unraisablehook = lambda lost: None if lost.exc_type is Stopped else sys.__unraisablehook__(lost)
    atexit.register(_leave)


def end_listening() -> None:
    """Let no signal interrupt what Python does at its end. The exit code tells of one; a second one ends it at once."""
    if _ALARM:
        signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _heard:
        signal.signal(number, lambda number, _: os._exit(_came[0]) if _came else _came.append(128 + number))


_heard: list[int] = []  # the signals that we listen to
_came: list[int] = []  # codes to exit with, of the signals that came
_ALARM, _AGAIN = getattr(signal, "SIGALRM", 0), 0.5  # seconds


def _stop(number: int, _frame: FrameType | None) -> None:
    if _ALARM:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    error = sys.exc_info()[1]  # that is handled just now, here or in any caller
    while number == _ALARM and error is not None:
        if isinstance(error, Stopped):
            return
        error = error.__context__
    if number != _ALARM or not _came:  # an alarm before any signal is somebody else's, such as `timeout -s ALRM`
        _came.append(128 + number)
    raise Stopped(_came[-1])


def _leave() -> None:
    for number in _heard:
        signal.signal(number, signal.SIG_DFL)
    if _came:
        os._exit(_came[-1])


def say(text: str) -> None:
    """Print one line on standard error, without secrets, what steers a terminal, or the middle of a long value."""
    line = printable_line(without_secrets(text))
    typer.echo(_LONG_VALUE.sub(lambda value: f"{value[1]}…{len(value[2]):,} more…{value[3]}", line), err=True)


# What the user was told who stopped the command.
_told: list[str] = []


def say_stopped(text: str) -> None:
    """Print what is kept of a command that was stopped, and how to go on."""
    _told.append(text)
    say(f"stopped; {text}")


def say_how_to_repeat() -> None:
    """Print how to give a stopped command again, unless it has said more."""
    if not _told:
        say_stopped(f"to begin again: {same_command()}")


@contextmanager
def resumable(kept: str, folder: Path | None = None) -> Iterator[None]:
    """Say what is kept of a command that is stopped within the block, if the folder has anything, and how to go on."""
    try:
        yield
    except (Stopped, KeyboardInterrupt):  # a strategy may raise KeyboardInterrupt
        if folder is None or any(folder.glob("*/*.parquet")):
            say_stopped(f"{kept}. To continue: {same_command()}")
        else:
            from ctxbench.harness.folder.store import ACCOUNT, remove_empty

            if not (folder / ACCOUNT).exists():  # which holds what was spent
                remove_empty(folder)
        raise


def report_problems(problems: Problems, most: int = 1_000_000) -> None:
    """Print the records that were left out, at most so many one by one, and the files that are no recordings."""
    for error in problems.errors[:most]:
        say(f"left out: {error}")
    if len(problems.errors) > most:
        say(f"left out: {len(problems.errors) - most:,} more")
    report_ignored(problems.ignored, problems.notes)


def report_ignored(ignored: Sequence[str], notes: Sequence[str]) -> None:
    """Print files of folders that are no recordings, those with a reason first, and notes on the reading."""
    if ignored:
        parts = sorted((file.partition(": ") for file in ignored), key=lambda part: not part[2])
        files = [(Path(name), why) for name, _, why in parts if not why.endswith(" hidden")]
        folders = {file.parent for file, _ in files} or {Path(name) for name, _, _ in parts}
        names = [(file.name if len(folders) == 1 else str(file)) + f" ({why})" * bool(why) for file, why in files]
        hidden = sum(int(why.split()[0]) for _, _, why in parts if why.endswith(" hidden"))
        some = names[:_MOST_FILES] + [f"{len(names) - _MOST_FILES:,} more"] * (len(names) > _MOST_FILES)
        where = f" in {min(folders)}" * (len(folders) == 1)
        say(f"not read{where}, no recordings: {', '.join(some + [f'{hidden:,} hidden'] * (hidden > 0))}")
    for note in notes[:_MOST_FILES]:
        say(f"note: {note}")
    if len(notes) > _MOST_FILES:
        say(f"note: {len(notes) - _MOST_FILES} more")


def command(*words: object) -> str:
    """Return a ctxbench command: with `ctxbench` if the shell finds this very program, else as it was started."""
    started, on_path = sys.argv[0], shutil.which("ctxbench")
    if Path(started).name == "__main__.py":
        return shlex.join([sys.executable, "-m", "ctxbench", *map(str, words)])
    found_by_shell = not os.path.isfile(started) or (on_path is not None and os.path.samefile(on_path, started))
    return shlex.join(["ctxbench" if found_by_shell else started, *map(str, words)])


def same_command() -> str:
    """Return this command again, to continue a run."""
    return command(*(word for word in sys.argv[1:] if word != "--overwrite"))

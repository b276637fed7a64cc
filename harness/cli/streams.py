"""Standard output and standard error that may go away or be full while we write."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TextIO

import typer

from ...scenarios.errors import RunError, Stopped


class _Output(io.FileIO):
    """A reader who has read enough ends the program, quietly and well. A full disk is the user's to mend."""

    _ended = False

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        if self._ended:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._ended = True
            if isinstance(error, BrokenPipeError):
                raise SystemExit(0) from None
            raise RunError(f"standard output: cannot be written: {error.strerror or error}") from None


class _Errors(io.FileIO):
    """What cannot be said is not said: the work goes on."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError:
            return len(data)


def guard() -> None:
    """Put both streams under guard, so that no command need think of them."""
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
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream.fileno(), "wb", closefd=False)),
        stream.encoding,
        "replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def listen() -> None:
    """Raise Stopped when told to stop, but for what we were started to ignore (nohup, a job in the background)."""
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _stop)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise Stopped(128 + number)


_SOME = 4


def say(text: str) -> None:
    """One line on standard error. Nothing in it can steer the terminal."""
    typer.echo("".join(char if char.isprintable() else "·" for char in text), err=True)


def say_what_was_passed_over(ignored: Sequence[str], notes: Sequence[str]) -> None:
    """What of folders is no recording, those with a reason first; and what else is to be known of the reading."""
    from ...reports.render import count

    if ignored:
        some = sorted((Path(each).name for each in ignored), key=lambda name: ": " not in name)[:_SOME]
        say(f"not recordings: {count(len(ignored), 'file')} ({'; '.join(some)}{' …' * (len(ignored) > _SOME)})")
    for note in notes[:_SOME]:
        say(f"note: {note}")
    if len(notes) > _SOME:
        say(f"note: {len(notes) - _SOME} more")


def command(*words: object) -> str:
    """A ctxbench command: as `ctxbench` if the shell would find this very program, else as it was started."""
    started, found = sys.argv[0], shutil.which("ctxbench")
    known = not os.path.isfile(started) or (found is not None and os.path.samefile(found, started))
    return shlex.join(["ctxbench" if known else started, *map(str, words)])


def same_command() -> str:
    """This command again, to go on with a run."""
    return command(*(word for word in sys.argv[1:] if word != "--overwrite"))

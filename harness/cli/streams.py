"""Standard output and standard error: streams that may go away, messages, signals, and progress."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ...scenarios.errors import RunError, Stopped

if TYPE_CHECKING:
    from ...scenarios.model import Conversation

# Seconds between plain lines of progress.
EVERY = 5.0
# Files and notes that are printed one by one.
_MOST_FILES = 4
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Output(io.FileIO):
    """Standard output. A reader that goes away ends the program quietly; a full disk is an error for the user."""

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
    """Standard error. Messages that cannot be written are dropped: the work goes on."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError:
            return len(data)


def guard() -> None:
    """Guard both streams, so that no command has to handle their errors."""
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


def listen() -> None:
    """Raise Stopped on a signal to stop, except those that we were started to ignore (nohup, a background job)."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise Stopped(128 + number)


def say(text: str) -> None:
    """Print one line on standard error. Nothing in it can steer the terminal."""
    typer.echo("".join(char if char.isprintable() else "·" for char in text), err=True)


def report_ignored(ignored: Sequence[str], notes: Sequence[str]) -> None:
    """Print files of folders that are no recordings, those with a reason first, and notes on the reading."""
    from ...reports.render import count

    if ignored:
        some = sorted((Path(file).name for file in ignored), key=lambda name: ": " not in name)[:_MOST_FILES]
        say(f"not recordings: {count(len(ignored), 'file')} ({'; '.join(some)}{' …' * (len(ignored) > _MOST_FILES)})")
    for note in notes[:_MOST_FILES]:
        say(f"note: {note}")
    if len(notes) > _MOST_FILES:
        say(f"note: {len(notes) - _MOST_FILES} more")


def command(*words: object) -> str:
    """Return a ctxbench command: with `ctxbench` if the shell finds this very program, else as it was started."""
    started, on_path = sys.argv[0], shutil.which("ctxbench")
    found_by_shell = not os.path.isfile(started) or (on_path is not None and os.path.samefile(on_path, started))
    return shlex.join(["ctxbench" if found_by_shell else started, *map(str, words)])


def same_command() -> str:
    """Return this command again, to continue a run."""
    return command(*(word for word in sys.argv[1:] if word != "--overwrite"))


class ProgressCounts:
    """Progress of a run, and its share of the whole work, by messages.

    Until all is read, the whole is estimated from the bytes read, without the last read: a file that is read as a whole
    is consumed at the first of its conversations.
    """

    def __init__(self) -> None:
        self.size = self.found = self.conversations = self.steps = 0
        self.began = monotonic()
        self._messages = self._measured = self._consumed = 0
        # Number of all messages; 0 = not known.
        self._whole = 0.0
        self._is_read = False

    def begin(self, size: int) -> None:
        self.size = size

    def read(self, conversation: Conversation, consumed: int) -> None:
        if consumed > self._consumed:
            if self._consumed:
                self._whole = self._messages * self.size / self._consumed
            self._consumed = consumed
        self.found += 1
        self._messages += len(conversation.messages)
        self.changed()

    def all_read(self) -> None:
        self._is_read, self._whole = True, self._messages
        self.changed()

    def measured(self, conversations: int, messages: int, steps: int) -> None:
        self.conversations += conversations
        self.steps += steps
        self._measured += messages
        self.changed()

    def changed(self) -> None:
        """Show the progress. A subclass does."""

    @property
    def share(self) -> float | None:
        """Share of the work that is done; None = not known yet. 1 only when nothing is left to do."""
        if not self._whole:
            return None
        return self._measured / max(self._whole, self._messages + (not self._is_read))

    @property
    def words(self) -> str:
        rate = self.steps / max(monotonic() - self.began, 1e-3)
        total = f"{self.found:,}{'' if self._is_read else '+'}"
        return f"{self.conversations:,} of {total} conversations, {self.steps:,} steps, {rate:,.0f} steps/s"


class _Lines(ProgressCounts):
    def __init__(self) -> None:
        super().__init__()
        self._printed = self.began
        self._is_printed = False

    def changed(self) -> None:
        self._is_printed = False
        if monotonic() - self._printed >= EVERY:
            self._print()

    def end(self) -> None:
        """Print the last line. A run too short for a line has none."""
        if self._printed > self.began and not self._is_printed:
            self._print()

    def _print(self) -> None:
        self._printed, self._is_printed = monotonic(), True
        share = "" if self.share is None else f"{int(self.share * 100)}% "
        print(f"{share}{self.words}", file=sys.stderr, flush=True)


class _Bar(ProgressCounts):
    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("reading", total=None)

    def changed(self) -> None:
        progress = {} if self.share is None else {"total": 1.0, "completed": self.share}
        self._progress.update(self._task, description=self.words, **progress)  # type: ignore[arg-type]


@contextmanager
def watching() -> Iterator[ProgressCounts]:
    """Yield a watcher for a run that shows its progress while the block lasts."""
    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines()
        yield lines
        lines.end()
        return
    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)


@contextmanager
def counting(size: int, what: str) -> Iterator[Callable[..., None]]:
    """Yield a function to call after each of `size` pieces of work, or with the number done, and show the progress."""
    console = Console(stderr=True)
    done, printed = 0, monotonic()
    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"0 of {size} {what}", total=size)

        def count(some: int = 1) -> None:
            nonlocal done, printed
            done += some
            words = f"{done:,} of {size:,} {what}"
            progress.update(task, completed=done, description=words)
            if not console.is_terminal and monotonic() - printed >= EVERY:
                printed = monotonic()
                print(f"{done * 100 // size}% {words}", file=sys.stderr, flush=True)

        yield count

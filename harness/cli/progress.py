"""The progress bar: a live line on a terminal, a plain line every few seconds elsewhere. Always on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ...scenarios.model import Conversation

EVERY = 5.0
"""Seconds between plain lines."""


class ProgressCounts:
    """What a run has done so far, and what share of its work that is, by messages.

    Until all is read the whole is reckoned from the bytes read. What was read last is not reckoned from: a file that is
    read as a whole is all consumed at the first of its conversations.
    """

    def __init__(self) -> None:
        self.size = self.found = self.conversations = self.steps = 0
        self.began = monotonic()
        self._messages = self._measured = self._consumed = 0
        self._whole = 0.0
        """Messages that there are in all; 0 = not known."""
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
        """Show it."""

    @property
    def share(self) -> float | None:
        """What part of the work is done; None = not known yet. 1 only when nothing is left to do."""
        if not self._whole:
            return None
        return self._measured / max(self._whole, self._messages + (not self._is_read))

    @property
    def words(self) -> str:
        rate = self.steps / max(monotonic() - self.began, 1e-3)
        found = f"{self.found:,}{'' if self._is_read else '+'}"
        return f"{self.conversations:,} of {found} conversations, {self.steps:,} steps, {rate:,.0f} steps/s"


class _Lines(ProgressCounts):
    def __init__(self) -> None:
        super().__init__()
        self._said = self.began
        self._is_said = False

    def changed(self) -> None:
        self._is_said = False
        if monotonic() - self._said >= EVERY:
            self._say()

    def end(self) -> None:
        """All is done. A run too short for a line has none."""
        if self._said > self.began and not self._is_said:
            self._say()

    def _say(self) -> None:
        self._said, self._is_said = monotonic(), True
        share = "" if self.share is None else f"{int(self.share * 100)}% "
        print(f"{share}{self.words}", file=sys.stderr, flush=True)


class _Bar(ProgressCounts):
    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("reading", total=None)

    def changed(self) -> None:
        known = {} if self.share is None else {"total": 1.0, "completed": self.share}
        self._progress.update(self._task, description=self.words, **known)  # type: ignore[arg-type]


@contextmanager
def watching() -> Iterator[ProgressCounts]:
    """A watcher for a run, shown while the block lasts."""
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
    """A function to call after each of `size` pieces of work, or with how many were done; how far it is is shown while
    the block lasts."""
    console = Console(stderr=True)
    done, said = 0, monotonic()
    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"0 of {size} {what}", total=size)

        def count(some: int = 1) -> None:
            nonlocal done, said
            done += some
            words = f"{done:,} of {size:,} {what}"
            progress.update(task, completed=done, description=words)
            if not console.is_terminal and monotonic() - said >= EVERY:
                said = monotonic()
                print(f"{done * 100 // size}% {words}", file=sys.stderr, flush=True)

        yield count

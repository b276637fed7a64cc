"""The progress bar: a live line on a terminal, a plain line every few seconds elsewhere. Always on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ...scenarios.model import Conversation

EVERY = 5.0
"""Seconds between plain lines."""


class Counts:
    """What a run has done so far."""

    def __init__(self) -> None:
        self.size = self.read_bytes = self.found = self.conversations = self.steps = 0
        self.began = monotonic()

    def begin(self, size: int) -> None:
        self.size = size

    def read(self, conversation: Conversation, consumed: int) -> None:  # noqa: ARG002
        self.found += 1
        self.changed()

    def measured(self, conversations: int, steps: int, consumed: int) -> None:
        self.conversations += conversations
        self.steps += steps
        self.read_bytes = max(self.read_bytes, consumed)
        self.changed()

    def changed(self) -> None:
        """Show it."""

    @property
    def words(self) -> str:
        rate = self.steps / max(monotonic() - self.began, 1e-3)
        return f"{self.conversations:,} of {self.found:,} conversations, {self.steps:,} steps, {rate:,.0f} steps/s"


class _Lines(Counts):
    def __init__(self) -> None:
        super().__init__()
        self._said = self.began

    def changed(self) -> None:
        if monotonic() - self._said >= EVERY:
            self._said = monotonic()
            share = f"{self.read_bytes / self.size:.0%} " if self.size else ""
            print(f"{share}{self.words}", file=sys.stderr, flush=True)


class _Bar(Counts):
    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("reading", total=None)

    def changed(self) -> None:
        known = {"total": self.size, "completed": self.read_bytes} if self.size else {}
        self._progress.update(self._task, description=self.words, **known)  # type: ignore[arg-type]


@contextmanager
def watching() -> Iterator[Counts]:
    """A watcher for a run, shown while the block lasts."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)

"""Live progress: a bar on a terminal, elsewhere a plain line every few seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from ctxbench.scenarios.model import Conversation

EVERY = 5.0  # seconds between plain lines of progress

Show = Callable[[str, float | None], None]
"""Shows in words how far the work is, and its share of the whole; None = not known."""


class ProgressCounts:
    """Progress of a run by messages; until all is read the whole is estimated from the bytes before the last read."""

    def __init__(self, show: Show = lambda *_: None) -> None:
        self._show, self._began = show, monotonic()
        self.found = self.steps = 0
        self._size = self._messages = self._measured = self._consumed = 0
        self._parts = 1
        # Number of all messages; 0 = not known.
        self._whole = 0.0
        self._is_read = False

    def begin(self, size: int, parts: int, messages: int = 0) -> None:
        self._size, self._parts, self._whole = size, parts, messages
        self._began = monotonic()  # what was planned before is no work of the run

    def read(self, conversation: Conversation, consumed: int) -> None:
        # The first conversation of a file that is read as a whole brings all of its bytes at once: the ratio is taken
        # with the bytes before it, whose messages are all counted.
        if consumed > self._consumed:
            if self._consumed:
                self._whole = self._messages * self._size / self._consumed
            self._consumed = consumed
        self.found += 1
        self._messages += len(conversation.messages)
        self._changed()

    def all_read(self) -> None:
        self._is_read, self._whole = True, self._messages
        self._changed()

    def measured(self, messages: int, steps: int) -> None:
        self.steps += steps
        self._measured += messages
        self._changed()

    @property
    def share(self) -> float | None:
        """Share of the work that is done; None = not known yet. 1 only when nothing is left to do."""
        if not self._whole:
            return None
        return self._measured / (self._parts * max(self._whole, self._messages + (not self._is_read)))

    @property
    def words(self) -> str:
        """Say how far the run is, without its share."""
        rate = self.steps / max(monotonic() - self._began, 1e-3)
        # Strategies go side by side: no conversation is done before nearly all are, and their number would stand still.
        return f"{self.found:,}{'' if self._is_read else '+'} conversations, {self.steps:,} steps, {rate:,.0f} steps/s"

    def _changed(self) -> None:
        self._show(self.words, self.share)


@contextmanager
def watching() -> Iterator[ProgressCounts]:
    """Yield a watcher for a run that shows its progress while the block lasts."""
    with _showing() as show:
        yield ProgressCounts(show)


@contextmanager
def counting(size: int, what: str) -> Iterator[Callable[..., None]]:
    """Yield a function to call after each of `size` pieces of work, or with the number done, and show the progress."""
    done = 0
    with _showing() as show:

        def count(some: int = 1) -> None:
            nonlocal done
            done += some
            show(f"{done:,} of {size:,} {what}", done / size)

        show(f"0 of {size:,} {what}", 0)
        yield count


@contextmanager
def _showing() -> Iterator[Show]:
    console = Console(stderr=True)
    columns = BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn()
    began = printed = monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("reading", total=None)

        def show(words: str, share: float | None) -> None:
            nonlocal printed
            progress.update(task, description=words, total=None if share is None else 1.0, completed=share or 0.0)
            now = monotonic()
            if not console.is_terminal and now - printed >= EVERY:
                printed = now
                # Of less than a twentieth nothing follows for the rest.
                left = int((now - began) * (1 - share) / share) if share and share >= 0.05 else 0
                done = "" if share is None else f"{int(share * 100)}% "
                print(f"{done}{f'{left // 60}:{left % 60:02} left, ' * bool(left)}{words}", file=sys.stderr, flush=True)

        yield show

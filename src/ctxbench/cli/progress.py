"""Live progress of a run: conversations, strategies, steps a second, time left, and what each strategy saved so far.

On a terminal a bar and a table are drawn again and again; elsewhere there is a plain line every few seconds. Workers
say nothing of a shard before all of it is done. So the parts that they write are counted in the run's folder.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from ctxbench.scenarios.model import Conversation

EVERY = 5.0
"""Seconds between plain lines of progress."""
GLANCE = 0.5
"""Seconds between looks at the parts of a run."""

_PART = re.compile(r"(\d+)-(\d+)\.parquet")
# Lines of a terminal that the bar and the table's head take, and one to spare.
_BESIDE_TABLE = 4

PartName = tuple[int, int]
"""Number of the shard, and of the strategy."""


class ShardSize(NamedTuple):
    """Size of a shard."""

    conversations: int
    messages: int
    calls: int


class ProgressCounts:
    """Progress of a run, and its share of the whole work, by messages.

    Until all is read, the whole is estimated from the bytes read, without the last read: a file that is read as a whole
    is consumed at the first of its conversations.
    """

    def __init__(self) -> None:
        self.size = self.found = self.conversations = self.steps = 0
        self.began = monotonic()
        self.strategies: Sequence[str] = ()
        self.shards: dict[int, ShardSize] = {}
        self.parts: set[PartName] = set()
        """Parts that are written, those of an earlier start of the run among them."""
        self._folder: Path | None = None
        self._earlier: frozenset[PartName] = frozenset()
        self._messages = self._measured = self._consumed = 0
        # Of the parts that are written: messages by their share of the strategies, calls, strategies done of shards
        # that are not complete. Kept, because there may be many thousands of parts and as many changes.
        self._replayed, self._calls, self._through = 0.0, 0, ""
        # Number of all messages; 0 = not known.
        self._whole = 0.0
        self._is_read = False

    def begin(self, size: int, folder: Path | None = None, strategies: Sequence[str] = ()) -> None:
        self.size, self._folder, self.strategies = size, folder, strategies
        self.began = monotonic()  # what was planned before is no work of the run
        self.parts = _written(folder)
        self._earlier = frozenset(self.parts)

    def read(self, conversation: Conversation, consumed: int) -> None:
        # The first conversation of a file that is read as a whole brings all of its bytes at once: the ratio is taken
        # with the bytes before it, whose messages are all counted.
        if consumed > self._consumed:
            if self._consumed:
                self._whole = self._messages * self.size / self._consumed
            self._consumed = consumed
        self.found += 1
        self._messages += len(conversation.messages)
        self.changed()

    def sharded(self, number: int, conversations: int, messages: int, calls: int) -> None:
        self.shards[number] = ShardSize(conversations, messages, calls)

    def all_read(self) -> None:
        self._is_read, self._whole = True, self._messages
        self.changed()

    def measured(self, conversations: int, messages: int, steps: int) -> None:
        self.conversations += conversations
        self.steps += steps
        self._measured += messages
        self.changed()

    def look(self) -> None:
        """Count the parts that have been written since."""
        parts = _written(self._folder)
        if parts == self.parts:
            return
        self.parts, sizes, every = parts, dict(self.shards), max(len(self.strategies), 1)
        by_shard = Counter(shard for shard, _ in parts if shard in sizes)
        self._replayed = sum(sizes[shard].messages * count / every for shard, count in by_shard.items())
        self._calls = sum(sizes[shard].calls for shard, _ in parts - self._earlier if shard in sizes)
        under_way = [count for count in by_shard.values() if count < every]
        through = sum(under_way) // max(len(under_way), 1)
        self._through = f", {through} of {every} strategies" if under_way else ""
        self.changed()

    def changed(self) -> None:
        """Show the progress. A subclass does."""

    @property
    def share(self) -> float | None:
        """Share of the work that is done; None = not known yet. 1 only when nothing is left to do."""
        if not self._whole:
            return None
        whole = max(self._whole, self._messages + (not self._is_read))
        # Answers follow when the last strategy has been replayed: a shard is done when it says so.
        return max(self._measured, min(self._replayed, whole - 1)) / whole

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the time that is left; None = not known yet."""
        share = self.share
        return (monotonic() - self.began) * (1 - share) / share if share else None

    @property
    def words(self) -> str:
        steps = max(self.steps, self._calls)
        rate = steps / max(monotonic() - self.began, 1e-3)
        total = f"{self.found:,}{'' if self._is_read else '+'}"
        # What was seen of the parts may be older than the last shard that is done.
        through = self._through if self.conversations < self.found else ""
        # A shard is done after its last strategy: until then no conversation is, and "0 of 14" reads as a stall.
        done = "" if through and not self.conversations else f"{self.conversations:,} of "
        return f"{done}{total} conversations{through}, {steps:,} steps, {rate:,.0f} steps/s"


def _written(folder: Path | None) -> set[PartName]:
    """Return the parts of `results`, which is the last that is written of a shard and a strategy."""
    if folder is None:
        return set()
    try:
        with os.scandir(folder / "results") as entries:
            matches = [_PART.fullmatch(entry.name) for entry in entries]
    except OSError:
        return set()
    return {(int(match[1]), int(match[2])) for match in matches if match is not None}


class _Lines(ProgressCounts):
    def __init__(self) -> None:
        super().__init__()
        self._printed = self.began
        self._is_printed = False
        self._lock = Lock()

    def changed(self) -> None:
        with self._lock:
            self._is_printed = False
            if monotonic() - self._printed >= EVERY:
                self._print()

    def end(self) -> None:
        """Print the last line. A run too short for a line has none."""
        if self._printed > self.began and not self._is_printed:
            self._print()

    def _print(self) -> None:
        self._printed, self._is_printed = monotonic(), True
        share, left = self.share, self.seconds_left
        done = "" if share is None else f"{int(share * 100)}% "
        if left:
            done += f"{int(left) // 60}:{int(left) % 60:02} left, "
        print(f"{done}{self.words}", file=sys.stderr, flush=True)


class _Bar(ProgressCounts):
    """A bar with a line of counts, and a table of the strategies that are through some conversations."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("reading", total=None)
        self._sums: dict[PartName, tuple[int, int]] = {}

    def changed(self) -> None:
        progress = {} if self.share is None else {"total": 1.0, "completed": self.share}
        self._progress.update(self._task, description=self.words, **progress)  # type: ignore[arg-type]

    def look(self) -> None:
        super().look()
        for part in sorted(self.parts - self._sums.keys()):
            self._sums[part] = self._tokens(part)

    def _tokens(self, part: PartName) -> tuple[int, int]:
        """Return the tokens that a strategy sent in a shard, and those of the whole history."""
        import pyarrow.parquet as pq

        assert self._folder is not None
        try:
            file = self._folder / "steps" / f"{part[0]:05d}-{part[1]:03d}.parquet"
            table = pq.read_table(file, columns=["tokens_sent", "tokens_full"])
        except (OSError, ValueError):  # it may be replaced or removed at any moment
            return 0, 0
        sent, full = (sum(filter(None, table[name].to_pylist())) for name in table.column_names)
        return sent, full

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._progress
        room = (options.max_height or console.height) - _BESIDE_TABLE
        rows = list(self._rows())
        if not rows or room < 1:
            return
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("strategy", no_wrap=True, overflow="ellipsis")
        table.add_column("conversations", justify="right", no_wrap=True)
        table.add_column("tokens saved", justify="right", no_wrap=True)
        for row in rows[-room:]:
            table.add_row(*row)
        yield table

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        sums, sizes = dict(self._sums), dict(self.shards)
        for at, strategy in enumerate(self.strategies):
            parts = [part for part in sums if part[1] == at and part[0] in sizes]
            sent, full = sum(sums[part][0] for part in parts), sum(sums[part][1] for part in parts)
            if full:
                conversations = sum(sizes[shard].conversations for shard, _ in parts)
                yield escape(strategy), f"{conversations:,}", f"{1 - sent / full:.1%}"


@contextmanager
def watching() -> Iterator[ProgressCounts]:
    """Yield a watcher for a run that shows its progress while the block lasts."""
    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines()
        with _glancing(lines):
            yield lines
        lines.end()
        return
    bar = _Bar(Progress(*_columns(), console=console))
    with Live(bar, console=console, transient=True, refresh_per_second=4), _glancing(bar):
        yield bar


@contextmanager
def _glancing(counts: ProgressCounts) -> Iterator[None]:
    """Look at the parts of the run every now and then while the block lasts."""
    over = Event()

    def glance() -> None:
        pause = GLANCE
        while not over.wait(pause):
            began = monotonic()
            counts.look()
            pause = max(GLANCE, 20 * (monotonic() - began))  # a folder of many parts must not cost the run its time

    thread = Thread(target=glance, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _columns() -> tuple[BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn]:
    return BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn()


@contextmanager
def counting(size: int, what: str) -> Iterator[Callable[..., None]]:
    """Yield a function to call after each of `size` pieces of work, or with the number done, and show the progress."""
    console = Console(stderr=True)
    done, printed = 0, monotonic()
    with Progress(*_columns(), console=console, transient=True, disable=not console.is_terminal) as progress:
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

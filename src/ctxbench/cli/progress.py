"""Live progress of a run: conversations, strategies, steps a second, time left, and what each strategy saved so far.

On a terminal a bar and a table are drawn again and again; elsewhere there is a plain line every few seconds. Workers
say nothing of a shard before all of it is done. So the parts that they write are counted in the run's folder.
"""

from __future__ import annotations

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
    """Progress of a run, and its share of the whole work, by messages: shown by a bar, or else by plain lines.

    Until all is read, the whole is estimated from the bytes read, without the last read: a file that is read as a whole
    is consumed at the first of its conversations.
    """

    def __init__(self, bar: Progress | None = None) -> None:
        self.size = self.found = self.conversations = self.steps = 0
        self.began = self._printed = monotonic()
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
        self._is_read = self._is_printed = False
        self._bar, self._lock = bar, Lock()
        self._task = bar.add_task("reading", total=None) if bar is not None else None
        # Tokens that a strategy sent in a shard, and those of the whole history.
        self._tokens: dict[PartName, tuple[int, int]] = {}

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
        self._changed()

    def sharded(self, number: int, conversations: int, messages: int, calls: int) -> None:
        self.shards[number] = ShardSize(conversations, messages, calls)

    def all_read(self) -> None:
        self._is_read, self._whole = True, self._messages
        self._changed()

    def measured(self, conversations: int, messages: int, steps: int) -> None:
        self.conversations += conversations
        self.steps += steps
        self._measured += messages
        self._changed()

    def look(self) -> None:
        """Count the parts that have been written since."""
        parts = _written(self._folder)
        if parts != self.parts:
            self.parts, sizes, every = parts, dict(self.shards), max(len(self.strategies), 1)
            by_shard = Counter(shard for shard, _ in parts if shard in sizes)
            self._replayed = sum(sizes[shard].messages * count / every for shard, count in by_shard.items())
            self._calls = sum(sizes[shard].calls for shard, _ in parts - self._earlier if shard in sizes)
            under_way = [count for count in by_shard.values() if count < every]
            through = sum(under_way) // max(len(under_way), 1)
            self._through = f", {through} of {every} strategies" if under_way else ""
            self._changed()
        if self._bar is not None and self._folder is not None:
            for part in sorted(parts - self._tokens.keys()):
                self._tokens[part] = _tokens(self._folder, part)

    @property
    def share(self) -> float | None:
        """Share of the work that is done; None = not known yet. 1 only when nothing is left to do."""
        if not self._whole:
            return None
        whole = max(self._whole, self._messages + (not self._is_read))
        # Answers follow when the last strategy has been replayed: a shard is done when it says so.
        return max(self._measured, min(self._replayed, whole - 1)) / whole

    @property
    def words(self) -> str:
        """Say how far the run is, without its share."""
        steps = max(self.steps, self._calls)
        rate = steps / max(monotonic() - self.began, 1e-3)
        total = f"{self.found:,}{'' if self._is_read else '+'}"
        # What was seen of the parts may be older than the last shard that is done.
        through = self._through if self.conversations < self.found else ""
        # A shard is done after its last strategy: until then no conversation is, and "0 of 14" reads as a stall.
        done = "" if through and not self.conversations else f"{self.conversations:,} of "
        return f"{done}{total} conversations{through}, {steps:,} steps, {rate:,.0f} steps/s"

    def _changed(self) -> None:
        if self._bar is not None and self._task is not None:
            share = {} if self.share is None else {"total": 1.0, "completed": self.share}
            self._bar.update(self._task, description=self.words, **share)  # type: ignore[arg-type]
            return
        with self._lock:
            self._is_printed = monotonic() - self._printed >= EVERY
            if self._is_printed:
                self._print()

    def _print(self) -> None:
        self._printed, share = monotonic(), self.share
        done = "" if share is None else f"{int(share * 100)}% "
        left = int((self._printed - self.began) * (1 - share) / share) if share else 0
        print(f"{done}{f'{left // 60}:{left % 60:02} left, ' * bool(left)}{self.words}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Print the last line, where there are lines. A run too short for one has none."""
        if self._bar is None and self._printed > self.began and not self._is_printed:
            self._print()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the bar, and below it each strategy that is through some conversations."""
        assert self._bar is not None
        yield self._bar
        sums, sizes = dict(self._tokens), dict(self.shards)
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("strategy", no_wrap=True, overflow="ellipsis")
        table.add_column("conversations", justify="right", no_wrap=True)
        table.add_column("tokens saved", justify="right", no_wrap=True)
        rows = []
        for at, strategy in enumerate(self.strategies):
            parts = [part for part in sums if part[1] == at and part[0] in sizes]
            sent, full = sum(sums[part][0] for part in parts), sum(sums[part][1] for part in parts)
            if full:
                conversations = sum(sizes[shard].conversations for shard, _ in parts)
                rows.append((escape(strategy), f"{conversations:,}", f"{1 - sent / full:.1%}"))
        room = (options.max_height or console.height) - _BESIDE_TABLE
        if rows and room > 0:
            for row in rows[-room:]:
                table.add_row(*row)
            yield table


def _written(folder: Path | None) -> set[PartName]:
    """Return the parts of `results`, which is the last that is written of a shard and a strategy."""
    if folder is None:
        return set()
    try:
        matches = [_PART.fullmatch(path.name) for path in (folder / "results").iterdir()]
    except OSError:
        return set()
    return {(int(match[1]), int(match[2])) for match in matches if match is not None}


def _tokens(folder: Path, part: PartName) -> tuple[int, int]:
    import pyarrow.parquet as pq

    try:
        file = folder / "steps" / f"{part[0]:05d}-{part[1]:03d}.parquet"
        table = pq.read_table(file, columns=["tokens_sent", "tokens_full"])
    except (OSError, ValueError):  # it may be replaced or removed at any moment
        return 0, 0
    sent, full = (sum(filter(None, table[name].to_pylist())) for name in table.column_names)
    return sent, full


@contextmanager
def watching() -> Iterator[ProgressCounts]:
    """Yield a watcher for a run that shows its progress while the block lasts."""
    console = Console(stderr=True)
    if console.is_terminal:
        bar = ProgressCounts(Progress(*_columns(), console=console))
        with Live(bar, console=console, transient=True, refresh_per_second=4), _glancing(bar):
            yield bar
        return
    lines = ProgressCounts()
    with _glancing(lines):
        yield lines
    lines.end()


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

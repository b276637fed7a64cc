"""What of each context is the strategy's own, and whether the newest message is in it: read from the context log."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from ..metrics.tokens import PRIMING
from .billing.columns import Lists
from .loading import Run

BATCH = 10_000
"""Rows that are plain values at a time."""


class _Named(msgspec.Struct):
    """Of a message as JSON, its id alone."""

    id: str


class Sent(NamedTuple):
    """What is said of one context."""

    tokens_added: int
    """Of the messages that the strategy wrote, and of its tool schemas beyond those of the recording."""
    newest: bool
    """Whether it has the newest message, or one that the strategy wrote under its id, in its place."""


class _Cell:
    """One conversation under one strategy. Messages are numbered as in the log: the recording's, then the others.

    A context is its stretches, with the sums up to the end of each: a step costs what it adds, not what it keeps.
    """

    def __init__(self, ids: Sequence[str], tokens: Sequence[int], recorded: int, tools: int) -> None:
        self._ids, self._recorded, self._tools = ids, recorded, tools
        self._tokens = [0, *accumulate(tokens)]
        self._stretches: list[tuple[int, int]] = []
        self._ends, self._sent, self._written = [0], [0], [0]
        """Messages, their tokens, and the tokens of those that are written, before each stretch and after the last."""

    def step(self, kept: int, added: Sequence[tuple[int, int]], at: int, tokens_sent: int) -> Sent:
        """The next context, after `at` messages were said."""
        self._cut(kept)
        for stretch in added:
            self._add(stretch)
        tools = max(tokens_sent - PRIMING - self._sent[-1] - self._tools, 0)
        return Sent(self._written[-1] + tools, any(self._has_newest(*each, at - 1) for each in added))

    def _cut(self, kept: int) -> None:
        """Leave the first `kept` messages."""
        if kept == self._ends[-1]:
            return
        whole = bisect_right(self._ends, kept) - 1
        start, more = self._stretches[whole][0], kept - self._ends[whole]
        del self._stretches[whole:], self._ends[whole + 1 :], self._sent[whole + 1 :], self._written[whole + 1 :]
        if more:
            self._add((start, start + more))

    def _add(self, stretch: tuple[int, int]) -> None:
        start, stop = stretch
        tokens = self._tokens[stop] - self._tokens[start]
        self._stretches.append(stretch)
        self._ends.append(self._ends[-1] + stop - start)
        self._sent.append(self._sent[-1] + tokens)
        self._written.append(self._written[-1] + (tokens if start >= self._recorded else 0))

    def _has_newest(self, start: int, stop: int, newest: int) -> bool:
        """Whether a stretch has it. It was said since the step before, so it is never among what is kept."""
        return start <= newest < stop or (start >= self._recorded and self._ids[newest] in self._ids[start:stop])


def sent(run: Run, steps: pa.Table) -> pd.DataFrame:
    """`Sent` of each of the run's steps (its table `steps`), in their order."""
    recorded, written = _recorded(run), _written(run)
    tools = dict(zip(*(run.table("conversations")[name] for name in ("conversation", "tools_tokens")), strict=True))
    starts, stops = Lists(steps.column("added_from")), Lists(steps.column("added_to"))
    columns = ("conversation", "strategy", "step", "kept", "at", "tokens_sent")
    tokens_added, newest = np.zeros(len(steps), np.int64), np.zeros(len(steps), bool)
    for row, (name, strategy, step, kept, at, tokens) in enumerate(_rows(steps, columns)):
        if step == 0:
            ids, sizes = recorded[name]
            more, more_sizes = written[name, strategy]
            cell = _Cell([*ids, *more], [*sizes, *more_sizes], len(ids), tools[name])
        added = list(zip(starts.at(row), stops.at(row), strict=True))
        tokens_added[row], newest[row] = cell.step(kept, added, at, tokens)
    return pd.DataFrame({"tokens_added": tokens_added, "newest": newest})


def _rows(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Its rows as plain values, some at a time: all at once they are ten times as large."""
    for batch in table.select(columns).to_batches(max_chunksize=BATCH):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _recorded(run: Run) -> dict[str, tuple[list[str], list[int]]]:
    """The ids and the tokens of each conversation's messages."""
    groups = run.table("messages").groupby("conversation", observed=True, sort=False)
    return {str(name): (rows.id.tolist(), rows.tokens.tolist()) for name, rows in groups}


def _written(run: Run) -> dict[tuple[str, str], tuple[list[str], list[int]]]:
    """The ids and the tokens of what each strategy wrote in each conversation, in the order of their numbers."""
    found: dict[tuple[str, str], tuple[list[str], list[int]]] = defaultdict(lambda: ([], []))
    decoder = msgspec.json.Decoder(_Named)
    rows = run.table("contexts")
    for name, strategy, tokens, text in zip(rows.conversation, rows.strategy, rows.tokens, rows.message, strict=True):
        ids, sizes = found[name, strategy]
        ids.append(decoder.decode(text).id)
        sizes.append(tokens)
    return found

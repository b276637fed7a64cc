"""What of each context is the strategy's own, and whether the newest message is in it: read from the context log."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ...metrics.tokens import PRIMING
from .run import Run

BATCH = 10_000
"""Rows that are plain values at a time."""


class _Named(msgspec.Struct):
    """Of a message as JSON, its id alone."""

    id: str


class SentContext(NamedTuple):
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

    def step(self, kept: int, added: Sequence[tuple[int, int]], at: int, tokens_sent: int) -> SentContext:
        """The next context, after `at` messages were said."""
        self._cut(kept)
        for stretch in added:
            self._add(stretch)
        tools = max(tokens_sent - PRIMING - self._sent[-1] - self._tools, 0)
        return SentContext(self._written[-1] + tools, any(self._has_newest(*each, at - 1) for each in added))

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
    starts, stops = ListColumn(steps.column("added_from")), ListColumn(steps.column("added_to"))
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


STEP = ["conversation", "strategy", "step"]
"""What names a step."""
LOG = ["added_from", "added_to", "marks", "tools_added"]
"""Lists, which take ten times the rest as a data frame has them. What is to be known of them is in other columns."""


def steps_of(run: Run) -> pd.DataFrame:
    """The steps of a run without the context log (`LOG`), and with more columns.

    `latency_ns`; the model's `window`; `tokens_added` and `newest` (`contexts.Sent`); `own_tokens` and `own_cost` of the
    strategy's own model calls (NaN where a price is not known); `demands`, and `demands_kept` of them, as the grounding
    table has them for all kinds together.
    """
    table = run.arrow("steps")
    steps: pd.DataFrame = table.drop_columns(LOG).to_pandas()
    steps["latency_ns"] = run.arrow("timings").column("latency_ns").to_numpy()
    steps["window"] = run.manifest["window"]
    steps = steps.join(sent(run, table))
    calls = run.table("events").dropna(subset=["input_tokens"])
    calls["tokens"] = calls.input_tokens + calls.output_tokens
    own = calls.groupby(STEP, observed=True).agg(own_tokens=("tokens", "sum"), own_cost=("cost", _known_sum))
    wanted = (
        run.table("grounding").groupby(STEP, observed=True).agg(demands=("values", "sum"), demands_kept=("kept", "sum"))
    )
    for table in (own, wanted):
        joined = steps[STEP].merge(table.reset_index(), on=STEP, how="left", indicator=True)
        for column in table.columns:
            steps[column] = joined[column].where(joined["_merge"] == "both", 0).to_numpy()
    return steps


def _known_sum(costs: pd.Series[float]) -> float:
    return float(costs.sum(skipna=False))


def rows_of(run: Run, table: str) -> pd.DataFrame:
    """A table of a run, with the columns that the figures need (`gating.measured.Rows`)."""
    return steps_of(run) if table == "steps" else run.table(table)


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class LogColumns(NamedTuple):
    """The context log of all cells, as columns."""

    at: Ints
    kept: Ints
    tokens: Ints
    starts: ListColumn
    stops: ListColumn
    marks: ListColumn
    tools: list[tuple[str, ...]]

    def of(self, rows: slice) -> tuple[object, ...]:
        """All that some rows say of their requests, to be compared."""
        lists = (each.of(rows) for each in (self.starts, self.stops, self.marks))
        return (self.kept[rows].tobytes(), self.tokens[rows].tobytes(), *lists, tuple(self.tools[rows]))

    def most(self, rows: slice) -> int:
        """One more than the highest message number in some rows."""
        return self.stops.most(rows)

    def steps(self, rows: slice) -> Iterator[tuple[int, list[tuple[int, int]], tuple[str, ...], int, list[int]]]:
        """What of each row makes a `Step`."""
        added = (list(zip(*both, strict=True)) for both in zip(self.starts[rows], self.stops[rows], strict=True))
        columns = (self.kept[rows].tolist(), added, self.tools[rows], self.tokens[rows].tolist(), self.marks[rows])
        return zip(*columns, strict=True)


class ListColumn:
    """A column of lists of whole numbers."""

    __slots__ = ("_offsets", "_values")

    def __init__(self, column: pa.ChunkedArray) -> None:
        array = column.combine_chunks()
        self._offsets: Ints = array.offsets.to_numpy().astype(np.int64)
        self._values: Ints = array.values.to_numpy().astype(np.int64)

    def __getitem__(self, rows: slice) -> list[list[int]]:
        offsets = self._offsets[rows.start : rows.stop + 1]
        values, cuts = self._values[offsets[0] : offsets[-1]].tolist(), (offsets - offsets[0]).tolist()
        return [values[start:stop] for start, stop in pairwise(cuts)]

    def at(self, row: int) -> list[int]:
        """One row."""
        found: list[int] = self._values[self._offsets[row] : self._offsets[row + 1]].tolist()
        return found

    def sums(self) -> Ints:
        """Of each row."""
        so_far = np.concatenate(([0], np.cumsum(self._values)))
        made: Ints = np.diff(so_far[self._offsets])
        return made

    def most(self, rows: slice) -> int:
        """The highest number in some rows; 0 if there is none."""
        offsets = self._offsets[rows.start : rows.stop + 1]
        return int(self._values[offsets[0] : offsets[-1]].max(initial=0))

    def of(self, rows: slice) -> bytes:
        """Some rows, to be compared."""
        offsets = self._offsets[rows.start : rows.stop + 1]
        return np.diff(offsets).tobytes() + self._values[offsets[0] : offsets[-1]].tobytes()

"""The one decoder of the context log: what every request of a stored run was made of.

A log entry is what changed since the step before (`schema.py`): the first `kept` messages stay, and the spans
[added_from, added_to) follow. Messages have numbers: those of the recording from 0, after them those that the strategy
wrote, in the order of the table `contexts`. In the context of a probe the question is `QUESTION`, and what the strategy
wrote for it alone has the numbers below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages, Span, joined

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

QUESTION = -1
"""Number of the question in the context of a probe."""


class NumberedMessages(NamedTuple):
    """The messages that the numbers of a log stand for."""

    recording: Sequence[Message]
    written: Sequence[Message]
    probe: Sequence[Message] = ()
    """The question, then the messages that the strategy wrote for it alone."""

    def span(self, start: int, stop: int) -> Span:
        """Return the messages of a span, which never reaches from one store into another."""
        size = len(self.recording)
        if start <= QUESTION:
            return Span(self.probe, QUESTION - start, QUESTION - start + 1)
        return Span(self.recording, start, stop) if start < size else Span(self.written, start - size, stop - size)


def rebuild(
    entries: Iterable[tuple[int, Sequence[int], Sequence[int]]],
    recording: Sequence[Message],
    written: Sequence[Message],
) -> Iterator[Messages]:
    """Yield every context of a conversation under a strategy, from its log entries (kept, added_from, added_to)."""
    context, messages = Messages(), NumberedMessages(recording, written)
    for kept, starts, stops in entries:
        added = (messages.span(start, stop) for start, stop in zip(starts, stops, strict=True))
        # Joined, the history that grows at every step stays one span.
        context = joined((*context[:kept].spans, *added))
        yield context


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values: numbers, names and lists several times as fast as `to_pylist`."""
    array, kind = column.combine_chunks(), column.type
    if pa.types.is_list(kind) and not column.null_count:
        # `values` are those of the whole array even where this is a
        # slice of it, and `offsets` count in them: the two go together.
        items, ends = values_of(pa.chunked_array([array.values])), array.offsets.to_numpy().tolist()
        return [items[start:stop] for start, stop in pairwise(ends)]
    if pa.types.is_dictionary(kind) and not column.null_count:
        names = array.dictionary.to_pylist()
        return [names[number] for number in array.indices.to_numpy().tolist()]
    is_plain = pa.types.is_integer(kind) and not column.null_count
    values: list[Any] = array.to_numpy().tolist() if is_plain else array.to_pylist()
    return values


class ListColumn:
    """A column of lists of whole numbers, without an object per row."""

    __slots__ = ("_offsets", "_values")

    def __init__(self, column: pa.ChunkedArray) -> None:
        array = column.combine_chunks()
        self._offsets: Ints = array.offsets.to_numpy().astype(np.int64)
        self._values: Ints = array.values.to_numpy().astype(np.int64)

    def __getitem__(self, rows: slice) -> list[list[int]]:
        """Return some rows as plain lists."""
        offsets, values = self._part(rows)
        flat, cuts = values.tolist(), (offsets - offsets[0]).tolist()
        return [flat[start:stop] for start, stop in pairwise(cuts)]

    def sums(self) -> Ints:
        """Return the sum of each row."""
        # Rows [3, 4], [], [5] have offsets 0, 2, 2, 3 and running
        # sums 0, 3, 7, 12: at the offsets 0, 7, 7, 12, so 7, 0 and 5.
        running = np.concatenate(([0], np.cumsum(self._values)))
        sums: Ints = np.diff(running[self._offsets])
        return sums

    def identity(self, rows: slice) -> bytes:
        """Return bytes that are equal where the rows are."""
        offsets, values = self._part(rows)
        # Lengths as well as values: [[1], [2]] and [[1, 2], []] have the same values.
        return np.diff(offsets).tobytes() + values.tobytes()

    def _part(self, rows: slice) -> tuple[Ints, Ints]:
        offsets = self._offsets[rows.start : rows.stop + 1]
        return offsets, self._values[offsets[0] : offsets[-1]]

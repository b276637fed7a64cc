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

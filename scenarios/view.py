"""Messages in order, as spans of other sequences: a prefix, a slice or a join of a history copies nothing.

A strategy mostly sends spans of the recording. With a context stored as spans, the time to count its tokens, to check
it and to compare it with the last one depends on what changed, not on its length.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, overload

from .model import Message


class Span(NamedTuple):
    """The messages `store[start:stop]`. A Messages never holds an empty one."""

    store: Sequence[Message]
    start: int
    stop: int


class Messages(Sequence[Message]):
    """An immutable sequence of messages made of spans. Slices and sums are Messages again, adjacent spans joined."""

    __slots__ = ("_ends", "_size", "spans")

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self.spans: tuple[Span, ...] = tuple(spans)
        self._ends: list[int] | None = None
        self._size = 0
        for _, start, stop in self.spans:
            self._size += stop - start

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Messages:
        """Return a sequence of messages as Messages; a Messages is returned as it is."""
        if isinstance(messages, cls):
            return messages
        store = messages if isinstance(messages, tuple) else tuple(messages)
        return cls((Span(store, 0, len(store)),) if store else ())

    @classmethod
    def prefix(cls, store: Sequence[Message], stop: int) -> Messages:
        """Return the first `stop` messages of a store."""
        return cls((Span(store, 0, stop),) if stop else ())

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Message]:
        for store, start, stop in self.spans:
            yield from store[start:stop]

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> Messages: ...
    def __getitem__(self, at: int | slice) -> Message | Messages:
        size = self._size
        if isinstance(at, slice):
            start, stop, step = at.indices(size)
            return self._slice(start, stop) if step == 1 else Messages.of(list(self)[at])
        if not -size <= at < size:
            raise IndexError(at)
        at = at if at >= 0 else size + at
        if len(self.spans) == 1:
            store, start, _ = self.spans[0]
            return store[start + at]
        if self._ends is None:
            self._ends = list(accumulate(stop - start for _, start, stop in self.spans))
        span = bisect_right(self._ends, at)
        store, start, stop = self.spans[span]
        # So many messages before the end of its span, here and in the store.
        return store[stop - (self._ends[span] - at)]

    def __add__(self, other: Sequence[Message]) -> Messages:
        """Return the concatenation of both."""
        more = Messages.of(other).spans
        if not self.spans or not more:
            return Messages(self.spans or more)
        last, first = self.spans[-1], more[0]
        if last.store is first.store and last.stop == first.start:
            return Messages((*self.spans[:-1], Span(last.store, last.start, first.stop), *more[1:]))
        return Messages((*self.spans, *more))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Messages) or self._size != other._size:
            return False
        return self.spans == other.spans or tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Messages({', '.join(f'{start}:{stop}' for _, start, stop in self.spans)})"

    def _slice(self, start: int, stop: int) -> Messages:
        if start == 0 and stop == self._size:
            return self
        if len(self.spans) == 1:  # most histories are one
            store, first, _ = self.spans[0]
            return Messages((Span(store, first + start, first + stop),) if start < stop else ())
        cut: list[Span] = []
        passed = 0
        for store, first, last in self.spans:
            # Message i of these stands at first + i - passed in the store of this span, before which `passed` messages
            # come.
            low, high = max(first, first + start - passed), min(last, first + stop - passed)
            if low < high:
                cut.append(Span(store, low, high))
            passed += last - first
        return Messages(cut)


def joined(spans: Iterable[Span]) -> Messages:
    """Return the messages of spans, adjacent ones of one store merged."""
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1].store is span.store and merged[-1].stop == span.start:
            merged[-1] = Span(span.store, merged[-1].start, span.stop)
        else:
            merged.append(span)
    return Messages(merged)


def shared_prefix(before: Messages, now: Messages) -> int:
    """Return how many leading messages two contexts have in common: the most that a prefix cache can reuse.

    Two messages match if they are the same object or equal. Spans of one store that start together match without a look
    at their messages.
    """
    if not before.spans or not now.spans:
        return 0
    if len(before.spans) == len(now.spans) == 1:  # a prefix that grew: no need to walk
        (store, start, stop), (other_store, other_start, other_stop) = before.spans[0], now.spans[0]
        if store is other_store and start == other_start:
            return min(stop, other_stop) - start
    same = 0
    a, b = iter(before.spans), iter(now.spans)
    left, right = next(a, None), next(b, None)
    while left is not None and right is not None:
        # What both spans have at least: then one of them is used up, and the other goes on behind it.
        size = min(left.stop - left.start, right.stop - right.start)
        if left.store is not right.store or left.start != right.start:
            for step in range(size):
                one, other = left.store[left.start + step], right.store[right.start + step]
                if one is not other and one != other:
                    return same + step
        same += size
        left = Span(left.store, left.start + size, left.stop) if left.stop - left.start > size else next(a, None)
        right = Span(right.store, right.start + size, right.stop) if right.stop - right.start > size else next(b, None)
    return same

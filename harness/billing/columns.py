"""The context log of a whole run as columns, from which cells are cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Log(NamedTuple):
    """The context log of all cells, as columns."""

    at: Ints
    kept: Ints
    tokens: Ints
    starts: Lists
    stops: Lists
    marks: Lists
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


class Lists:
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

"""The keys of rows that come in ascending order and go in any: which row has a key, and which rows are there.

Keys are numbers from 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....metrics.rows import Rows
from .ranked import Numbers


class Keys:
    """Ascending keys, one a row. A row that is deleted stays, dead, until the rows are made anew."""

    __slots__ = ("_keys", "alive", "live")

    def __init__(self) -> None:
        self._keys = Rows(np.int64)
        self.alive = Rows(np.bool_)
        self.live = 0
        """How many rows are there."""

    def __len__(self) -> int:
        """How many rows there are, the dead ones too."""
        return self._keys.size

    @property
    def dead(self) -> int:
        """How many rows are dead."""
        return len(self) - self.live

    def add(self, keys: Numbers) -> None:
        """New rows at the end. Raises ValueError for keys that do not ascend."""
        last = self._keys.all[-1:]
        if (np.diff(np.concatenate((last, keys))) <= 0).any():
            raise ValueError("keys must ascend: one is not above the key before it")
        self._keys.add(keys)
        self.alive.add(np.ones(len(keys), np.bool_))
        self.live += len(keys)

    def delete(self, keys: Numbers) -> Numbers:
        """The rows that had these keys; keys that are not there are passed over."""
        rows = self.rows(keys)
        self.alive.all[rows] = False
        self.live -= len(rows)
        return rows

    def rows(self, keys: Numbers) -> Numbers:
        """The living rows of these keys, in their order."""
        rows, there = self.find(keys)
        return rows[there]

    def find(self, keys: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """For each of these keys a row, and whether that is its row and lives."""
        if not len(self):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        if self._keys.all[-1] == len(self) - 1:  # none is left out, so that each is its own row
            at = np.clip(keys, 0, len(self) - 1)
        else:
            at = np.minimum(np.searchsorted(self._keys.all, keys), len(self) - 1)
        return at, (self._keys.all[at] == keys) & self.alive.all[at]

    def of(self, rows: NDArray[np.int64]) -> Numbers:
        """The keys of rows."""
        return self._keys.all[rows]

    def living(self) -> Numbers:
        """The rows that are there."""
        return np.flatnonzero(self.alive.all)

    def drop_dead(self) -> Numbers:
        """The rows that were there; from now on they are numbered without gaps."""
        rows = self.living()
        keys = self._keys.all[rows]
        self._keys.size = self.alive.size = self.live = 0
        self.add(keys)
        return rows

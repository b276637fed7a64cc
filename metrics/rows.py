"""An array that grows at its end by doubling its room, so that adding a row costs constant time on average."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind", bound=np.generic)


class Rows(Generic[Kind]):
    """Rows of one shape and type."""

    __slots__ = ("_room", "size")

    def __init__(self, dtype: type[Kind], *shape: int) -> None:
        self._room: NDArray[Kind] = np.empty((64, *shape), dtype)
        self.size = 0

    @property
    def all(self) -> NDArray[Kind]:
        """A view of all rows: valid until the next `add`."""
        return self._room[: self.size]

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that brings back the rows of now, however often it is called."""
        # Vectors, which nobody changes, are not copied.
        room, size, rows = self._room, self.size, None if self._room.dtype == np.float32 else self.all.copy()

        def restore() -> None:
            self._room, self.size = room, size
            if rows is not None:
                room[:size] = rows

        return restore

    def add(self, rows: NDArray[Kind]) -> None:
        """Append rows, shape (how many, *shape)."""
        size = self.size + len(rows)
        if size > len(self._room):
            room = np.empty((max(size, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype)
            room[: self.size] = self.all
            self._room = room
        self._room[self.size : size] = rows
        self.size = size

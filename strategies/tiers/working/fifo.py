"""FIFO: who came first goes first, used or not."""

from __future__ import annotations

from dataclasses import dataclass

from .policy import Policy


@dataclass(eq=False)
class Fifo(Policy):
    """on a hit: nothing · evict: the oldest."""

    def _hit(self, id: str) -> None:
        """It keeps its place."""

    def _evict(self) -> None:
        self._leave(next(iter(self.tokens)))

"""LRU: who was not used for the longest time goes first."""

from __future__ import annotations

from dataclasses import dataclass

from .policy import Policy


@dataclass(eq=False)
class Lru(Policy):
    """on a hit: to the end of the queue · evict: the front of the queue."""

    def _hit(self, id: str) -> None:
        self.tokens[id] = self.tokens.pop(id)

    def _evict(self) -> None:
        self._leave(next(iter(self.tokens)))

"""Who leaves a tier: the coldest items, or whoever a policy of the tier's own says."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from .heat import Heat

COLD = 0.1
"""Below this score an item leaves under soft pressure, and by decay: unused for two to three half-lives. Assumed."""


class Replacement(Protocol):
    """Who leaves a tier. It is told of all that comes into the tier, is used there, and is gone from it."""

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """An item is in the tier now. `used`: because somebody wanted it, not because somebody might."""
        ...

    def use(self, id: str, now: float) -> None:
        """An item of the tier is used."""
        ...

    def gone(self, id: str) -> None:
        """An item is not in the tier any more."""
        ...

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        """Who should leave, the first first; each is chosen when it is asked for. Whoever cannot be moved stays, and is
        named again the next time, unless it is used. `cold`: only what is not worth its place even if there is room.
        """
        ...

    def state(self) -> Any:
        """What it remembers, as plain data."""
        ...

    def restore(self, state: Any) -> None:
        """Remember that instead. Raises ValueError, and then nothing has changed."""
        ...


class Coldest:
    """The coldest first; of equals, who came first. All that it needs is known already."""

    __slots__ = ("_heat", "_ids")

    def __init__(self, heat: Heat, ids: Callable[[], list[str]]) -> None:
        self._heat, self._ids = heat, ids

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """The heat knows."""

    def use(self, id: str, now: float) -> None:
        """The heat knows."""

    def gone(self, id: str) -> None:
        """The ids are those that are there."""

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        scores = [(self._heat.score(id, now), at, id) for at, id in enumerate(self._ids())]
        heapq.heapify(scores)
        while scores and not (cold and scores[0][0] >= COLD):
            yield heapq.heappop(scores)[2]

    def state(self) -> None:
        """Nothing."""

    def restore(self, state: Any) -> None:
        """There is nothing to remember."""

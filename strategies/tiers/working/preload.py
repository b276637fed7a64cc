"""Predictive preload: what usually comes after an item is brought in before it is asked for.

A first-order Markov chain over the accesses so far: of all that followed an item, those that came at least `sure` of
the times, and twice or more; at most `most` of them. It costs tokens that are loaded and may not be used, and room.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from ...parts.units import at_least


class Successors:
    """What followed what."""

    __slots__ = ("_followed", "_last", "most", "sure")

    def __init__(self, sure: float = 0.5, most: int = 1) -> None:
        at_least(0, at_most=1, sure=sure)
        at_least(1, most=most)
        self.sure, self.most = sure, most
        self._followed: dict[str, Counter[str]] = {}
        self._last: str | None = None

    def learn(self, id: str) -> None:
        """Note an access. The same item again at once is not a step."""
        if self._last is not None and self._last != id:
            self._followed.setdefault(self._last, Counter())[id] += 1
        self._last = id

    def after(self, id: str) -> list[str]:
        """What will probably be accessed next, the most probable first."""
        followed = self._followed.get(id)
        if followed is None:
            return []
        least = max(2, self.sure * followed.total())
        return [other for other, times in followed.most_common(self.most) if times >= least]

    def state(self) -> dict[str, Any]:
        """What was learned, as plain data."""
        return {"followed": {id: dict(each) for id, each in self._followed.items()}, "last": self._last}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`. Raises ValueError, nothing changed."""
        try:
            followed = msgspec.convert(state["followed"], dict[str, dict[str, int]])
            last = msgspec.convert(state["last"], str | None)
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"this is no state of a preload: {error}") from None
        self._followed, self._last = {id: Counter(each) for id, each in followed.items()}, last

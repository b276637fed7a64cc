"""Predictive preload (004 §2.2): which item is needed next."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec


class Successors:
    """Prediction of the next access: a first-order Markov chain over the accesses so far.

    It predicts the items that followed an item in at least a share `sure` of the times, and at least twice; at most
    `most` of them. A preload costs the tokens that it loads, which may not be used, and room in the cache.
    """

    __slots__ = ("_followed", "_last", "most", "sure")

    def __init__(self, sure: float = 0.5, most: int = 1) -> None:
        self.sure, self.most = sure, most
        self._followed: dict[str, Counter[str]] = {}
        self._last: str | None = None

    def learn(self, id: str) -> None:
        """Count an access as the successor of the previous one, unless it repeats the same item."""
        if self._last is not None and self._last != id:
            self._followed.setdefault(self._last, Counter())[id] += 1
        self._last = id

    def after(self, id: str) -> list[str]:
        """Return the items predicted after an item, the most probable first."""
        followed = self._followed.get(id)
        if followed is None:
            return []
        # One occurrence is always a share of 1 among the first
        # successors, so a share alone would predict from a single case.
        least = max(2, self.sure * followed.total())
        return [other for other, times in followed.most_common(self.most) if times >= least]

    def state(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {"followed": {id: dict(counts) for id, counts in self._followed.items()}, "last": self._last}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a `state()`. Raises ValueError and changes nothing."""
        try:
            followed = msgspec.convert(state["followed"], dict[str, dict[str, int]])
            last = msgspec.convert(state["last"], str | None)
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"this is no state of a preload: {error}") from None
        self._followed, self._last = {id: Counter(counts) for id, counts in followed.items()}, last

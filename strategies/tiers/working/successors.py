"""Predictive preload (004 §2.2): which item is needed next."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Successors:
    """Prediction of the next access: a first-order Markov chain over the accesses so far.

    It predicts the items that followed an item in at least a share `sure` of the times, and at least twice; at most
    `most` of them. A preload costs the tokens that it loads, which may not be used, and room in the cache.
    """

    sure: float = 0.5
    most: int = 1
    followed: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each item how often each other came next."""
    last: str | None = None

    def learn(self, id: str) -> None:
        """Count an access as the successor of the previous one, unless it repeats the same item."""
        if self.last is not None and self.last != id:
            counts = self.followed.setdefault(self.last, {})
            counts[id] = counts.get(id, 0) + 1
        self.last = id

    def after(self, id: str) -> list[str]:
        """Return the items predicted after an item, the most probable first."""
        counts = Counter(self.followed.get(id, {}))
        # One occurrence is always a share of 1 among the first successors, so a share alone would predict from a single
        # case.
        least = max(2, self.sure * counts.total())
        return [other for other, times in counts.most_common(self.most) if times >= least]

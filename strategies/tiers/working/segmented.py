"""Hot, warm and cold segments (004 §2.2: 32K, 64K and 32K of 128K tokens), each an LRU list.

    hit: to the front of the next hotter segment; in the hot one, to its front
    miss: make room; enter at the front of the cold segment
    a segment over its share: its last item is demoted to the front of the next colder one
    evict: the last item of the coldest segment that is not empty

The document draws the segments and does not say how items move. Here they move as in S4LRU (Huang et al., "An Analysis
of Facebook Photo Caching", SOSP 2013), with three lists and the document's shares.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from .policy import Policy

Queues = list[OrderedDict[str, int]]


@dataclass(eq=False)
class Segmented(Policy):
    """`shares` are the shares of the cold, the warm and the hot segment."""

    shares: tuple[float, ...] = (0.25, 0.5, 0.25)
    queues: Queues = field(init=False, default_factory=list)
    at: dict[str, int] = field(init=False, default_factory=dict)  # segment of each item, by number

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.shares or min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(f"shares must be 0 or more and add up to 1, not {self.shares}")
        self.queues = [OrderedDict() for _ in self.shares]

    def _hit(self, id: str) -> None:
        segment = min(self.at[id] + 1, len(self.queues) - 1)
        self._take(id)
        self._put(id, self.tokens[id], segment)
        # Segments over their share demote items. Hottest first: what one demotes may put the next colder one over its
        # share, which the next round sees. The coldest may exceed its own: the cache is within capacity.
        for number in range(segment, 0, -1):
            queue = self.queues[number]
            over = sum(queue.values()) - self.capacity * self.shares[number]
            while over > 0:
                other, tokens = next(iter(queue.items()))
                del queue[other]
                self._put(other, tokens, number - 1)
                over -= tokens

    def _entered(self, id: str, used: bool) -> None:  # noqa: ARG002
        self._put(id, self.tokens[id], 0)

    def _evict(self) -> None:
        self._leave(next(iter(next(queue for queue in self.queues if queue))))

    def _put(self, id: str, tokens: int, segment: int) -> None:
        self.queues[segment][id] = tokens
        self.at[id] = segment

    def _take(self, id: str) -> None:
        del self.queues[self.at.pop(id)][id]

"""The three memories of S5: what is in which, how it moves, when it goes (000 §3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from ...scenarios.model import Message
from ..events import Event, Moved
from .memories import Kind, Memory, Past

Tier = Literal["working", "short", "long"]

TIERS: dict[Kind, Tier] = {
    "current_task": "working",
    "tool_results": "working",
    "session_context": "short",
    "recent_decisions": "short",
    "preference": "long",
    "fact": "long",
    "procedure": "long",
    "session_summary": "long",
}
"""Where a memory of each type begins (000 §3.3.2, `MemoryType`)."""
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class LayerRules:
    """When memories move."""

    long_importance: float
    ttl: float
    """Hours."""
    longest_ttl: float
    session: float
    promote_after: int


class LayerItem:
    """A memory in its place. `tier` is None once it is gone."""

    __slots__ = ("expires", "made", "memory", "references", "row", "tier")

    def __init__(self, memory: Memory, tier: Tier | None, made: float | None) -> None:
        self.memory, self.made = memory, made
        self.tier = tier
        self.expires: float | None = None
        self.references = 0
        self.row = -1
        """Of its vector; -1 = it has none yet."""

    def __deepcopy__(self, memo: object) -> LayerItem:
        """Another item of the same memory: there are many, and a copy of a conversation has them all."""
        other = LayerItem(self.memory, self.tier, self.made)
        other.expires, other.references, other.row = self.expires, self.references, self.row
        return other


class Layers:
    """All memories of one conversation, one item for each of `past.memories`."""

    __slots__ = ("_clock", "_due", "_heard", "_number", "_referenced", "_rules", "_session", "items", "record")

    def __init__(self, rules: LayerRules, record: Callable[[Event], None]) -> None:
        self._rules, self.record = rules, record
        self.items: list[LayerItem] = []
        self._due: list[tuple[float, int, LayerItem]] = []
        self._number = 0
        self._referenced: dict[LayerItem, None] = {}
        self._clock: float | None = None
        self._heard: float | None = None
        self._session: float | None = None
        """When the session began: what is older is of sessions before it."""

    def follow(self, past: Past, now: float | None) -> bool:
        """Take up what has become past, end a session, let memories expire. Returns whether anything changed."""
        rules, before = self._rules, len(self.items)
        ended = now is not None and self._heard is not None and now - self._heard > rules.session * HOUR
        if ended and now is not None and self._heard is not None:
            self._session = (self._heard + now) / 2
        self._clock = now if self._clock is None else self._clock
        self._heard = now if now is not None else self._heard
        for item in self.items[past.changed :]:
            item.tier = None
        del self.items[past.changed :]
        for at in range(past.changed, len(past.memories)):
            self._enter(past.memories[at], past.said[past.places[at]])
        moved = self._end_session() if ended else False
        expired = self._expire(now)
        return moved or expired or not before == past.changed == len(self.items)

    def refer(self, items: Iterable[LayerItem], now: float | None) -> None:
        """Note that these were recalled in this turn: they live on from now."""
        for item in items:
            self._referenced[item] = None
            if item.tier == "short":
                self._live_on(item, now)

    def settle(self) -> None:
        """A turn is over: what was recalled in it, and in enough turns before it, goes to long-term memory."""
        promoted: dict[Tier, list[LayerItem]] = {"working": [], "short": []}
        for item in self._referenced:
            item.references += 1
            if item.tier in promoted and item.references >= self._rules.promote_after:
                promoted[item.tier].append(item)
        self._referenced = {}
        for tier, items in promoted.items():
            self._move(items, tier, "long")

    def _enter(self, memory: Memory, message: Message) -> None:
        said = message.time if message.time is not None or message.call is None else message.call.started
        self._clock = said if said is not None else self._clock
        tier = TIERS[memory.kind]
        if (tier == "long" and memory.importance < self._rules.long_importance) or (
            tier == "working" and self._is_old(self._clock)
        ):
            tier = "short"
        item = LayerItem(memory, tier, self._clock)
        self.items.append(item)
        if tier == "short":
            self._live_on(item, item.made)

    def _is_old(self, made: float | None) -> bool:
        return self._session is not None and made is not None and made < self._session

    def _end_session(self) -> bool:
        """Working memory becomes session history."""
        return self._move(
            [item for item in self.items if item.tier == "working" and self._is_old(item.made)], "working", "short"
        )

    def _live_on(self, item: LayerItem, now: float | None) -> None:
        """From now it lives for `ttl` more hours, but never longer than `longest_ttl` after it was made."""
        if now is None or item.made is None:
            return
        expires = min(now + self._rules.ttl * HOUR, item.made + self._rules.longest_ttl * HOUR)
        if expires != item.expires:
            item.expires = expires
            self._number += 1
            heappush(self._due, (expires, self._number, item))

    def _expire(self, now: float | None) -> bool:
        gone: list[LayerItem] = []
        while now is not None and self._due and self._due[0][0] <= now:
            expires, _, item = heappop(self._due)
            if item.tier == "short" and item.expires == expires:
                gone.append(item)
        return self._move(gone, "short", None)

    def _move(self, items: list[LayerItem], source: Tier, to: Tier | None) -> bool:
        if not items:
            return False
        for item in items:
            item.tier = to
            if to == "short":
                self._live_on(item, item.made)
        self.record(Moved(tuple(dict.fromkeys(item.memory.source for item in items)), source, to or ""))
        return True

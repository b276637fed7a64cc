"""The Working tier (004 §2.2): messages in memory, up to so many tokens; a cache policy says which.

    working = Working()                                    # 128K tokens
    left = working.put(Item(message.id, tokens, message), now)
    item = working.get(message.id, now)                    # None: it is not here; load it and put it

What leaves is returned, never lost: the caller takes it to the Archive. `now` is the recorded time in seconds, or any
clock that does not go back; the policy's periods are in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from ....scenarios.model import Message
from .policies import parse
from .policy import Policy
from .preload import Successors
from .segmented import Segmented

CAPACITY = 131_072
DEFAULT = "lru_k(correlated=100)"
"""Decision 15 says why: without a correlated period a message that has just come is the first to go."""
VERSION = 1


class CachedMessage(NamedTuple):
    """A message and its tokens."""

    id: str
    tokens: int
    message: Message


class Put(NamedTuple):
    """What came of putting an item in."""

    evicted: tuple[CachedMessage, ...] = ()
    """What has to go to the Archive, in order; the item itself, if the policy does not admit it."""
    refused: bool = False
    """It is larger than the tier, which is as it was before."""


class CacheCounts(NamedTuple):
    """What was looked up so far."""

    hits: int
    misses: int
    hit_tokens: int
    evictions: int
    preloaded: int
    """Items that were put because they were predicted."""
    used: int
    """Those of them that were looked up while they were here."""


class _State(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    policy: str
    capacity: int
    items: list[tuple[str, int, Message]]
    cache: dict[str, Any]
    successors: dict[str, Any]
    counts: CacheCounts
    predicted: list[str]


class Working:
    """Messages by id, held as the policy says. `preload` has it say what will probably be wanted next."""

    def __init__(self, capacity: int = CAPACITY, policy: str = DEFAULT, preload: Successors | None = None) -> None:
        self.policy = parse(policy)
        self.cache: Policy = self.policy.sized(capacity)
        self.preload = preload
        self.counts = CacheCounts(0, 0, 0, 0, 0, 0)
        self._items: dict[str, CachedMessage] = {}
        self._predicted: set[str] = set()

    def __contains__(self, id: str) -> bool:
        return id in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[CachedMessage]:
        return iter(self._items.values())

    @property
    def tokens(self) -> int:
        """Tokens held."""
        return self.cache.used

    @property
    def segments(self) -> dict[str, int]:
        """Tokens in the hot, warm and cold segment; empty if the policy has none."""
        return self.cache.segments() if isinstance(self.cache, Segmented) else {}

    def put(self, item: CachedMessage, now: float, preloaded: bool = False) -> Put:
        """Hold an item: it counts as used, unless it is `preloaded`. One that is held already is used once more.

        Raises ValueError if the same id has other tokens or another message, and if the clock goes back.
        """
        held = self._items.get(item.id)
        if held is not None and held != item:
            raise ValueError(f"{item.id!r} is held with other content: what changed needs an id of its own")
        access = (self.cache.preload if preloaded else self.cache.access)(item.id, item.tokens, now)
        if access.refused:
            return Put(refused=True)
        self._items[item.id] = item
        if preloaded and held is None:
            self._predicted.add(item.id)
            self.counts = self.counts._replace(preloaded=self.counts.preloaded + 1)
        return Put(self._left(access.evicted))

    def get(self, id: str, now: float) -> CachedMessage | None:
        """Look an item up. A miss changes nothing in the cache: what is then loaded is put."""
        item = self._items.get(id)
        if self.preload is not None:
            self.preload.learn(id)
        counts = self.counts
        if item is None:
            self.counts = counts._replace(misses=counts.misses + 1)
            return None
        self.cache.access(id, item.tokens, now)
        used = counts.used + (id in self._predicted)
        self._predicted.discard(id)
        self.counts = counts._replace(hits=counts.hits + 1, hit_tokens=counts.hit_tokens + item.tokens, used=used)
        return item

    def wanted(self, id: str) -> list[str]:
        """What will probably be looked up after this item and is not here: to be loaded and put with `preloaded`."""
        return [] if self.preload is None else [other for other in self.preload.after(id) if other not in self._items]

    def evict(self, tokens: int) -> tuple[CachedMessage, ...]:
        """Let go of the policy's victims until at most so many tokens are held."""
        return self._left(self.cache.shrink(tokens))

    def remove(self, id: str) -> CachedMessage:
        """Take an item out that went elsewhere. Raises KeyError if it is not here."""
        item = self._items.pop(id)
        self.cache.remove(id)
        self._predicted.discard(id)
        return item

    def _left(self, ids: tuple[str, ...]) -> tuple[CachedMessage, ...]:
        self.counts = self.counts._replace(evictions=self.counts.evictions + len(ids))
        self._predicted.difference_update(ids)
        return tuple(self._items.pop(id) for id in ids)

    def snapshot(self) -> dict[str, Any]:
        """All that it holds and remembers, the history of what left with it, as plain data that JSON can hold."""
        state = _State(
            version=VERSION,
            policy=str(self.policy),
            capacity=self.cache.capacity,
            items=[(item.id, item.tokens, item.message) for item in self],
            cache=self.cache.state(),
            successors={} if self.preload is None else self.preload.state(),
            counts=self.counts,
            predicted=sorted(self._predicted),
        )
        found: dict[str, Any] = msgspec.to_builtins(state)
        return found

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on where a tier with this policy and capacity was. Raises ValueError with the reason, nothing changed."""
        try:
            state = msgspec.convert(snapshot, _State)
        except msgspec.ValidationError as error:
            raise ValueError(f"this is no snapshot of a Working tier: {error}") from None
        for what, there, here in (
            ("version", state.version, VERSION),
            ("policy", state.policy, str(self.policy)),
            ("capacity", state.capacity, self.cache.capacity),
        ):
            if there != here:
                raise ValueError(f"the snapshot is of a Working tier with {what} {there}, this one has {here}")
        items = {id: CachedMessage(id, tokens, message) for id, tokens, message in state.items}
        fresh = self.cache.restored(state.cache)
        if {item.id: item.tokens for item in items.values()} != dict(fresh.tokens) or len(items) != len(state.items):
            raise ValueError("this is no snapshot of a Working tier: its items are not those of its policy")
        if self.preload is not None:
            self.preload.restore(state.successors)
        self.cache, self._items = fresh, items
        self.counts, self._predicted = state.counts, set(state.predicted)

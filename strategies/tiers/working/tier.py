"""The Working tier (004 §2.2): messages in memory up to a number of tokens; a cache policy chooses which.

    working = Working()                                    # 128K tokens
    result = working.put(CachedMessage(message.id, tokens, message), now)
    item = working.get(message.id, now)                    # None = a miss: load the message and put it

Evicted messages are returned, never lost: the caller moves them to the Archive. `now` is the recorded time in seconds,
or any other clock that does not go back; the policy's periods are in its unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from ctxbench.scenarios.model import Message

from ...parts.units import at_least
from .policies import parse
from .policy import Policy
from .segmented import Segmented

CAPACITY = 131_072
DEFAULT = "lru_k(correlated=100)"
"""Without a correlated period a new message is the first victim (decision 15)."""
VERSION = 1


class CachedMessage(NamedTuple):
    """A message and its size."""

    id: str
    tokens: int
    message: Message


class Put(NamedTuple):
    """Result of `Working.put`."""

    evicted: tuple[CachedMessage, ...] = ()
    """Victims in order, for the Archive; the item itself if the policy did not admit it."""
    refused: bool = False
    """The item is larger than the tier, which has not changed."""


class CacheCounts(NamedTuple):
    """Look-ups so far."""

    hits: int
    misses: int
    hit_tokens: int
    evictions: int
    preloaded: int
    """Number of items put because they were predicted."""
    used: int
    """Number of preloaded items that were looked up before they left."""


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
    """Messages by id, cached by a policy. `preload` predicts the messages that are needed next."""

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
        """Tokens in the cache."""
        return self.cache.used

    @property
    def segments(self) -> dict[str, int]:
        """Tokens in the hot, warm and cold segment; empty if the policy has no segments."""
        return self.cache.segments() if isinstance(self.cache, Segmented) else {}

    def put(self, item: CachedMessage, now: float, preloaded: bool = False) -> Put:
        """Cache an item and count a use of it, unless it is `preloaded`. Putting it again counts another use.

        Raises ValueError if the id has other tokens or another message, or if the clock goes back.
        """
        cached = self._items.get(item.id)
        if cached is not None and cached != item:
            raise ValueError(f"{item.id!r} is in the tier with other content: give changed content a new id")
        access = (self.cache.preload if preloaded else self.cache.access)(item.id, item.tokens, now)
        if access.refused:
            return Put(refused=True)
        # The item enters before the victims are dropped: a policy that does not admit it names it as its own victim.
        self._items[item.id] = item
        if preloaded and cached is None:
            self._predicted.add(item.id)
            self.counts = self.counts._replace(preloaded=self.counts.preloaded + 1)
        return Put(self._drop(access.evicted))

    def get(self, id: str, now: float) -> CachedMessage | None:
        """Look an item up. A miss does not change the cache: the caller loads the message and puts it."""
        item = self._items.get(id)
        # Misses are learned too: the chain is about what was asked for, not about what happened to be in the cache.
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
        """Return the ids predicted after an item that are not cached: load them and put them as `preloaded`."""
        return [] if self.preload is None else [other for other in self.preload.after(id) if other not in self._items]

    def evict(self, tokens: int) -> tuple[CachedMessage, ...]:
        """Evict the policy's victims until at most `tokens` are cached."""
        return self._drop(self.cache.shrink(tokens))

    def remove(self, id: str) -> CachedMessage:
        """Remove an item that moved elsewhere. Raises KeyError if it is not cached."""
        item = self._items.pop(id)
        self.cache.remove(id)
        self._predicted.discard(id)
        return item

    def _drop(self, ids: tuple[str, ...]) -> tuple[CachedMessage, ...]:
        self.counts = self.counts._replace(evictions=self.counts.evictions + len(ids))
        self._predicted.difference_update(ids)
        return tuple(self._items.pop(id) for id in ids)

    def snapshot(self) -> dict[str, Any]:
        """Return items, policy state (with its ghosts) and counts as plain data that JSON can hold."""
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
        plain: dict[str, Any] = msgspec.to_builtins(state)
        return plain

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore the snapshot of a tier with this policy and capacity. Raises ValueError and changes nothing."""
        try:
            state = msgspec.convert(snapshot, _State)
        except msgspec.ValidationError as error:
            raise ValueError(f"this is no snapshot of a Working tier: {error}") from None
        for name, theirs, ours in (
            ("version", state.version, VERSION),
            ("policy", state.policy, str(self.policy)),
            ("capacity", state.capacity, self.cache.capacity),
        ):
            if theirs != ours:
                raise ValueError(f"the snapshot is of a Working tier with {name} {theirs}, this one has {ours}")
        items = {id: CachedMessage(id, tokens, message) for id, tokens, message in state.items}
        cache = self.cache.restored(state.cache)
        if {item.id: item.tokens for item in items.values()} != dict(cache.tokens) or len(items) != len(state.items):
            raise ValueError("this is no snapshot of a Working tier: its items are not those of its policy")
        # This may still raise, so it goes before the tier's own fields change; nothing after it can fail.
        if self.preload is not None:
            self.preload.restore(state.successors)
        self.cache, self._items = cache, items
        self.counts, self._predicted = state.counts, set(state.predicted)


class Successors:
    """Prediction of the next access: a first-order Markov chain over the accesses so far.

    It predicts the items that followed an item in at least a share `sure` of the times, and at least twice; at most
    `most` of them. A preload costs the tokens that it loads, which may not be used, and room in the cache.
    """

    __slots__ = ("_followed", "_last", "most", "sure")

    def __init__(self, sure: float = 0.5, most: int = 1) -> None:
        at_least(0, at_most=1, sure=sure)
        at_least(1, most=most)
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

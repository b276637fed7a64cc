"""The base of all cache policies: which items stay when they do not all fit. Items have a size in tokens.

    access(id, tokens, now) = hit                 if the item is in the cache
                            = refused             if it is larger than the whole cache; nothing else happens
                            = miss, and victims   otherwise; the item is admitted, unless the policy rejects it

`now` is the caller's clock: the number of the access, or recorded seconds. It never goes back. A policy says what to
do on a hit (`_hit`), with an item that enters (`_entered`) and which item to evict (`_evict`). Some also decide where
an item enters before room is made (`_admit`). Sizes, refusals, the clock and the results are handled here.

The whole state of a policy is in its fields: `state()` and `restore()` need no code of their own. Queues are
OrderedDicts: the first key of a dict is found in time linear in the keys deleted before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, Self, get_type_hints

import msgspec

from ctxbench.scenarios.spec import PositiveInt, check_bounds

TRANSIENT = {"transient": True}  # metadata of a field that is no state


class Access(NamedTuple):
    """Result of one access."""

    hit: bool
    evicted: tuple[str, ...] = ()  # victims in order; the item itself if the policy did not admit it
    refused: bool = False  # the item is larger than the cache


HIT, REFUSED = Access(True), Access(False, refused=True)


@dataclass(eq=False)
class Policy(ABC):
    """A cache of `capacity` tokens."""

    capacity: PositiveInt = 1
    tokens: OrderedDict[str, int] = field(init=False, default_factory=OrderedDict)  # sizes of the items in the cache
    used: int = field(init=False, default=0)
    now: float | None = field(init=False, default=None)  # time of the last access
    evicted: list[str] = field(init=False, default_factory=list, metadata=TRANSIENT)  # victims of the current access

    def __post_init__(self) -> None:
        check_bounds(self)

    def sized(self, capacity: int) -> Self:
        """Return an empty cache of the same policy. Raises ValueError for a capacity below 1."""
        return replace(self, capacity=capacity)

    def access(self, id: str, tokens: int, now: float, used: bool = True) -> Access:
        """Count a reference to an item, and admit it if it is not in the cache. A preload is not `used`: no reference.

        Raises ValueError for no tokens, for other tokens than it has in the cache, and for a clock that goes back.
        """
        size = self.tokens.get(id)
        if tokens < 1:
            raise ValueError(f"tokens must be at least 1, not {tokens}")
        if size not in (None, tokens):
            raise ValueError(f"{id!r} has {size} tokens in the cache, not {tokens}: give changed content a new id")
        self._advance(now)
        if size is not None:
            if used:
                self._hit(id)
            return HIT
        if tokens > self.capacity:
            return REFUSED
        # Victims are collected in a field, not returned: one access may evict in several steps of a policy's own.
        self.evicted = []
        self._admit(id, tokens, used)
        return Access(False, tuple(self.evicted))

    def remove(self, id: str) -> None:
        """Remove an item from the cache. This is not an eviction."""
        self._take(id)
        self.used -= self.tokens.pop(id)

    def expel(self, now: float) -> tuple[str, ...]:
        """Evict the next victim, as if room were needed now. Return the victims: mostly one, none if it is empty."""
        self._advance(now)
        self.evicted = []
        if self.tokens:
            self._evict()
        return tuple(self.evicted)

    @abstractmethod
    def _hit(self, id: str) -> None:
        """Count a reference to an item in the cache."""

    def _admit(self, id: str, tokens: int, used: bool) -> None:
        """Make room for an item and store it. `used` is False if it is preloaded, without a reference to it."""
        while self.used + tokens > self.capacity:
            self._evict()
        self._store(id, tokens)
        self._entered(id, used)

    def _entered(self, id: str, used: bool) -> None:  # noqa: B027
        """Add the policy's own data on an item that was stored."""

    @abstractmethod
    def _evict(self) -> None:
        """Choose a victim, and `_leave` it."""

    def _take(self, id: str) -> None:  # noqa: B027
        """Drop the policy's own data on an item in the cache."""

    def _store(self, id: str, tokens: int) -> None:
        self.tokens[id] = tokens
        self.used += tokens

    def _leave(self, id: str) -> None:
        self.remove(id)
        self.evicted.append(id)

    def _advance(self, now: float) -> None:
        if self.now is not None and now < self.now:
            raise ValueError(f"the clock went back from {self.now} to {now}: accesses come in order of time")
        self.now = now

    def state(self) -> dict[str, Any]:
        """Return the whole state as plain data that JSON can hold."""
        names = self._state_fields()
        return {name: msgspec.to_builtins(getattr(self, name), enc_hook=lambda ranks: ranks.of) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue, while still empty, from the state of another of its kind with the same parameters."""
        hints = get_type_hints(type(self))
        for name in self._state_fields():
            # The hook makes the queues, which come as plain dicts.
            value = msgspec.convert(state[name], hints[name], dec_hook=lambda kind, items: kind(items))
            setattr(self, name, value)

    def _state_fields(self) -> Iterator[str]:
        return (own.name for own in fields(self) if not own.init and not own.metadata)


Rank = tuple[float, ...]


class Ranks:
    """Priority queue of items: a heap in which outdated entries stay and are skipped.

    It has at most twice as many entries as items, and a few.
    """

    def __init__(self, ranks: Mapping[str, Iterable[float]] | None = None) -> None:
        self.of: dict[str, Rank] = {id: tuple(rank) for id, rank in (ranks or {}).items()}
        """Ranks of the items, which are removed here."""
        self._order_anew()

    def _order_anew(self) -> None:
        self._heap = [(rank, id) for id, rank in self.of.items()]
        heapify(self._heap)

    def put(self, id: str, rank: Rank) -> None:
        """Set the rank of an item. No two items have the same rank."""
        self.of[id] = rank
        # A hit leaves the item's old entry in the heap. Ordering all
        # anew once they outnumber the others costs O(1) a `put` on average.
        if len(self._heap) > 2 * len(self.of) + 64:
            self._order_anew()
        else:
            heappush(self._heap, (rank, id))

    def lowest(self) -> str:
        """Return the item with the lowest rank. There must be one."""
        # An item that was put again or removed has another rank by now, or none: its old entry is dropped.
        while self.of.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][1]


class Ghosts(msgspec.Struct):
    """Ghost queue: ids of items evicted recently, without their content."""

    left: OrderedDict[str, int] = msgspec.field(default_factory=OrderedDict)  # tokens by id, oldest first
    used: int = 0

    def remember(self, id: str, tokens: int, limit: int) -> None:
        """Add an evicted item, and forget the oldest ones while all together exceed `limit` tokens."""
        # Otherwise the loop below would empty the queue and still find no room.
        if tokens > limit:
            return
        while self.used + tokens > limit:
            self.forget(next(iter(self.left)))
        self.left[id] = tokens
        self.used += tokens

    def forget(self, id: str) -> bool:
        tokens = self.left.pop(id, None)
        self.used -= tokens or 0
        return tokens is not None


@dataclass(slots=True)
class Successors:
    """Predictive preload (004 §2.2): a first-order Markov chain over the accesses so far.

    It predicts the item that followed an item at least every second time, and at least twice. A preload costs the
    tokens that it loads, which may not be used, and room in the cache.
    """

    followed: dict[str, dict[str, int]] = field(default_factory=dict)  # for each item how often each other came next
    last: str | None = None

    def learn(self, id: str) -> None:
        """Count an access as the successor of the previous one, unless it repeats the same item."""
        if self.last is not None and self.last != id:
            counts = self.followed.setdefault(self.last, {})
            counts[id] = counts.get(id, 0) + 1
        self.last = id

    def after(self, id: str) -> list[str]:
        """Return the item predicted after an item, if there is one."""
        counts = Counter(self.followed.get(id, {}))
        # One occurrence is always a share of 1 among the first successors, so a share alone would predict from a single
        # case.
        return [other for other, times in counts.most_common(1) if times >= max(2, counts.total() / 2)]

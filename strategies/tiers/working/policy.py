"""What a cache policy is: it says which items stay when they do not all fit. Items have a size in tokens.

    access(id, tokens, now) = hit                          if it is held
                            = refused                      if it is larger than the whole cache; nothing else happens
                            = miss, and what was evicted   otherwise; then it is held, unless the policy turned it away

`now` is the caller's clock: the number of the access, or recorded seconds. It never goes back. A policy says what to
do on a hit (`_hit`), on a miss (`_miss`, by default: make room, enter) and whom to evict (`_evict`); sizes, refusals,
the clock and the reports are here.

All that a policy remembers is in its fields, as plain data: `state()` and `restored()` need no code of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any, NamedTuple, Self, get_type_hints

import msgspec

from ...parts.units import at_least

DERIVED = {"derived": True}
"""Metadata of a field that `_rebuild` makes from the others."""


class Access(NamedTuple):
    """What came of one access."""

    hit: bool
    evicted: tuple[str, ...] = ()
    """Who had to leave, in order. The item itself, if the policy did not admit it."""
    refused: bool = False
    """The item is larger than the cache."""


HIT, REFUSED = Access(True), Access(False, refused=True)


@dataclass(eq=False)
class Policy(ABC):
    """A cache of `capacity` tokens."""

    capacity: int
    tokens: dict[str, int] = field(init=False, default_factory=OrderedDict)
    """What is held, and how large it is."""
    used: int = field(init=False, default=0)
    now: float | None = field(init=False, default=None)
    """When the last access was."""
    evicted: list[str] = field(init=False, default_factory=list, metadata=DERIVED)
    """Who had to leave during this access."""

    def __post_init__(self) -> None:
        at_least(1, capacity=self.capacity)

    def access(self, id: str, tokens: int, now: float) -> Access:
        """Refer to an item: it counts as used, and is brought in if it is not held."""
        held = self._checked(id, tokens, now)
        if held:
            self._hit(id)
            return HIT
        return self._bring(id, tokens)

    def preload(self, id: str, tokens: int, now: float) -> Access:
        """Bring an item in that nobody referred to. One that is held stays as it is."""
        return HIT if self._checked(id, tokens, now) else self._bring(id, tokens, used=False)

    def remove(self, id: str) -> None:
        """Take an item out that is held. It does not count as evicted."""
        self._take(id)
        self.used -= self.tokens.pop(id)

    def expel(self, now: float) -> tuple[str, ...]:
        """Have the next to go leave, as if room were needed now. Who had to: mostly one, nobody if nothing is held."""
        self._passes(now)
        self.evicted = []
        if self.tokens:
            self._evict()
        return tuple(self.evicted)

    def shrink(self, tokens: int) -> tuple[str, ...]:
        """Evict until at most so many tokens are held. Who had to leave."""
        at_least(0, tokens=tokens)
        self.evicted = []
        while self.used > tokens:
            self._evict()
        return tuple(self.evicted)

    @abstractmethod
    def _hit(self, id: str) -> None:
        """An item that is held was referred to."""

    def _miss(self, id: str, tokens: int) -> None:
        """An item that is not held was referred to: make room for it and let it in."""
        self._room(tokens)
        self._enter(id, tokens)

    def _unused(self, id: str, tokens: int) -> None:
        """An item is brought in that was not referred to."""
        self._miss(id, tokens)

    @abstractmethod
    def _evict(self) -> None:
        """Choose one of those held, and `_leave` it."""

    def _take(self, id: str) -> None:  # noqa: B027
        """Forget what else there is of an item that is held."""

    def _rebuild(self) -> None:  # noqa: B027
        """Make the derived fields."""

    def _checked(self, id: str, tokens: int, now: float) -> bool:
        at_least(1, tokens=tokens)
        held = self.tokens.get(id)
        if held is not None and held != tokens:
            raise ValueError(f"{id!r} is held with {held} tokens, not {tokens}: what changed needs an id of its own")
        self._passes(now)
        return held is not None

    def _passes(self, now: float) -> None:
        if self.now is not None and now < self.now:
            raise ValueError(f"the clock went back from {self.now} to {now}: accesses come in order of time")
        self.now = now

    def _bring(self, id: str, tokens: int, used: bool = True) -> Access:
        if tokens > self.capacity:
            return REFUSED
        self.evicted = []
        (self._miss if used else self._unused)(id, tokens)
        return Access(False, tuple(self.evicted))

    def _room(self, tokens: int) -> None:
        while self.used + tokens > self.capacity:
            self._evict()

    def _enter(self, id: str, tokens: int) -> None:
        self.tokens[id] = tokens
        self.used += tokens

    def _leave(self, id: str) -> None:
        self.used -= self.tokens.pop(id)
        self.evicted.append(id)

    def state(self) -> dict[str, Any]:
        """All that it remembers, as plain data: what JSON can hold."""
        return {each.name: msgspec.to_builtins(getattr(self, each.name)) for each in self._remembered()}

    def restored(self, state: dict[str, Any]) -> Self:
        """A policy with these parameters that remembers what another had in its `state()`. Raises ValueError."""
        made = type(self)(**{each.name: getattr(self, each.name) for each in fields(self) if each.init})
        hints = get_type_hints(type(self))
        try:
            for each in self._remembered():
                value = msgspec.convert(state[each.name], hints[each.name])
                kind = type(getattr(made, each.name))
                setattr(made, each.name, kind(value) if kind is OrderedDict else value)
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"this is no state of {type(self).__name__}: {error}") from None
        if made.used != sum(made.tokens.values()) or made.used > made.capacity:
            raise ValueError(
                f"this is no state of {type(self).__name__} with {self.capacity} tokens: sizes do not add up"
            )
        made._rebuild()
        return made

    def _remembered(self) -> Iterator[Field[Any]]:
        return (each for each in fields(self) if not each.init and not each.metadata.get("derived"))

"""Where everything is, as a journal says it: one record a step, and what the records come to.

A move is two records: `Begun` (there may be a copy at `to` from now on) and `Committed` (that copy is the content; the
other is a leftover, due to be deleted). Deleting a leftover is a third, `Cleaned`, written once it is gone. So whatever
is in a store is either where the content is or a copy that is known and due, and recovery is no more than to clean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from .store import Sum


class _Record(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True, gc=False):
    """Frozen, tagged with its name."""


class Begun(_Record, frozen=True, tag="begun"):
    """A copy is about to be written. If nothing of this id is known, it arrives: the copy will be the only one."""

    id: str
    to: str
    tokens: int
    bytes: int
    crc: int
    now: float


class Committed(_Record, frozen=True, tag="committed"):
    """The content is at `to` now. What it was copied from is to be deleted at `due`; None = it stays as a backing."""

    id: str
    to: str
    now: float
    due: float | None = None


class Cleaned(_Record, frozen=True, tag="cleaned"):
    """There is no copy at this tier any more."""

    id: str
    tier: str


class Gone(_Record, frozen=True, tag="gone"):
    """Nobody is to see it any more: all its copies are due."""

    id: str
    now: float


class Held(_Record, frozen=True, tag="held"):
    """Where an item is: what the records before came to, when a journal was written anew."""

    id: str
    tier: str
    tokens: int
    bytes: int
    crc: int
    since: float
    came: str


class Copied(_Record, frozen=True, tag="copied"):
    """A copy that is not the content: the same."""

    id: str
    tier: str
    due: float | None


class Until(_Record, frozen=True, tag="until"):
    """The time that the records before had come to: the same."""

    now: float


Record = Begun | Committed | Cleaned | Gone | Held | Copied | Until


class Place(NamedTuple):
    """The one tier that an item is in, and what must be read there."""

    tier: str
    tokens: int
    bytes: int
    crc: int
    since: float
    """When it came there."""
    came: str
    """From which tier; empty = it arrived."""

    @property
    def sum(self) -> Sum:
        """Of its content."""
        return self.bytes, self.crc


class Locations:
    """What the records come to. `apply` raises ValueError for one that cannot follow those before it."""

    __slots__ = ("_ids", "arriving", "copies", "held", "now", "places")

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.copies: dict[str, dict[str, float | None]] = {}
        """Of each item, the tiers with a copy that is not the content, and when that is to be deleted; None = never."""
        self.arriving: dict[str, Begun] = {}
        self.held: dict[str, int] = {}
        """Tokens of each tier's items."""
        self._ids: dict[str, dict[str, None]] = {}
        self.now = float("-inf")

    def ids(self, tier: str) -> list[str]:
        """The items of a tier, in the order in which they came."""
        return list(self._ids.get(tier, ()))

    def tokens(self, tier: str) -> int:
        """Tokens of a tier's items."""
        return self.held.get(tier, 0)

    def tiers(self) -> set[str]:
        """All tiers that are named."""
        copies = {tier for tiers in self.copies.values() for tier in tiers}
        return copies | {place.tier for place in self.places.values()}

    def apply(self, record: Record) -> None:
        """Take one record in."""
        match record:
            case Begun():
                self._begin(record)
            case Committed():
                self._commit(record)
            case Cleaned():
                self._clean(record.id, record.tier)
            case Gone():
                self._go(record)
            case Held():
                self._at(record.id, Place(*(getattr(record, name) for name in Place._fields)))
            case Copied():
                self.copies.setdefault(record.id, {})[record.tier] = record.due
            case Until():
                self._tick(record.now)

    def records(self) -> Iterator[Record]:
        """The fewest records that come to the same. Equal locations have equal ones."""
        for tier in sorted(self._ids):
            yield from (Held(id, **self.places[id]._asdict()) for id in self._ids[tier])
        yield from (begun for _, begun in sorted(self.arriving.items()))
        for id, copies in sorted(self.copies.items()):
            yield from (Copied(id, tier, due) for tier, due in sorted(copies.items()))
        if self.now > float("-inf"):
            yield Until(self.now)

    def _tick(self, now: float) -> None:
        self.now = max(self.now, now)

    def _begin(self, record: Begun) -> None:
        self._tick(record.now)
        if record.id not in self.places:
            self.arriving[record.id] = record
        self.copies.setdefault(record.id, {})[record.to] = record.now

    def _commit(self, record: Committed) -> None:
        id, to = record.id, record.to
        if to not in self.copies.get(id, ()):
            raise ValueError(f"{id!r} is committed to {to!r}, where no copy of it was begun")
        self._tick(record.now)
        self._uncopied(id, to)
        arrived, old = self.arriving.pop(id, None), self.places.get(id)
        if old is not None:
            self._leave(id)
            self.copies.setdefault(id, {})[old.tier] = record.due
            self._at(id, old._replace(tier=to, since=record.now, came=old.tier))
        elif arrived is not None:
            self._at(id, Place(to, arrived.tokens, arrived.bytes, arrived.crc, record.now, ""))
        else:
            raise ValueError(f"{id!r} is committed to {to!r}, and nothing is known of it")

    def _clean(self, id: str, tier: str) -> None:
        if tier not in self.copies.get(id, ()):
            raise ValueError(f"a copy of {id!r} is cleaned from {tier!r}, where none is known")
        self._uncopied(id, tier)
        if id in self.arriving and self.arriving[id].to == tier:
            del self.arriving[id]

    def _go(self, record: Gone) -> None:
        id = record.id
        if id not in self.places:
            raise ValueError(f"{id!r} is gone, and was nowhere")
        self._tick(record.now)
        tiers = {*self.copies.get(id, ()), self.places[id].tier}
        self._leave(id)
        self.copies[id] = dict.fromkeys(sorted(tiers), record.now)

    def _uncopied(self, id: str, tier: str) -> None:
        copies = self.copies[id]
        del copies[tier]
        if not copies:
            del self.copies[id]

    def _at(self, id: str, place: Place) -> None:
        self.places[id] = place
        self._ids.setdefault(place.tier, {})[id] = None
        self.held[place.tier] = self.tokens(place.tier) + place.tokens
        self._tick(place.since)

    def _leave(self, id: str) -> None:
        place = self.places.pop(id)
        del self._ids[place.tier][id]
        self.held[place.tier] -= place.tokens

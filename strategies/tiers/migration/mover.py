"""Moving content so that no crash loses it: copy, verify, commit where it is, delete what is left over later.

Two rules carry it. What is in a store and is not where the content is, is in the journal as a copy, before it is
written and until it is deleted. And a copy is deleted only after the content was read and found sound. So a crash
between any two steps leaves the content where the journal says, and copies that the next cleaning deletes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .accounts import Accounts, Why
from .journal import Journal
from .records import Begun, Cleaned, Committed, Copied, Gone, Locations, Place, Record
from .store import FAULTS, Store, Tier, TierError, sound, summed


class Recovered(NamedTuple):
    """What was found when the journal was opened. Ids, sorted."""

    finished: tuple[str, ...]
    """They were arriving, and their copy is sound: they are there now."""
    undone: tuple[str, ...]
    """They were arriving, and their copy is not."""
    salvaged: tuple[str, ...]
    """They were not where they should be, and a copy was elsewhere."""
    lost: tuple[str, ...]
    """They were in a tier that ended with its process, and nowhere else."""
    missing: tuple[str, ...]
    """They should be in a durable tier, which does not have them."""


class Mover:
    """The tiers, the journal, and the steps between them. It decides nothing."""

    def __init__(
        self, tiers: Sequence[Tier], journal: Journal, accounts: Accounts, moved: Callable[[str, str, str, int], None]
    ) -> None:
        """`moved` is told of every item that has another place: id, from where (empty: it arrived), where to (empty: it
        is gone), tokens.
        """
        self.tiers = {tier.name: tier for tier in tiers}
        self.journal, self.accounts, self._moved = journal, accounts, moved
        self.locations = Locations()
        self._due: list[tuple[float, str, str, float]] = []
        """When to look, at whose copy, in which tier, and the due time that this is for."""
        for record in journal.records():
            self.locations.apply(record)
        self._opened()

    def reset(self, locations: Locations) -> None:
        """Go on with these instead. The journal is written first."""
        self.check(locations)
        self.journal.rewrite(locations.records())
        self.locations = locations
        self._opened()

    def arrive(self, id: str, to: str, content: bytes, tokens: int, now: float) -> Why | None:
        """Store content that is in no tier yet."""
        self._write(Begun(id, to, tokens, *summed(content), now))
        why = self._copy(id, to, content, tokens, now)
        if why is None:
            self._write(Committed(id, to, now))
            self._moved(id, "", to, tokens)
        return why

    def move(self, id: str, to: str, now: float) -> Why | bool:
        """Why not, or whether a copy that was still there was enough."""
        content = self.read(id, now)
        if content is None:
            return Why.DAMAGED
        place = self.locations.places[id]
        if place.tier == to:
            return True
        revived = to in self.locations.copies.get(id, ()) and sound(self._store(to), id, place.sum) is not None
        if not revived:
            self._write(Begun(id, to, place.tokens, place.bytes, place.crc, now))
            why = self._copy(id, to, content, place.tokens, now)
            if why is not None:
                return why
        self._commit(id, to, now, self._leaving(place, to, now))
        return revived

    def read(self, id: str, now: float) -> bytes | None:
        """The content of an item; if it is damaged, a copy that is not, which takes its place. None if none is."""
        place = self.locations.places[id]
        content = sound(self._store(place.tier), id, place.sum)
        if content is not None:
            return content
        for tier in self.tiers:
            if tier in self.locations.copies.get(id, ()):
                content = sound(self._store(tier), id, place.sum)
                if content is not None:
                    self.accounts.salvaged += 1
                    self._commit(id, tier, now, now)
                    return content
        return None

    def forget(self, id: str, now: float) -> None:
        """Nobody sees it any more; its copies are deleted."""
        place = self.locations.places[id]
        self._write(Gone(id, now))
        self._moved(id, place.tier, "", place.tokens)
        self.clean(now)

    def clean(self, now: float) -> None:
        """Delete the copies that are due."""
        again = []
        while self._due and self._due[0][0] <= now:
            _, id, tier, due = heapq.heappop(self._due)
            if self.locations.copies.get(id, {}).get(tier) != due:
                continue
            if id in self.locations.places and self.read(id, now) is None:
                self.accounts.damaged += 1
            elif self.locations.copies.get(id, {}).get(tier) == due and not self._drop(id, tier, now):
                again.append((now + self.tiers[tier].delay, id, tier, due))
        for entry in again:
            heapq.heappush(self._due, entry)
        if len(self.journal) > 1000 + 4 * (len(self.locations.places) + len(self.locations.copies)):
            self.journal.rewrite(self.locations.records())

    def recover(self, now: float) -> Recovered:
        """Finish or undo what a crash left, and look whether everything is where it should be."""
        finished, undone, salvaged, lost, missing = [], [], [], [], []
        for id, begun in sorted(self.locations.arriving.items()):
            if sound(self._store(begun.to), id, (begun.bytes, begun.crc)) is not None:
                self._write(Committed(id, begun.to, now))
                self._moved(id, "", begun.to, begun.tokens)
                finished.append(id)
            else:
                self._drop(id, begun.to, now)
                undone.append(id)
        for id, place in sorted(self.locations.places.items()):
            if id in self._store(place.tier):
                self._release(id, now)
            elif self.read(id, now) is not None:
                salvaged.append(id)
            elif self.tiers[place.tier].durable:
                missing.append(id)
            else:
                lost.append(id)
                self._write(Gone(id, now))
                self._moved(id, place.tier, "", place.tokens)
        return Recovered(*(tuple(ids) for ids in (finished, undone, salvaged, lost, missing)))

    # the steps

    def _copy(self, id: str, to: str, content: bytes, tokens: int, now: float) -> Why | None:
        """Write a copy that is begun, and read it back. What is not sound is deleted."""
        store = self._store(to)
        why = Why.CORRUPT
        try:
            store.put(id, content, tokens, now)
        except FAULTS:
            why = Why.FAILED
        else:
            if sound(store, id, summed(content)) is not None:
                return None
        if not self._drop(id, to, now):
            heapq.heappush(self._due, (now + self.tiers[to].delay, id, to, now))
        return why

    def _leaving(self, place: Place, to: str, now: float) -> float | None:
        """When the copy that is left behind is to be deleted."""
        source = self.tiers[place.tier]
        return None if source.durable and not self.tiers[to].durable else now + source.delay

    def _commit(self, id: str, to: str, now: float, due: float | None) -> None:
        place = self.locations.places[id]
        self._write(Committed(id, to, now, due))
        self._moved(id, place.tier, to, place.tokens)
        self._release(id, now)

    def _release(self, id: str, now: float) -> None:
        """What is in a durable tier needs no backing in another."""
        if not self.tiers[self.locations.places[id].tier].durable:
            return
        for tier, due in list(self.locations.copies.get(id, {}).items()):
            if due is None:
                self._write(Copied(id, tier, now + self.tiers[tier].delay))

    def _drop(self, id: str, tier: str, now: float) -> bool:
        """Delete a copy. False if the tier cannot."""
        try:
            self._store(tier).delete(id, now)
        except FAULTS:
            self.accounts.undeleted += 1
            return False
        self._write(Cleaned(id, tier))
        self.accounts.cleaned += 1
        return True

    def _write(self, record: Record) -> None:
        """To the journal first: what is not there did not happen."""
        self.journal.append(record)
        self.locations.apply(record)
        if isinstance(record, Committed | Gone | Copied):
            self._watch(record.id)

    def _watch(self, id: str) -> None:
        for tier, due in self.locations.copies.get(id, {}).items():
            if due is not None:
                heapq.heappush(self._due, (due, id, tier, due))

    def _opened(self) -> None:
        self.check(self.locations)
        self._due = []
        for id in self.locations.copies:
            self._watch(id)

    def check(self, locations: Locations) -> None:
        """Raise TierError if they name a tier that is not there."""
        unknown = locations.tiers() - self.tiers.keys()
        if unknown:
            raise TierError(f"items are in {', '.join(sorted(unknown))}; the tiers are {', '.join(self.tiers)}")

    def _store(self, tier: str) -> Store:
        return self.tiers[tier].store

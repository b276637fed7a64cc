"""Execution of moves: make room, copy content with a journal, and inform quotas, policies and accounts."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...events import LimitReached, Moved
from ..quota import Quotas
from .jobs import IDLE, UNCOOLED, Accounts, Job, MoveReason, Outcome, Trigger
from .journal import Begun, Cleaned, Committed, Copied, Gone, Journal, JournalError, Location, Locations, Record
from .selection import Heat, Pressure, VictimSelection
from .store import FAULTS, ContentStore, Tier, TierError, content_sum, read_sound


class MigrationExecutor:
    """Executor of jobs on tiers with quotas. It starts no move by itself."""

    def __init__(
        self,
        tiers: Sequence[Tier],
        journal: Journal,
        record: Callable[[Moved | LimitReached], None],
        heat: Heat,
        cooldown: float,
    ) -> None:
        self._tiers, self._record, self._heat = {tier.name: tier for tier in tiers}, record, heat
        self._quotas = Quotas({tier.name: tier.quota for tier in tiers}, record)
        self._running: dict[str, Job] = {}  # job of each item that is being moved
        self.accounts = Accounts()
        self.mover = JournaledMover(tiers, journal, self.accounts, self._moved)
        self.selection = VictimSelection(tiers, self.mover.locations, heat, cooldown)
        self.pressure = Pressure(self.selection)
        self.now = self.mover.locations.now

    @property
    def locations(self) -> Locations:
        """Locations of all items."""
        return self.mover.locations

    def opened(self, now: float) -> Recovered:
        """Inform the policies of their tiers' items, and finish or undo interrupted moves."""
        for name in self._tiers:
            for id in self.locations.ids(name):
                self.selection.replacement(name).come(id, self.locations.places[id].tokens, now, used=True)
        return self._recover(now)

    def reset(self, locations: Locations, replacements: Mapping[str, object]) -> Recovered:
        """Continue with other locations and policy states. Raises TierError or JournalError and changes nothing."""
        self.mover.check(locations)
        before = self.selection.state()
        try:
            self.selection.restore(replacements)
            self.mover.reset(locations)
        except (ValueError, JournalError) as error:
            # The policies before the one that refused its state, or all of them, have changed.
            self.selection.restore(before)
            if isinstance(error, JournalError):
                raise
            raise TierError(f"this is no snapshot of these tiers: {error}") from None
        self.selection.locations = locations
        return self._recover(self.now)

    def arrive(self, id: str, content: bytes, tokens: int, tier: str, now: float) -> MoveReason | None:
        """Store a new item. Return the reason if it cannot be stored, else None."""
        reason = self._make_room(self._tiers[tier], tokens, now, frozenset({id}))
        reason = self.mover.arrive(id, tier, content, tokens, now) if reason is None else reason
        # The attempt recorded the limits that it would have crossed. Wanting nothing more takes that back.
        if reason is not None:
            self._want(tier)
        return reason

    def use(self, id: str, now: float) -> None:
        """Count a use of an item where it is."""
        self._heat.use(id, now)
        self.selection.replacement(self.locations.places[id].tier).use(id, now)

    def do(self, job: Job, now: float, keep: frozenset[str] = frozenset()) -> Outcome:
        """Execute a job, and account for it. The items in `keep` may not be evicted to make room."""
        edge = self.accounts.edge(job.source, job.to)
        self._running[job.id] = job
        try:
            result = self._do(job, now, keep | {job.id})
        finally:
            del self._running[job.id]
        if isinstance(result, MoveReason):
            edge.refused[result] += 1
            # As above: the reserved tokens are not there, and the limits follow what is.
            self._want(job.to)
            return Outcome(job, result)
        place = self.locations.places[job.id]
        late = now > job.deadline
        edge.moves += 1
        edge.revived += result
        edge.late += late
        edge.tokens += place.tokens
        edge.bytes += 0 if result else place.bytes
        edge.waits.append(now - job.asked)
        return Outcome(job, None, result, late)

    def _do(self, job: Job, now: float, keep: frozenset[str]) -> MoveReason | bool:
        place = self.locations.places.get(job.id)
        # A job may have waited while its item was moved, salvaged elsewhere or forgotten.
        if place is None or place.tier != job.source:
            return MoveReason.STALE
        if job.trigger is Trigger.PREDICTED_USE and now > job.deadline:
            return MoveReason.EXPIRED
        if job.trigger in IDLE and self._heat.last(job.id) > job.asked:
            return MoveReason.USED
        if job.trigger not in UNCOOLED and self.selection.cooling(job.id, job.to, now):
            return MoveReason.COOLING
        # A reason is a non-empty text, so `or` moves only if there is none. `move` returns False for a move by copying.
        return self._make_room(self._tiers[job.to], place.tokens, now, keep) or self.mover.move(job.id, job.to, now)

    def _make_room(self, tier: Tier, tokens: int, now: float, keep: frozenset[str]) -> MoveReason | None:
        """Reserve tokens in a tier, evicting its items if necessary (hard pressure)."""
        if tokens > tier.quota.hard:
            return MoveReason.TOO_LARGE
        if not self._want(tier.name, tokens):
            # Each victim is moved before the next is chosen, and may itself make room in the tier below; `keep` grows
            # on the way down, so no item is asked to leave for its own sake.
            for job in self.pressure.hard(tier, tokens, now, keep):
                self.do(job, now, keep)
        return None if self._want(tier.name, tokens) else MoveReason.NO_ROOM

    def _want(self, tier: str, more: int = 0) -> bool:
        """Return whether a tier may hold its items and `more` tokens. Crossed limits are recorded."""
        return self._quotas.want(tier, self.locations.tokens(tier) + more)

    def _moved(self, id: str, source: str, to: str, tokens: int) -> None:
        """Record that an item has moved."""
        job = self._running.get(id)
        if source:
            self.selection.replacement(source).gone(id)
            self._record(Moved((id,), source, to, tokens, self.now - job.asked if job is not None else 0.0))
            self._want(source)
        if to:
            predicted = job is not None and job.trigger is Trigger.PREDICTED_USE
            self.selection.replacement(to).come(id, tokens, self.now, used=not predicted)

    def _recover(self, now: float) -> Recovered:
        recovered = self.mover.recover(now)
        for name in self._tiers:
            self._want(name)
        return recovered


class Recovered(NamedTuple):
    """Result of opening a journal: ids, sorted."""

    finished: tuple[str, ...]
    """New items whose copy was intact: they are stored now."""
    undone: tuple[str, ...]
    """New items whose copy was not intact."""
    salvaged: tuple[str, ...]
    """Items that another copy replaced."""
    lost: tuple[str, ...]
    """Items of a tier that ended with its process, without another copy."""
    missing: tuple[str, ...]
    """Items that should be in a durable tier and are not."""


class JournaledMover:
    """The single steps of moves, each journalled before it counts. It makes no decisions."""

    def __init__(
        self, tiers: Sequence[Tier], journal: Journal, accounts: Accounts, moved: Callable[[str, str, str, int], None]
    ) -> None:
        """Replay a journal and watch its copies.

        `moved` is called for every item that has moved: id, source (empty: it is new), destination (empty: it is
        deleted), tokens.
        """
        self.tiers = {tier.name: tier for tier in tiers}
        self.journal, self.accounts, self._moved = journal, accounts, moved
        self.locations = Locations()
        self._due: list[tuple[float, str, str, float]] = []  # time to check, id, tier, and the copy's due time
        for record in journal.records():
            self.locations.apply(record)
        self._opened()

    def reset(self, locations: Locations) -> None:
        """Continue with other locations, after rewriting the journal."""
        self.check(locations)
        self.journal.rewrite(locations.records())
        self.locations = locations
        self._opened()

    def arrive(self, id: str, to: str, content: bytes, tokens: int, now: float) -> MoveReason | None:
        """Store a new item. Return the reason if that fails."""
        # Before the first byte: whatever a store may hold after a
        # crash is named in the journal, with the sum to judge it by.
        self._write(Begun(id, to, tokens, *content_sum(content), now))
        reason = self._copy(id, to, content, tokens, now)
        if reason is None:
            self._write(Committed(id, to, now))
            self._moved(id, "", to, tokens)
        return reason

    def move(self, id: str, to: str, now: float) -> MoveReason | bool:
        """Move an item. Return the reason if that fails, else whether an existing copy was enough."""
        content = self.read(id, now)
        if content is None:
            return MoveReason.DAMAGED
        # After reading, which moves an item to an intact copy's tier if its content is damaged: that may be `to`.
        place = self.locations.places[id]
        if place.tier == to:
            return True
        # The copy left behind by an earlier move the other way may still be there: then nothing is written.
        revived = to in self.locations.copies.get(id, ()) and read_sound(self._store(to), id, place.sum) is not None
        if not revived:
            self._write(Begun(id, to, place.tokens, place.bytes, place.crc, now))
            reason = self._copy(id, to, content, place.tokens, now)
            if reason is not None:
                return reason
        self._commit(id, to, now, self._due_after_move(place, to, now))
        return revived

    def read(self, id: str, now: float) -> bytes | None:
        """Return the content of an item. An intact copy replaces damaged content; None if there is none."""
        place = self.locations.places[id]
        content = read_sound(self._store(place.tier), id, place.sum)
        if content is not None:
            return content
        for tier in self.tiers:
            if tier in self.locations.copies.get(id, ()):
                content = read_sound(self._store(tier), id, place.sum)
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
            # The copy was revived, cleaned, or given another time since this entry was made.
            if self.locations.copies.get(id, {}).get(tier) != due:
                continue
            # Nothing is deleted unless the content was just read and is sound. A damaged item keeps all its copies.
            if id in self.locations.places and self.read(id, now) is None:
                self.accounts.damaged += 1
            # Asked again, since reading may have made this very copy the content.
            elif self.locations.copies.get(id, {}).get(tier) == due and not self._drop(id, tier, now):
                again.append((now + self.tiers[tier].delay, id, tier, due))
        for entry in again:
            heapq.heappush(self._due, entry)
        # A rewrite costs all locations. At four records a location it is paid by the records since the last one.
        if len(self.journal) > 1000 + 4 * (len(self.locations.places) + len(self.locations.copies)):
            self.journal.rewrite(self.locations.records())

    def recover(self, now: float) -> Recovered:
        """Finish or undo moves that a crash interrupted, and check that every item is in its tier."""
        finished, undone, salvaged, lost, missing = [], [], [], [], []
        for id, begun in sorted(self.locations.arriving.items()):
            if read_sound(self._store(begun.to), id, (begun.bytes, begun.crc)) is not None:
                self._write(Committed(id, begun.to, now))
                self._moved(id, "", begun.to, begun.tokens)
                finished.append(id)
            else:
                self._drop(id, begun.to, now)
                undone.append(id)
        for id, place in sorted(self.locations.places.items()):
            # Presence only: reading everything at each opening would take as long as the store is large. Damage shows
            # when an item is read, and before any copy of it is deleted.
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

    def _copy(self, id: str, to: str, content: bytes, tokens: int, now: float) -> MoveReason | None:
        """Write a copy and read it back. Delete it if it is not intact."""
        store = self._store(to)
        reason = MoveReason.CORRUPT
        try:
            store.put(id, content, tokens, now)
        except FAULTS:
            reason = MoveReason.FAILED
        else:
            if read_sound(store, id, content_sum(content)) is not None:
                return None
        # What cannot be deleted now is tried again by `clean`.
        if not self._drop(id, to, now):
            heapq.heappush(self._due, (now + self.tiers[to].delay, id, to, now))
        return reason

    def _due_after_move(self, place: Location, to: str, now: float) -> float | None:
        """Return when the copy left behind is to be deleted; None = it stays as a backing copy."""
        source = self.tiers[place.tier]
        return None if source.durable and not self.tiers[to].durable else now + source.delay

    def _commit(self, id: str, to: str, now: float, due: float | None) -> None:
        place = self.locations.places[id]
        self._write(Committed(id, to, now, due))
        self._moved(id, place.tier, to, place.tokens)
        self._release(id, now)

    def _release(self, id: str, now: float) -> None:
        """Mark backing copies as due if the item is in a durable tier."""
        if not self.tiers[self.locations.places[id].tier].durable:
            return
        # A list, since each record changes the copies.
        for tier, due in list(self.locations.copies.get(id, {}).items()):
            if due is None:
                self._write(Copied(id, tier, now + self.tiers[tier].delay))

    def _drop(self, id: str, tier: str, now: float) -> bool:
        """Delete a copy. Return False if the tier cannot."""
        try:
            self._store(tier).delete(id, now)
        except FAULTS:
            self.accounts.undeleted += 1
            return False
        self._write(Cleaned(id, tier))
        self.accounts.cleaned += 1
        return True

    def _write(self, record: Record) -> None:
        # The journal first: if it raises, memory still says what the file says.
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
        """Raise TierError if the locations name an unknown tier."""
        unknown = locations.tiers() - self.tiers.keys()
        if unknown:
            raise TierError(f"items are in {', '.join(sorted(unknown))}; the tiers are {', '.join(self.tiers)}")

    def _store(self, tier: str) -> ContentStore:
        return self.tiers[tier].store

"""Doing what is asked: room is made, the item moved, and all who must know are told."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...events import LimitReached, Moved
from ..quota import Quotas
from .accounts import Accounts, Why
from .heat import Heat
from .jobs import IDLE, UNCOOLED, Job, Queue, Trigger
from .journal import Begun, Cleaned, Committed, Copied, Gone, Journal, Location, Locations, Record
from .selection import Choosing
from .store import FAULTS, ContentStore, Tier, TierError, sound, summed


class Outcome(NamedTuple):
    """What came of a job."""

    job: Job
    why: Why | None = None
    """Why it was not done; None = it was."""
    revived: bool = False
    late: bool = False


class Moving:
    """The tiers with their quotas, and what is done with their items. It asks for nothing by itself."""

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
        self._doing: dict[str, Job] = {}
        """Of each item that is being moved, the job."""
        self.accounts = Accounts()
        self.mover = Mover(tiers, journal, self.accounts, self._moved)
        self.choosing = Choosing(tiers, self.mover.locations, heat, cooldown)
        self.pressure = Pressure(self.choosing)
        self.now = self.mover.locations.now

    @property
    def locations(self) -> Locations:
        """Where everything is."""
        return self.mover.locations

    def opened(self, now: float) -> Recovered:
        """Tell the tiers what is in them, and finish or undo what was cut short."""
        for name in self._tiers:
            for id in self.locations.ids(name):
                self.choosing.replacement(name).come(id, self.locations.places[id].tokens, now, used=True)
        return self._recovered(now)

    def reset(self, locations: Locations, replacements: Mapping[str, object]) -> Recovered:
        """Go on with these. Raises TierError, and then nothing has changed."""
        self.mover.check(locations)
        try:
            self.choosing.restore(replacements)
        except ValueError as error:
            raise TierError(f"this is no snapshot of these tiers: {error}") from None
        self.mover.reset(locations)
        self.choosing.locations = locations
        return self._recovered(self.now)

    def arrive(self, id: str, content: bytes, tokens: int, tier: str, now: float) -> Why | None:
        """Take in what is in no tier yet. Why not; None if it is there now."""
        why = self._room(self._tiers[tier], tokens, now, frozenset({id}))
        why = self.mover.arrive(id, tier, content, tokens, now) if why is None else why
        if why is not None:
            self._held(tier)
        return why

    def use(self, id: str, now: float) -> None:
        """An item is used where it is."""
        self._heat.use(id, now)
        self.choosing.replacement(self.locations.places[id].tier).use(id, now)

    def do(self, job: Job, now: float, keep: frozenset[str] = frozenset()) -> Outcome:
        """Do one job, and account for it. `keep` are the items that may not leave to make room."""
        edge = self.accounts.edge(job.source, job.to)
        self._doing[job.id] = job
        try:
            found = self._do(job, now, keep | {job.id})
        finally:
            del self._doing[job.id]
        if isinstance(found, Why):
            edge.refused[found] += 1
            self._held(job.to)
            return Outcome(job, found)
        place = self.locations.places[job.id]
        late = now > job.deadline
        edge.moves += 1
        edge.revived += found
        edge.late += late
        edge.tokens += place.tokens
        edge.bytes += 0 if found else place.bytes
        edge.waits.append(now - job.asked)
        return Outcome(job, None, found, late)

    def _do(self, job: Job, now: float, keep: frozenset[str]) -> Why | bool:
        place = self.locations.places.get(job.id)
        if place is None or place.tier != job.source:
            return Why.STALE
        if job.trigger is Trigger.PREDICTED_USE and now > job.deadline:
            return Why.EXPIRED
        if job.trigger in IDLE and self._heat.last(job.id) > job.asked:
            return Why.USED
        if job.trigger not in UNCOOLED and self.choosing.cooling(job.id, job.to, now):
            return Why.COOLING
        return self._room(self._tiers[job.to], place.tokens, now, keep) or self.mover.move(job.id, job.to, now)

    def _room(self, tier: Tier, tokens: int, now: float, keep: frozenset[str]) -> Why | None:
        """Reserve space, and make it if there is none: hard pressure."""
        if tokens > tier.quota.hard:
            return Why.TOO_LARGE
        if not self._held(tier.name, tokens):
            for job in self.pressure.hard(tier, tokens, now, keep):
                self.do(job, now, keep)
        return None if self._held(tier.name, tokens) else Why.NO_ROOM

    def _held(self, tier: str, more: int = 0) -> bool:
        """Whether a tier may hold what it has, and so much more. Crossings are recorded."""
        return self._quotas.want(tier, self.locations.tokens(tier) + more)

    def _moved(self, id: str, source: str, to: str, tokens: int) -> None:
        """An item has another place."""
        job = self._doing.get(id)
        if source:
            self.choosing.replacement(source).gone(id)
            self._record(Moved((id,), source, to, tokens, self.now - job.asked if job is not None else 0.0))
            self._held(source)
        if to:
            predicted = job is not None and job.trigger is Trigger.PREDICTED_USE
            self.choosing.replacement(to).come(id, tokens, self.now, used=not predicted)

    def _recovered(self, now: float) -> Recovered:
        found = self.mover.recover(now)
        for name in self._tiers:
            self._held(name)
        return found


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

    def _leaving(self, place: Location, to: str, now: float) -> float | None:
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

    def _store(self, tier: str) -> ContentStore:
        return self.tiers[tier].store


AGAIN = 5.0
"""Seconds after which pressure that could not be relieved is looked at again."""


class Pressure:
    """Which items go down, and how urgently."""

    __slots__ = ("_choosing", "looked")

    def __init__(self, choosing: Choosing) -> None:
        self._choosing = choosing
        self.looked: dict[str, tuple[float, int]] = {}
        """When a tier's pressure was looked at last, and how high it was."""

    def hard(self, tier: Tier, tokens: int, now: float, keep: frozenset[str]) -> Iterator[Job]:
        """What must be done so that a tier has room for so many tokens. Each job is to be done before the next is asked
        for.
        """
        soft = tier.quota.limits[1][1]
        goal = soft - tokens if tokens <= soft else tier.quota.hard - tokens
        victims = self._choosing.victims(tier.name, now, keep)
        while self._held(tier) > goal and (victim := next(victims, None)) is not None:
            yield Job.of(victim[0], tier.name, victim[1], Trigger.HARD_PRESSURE, now)

    def relieve(self, tier: Tier, now: float, queue: Queue) -> None:
        """Soft and medium pressure, when it rises, and again after a while if it stays."""
        held = self._held(tier)
        level = min(tier.quota.level(held), 2)
        when, before = self.looked.get(tier.name, (-math.inf, 0))
        if level <= before and now < when + AGAIN:
            return
        self.looked[tier.name] = now, level
        if level:
            trigger = Trigger.MEDIUM_PRESSURE if level == 2 else Trigger.SOFT_PRESSURE
            self.queue_victims(tier, held - tier.quota.limits[0][1] + 1, trigger, now, queue)

    def queue_victims(self, tier: Tier, tokens: float, trigger: Trigger, now: float, queue: Queue) -> int:
        """Queue the first of those that should leave, until they have so many tokens. How many they have."""
        cold = trigger in (Trigger.SOFT_PRESSURE, Trigger.HOTNESS_DECAY)
        victims = self._choosing.victims(tier.name, now, cold=cold)
        queued = 0
        while queued < tokens and (victim := next(victims, None)) is not None:
            id, to = victim
            if not self._choosing.cooling(id, to, now):
                queue.push(Job.of(id, tier.name, to, trigger, now))
                queued += self._choosing.locations.places[id].tokens
        return queued

    def _held(self, tier: Tier) -> int:
        return self._choosing.locations.tokens(tier.name)

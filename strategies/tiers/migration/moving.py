"""Doing what is asked: room is made, the item moved, and all who must know are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...events import Crossed, Moved
from ..quota import Quotas
from .accounts import Accounts, Why
from .choosing import Choosing
from .heat import Heat
from .jobs import IDLE, UNCOOLED, Job, Trigger
from .journal import Journal
from .mover import Mover, Recovered
from .pressure import Pressure
from .records import Locations
from .store import Tier, TierError


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
        record: Callable[[Moved | Crossed], None],
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

"""Moving content between tiers: who goes where and when (004 §4). `moving.py` and `mover.py` have how.

    tiers = Tier("working", a, Quota(131_072)), Tier("archive", b, Quota(1_048_576))
    migration = Migration(tiers, MemoryJournal(), record, now)
    migration.put("m1", content, tokens, "working", now)
    migration.get("m1", now)                               # from the one tier where it is
    migration.promote("m1", "working", Trigger.CACHE_MISS, now)
    migration.run(now)                                     # does what is queued, and deletes what is due

Tiers are given from the top. `now` is recorded seconds and never goes back. The same calls give the same moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...events import LimitReached, Moved
from ...parts.units import at_least
from .accounts import Why
from .alarms import Readings, Tuning, tuned
from .heat import Heat
from .jobs import Job, Queue, Trigger
from .journal import Journal, Locations, Record
from .moves import Moving, Outcome
from .store import Tier, TierError, summed

COOLDOWN = 30.0
"""Seconds in which an item does not go back where it came from. Assumed."""


class Migration:
    """Content by id in a row of tiers, each in exactly one."""

    def __init__(
        self,
        tiers: Sequence[Tier],
        journal: Journal,
        record: Callable[[Moved | LimitReached], None],
        now: float,
        heat: Heat | None = None,
        cooldown: float = COOLDOWN,
    ) -> None:
        at_least(0, cooldown=cooldown)
        self.tiers = {tier.name: tier for tier in tiers}
        if len(self.tiers) < len(tiers) or not tiers:
            raise ValueError(f"tiers must be one or more, with different names: {[tier.name for tier in tiers]}")
        self._order = list(self.tiers)
        self.heat = Heat() if heat is None else heat
        self.queue = Queue()
        self.tuning = Tuning(self.heat.weights)
        self._moving = Moving(tiers, journal, record, self.heat, cooldown)
        self.accounts = self._moving.accounts
        self.recovered = self._moving.opened(self._at(now))

    # what is there

    def __contains__(self, id: str) -> bool:
        return id in self._moving.locations.places

    def __len__(self) -> int:
        return len(self._moving.locations.places)

    def tier(self, id: str) -> str:
        """Where an item is. Raises KeyError if it is nowhere."""
        return self._moving.locations.places[id].tier

    def holds(self, id: str, content: bytes) -> bool:
        """Whether an item is somewhere with this content."""
        place = self._moving.locations.places.get(id)
        return place is not None and place.sum == summed(content)

    def ids(self, tier: str) -> list[str]:
        """The items of a tier, in the order in which they came there."""
        return self._moving.locations.ids(self._known(tier))

    def tokens(self, tier: str) -> int:
        """Tokens of a tier's items."""
        return self._moving.locations.tokens(self._known(tier))

    def pressure(self, tier: str) -> float:
        """What a tier's store has, copies left behind with it, as a share of its hard limit."""
        found = self.tiers[self._known(tier)]
        return found.store.tokens / found.quota.hard

    # what comes, is used, and goes

    def put(self, id: str, content: bytes, tokens: int, tier: str, now: float) -> str:
        """Store what is new in a tier, or below it if it is larger than the tier. Which tier it is in.

        The same id with the same content again counts as a use. Raises TierError, and nothing has changed, if it has
        other content, if no tier takes it, and for an id or a number of tokens that is none.
        """
        self._valid(id, tokens)
        names, now = self._moving.choosing.down(self._known(tier)), self._at(now)
        place = self._moving.locations.places.get(id)
        if place is not None:
            if (place.sum, place.tokens) != (summed(content), tokens):
                raise TierError(f"{id!r} is held with other content: what changed needs an id of its own")
            self._moving.use(id, now)
            return place.tier
        tried = []
        for name in names:
            why = self._moving.arrive(id, content, tokens, name, now)
            if why is None:
                self.heat.use(id, now)
                return name
            tried.append(f"{name}: {why}")
        raise TierError(f"{id!r}, {tokens:,} tokens, fits nowhere ({'; '.join(tried)})")

    def get(self, id: str, now: float) -> bytes:
        """Read an item where it is, which counts as a use. Whoever wants it higher up asks for that.

        Raises KeyError if it is nowhere, and TierError if no copy of it is as it was written.
        """
        now, tier = self._at(now), self.tier(id)
        content = self._moving.mover.read(id, now)
        if content is None:
            raise TierError(
                f"{id!r} is damaged in {tier!r}, and there is no other copy: restore the tier from a backup"
            )
        self.accounts.reads[tier] += 1
        self._moving.use(id, now)
        return content

    def forget(self, id: str, now: float) -> None:
        """Delete an item everywhere. Raises KeyError if it is nowhere."""
        now = self._at(now)
        self._moving.mover.forget(id, now)
        self.heat.forget(id)

    # what moves

    def promote(self, id: str, to: str, trigger: Trigger, now: float) -> Why | None:
        """Ask for an item in a higher tier. None: it is queued, unless it is there already or queued as urgently.

        What is only predicted must be hotter than the threshold. The document asks that of all promotions; but what
        was never used has no heat, and whoever asks for it explicitly has to get it.
        """
        now, source = self._at(now), self.tier(id)
        if self._moving.choosing.rises(self._known(to), source):
            raise TierError(f"{id!r} is in {source!r}, above {to!r}: a promotion goes up")
        if trigger is Trigger.PREDICTED_USE and self.heat.score(id, now) < self.tuning.threshold:
            self.accounts.edge(source, to).refused[Why.COLD] += 1
            return Why.COLD
        if source != to:
            self.queue.push(Job.of(id, source, to, trigger, now))
        return None

    def collect(self, tier: str, tokens: int, now: float) -> int:
        """GC pressure: have the coldest of a tier go down, so many tokens at least. How many are queued for it."""
        return self._queue(self.tiers[self._known(tier)], tokens, Trigger.GC_PRESSURE, self._at(now))

    def decay(self, now: float) -> int:
        """Have everything that is cold go down. How many tokens are queued for it."""
        now = self._at(now)
        tiers = [self.tiers[name] for name in self._order[:-1]]
        return sum(self._queue(tier, math.inf, Trigger.HOTNESS_DECAY, now) for tier in tiers)

    def run(self, now: float, most: int | None = None) -> tuple[Outcome, ...]:
        """Delete what is due, relieve pressure, and do what is queued, `most` jobs of it. What came of each."""
        now = self._at(now)
        self._moving.mover.clean(now)
        for name in self._order[:-1]:
            self._moving.pressure.relieve(self.tiers[name], now, self.queue)
        outcomes: list[Outcome] = []
        while most is None or len(outcomes) < most:
            job = self.queue.pop(now)
            if job is None:
                break
            outcomes.append(self._moving.do(job, now))
        self._moving.mover.clean(now)
        return tuple(outcomes)

    def tune(self, readings: Readings) -> Tuning:
        """One step of the adaptive tuner. The level is for whoever writes the Archive."""
        self.tuning = tuned(self.tuning, readings)
        self.heat.weights = self.tuning.weights
        return self.tuning

    # all of it, as plain data

    def snapshot(self) -> dict[str, Any]:
        """Where everything is, how hot, and what is queued; not the content, which is the tiers', nor the accounts."""
        records = list(self._moving.locations.records())
        uses, jobs = self.heat.state(), self.queue.jobs()
        looked, policies = dict(self._moving.pressure.looked), self._moving.choosing.state()
        return MigrationState(self._moving.now, records, uses, self.tuning, jobs, looked, policies).plain()

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on where another was, over the same content. Raises TierError, and then nothing has changed."""
        state, locations = read(snapshot)
        before, self._moving.now = self._moving.now, state.now
        try:
            self.recovered = self._moving.reset(locations, state.replacements)
        except TierError:
            self._moving.now = before
            raise
        self.heat.restore(state.uses)
        self.tuning, self.heat.weights = state.tuning, state.tuning.weights
        self._moving.pressure.looked = state.looked
        self.queue = Queue()
        for job in state.jobs:
            self.queue.push(job)

    # inside

    def _queue(self, tier: Tier, tokens: float, trigger: Trigger, now: float) -> int:
        return self._moving.pressure.queue_victims(tier, tokens, trigger, now, self.queue)

    def _known(self, tier: str) -> str:
        if tier not in self.tiers:
            raise TierError(f"there is no tier {tier!r}; there are {', '.join(self._order)}")
        return tier

    def _at(self, now: float) -> float:
        if not math.isfinite(now) or now < self._moving.now:
            raise TierError(f"the clock says {now}, and said {self._moving.now} before: it never goes back")
        self._moving.now = float(now)
        return self._moving.now

    @staticmethod
    def _valid(id: str, tokens: int) -> None:
        try:
            wrong = not id.encode()
        except UnicodeEncodeError:
            wrong = True
        if wrong or tokens < 0:
            raise TierError(f"an item has an id that is text, and 0 tokens or more, not {id!r} and {tokens}")


VERSION = 2


class MigrationState(msgspec.Struct, forbid_unknown_fields=True):
    """All that the moves to come depend on, but for the content, which is the tiers'."""

    now: float
    records: list[Record]
    uses: dict[str, tuple[float, float]]
    tuning: Tuning
    jobs: list[Job]
    looked: dict[str, tuple[float, int]]
    replacements: dict[str, Any]
    version: int = VERSION

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def read(snapshot: dict[str, Any]) -> tuple[MigrationState, Locations]:
    """A snapshot, and what its records come to. Raises TierError if it is none of this version."""
    try:
        state = msgspec.convert(snapshot, MigrationState)
        if state.version != VERSION:
            raise ValueError(f"it is of version {state.version}, this is {VERSION}")
        locations = Locations()
        for record in state.records:
            locations.apply(record)
    except (msgspec.ValidationError, ValueError) as error:
        raise TierError(f"this is no snapshot of a migration: {error}") from None
    return state, locations

"""The interface of migration: which content moves where and when (004 §4). `moves.py` executes the moves.

    tiers = Tier("working", a, Quota(131_072)), Tier("archive", b, Quota(1_048_576))
    migration = Migration(tiers, MemoryJournal(), record, now)
    migration.put("m1", content, tokens, "working", now)
    migration.get("m1", now)                               # from the tier that has it
    migration.promote("m1", "working", Trigger.CACHE_MISS, now)
    migration.run(now)                                     # execute queued jobs and delete due copies

Tiers are given from the top down. `now` is recorded seconds and never goes back. The same calls give the same moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...events import LimitReached, Moved
from ...parts.units import at_least
from .alarms import Readings, Tuning, tuning_step
from .jobs import Job, MoveReason, Outcome, Queue, Trigger
from .journal import Journal, JournalError, Locations, Record
from .moves import MigrationExecutor
from .selection import Heat
from .store import Tier, TierError, content_sum

COOLDOWN = 30.0
"""Seconds in which an item does not move back where it came from. Assumed."""


class Migration:
    """Content by id in a hierarchy of tiers, each item in exactly one."""

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
        self._executor = MigrationExecutor(tiers, journal, record, self.heat, cooldown)
        self.accounts = self._executor.accounts
        self.recovered = self._executor.opened(self._at(now))

    def __contains__(self, id: str) -> bool:
        return id in self._executor.locations.places

    def __len__(self) -> int:
        return len(self._executor.locations.places)

    def tier(self, id: str) -> str:
        """Return the tier of an item. Raises KeyError for an unknown id."""
        return self._executor.locations.places[id].tier

    def holds(self, id: str, content: bytes) -> bool:
        """Return whether an item is stored with this content."""
        place = self._executor.locations.places.get(id)
        return place is not None and place.sum == content_sum(content)

    def ids(self, tier: str) -> list[str]:
        """Return the items of a tier in order of arrival."""
        return self._executor.locations.ids(self._known(tier))

    def tokens(self, tier: str) -> int:
        """Return the tokens of a tier's items."""
        return self._executor.locations.tokens(self._known(tier))

    def pressure(self, tier: str) -> float:
        """Return the tokens in a tier's store, copies left behind included, as a share of its hard limit."""
        full = self.tiers[self._known(tier)]
        return full.store.tokens / full.quota.hard

    def put(self, id: str, content: bytes, tokens: int, tier: str, now: float) -> str:
        """Store a new item in a tier, or below it if it is larger than the tier. Return its tier.

        The same id with the same content counts as a use. Raises TierError and changes nothing if the id has other
        content, if no tier can store it, and for an invalid id or number of tokens.
        """
        self._valid(id, tokens)
        names, now = self._executor.selection.down(self._known(tier)), self._at(now)
        place = self._executor.locations.places.get(id)
        if place is not None:
            if (place.sum, place.tokens) != (content_sum(content), tokens):
                raise TierError(f"{id!r} is stored with other content: give changed content a new id")
            self._executor.use(id, now)
            return place.tier
        failures = []
        for name in names:
            reason = self._executor.arrive(id, content, tokens, name, now)
            if reason is None:
                self.heat.use(id, now)
                return name
            failures.append(f"{name}: {reason}")
        raise TierError(f"{id!r}, {tokens:,} tokens, fits nowhere ({'; '.join(failures)})")

    def get(self, id: str, now: float) -> bytes:
        """Read an item where it is and count a use. It is not promoted.

        Raises KeyError for an unknown id, and TierError if no copy is intact.
        """
        now, tier = self._at(now), self.tier(id)
        content = self._executor.mover.read(id, now)
        if content is None:
            raise TierError(
                f"{id!r} is damaged in {tier!r}, and there is no intact copy: restore the tier from a backup"
            )
        self.accounts.reads[tier] += 1
        self._executor.use(id, now)
        return content

    def forget(self, id: str, now: float) -> None:
        """Delete an item everywhere. Raises KeyError for an unknown id."""
        now = self._at(now)
        self._executor.mover.forget(id, now)
        self.heat.forget(id)

    def promote(self, id: str, to: str, trigger: Trigger, now: float) -> MoveReason | None:
        """Request an item in a higher tier. Return the reason if the request is declined, else None.

        An item that is there already, or queued as urgently, is not queued again. A predicted item must be hotter than
        the threshold. The document requires that of all promotions; but an unused item has no heat, and an explicit
        request has to be served.
        """
        now, source = self._at(now), self.tier(id)
        if self._executor.selection.rises(self._known(to), source):
            raise TierError(f"{id!r} is in {source!r}, above {to!r}: a promotion goes up")
        if trigger is Trigger.PREDICTED_USE and self.heat.score(id, now) < self.tuning.threshold:
            self.accounts.edge(source, to).refused[MoveReason.COLD] += 1
            return MoveReason.COLD
        # It is there already. Not declined, so that a caller need not ask where an item is first.
        if source != to:
            self.queue.push(Job.of(id, source, to, trigger, now))
        return None

    def collect(self, tier: str, tokens: int, now: float) -> int:
        """Queue demotions of a tier's coldest items, `tokens` at least (GC pressure). Return the tokens queued."""
        return self._queue(self.tiers[self._known(tier)], tokens, Trigger.GC_PRESSURE, self._at(now))

    def decay(self, now: float) -> int:
        """Queue demotions of all cold items. Return the tokens queued."""
        now = self._at(now)
        tiers = [self.tiers[name] for name in self._order[:-1]]
        return sum(self._queue(tier, math.inf, Trigger.HOTNESS_DECAY, now) for tier in tiers)

    def run(self, now: float, most: int | None = None) -> tuple[Outcome, ...]:
        """Delete due copies, relieve pressure, and execute at most `most` queued jobs. Return their outcomes."""
        now = self._at(now)
        # Before the moves, which need the room of copies whose time
        # is over; and again after them, for tiers without a delay.
        self._executor.mover.clean(now)
        for name in self._order[:-1]:
            self._executor.pressure.relieve(self.tiers[name], now, self.queue)
        outcomes: list[Outcome] = []
        while most is None or len(outcomes) < most:
            job = self.queue.pop(now)
            if job is None:
                break
            outcomes.append(self._executor.do(job, now))
        self._executor.mover.clean(now)
        return tuple(outcomes)

    def tune(self, readings: Readings) -> Tuning:
        """Take one step of the adaptive tuner. The caller applies the new zstd level to the Archive."""
        self.tuning = tuning_step(self.tuning, readings)
        self.heat.weights = self.tuning.weights
        return self.tuning

    def snapshot(self) -> dict[str, Any]:
        """Return locations, heat, queue and tuning as plain data, without content and accounts."""
        records = list(self._executor.locations.records())
        uses, jobs = self.heat.state(), self.queue.jobs()
        looked, policies = dict(self._executor.pressure.looked), self._executor.selection.state()
        return MigrationState(self._executor.now, records, uses, self.tuning, jobs, looked, policies).plain()

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore a snapshot over the same content. Raises TierError or JournalError and changes nothing."""
        state, locations = read(snapshot)
        # The recovery records moves, which carry the snapshot's time and not that of this migration.
        before, self._executor.now = self._executor.now, state.now
        try:
            self.recovered = self._executor.reset(locations, state.replacements)
        except (TierError, JournalError):
            self._executor.now = before
            raise
        self.heat.restore(state.uses)
        self.tuning, self.heat.weights = state.tuning, state.tuning.weights
        self._executor.pressure.looked = state.looked
        self.queue = Queue()
        for job in state.jobs:
            self.queue.push(job)

    def _queue(self, tier: Tier, tokens: float, trigger: Trigger, now: float) -> int:
        return self._executor.pressure.queue_victims(tier, tokens, trigger, now, self.queue)

    def _known(self, tier: str) -> str:
        if tier not in self.tiers:
            raise TierError(f"there is no tier {tier!r}; there are {', '.join(self._order)}")
        return tier

    def _at(self, now: float) -> float:
        if not math.isfinite(now) or now < self._executor.now:
            raise TierError(f"the clock says {now}, and said {self._executor.now} before: it never goes back")
        self._executor.now = float(now)
        return self._executor.now

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
    """The state that future moves depend on, except for content, which the tiers have."""

    now: float
    records: list[Record]
    uses: dict[str, tuple[float, float]]
    tuning: Tuning
    jobs: list[Job]
    looked: dict[str, tuple[float, int]]
    replacements: dict[str, Any]
    version: int = VERSION

    def plain(self) -> dict[str, Any]:
        """Return the state as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def read(snapshot: dict[str, Any]) -> tuple[MigrationState, Locations]:
    """Read a snapshot and its locations. Raises TierError if it is invalid or of another version."""
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

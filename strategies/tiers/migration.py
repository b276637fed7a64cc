"""Migration: which content moves where and when, on the recorded clock (004 §4). Decision 21 gives the reasons.

    tiers = Tier("working", a, Quota(131_072)), Tier("archive", b, Quota(1_048_576))
    migration = Migration(tiers, record)
    migration.put("m1", content, tokens, "working", now)
    migration.get("m1", now)                               # from the tier that has it
    migration.promote("m1", "working", Trigger.CACHE_MISS, now)
    migration.run(now)                                     # execute queued jobs and delete due copies

It works without the harness. Tiers are given from the top down. `now` is recorded seconds and never goes back. The same
calls give the same moves.

A move reserves room and stores the content in the other tier. The copy left behind stays for the tier's delay: content
that comes back in time is there already, and is not stored again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from ctxbench.scenarios.errors import UserError

from ..events import LimitReached, Moved
from .heat import Coldest, Heat, Readings, Replacement, Tuning, tuning_step
from .jobs import IDLE, UNCOOLED, Job, MoveReason, Outcome, Trigger
from .quota import Quota, Quotas

COOLDOWN = 30.0
"""Seconds in which an item does not move back where it came from. Assumed."""
DELAY = 5.0  # seconds between a move and the deletion of the copy left behind (004 §4.3)
AGAIN = 5.0  # seconds after which pressure that stays is relieved again


class TierError(UserError):
    """The tiers cannot do a request, and nothing has changed. The text says which and why."""


class ContentStore(Protocol):
    """Storage of one tier. Content is any value that can be compared.

    `put` replaces what is there, `get` is no access and raises KeyError, `delete` may find nothing.
    """

    @property
    def tokens(self) -> int:
        """Tokens of all content, with copies that are not deleted yet."""

    def put(self, id: str, content: Any, tokens: int, now: float) -> None: ...
    def get(self, id: str) -> Any: ...
    def delete(self, id: str, now: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier of a hierarchy: its name, its store and its quota."""

    name: str
    store: ContentStore
    quota: Quota
    delay: float = DELAY  # seconds that a copy stays here after its content moved elsewhere
    replacement: Replacement | None = None
    """Policy that chooses victims. None = the coldest first."""


class Location(NamedTuple):
    """The one tier that an item is in."""

    tier: str
    tokens: int
    since: float  # time of its arrival there
    came: str = ""  # tier that it came from; empty if it was new


class MigrationState(msgspec.Struct):
    """All that future moves depend on, except for content, which the tiers have."""

    places: dict[str, Location]
    copies: dict[str, dict[str, float]]
    uses: dict[str, tuple[float, float]]
    tuning: Tuning
    jobs: dict[str, Job]
    looked: dict[str, tuple[float, int]]
    policies: dict[str, Any]


class Migration:
    """Content by id in a hierarchy of tiers, each item in exactly one."""

    def __init__(
        self,
        tiers: Sequence[Tier],
        record: Callable[[Moved | LimitReached], None],
        heat: Heat | None = None,
        cooldown: float = COOLDOWN,
        drops: bool = False,
    ) -> None:
        """With `drops` the lowest tier deletes items to make room; else it pushes nobody out, and nothing is lost."""
        self.tiers = {tier.name: tier for tier in tiers}
        self.heat = Heat() if heat is None else heat
        self.tuning = Tuning(self.heat.weights)
        self.jobs: dict[str, Job] = {}
        """The queued job of each item, in the order of their requests."""
        self._order, self._record, self._cooldown, self._drops = list(self.tiers), record, cooldown, drops
        self._quotas = Quotas({tier.name: tier.quota for tier in tiers}, record)
        self._places: dict[str, Location] = {}
        self._ids: dict[str, dict[str, None]] = {name: {} for name in self.tiers}  # in order of arrival
        self._tokens = dict.fromkeys(self.tiers, 0)
        self._replacements: dict[str, Replacement] = {
            tier.name: tier.replacement or Coldest(self.heat, self._ids[tier.name]) for tier in tiers
        }
        # By tier the copies left behind, in the order in which they are due, with the time.
        self._copies: dict[str, dict[str, float]] = {name: {} for name in self.tiers}
        self._looked: dict[str, tuple[float, int]] = {}  # time and level of the last look at each tier's pressure

    def __contains__(self, id: str) -> bool:
        return id in self._places

    def tier(self, id: str) -> str:
        """Return the tier of an item. Raises KeyError for an unknown id."""
        return self._places[id].tier

    def ids(self, tier: str) -> list[str]:
        """Return the items of a tier in order of arrival."""
        return list(self._ids[tier])

    def tokens(self, tier: str) -> int:
        return self._tokens[tier]

    def holds(self, id: str, content: Any) -> bool:
        return id in self and self._content(id) == content

    def put(self, id: str, content: Any, tokens: int, tier: str, now: float) -> str:
        """Store a new item in a tier, or below it if it is larger than the tier. Return its tier, "" if it is dropped.

        The same id with the same content counts as a use. Raises TierError and changes nothing if the id has other
        content, and if no tier can store it and none may be dropped.
        """
        place = self._places.get(id)
        if place is not None:
            if place.tokens != tokens or not self.holds(id, content):
                raise TierError(f"{id!r} is stored with other content: give changed content a new id")
            self.use(id, now)
            return place.tier
        failures = []
        for name in self._order[self._order.index(tier) :]:
            reason = self._make_room(name, tokens, now, frozenset({id}))
            if reason is None:
                self.tiers[name].store.put(id, content, tokens, now)
                self._copies[name].pop(id, None)
                self._arrive(id, Location(name, tokens, now))
                self.heat.use(id, now)
                return name
            # The attempt recorded the limits that it would have crossed. Wanting nothing more takes that back.
            self._want(name)
            failures.append(f"{name}: {reason}")
        if self._drops:
            return ""
        raise TierError(f"{id!r}, {tokens:,} tokens, fits nowhere ({'; '.join(failures)})")

    def get(self, id: str, now: float) -> Any:
        """Read an item where it is and count a use. It is not promoted. Raises KeyError for an unknown id."""
        content = self._content(id)
        self.use(id, now)
        return content

    def use(self, id: str, now: float) -> None:
        """Count a use of an item whose content the caller has. Raises KeyError for an unknown id."""
        self.heat.use(id, now)
        self._replacements[self.tier(id)].use(id, now)

    def forget(self, id: str, now: float) -> None:
        """Delete an item everywhere. Raises KeyError for an unknown id."""
        self._leave(id, "")
        for tier, copies in self._copies.items():
            copies.pop(id, None)
            self.tiers[tier].store.delete(id, now)
        self.heat.uses.pop(id, None)

    def promote(self, id: str, to: str, trigger: Trigger, now: float) -> MoveReason | None:
        """Request an item in a higher tier. Return the reason if the request is declined, else None.

        An item that is there already, or queued as urgently, is not queued again. A predicted item must be hotter than
        the threshold. The document requires that of all promotions; but an unused item has no heat, and an explicit
        request has to be served.
        """
        source = self.tier(id)
        if trigger is Trigger.PREDICTED_USE and self.heat.score(id, now) < self.tuning.threshold:
            return MoveReason.COLD
        # It is there already. Not declined, so that a caller need not ask where an item is first.
        if source != to:
            self._queue(Job(id, source, to, trigger, now))
        return None

    def collect(self, tier: str, tokens: int, now: float) -> int:
        """Queue demotions of a tier's coldest items, `tokens` at least (GC pressure). Return the tokens queued."""
        return self._queue_victims(tier, tokens, Trigger.GC_PRESSURE, now)

    def decay(self, now: float) -> int:
        """Queue demotions of all cold items. Return the tokens queued."""
        return sum(self._queue_victims(name, math.inf, Trigger.HOTNESS_DECAY, now) for name in self._order[:-1])

    def run(self, now: float, most: int | None = None) -> tuple[Outcome, ...]:
        """Delete due copies, relieve pressure, and execute at most `most` queued jobs. Return their outcomes."""
        # Before the moves, which need the room of copies whose time is over; and again after them, for tiers without a
        # delay.
        self._clean(now)
        for name in self._order[:-1]:
            # Soft or medium pressure is relieved when it rises, and again after a while if it stays.
            held, quota = self._tokens[name], self.tiers[name].quota
            level = min(quota.level(held), 2)
            when, before = self._looked.get(name, (-math.inf, 0))
            if level > before or now >= when + AGAIN:
                self._looked[name] = now, level
                if level:
                    trigger = Trigger.MEDIUM_PRESSURE if level == 2 else Trigger.SOFT_PRESSURE
                    # The + 1: a level is reached at its limit, so the tier is relieved one token below.
                    self._queue_victims(name, held - quota.limits[0][1] + 1, trigger, now)
        due = sorted(self.jobs.values(), key=lambda job: job.rank(now))[:most]
        for job in due:
            del self.jobs[job.id]
        outcomes = tuple(self._do(job, now) for job in due)
        self._clean(now)
        return outcomes

    def tune(self, readings: Readings) -> Tuning:
        """Take one step of the adaptive tuner. The caller applies the new zstd level to the Archive."""
        self.tuning = tuning_step(self.tuning, readings)
        self.heat.weights = self.tuning.weights
        return self.tuning

    def state(self) -> MigrationState:
        policies = {name: replacement.state() for name, replacement in self._replacements.items()}
        return MigrationState(
            self._places, self._copies, self.heat.uses, self.tuning, self.jobs, self._looked, policies
        )

    def restore(self, state: MigrationState) -> None:
        """Continue from a state, in new tiers that have its content."""
        for name, policy in state.policies.items():
            self._replacements[name].restore(policy)
        for id, place in state.places.items():  # in order of arrival
            self._hold(id, place)
        self._copies, self._looked, self.heat.uses = state.copies, state.looked, state.uses
        self.tuning, self.heat.weights, self.jobs = state.tuning, state.tuning.weights, state.jobs
        for name in self._order:
            self._want(name)

    def _queue(self, job: Job) -> None:
        """Queue a job in place of a less urgent one of its item."""
        waiting = self.jobs.get(job.id)
        if waiting is None or waiting.priority < job.priority:
            self.jobs.pop(job.id, None)
            self.jobs[job.id] = job

    def _do(self, job: Job, now: float, keep: frozenset[str] = frozenset()) -> Outcome:
        """Execute a job. The items in `keep` may not be evicted to make room."""
        place, reason = self._places.get(job.id), None
        # A job may have waited while its item was moved or forgotten.
        if place is None or place.tier != job.source:
            reason = MoveReason.STALE
        elif job.trigger is Trigger.PREDICTED_USE and now > job.deadline:
            reason = MoveReason.EXPIRED
        elif job.trigger in IDLE and self.heat.uses.get(job.id, (-math.inf, 0.0))[0] > job.asked:
            reason = MoveReason.USED
        elif job.trigger not in UNCOOLED and self._is_cooling(job.id, job.to, now):
            reason = MoveReason.COOLING
        else:
            reason = self._make_room(job.to, place.tokens, now, keep | {job.id})
        if place is None or reason is not None:
            # As in `put`: the reserved tokens are not there, and the limits follow what is.
            self._want(job.to)
            return Outcome(job, reason)
        content = self._content(job.id)
        if self._copies[job.to].pop(job.id, None) is None:
            self.tiers[job.to].store.put(job.id, content, place.tokens, now)
        self._copies[job.source][job.id] = now + self.tiers[job.source].delay
        self._leave(job.id, job.to, now - job.asked)
        is_used = job.trigger is not Trigger.PREDICTED_USE
        self._arrive(job.id, place._replace(tier=job.to, since=now, came=job.source), is_used)
        return Outcome(job)

    def _make_room(self, name: str, tokens: int, now: float, keep: frozenset[str]) -> MoveReason | None:
        """Reserve tokens in a tier, evicting its items if necessary (hard pressure)."""
        quota = self.tiers[name].quota
        if tokens > quota.hard:
            return MoveReason.TOO_LARGE
        if not self._want(name, tokens):
            soft = quota.limits[1][1]
            # Down to the soft limit and not just as far as needed: scoring all items for one victim would cost O(n) an
            # arrival. Freeing 5 % at once makes that some twenty scores each. An item larger than the soft limit asks
            # only for its own room.
            goal = soft - tokens if tokens <= soft else quota.hard - tokens
            victims = self._victims(name, now, keep)
            # Each victim is moved before the next is chosen, and may itself make room in the tier below; `keep` grows
            # on the way down, so no item is asked to leave for its own sake.
            while self._tokens[name] > goal and (victim := next(victims, None)) is not None:
                id, to = victim
                if to:
                    self._do(Job(id, name, to, Trigger.HARD_PRESSURE, now), now, keep)
                else:
                    self.forget(id, now)
        return None if self._want(name, tokens) else MoveReason.NO_ROOM

    def _queue_victims(self, name: str, tokens: float, trigger: Trigger, now: float) -> int:
        """Queue victims of a tier until they have `tokens` together. Return their tokens."""
        victims = self._victims(name, now, cold=trigger in (Trigger.SOFT_PRESSURE, Trigger.HOTNESS_DECAY))
        queued = 0
        while queued < tokens and (victim := next(victims, None)) is not None:
            id, to = victim
            if to and not self._is_cooling(id, to, now):
                self._queue(Job(id, name, to, trigger, now))
                queued += self._places[id].tokens
        return queued

    def _victims(
        self, name: str, now: float, keep: frozenset[str] = frozenset(), cold: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Yield victims in order of eviction, each chosen when it is needed, with the tier that takes it; "" = none."""
        below = [self.tiers[lower] for lower in self._order[self._order.index(name) + 1 :]]
        for id in self._replacements[name].leaving(now, cold):
            # A policy may know items that have moved or are kept; it yields them without knowing that.
            place = self._places.get(id)
            if place is not None and place.tier == name and id not in keep:
                to = next((tier.name for tier in below if place.tokens <= tier.quota.hard), "")
                if to or self._drops:
                    yield id, to

    def _is_cooling(self, id: str, to: str, now: float) -> bool:
        """Return whether a move would take an item back where it came from just now."""
        place = self._places[id]
        if not place.came or now >= place.since + self._cooldown:
            return False
        # Came up from Archive and is to go down, or came down and is to go up. On in the same direction is no way back.
        came, here, there = map(self._order.index, (place.came, place.tier, to))
        return (there < here) != (here < came)

    def _content(self, id: str) -> Any:
        return self.tiers[self._places[id].tier].store.get(id)

    def _arrive(self, id: str, place: Location, is_used: bool = True) -> None:
        """Enter an item in its new tier, and inform the policy."""
        self._hold(id, place)
        self._replacements[place.tier].come(id, place.tokens, place.since, is_used)

    def _hold(self, id: str, place: Location) -> None:
        self._places[id] = place
        self._ids[place.tier][id] = None
        self._tokens[place.tier] += place.tokens

    def _leave(self, id: str, to: str, queue_time: float = 0.0) -> None:
        """Take an item out of its tier, inform the policy, and record the move; an empty `to` is nowhere."""
        place = self._places.pop(id)
        del self._ids[place.tier][id]
        self._tokens[place.tier] -= place.tokens
        self._replacements[place.tier].gone(id)
        self._record(Moved((id,), place.tier, to, place.tokens, queue_time))
        self._want(place.tier)

    def _clean(self, now: float) -> None:
        for tier, copies in self._copies.items():
            while copies and copies[id := next(iter(copies))] <= now:
                del copies[id]
                self.tiers[tier].store.delete(id, now)

    def _want(self, tier: str, more: int = 0) -> bool:
        """Return whether a tier may hold its items and `more` tokens. Crossed limits are recorded."""
        return self._quotas.want(tier, self._tokens[tier] + more)

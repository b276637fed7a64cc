"""Moving content between tiers: who goes where and when (004 §4). `mover.py` has how.

    tiers = Tier("working", a, Quota(131_072)), Tier("archive", b, Quota(1_048_576))
    migration = Migration(tiers, MemoryJournal(), record, now)
    migration.put("m1", content, tokens, "working", now)
    migration.get("m1", now)                               # from the one tier where it is
    migration.promote("m1", "working", Trigger.CACHE_MISS, now)
    migration.run(now)                                     # does what is queued, and deletes what is due

Tiers are given from the top. `now` is recorded seconds and never goes back. The same calls give the same moves.

Pressure, in the terms of a tier's quota: *soft* from its warning on (80 %): what is cold leaves, down to the warning.
*Medium* from its soft limit on (95 %): the coldest leave, down to the warning. *Hard*: there is no room for what
comes: the coldest leave at once, to the soft limit, so that not every arrival has to look for a victim. The document
names the three levels and gives no numbers. A quota counts what is in the tier, not the copies left behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...events import Crossed, Moved
from ...parts.bounds import at_least
from ..quota import Quotas
from .accounts import Accounts, Why
from .alarms import Readings
from .choosing import Choosing
from .heat import Heat
from .jobs import UNCOOLED, Job, Queue, Trigger
from .journal import Journal
from .mover import Mover, Recovered
from .snapshot import State, read
from .store import Tier, TierError, summed
from .tuning import Tuning, tuned

COOLDOWN = 30.0
"""Seconds in which an item does not go back where it came from. Assumed."""
COLD = 0.1
"""Below this score an item leaves under soft pressure, and by decay: unused for two to three half-lives. Assumed."""
AGAIN = 5.0
"""Seconds after which pressure that could not be relieved is looked at again."""


class Outcome(NamedTuple):
    """What came of a job."""

    job: Job
    why: Why | None = None
    """Why it was not done; None = it was."""
    revived: bool = False
    late: bool = False


class Migration:
    """Content by id in a row of tiers, each in exactly one."""

    def __init__(
        self,
        tiers: Sequence[Tier],
        journal: Journal,
        record: Callable[[Moved | Crossed], None],
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
        self.accounts = Accounts()
        self.queue = Queue()
        self.tuning = Tuning(self.heat.weights)
        self._record = record
        self._quotas = Quotas({tier.name: tier.quota for tier in tiers}, record)
        self._mover = Mover(tiers, journal, self.accounts, self._moved)
        self._choosing = Choosing(tiers, self._mover.locations, self.heat, cooldown)
        self._looked: dict[str, tuple[float, int]] = {}
        """When a tier's pressure was looked at last, and how high it was."""
        self._now = self._mover.locations.now
        self.recovered = self._recovered(now)

    # what is there

    def __contains__(self, id: str) -> bool:
        return id in self._mover.locations.places

    def __len__(self) -> int:
        return len(self._mover.locations.places)

    def tier(self, id: str) -> str:
        """Where an item is. Raises KeyError if it is nowhere."""
        return self._mover.locations.places[id].tier

    def ids(self, tier: str) -> list[str]:
        """The items of a tier, in the order in which they came there."""
        return self._mover.locations.ids(self._known(tier))

    def tokens(self, tier: str) -> int:
        """Tokens of a tier's items."""
        return self._mover.locations.tokens(self._known(tier))

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
        names, now = self._choosing.down(self._known(tier)), self._at(now)
        place = self._mover.locations.places.get(id)
        if place is not None:
            if (place.sum, place.tokens) != (summed(content), tokens):
                raise TierError(f"{id!r} is held with other content: what changed needs an id of its own")
            self.heat.use(id, now)
            return place.tier
        tried = []
        for name in names:
            why = self._arrive(id, content, tokens, name, now)
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
        content = self._mover.read(id, now)
        if content is None:
            raise TierError(
                f"{id!r} is damaged in {tier!r}, and there is no other copy: restore the tier from a backup"
            )
        self.accounts.reads[tier] += 1
        self.heat.use(id, now)
        return content

    def forget(self, id: str, now: float) -> None:
        """Delete an item everywhere. Raises KeyError if it is nowhere."""
        now = self._at(now)
        self._mover.forget(id, now)
        self.heat.forget(id)

    # what moves

    def promote(self, id: str, to: str, trigger: Trigger, now: float) -> Why | None:
        """Ask for an item in a higher tier. None: it is queued, unless it is there already or queued as urgently.

        What is only predicted must be hotter than the threshold. The document asks that of all promotions; but what
        was never used has no heat, and whoever asks for it explicitly has to get it.
        """
        now, source = self._at(now), self.tier(id)
        if self._choosing.rises(self._known(to), source):
            raise TierError(f"{id!r} is in {source!r}, above {to!r}: a promotion goes up")
        if trigger is Trigger.PREDICTED_USE and self.heat.score(id, now) < self.tuning.threshold:
            self.accounts.edge(source, to).refused[Why.COLD] += 1
            return Why.COLD
        if source != to:
            self.queue.push(Job.of(id, source, to, trigger, now))
        return None

    def collect(self, tier: str, tokens: int, now: float) -> int:
        """GC pressure: have the coldest of a tier go down, so many tokens at least. How many are queued for it."""
        return self._queue_victims(self.tiers[self._known(tier)], tokens, Trigger.GC_PRESSURE, self._at(now))

    def decay(self, now: float) -> int:
        """Have everything that is cold go down. How many tokens are queued for it."""
        now = self._at(now)
        tiers = [self.tiers[name] for name in self._order[:-1]]
        return sum(self._queue_victims(tier, math.inf, Trigger.HOTNESS_DECAY, now) for tier in tiers)

    def run(self, now: float, most: int | None = None) -> tuple[Outcome, ...]:
        """Delete what is due, relieve pressure, and do what is queued, `most` jobs of it. What came of each."""
        now = self._at(now)
        self._mover.clean(now)
        for name in self._order[:-1]:
            self._relieve(self.tiers[name], now)
        outcomes: list[Outcome] = []
        while most is None or len(outcomes) < most:
            job = self.queue.pop(now)
            if job is None:
                break
            outcomes.append(self._do(job, now))
        self._mover.clean(now)
        return tuple(outcomes)

    def tune(self, readings: Readings) -> Tuning:
        """One step of the adaptive tuner. The level is for whoever writes the Archive."""
        self.tuning = tuned(self.tuning, readings)
        self.heat.weights = self.tuning.weights
        return self.tuning

    # all of it, as plain data

    def snapshot(self) -> dict[str, Any]:
        """Where everything is, how hot, and what is queued; not the content, which is the tiers', nor the accounts."""
        records = list(self._mover.locations.records())
        uses, jobs = self.heat.state(), self.queue.jobs()
        return State(self._now, records, uses, self.tuning, jobs, dict(self._looked)).plain()

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on where another was, over the same content. Raises TierError, and then nothing has changed."""
        state, locations = read(snapshot)
        self._mover.reset(locations)
        self._choosing.locations = locations
        self.heat.restore(state.uses)
        self.tuning, self.heat.weights = state.tuning, state.tuning.weights
        self._now, self._looked = state.now, state.looked
        self.queue = Queue()
        for job in state.jobs:
            self.queue.push(job)
        self.recovered = self._recovered(state.now)

    # inside

    def _recovered(self, now: float) -> Recovered:
        found = self._mover.recover(self._at(now))
        for name in self._order:
            self._quotas.want(name, self.tokens(name))
        return found

    def _arrive(self, id: str, content: bytes, tokens: int, tier: str, now: float) -> Why | None:
        why = self._room(self.tiers[tier], tokens, now, frozenset({id}))
        why = self._mover.arrive(id, tier, content, tokens, now) if why is None else why
        if why is not None:
            self._quotas.want(tier, self.tokens(tier))
        return why

    def _do(self, job: Job, now: float, keep: frozenset[str] = frozenset()) -> Outcome:
        """Do one job, and account for it. `keep` are the items that may not leave to make room."""
        edge = self.accounts.edge(job.source, job.to)
        found = self._moving(job, now, keep | {job.id})
        if isinstance(found, Why):
            edge.refused[found] += 1
            self._quotas.want(job.to, self.tokens(job.to))
            return Outcome(job, found)
        place = self._mover.locations.places[job.id]
        late = now > job.deadline
        edge.moves += 1
        edge.revived += found
        edge.late += late
        edge.tokens += place.tokens
        edge.bytes += 0 if found else place.bytes
        edge.waits.append(now - job.asked)
        return Outcome(job, None, found, late)

    def _moving(self, job: Job, now: float, keep: frozenset[str]) -> Why | bool:
        place = self._mover.locations.places.get(job.id)
        if place is None or place.tier != job.source:
            return Why.STALE
        if job.trigger is Trigger.PREDICTED_USE and now > job.deadline:
            return Why.EXPIRED
        if job.trigger not in UNCOOLED and self._choosing.cooling(job.id, job.to, now):
            return Why.COOLING
        return self._room(self.tiers[job.to], place.tokens, now, keep) or self._mover.move(job.id, job.to, now)

    def _room(self, tier: Tier, tokens: int, now: float, keep: frozenset[str]) -> Why | None:
        """Reserve space, and make it if there is none: hard pressure."""
        quota = tier.quota
        if tokens > quota.hard:
            return Why.TOO_LARGE
        if not self._quotas.want(tier.name, self.tokens(tier.name) + tokens):
            soft = quota.limits[1][1]
            goal = soft - tokens if tokens <= soft else quota.hard - tokens
            for id, to in self._choosing.victims(tier, now, keep):
                if self.tokens(tier.name) <= goal:
                    break
                self._do(Job.of(id, tier.name, to, Trigger.HARD_PRESSURE, now), now, keep)
        return None if self._quotas.want(tier.name, self.tokens(tier.name) + tokens) else Why.NO_ROOM

    def _relieve(self, tier: Tier, now: float) -> None:
        """Soft and medium pressure, when it rises, and again after a while if it stays."""
        held = self.tokens(tier.name)
        level = min(tier.quota.level(held), 2)
        when, before = self._looked.get(tier.name, (-math.inf, 0))
        if level <= before and now < when + AGAIN:
            return
        self._looked[tier.name] = now, level
        if level:
            trigger = Trigger.MEDIUM_PRESSURE if level == 2 else Trigger.SOFT_PRESSURE
            self._queue_victims(tier, held - tier.quota.limits[0][1] + 1, trigger, now)

    def _queue_victims(self, tier: Tier, tokens: float, trigger: Trigger, now: float) -> int:
        """Queue the first of those that should leave, until they have so many tokens."""
        below = COLD if trigger in (Trigger.SOFT_PRESSURE, Trigger.HOTNESS_DECAY) else math.inf
        queued = 0
        for id, to in self._choosing.victims(tier, now):
            warm = below < math.inf and self.heat.score(id, now) >= below
            if queued >= tokens or (warm and tier.victims is None):
                break
            if not warm and not self._choosing.cooling(id, to, now):
                self.queue.push(Job.of(id, tier.name, to, trigger, now))
                queued += self._mover.locations.places[id].tokens
        return queued

    def _moved(self, id: str, source: str, to: str) -> None:
        self._record(Moved((id,), source, to))
        self._quotas.want(source, self.tokens(source))

    def _known(self, tier: str) -> str:
        if tier not in self.tiers:
            raise TierError(f"there is no tier {tier!r}; there are {', '.join(self._order)}")
        return tier

    def _at(self, now: float) -> float:
        if not math.isfinite(now) or now < self._now:
            raise TierError(f"the clock says {now}, and said {self._now} before: it never goes back")
        self._now = float(now)
        return self._now

    @staticmethod
    def _valid(id: str, tokens: int) -> None:
        try:
            wrong = not id.encode()
        except UnicodeEncodeError:
            wrong = True
        if wrong or tokens < 0:
            raise TierError(f"an item has an id that is text, and 0 tokens or more, not {id!r} and {tokens}")

"""A crash between any two operations of any store or of the journal: nothing is lost, nothing is there twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ctxbench.strategies.tiers.migration import FileJournal, MemoryJournal, Migration, TierError, Trigger
from tests.examples import examples

from .stores import NAMES, Crash, Folder, Fragile, FragileJournal, Fuse, Memory, physical, spoiled, tiers

IDS = [f"m{number}" for number in range(8)]
TRIGGERS = [Trigger.EXPLICIT_ACCESS, Trigger.CACHE_MISS, Trigger.FOCUS_REFERENCE, Trigger.PREDICTED_USE]


def content_of(id: str) -> bytes:
    """Return the content of a message, different for every id."""
    return f"what {id} says, at some length".encode()


class World:
    """Four stores and a journal that outlive a crash, and the migration over them, which does not."""

    def __init__(
        self, stores: list[Memory] | list[Folder], journal: MemoryJournal | FileJournal, policy: str = ""
    ) -> None:
        self.fuse, self.policy = Fuse(), policy
        self.stores, self.journal = stores, journal
        self.fragile = [Fragile(store, self.fuse) for store in stores]
        self.sure: set[str] = set()
        """Ids whose put has returned, and that nobody asked to forget."""
        self.unsure: set[str] = set()
        """Ids whose put or forget was cut short: there, or not."""
        self.now = 0.0
        self.fuse.watch = self.somewhere
        self.open()

    def open(self) -> None:
        self.events: list[object] = []
        journal = FragileJournal(self.journal, self.fuse)
        rows = tiers(self.fragile, policy=self.policy)
        self.migration = Migration(rows, journal, self.events.append, self.now, cooldown=3)

    def does(self, action: Callable[[], object]) -> None:
        """Do something; if it is the end, open again, however often that is the end too."""
        try:
            action()
        except Crash:
            self.fuse.left = None
            self.open()
            self.settle()

    def somewhere(self) -> None:
        """At every instant, each item is whole in one store at least."""
        for id in self.sure:
            assert any(id in store and store.get(id) == content_of(id) for store in self.stores), id

    def rot(self, id: str, at: int) -> None:
        """Flip a bit of a copy if there is another copy."""
        whole = [store for store in self.stores if id in store and store.get(id) == content_of(id)]
        if len(whole) > 1:
            store = whole[at % len(whole)]
            store.put(id, spoiled(content_of(id)), 0, 0)

    def settle(self) -> None:
        """After a crash, what was cut short has happened or has not."""
        self.sure |= {id for id in self.unsure if id in self.migration}
        self.unsure.clear()

    def put(self, id: str, tier: str, tokens: int) -> None:
        self.unsure = {id} - self.sure
        try:
            self.migration.put(id, content_of(id), tokens, tier, self.now)
        except TierError:
            assert id not in self.sure or self.migration.tier(id)
            self.unsure.clear()
        else:
            self.sure.add(id)
            self.unsure.clear()

    def forget(self, id: str) -> None:
        self.sure.remove(id)
        self.unsure = {id}
        self.migration.forget(id, self.now)
        self.unsure.clear()

    def check(self) -> None:
        """Each item is visible once, whole; no store has what the journal does not know; no tier is over its limit."""
        seen = [id for name in NAMES for id in self.migration.ids(name)]
        assert sorted(seen) == sorted(self.sure)
        known = self.migration.snapshot()["records"]
        where = {(record["id"], record.get("tier") or record["to"]) for record in known if "id" in record}
        found = physical(self.migration, self.stores)
        assert {(id, tier) for id, tiers in found.items() for tier in tiers} <= where
        self.somewhere()
        for name, tier in self.migration.tiers.items():
            assert self.migration.tokens(name) <= tier.quota.hard

    def rest(self) -> None:
        """Once every delay is over, each item is in one store, and nothing else is."""
        self.fuse.left = self.fuse.spoil = self.fuse.fail = None
        self.fuse.stuck = False
        self.migration.run(self.now)
        self.now += 100
        self.migration.run(self.now)
        self.now += 100
        self.migration.run(self.now)
        self.check()
        assert physical(self.migration, self.stores) == {id: {self.migration.tier(id)} for id in self.sure}
        assert all(self.migration.get(id, self.now) == content_of(id) for id in self.sure)


class Crashing(RuleBasedStateMachine):
    """Any calls in any order, with faults and crashes anywhere."""

    @initialize(policy=st.sampled_from(["", "lru", "lru_k(correlated=2)", "arc", "w_tiny_lfu"]))
    def start(self, policy: str) -> None:
        self.world = World([Memory() for _ in NAMES], MemoryJournal(), policy)

    @rule(after=st.integers(0, 12), torn=st.booleans())
    def arm(self, after: int, torn: bool) -> None:
        self.world.fuse.left, self.world.fuse.torn = after, torn

    @rule(at=st.integers(0, 2))
    def spoil(self, at: int) -> None:
        self.world.fuse.spoil = at

    @rule(at=st.integers(0, 2))
    def fail(self, at: int) -> None:
        self.world.fuse.fail = at

    @rule(stuck=st.booleans())
    def stick(self, stuck: bool) -> None:
        self.world.fuse.stuck = stuck

    @rule(id=st.sampled_from(IDS), at=st.integers(0, 3))
    def rot(self, id: str, at: int) -> None:
        if id in self.world.sure:
            self.world.rot(id, at)

    @rule(id=st.sampled_from(IDS), tier=st.sampled_from(NAMES))
    def put(self, id: str, tier: str) -> None:
        tokens = 5 + 4 * IDS.index(id)
        self.world.does(lambda: self.world.put(id, tier, tokens))

    @precondition(lambda self: self.world.sure)
    @rule(data=st.data(), to=st.sampled_from(NAMES), trigger=st.sampled_from(TRIGGERS))
    def promote(self, data: st.DataObject, to: str, trigger: Trigger) -> None:
        id = data.draw(st.sampled_from(sorted(self.world.sure)))
        migration = self.world.migration
        if NAMES.index(to) < NAMES.index(migration.tier(id)):
            migration.promote(id, to, trigger, self.world.now)

    @precondition(lambda self: self.world.sure)
    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        id, world = data.draw(st.sampled_from(sorted(self.world.sure))), self.world
        world.does(lambda: world.migration.get(id, world.now) == content_of(id) or pytest.fail(id))

    @precondition(lambda self: self.world.sure)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.world.sure)))
        self.world.does(lambda: self.world.forget(id))

    @rule(tier=st.sampled_from(NAMES), tokens=st.integers(1, 60))
    def collect(self, tier: str, tokens: int) -> None:
        self.world.migration.collect(tier, tokens, self.world.now)

    @rule(seconds=st.sampled_from([0.0, 1.0, 4.0, 5.0, 40.0, 4000.0]))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    @rule()
    def decay(self) -> None:
        self.world.migration.decay(self.world.now)

    @rule()
    def run(self) -> None:
        self.world.does(lambda: self.world.migration.run(self.world.now))

    @rule()
    def killed(self) -> None:
        self.world.fuse.left = None
        self.world.open()

    @invariant()
    def right(self) -> None:
        if hasattr(self, "world"):
            left, self.world.fuse.left = self.world.fuse.left, None
            self.world.check()
            self.world.fuse.left = left

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.rest()


TestCrashing = Crashing.TestCase
TestCrashing.settings = examples(100, steps=30)


def story(world: World) -> None:
    """Arrivals, a promotion, pressure, one that comes back in time, one that does not, a deletion."""
    world.put("m0", "working", 25)
    world.put("m1", "working", 25)
    world.migration.promote("m0", "focus", Trigger.FOCUS_REFERENCE, world.now)
    world.migration.run(world.now)
    world.put("m2", "working", 30)
    world.put("m3", "archive", 60)
    world.now += 4
    world.migration.promote("m3", "working", Trigger.CACHE_MISS, world.now)
    world.migration.run(world.now)
    world.now += 2
    world.migration.collect("working", 60, world.now)
    world.migration.run(world.now)
    world.now += 6
    world.migration.run(world.now)
    world.forget("m2")


def crashed(world: World, after: int, torn: bool) -> bool:
    """Tell the story up to a crash, and open again. Whether there was one."""
    world.fuse.left, world.fuse.torn = after, torn
    world.does(lambda: story(world))
    ended = world.fuse.left is None
    world.fuse.left = None
    world.check()
    world.rest()
    return ended


@pytest.mark.parametrize("policy", ["", "lru_k"])
@pytest.mark.parametrize("torn", [False, True])
def test_the_same_story_with_a_crash_at_every_operation(torn: bool, policy: str) -> None:
    """Each operation of a story is the last one once, in memory; the coldest leave, or whom a policy names."""
    after = 0
    while crashed(World([Memory() for _ in NAMES], MemoryJournal(), policy), after, torn):
        after += 1
    assert after > 60


@pytest.mark.parametrize("again", range(4))
def test_a_crash_while_recovering_from_a_crash(again: int) -> None:
    """Recovering is made of the same steps: cut short, it is gone on with."""
    for after in range(60):
        world = World([Memory() for _ in NAMES], MemoryJournal())
        world.fuse.left, world.fuse.torn = after, True
        with pytest.raises(Crash):
            story(world)
        world.fuse.left = again
        try:
            world.open()
        except Crash:
            world.open()
        world.fuse.left = None
        world.settle()
        world.check()
        world.rest()


def test_the_same_on_disk(tmp_path: Path) -> None:
    """Files and a file journal, which is closed and opened again as by a new process."""
    after = 0
    while True:
        folder = tmp_path / str(after)
        with FileJournal(folder / "journal") as journal:
            world = World([Folder(folder / name) for name in NAMES], journal)
            world.fuse.left, world.fuse.torn = after, True
            try:
                story(world)
            except Crash:
                pass
            else:
                break
        with FileJournal(folder / "journal") as journal:
            world.journal, world.fuse.left = journal, None
            world.open()
            world.settle()
            world.check()
            world.rest()
        after += 7
    assert after > 60

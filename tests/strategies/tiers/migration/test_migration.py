"""Migration as a component: who moves where and when, what is verified, what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from ctxbench.strategies.events import Crossed, Moved
from ctxbench.strategies.tiers.migration import (
    Heat,
    MemoryJournal,
    Migration,
    Readings,
    Replacement,
    Tier,
    TierError,
    Trigger,
    Weights,
    Why,
)
from ctxbench.strategies.tiers.quota import Quota
from hypothesis import given, settings
from hypothesis import strategies as st

from .stores import NAMES, Fragile, Fuse, Memory, spoiled, tiers

WORDS = b"what was said"


class Bench:
    """Four tiers of 20, 60, 120 and 10,000 tokens, in memory, and what they record."""

    def __init__(self, **more: Any) -> None:
        self.fuse, self.events = Fuse(), list[Moved | Crossed]()
        self.memories = {name: Memory() for name in NAMES}
        self.journal = MemoryJournal()
        self.open(**more)

    def open(self, now: float = 0.0, **more: Any) -> None:
        stores = [Fragile(store, self.fuse) for store in self.memories.values()]
        self.migration = Migration(tiers(stores), self.journal, self.events.append, now, **more)

    def where(self, id: str) -> list[str]:
        """The tiers whose store has something of it."""
        return [name for name, store in self.memories.items() if id in store]

    def moved(self) -> list[tuple[str, str, str]]:
        return [(event.sources[0], event.source, event.to) for event in self.events if isinstance(event, Moved)]


def test_a_promotion_leaves_its_source_for_five_seconds() -> None:
    """It is in the new tier at once, and visible only there; the old copy goes when the delay is over, not before."""
    bench = Bench()
    migration = bench.migration
    assert migration.put("a", WORDS, 10, "archive", 0) == "archive"
    assert migration.promote("a", "working", Trigger.CACHE_MISS, 1) is None
    (outcome,) = migration.run(1)
    assert (outcome.why, outcome.revived, outcome.late) == (None, False, False)
    assert (migration.tier("a"), migration.ids("archive"), migration.tokens("archive")) == ("working", [], 0)
    migration.run(5.99)
    assert bench.where("a") == ["working", "archive"]
    migration.run(6)
    assert bench.where("a") == ["working"]
    assert bench.moved() == [("a", "archive", "working")]


def test_what_comes_back_in_time_is_not_copied_again() -> None:
    """The copy that was to be deleted is verified and is the content again; the other is left behind instead."""
    bench = Bench(cooldown=0)
    migration = bench.migration
    migration.put("a", WORDS, 10, "archive", 0)
    migration.promote("a", "working", Trigger.CACHE_MISS, 0)
    migration.run(0)
    migration.collect("working", 10, 2)
    (outcome,) = migration.run(2)
    assert outcome.revived
    assert bench.where("a") == ["working", "archive"]
    migration.run(7)
    assert bench.where("a") == ["archive"]
    down = migration.accounts.edges["working", "archive"]
    assert (down.moves, down.revived, down.tokens, down.bytes) == (1, 1, 10, 0)


def test_a_corrupted_copy_is_never_committed() -> None:
    """One bit is wrong after copying: the copy is deleted, the source stays and is read as before."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    bench.fuse.spoil = 0
    bench.migration.promote("a", "working", Trigger.CACHE_MISS, 1)
    assert [each.why for each in bench.migration.run(1)] == [Why.CORRUPT]
    assert bench.where("a") == ["archive"]
    assert bench.migration.get("a", 2) == WORDS
    assert bench.moved() == []
    assert bench.migration.accounts.edges["archive", "working"].refused == {Why.CORRUPT: 1}


def test_a_tier_that_cannot_store_it_changes_nothing() -> None:
    """The disk is full half-way: what was written of it is deleted."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    bench.fuse.fail = 0
    bench.migration.promote("a", "working", Trigger.CACHE_MISS, 1)
    assert [each.why for each in bench.migration.run(1)] == [Why.FAILED]
    assert bench.where("a") == ["archive"]


def test_the_source_is_not_deleted_before_the_content_is_verified_again() -> None:
    """The new copy rots within the delay: the old one is the content again, and the rotten one goes."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    bench.migration.promote("a", "working", Trigger.CACHE_MISS, 0)
    bench.migration.run(0)
    bench.memories["working"].held["a"] = spoiled(WORDS)
    bench.migration.run(5)
    assert (bench.migration.tier("a"), bench.where("a")) == ("archive", ["archive"])
    assert bench.migration.get("a", 6) == WORDS
    assert bench.migration.accounts.salvaged == 1


def test_a_copy_that_rotted_while_it_waited_is_not_revived() -> None:
    """It is written anew."""
    bench = Bench(cooldown=0)
    bench.migration.put("a", WORDS, 10, "archive", 0)
    bench.migration.promote("a", "working", Trigger.CACHE_MISS, 0)
    bench.migration.run(0)
    bench.memories["archive"].held["a"] = spoiled(WORDS)
    bench.migration.collect("working", 10, 1)
    assert [each.revived for each in bench.migration.run(1)] == [False]
    assert bench.memories["archive"].held["a"] == WORDS


def test_the_last_two_copies_are_kept_if_neither_is_sound() -> None:
    """Nothing is deleted that somebody could still mend, and reading it says where it was."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    bench.migration.promote("a", "working", Trigger.CACHE_MISS, 0)
    bench.migration.run(0)
    for name in ("working", "archive"):
        bench.memories[name].held["a"] = spoiled(WORDS)
    bench.migration.run(100)
    assert bench.where("a") == ["working", "archive"]
    with pytest.raises(TierError, match="'a' is damaged in 'working'"):
        bench.migration.get("a", 100)


def test_a_tier_that_cannot_delete_is_asked_again() -> None:
    """After its delay; the item is visible once all the time."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    bench.migration.promote("a", "working", Trigger.CACHE_MISS, 0)
    bench.migration.run(0)
    bench.fuse.stuck = True
    bench.migration.run(5)
    bench.fuse.stuck = False
    bench.migration.run(9)
    assert bench.where("a") == ["working", "archive"]
    bench.migration.run(10)
    assert bench.where("a") == ["working"]
    assert bench.migration.accounts.undeleted == 1


def test_hard_pressure_sends_the_coldest_down_at_once() -> None:
    """Working holds 60: for a third item of 25 the coldest leaves, until the soft limit of 57 is kept."""
    bench = Bench()
    for now, id in enumerate("ab"):
        bench.migration.put(id, WORDS, 25, "working", now)
    bench.migration.get("a", 2)
    assert bench.migration.put("c", WORDS, 25, "working", 3) == "working"
    assert bench.moved() == [("b", "working", "archive")]
    assert bench.migration.tokens("working") == 50


def test_pressure_goes_down_the_tiers() -> None:
    """Working pushes into a full Archive, which pushes into RAG. What is moving is not pushed out itself."""
    bench = Bench()
    for now, (id, tier) in enumerate([("a", "archive"), ("b", "archive"), ("c", "working")]):
        bench.migration.put(id, WORDS, 55, tier, now)
    bench.migration.promote("a", "working", Trigger.EXPLICIT_ACCESS, 4)
    assert [outcome.why for outcome in bench.migration.run(4) if outcome.job.id == "a"] == [None]
    assert bench.migration.tier("a") == "working"
    assert bench.moved() == [("b", "archive", "rag"), ("c", "working", "archive"), ("a", "archive", "working")]


def test_medium_pressure_frees_to_the_warning_and_soft_pressure_frees_what_is_cold() -> None:
    """58 of 60: the coldest leave until less than 48 are held. 50 of 60: nobody is cold yet, and an hour later all."""
    bench = Bench()
    for now in range(29):
        bench.migration.put(f"m{now}", WORDS, 2, "working", now)
    outcomes = bench.migration.run(29)
    assert {each.job.trigger for each in outcomes} == {Trigger.MEDIUM_PRESSURE}
    assert [each.job.id for each in outcomes] == [f"m{number}" for number in range(6)]
    assert bench.migration.tokens("working") == 46
    for now in (30, 31):
        bench.migration.put(f"n{now}", WORDS, 2, "working", now)
    assert bench.migration.run(40) == ()
    (cold, other) = bench.migration.run(3_000)
    assert (cold.job.trigger, cold.job.id, other.job.id) == (Trigger.SOFT_PRESSURE, "m6", "m7")


def test_what_came_just_now_does_not_go_back() -> None:
    """For 30 seconds, unless there is no room or it must be sent."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "working", 0)
    bench.migration.collect("working", 10, 0)
    bench.migration.run(0)
    for now, trigger in enumerate([Trigger.EXPLICIT_ACCESS, Trigger.CACHE_MISS], 1):
        bench.migration.promote("a", "working", trigger, now)
        assert [each.why for each in bench.migration.run(now)] == [Why.COOLING]
    bench.migration.promote("a", "working", Trigger.FOCUS_REFERENCE, 3)
    assert [each.why for each in bench.migration.run(3)] == [None]
    assert bench.migration.collect("working", 10, 32.9) == 0
    assert bench.migration.collect("working", 10, 33) == 10


def test_what_is_predicted_has_to_be_hot() -> None:
    """0.65 after one use with the default weights, 0.70 after two at once: the threshold of 0.7."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    assert bench.migration.promote("a", "working", Trigger.PREDICTED_USE, 0) is Why.COLD
    bench.migration.get("a", 0)
    assert bench.migration.promote("a", "working", Trigger.PREDICTED_USE, 0) is None
    assert [each.why for each in bench.migration.run(0)] == [None]


def test_a_late_prediction_is_dropped_and_a_late_access_is_done() -> None:
    """The prediction had five seconds; who asked for the other still wants it."""
    bench = Bench(heat=Heat(relevance=lambda id: 1.0))
    for id in "ab":
        bench.migration.put(id, WORDS, 10, "archive", 0)
        bench.migration.get(id, 0)
    bench.migration.promote("a", "working", Trigger.PREDICTED_USE, 0)
    bench.migration.promote("b", "working", Trigger.CACHE_MISS, 0)
    assert [(each.job.id, each.why, each.late) for each in bench.migration.run(6)] == [
        ("b", None, True),
        ("a", Why.EXPIRED, False),
    ]
    edge = bench.migration.accounts.edges["archive", "working"]
    assert (edge.late, edge.waits) == (1, [6])


def test_decay_sends_down_what_nobody_uses() -> None:
    """0.65 at once, below 0.1 after three half-lives of ten minutes."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "working", 0)
    assert bench.migration.decay(600) == 0
    assert bench.migration.decay(1_900) == 10
    bench.migration.run(1_900)
    assert bench.migration.tier("a") == "archive"


def test_the_policy_of_a_tier_says_who_leaves() -> None:
    """A tier that brings its own order is asked for it, and told of all that comes, is used and goes."""

    class Named(Replacement):
        """Names whom it was given, one by one; what is not there is passed over."""

        def __init__(self) -> None:
            self.told: list[object] = []

        def come(self, id: str, tokens: int, now: float, used: bool) -> None:
            self.told.append((id, tokens, now, used))

        def use(self, id: str, now: float) -> None:
            self.told.append((id, now))

        def gone(self, id: str) -> None:
            self.told.append(id)

        def leaving(self, now: float, cold: bool) -> Iterator[str]:
            for id in "zba":
                self.told.append(f"ask {id}")
                yield id

    memories, named = [Memory(), Memory()], Named()
    upper = Tier("upper", memories[0], Quota(20), replacement=named)
    lower = Tier("lower", memories[1], Quota(100))
    migration = Migration([upper, lower], MemoryJournal(), lambda event: None, 0)
    for id in "abc":
        migration.put(id, WORDS, 9, "upper", 0)
    migration.get("a", 1)
    assert migration.ids("lower") == ["b"]
    assert named.told == [("a", 9, 0, True), ("b", 9, 0, True), "ask z", "ask b", "b", ("c", 9, 0, True), ("a", 1)]


def test_what_goes_up_into_memory_keeps_its_copy_on_disk() -> None:
    """A tier that ends with its process holds the content, the disk backs it. A crash falls back to that."""
    memory, disk, journal = Memory(), Memory(), MemoryJournal()

    def opened(memory: Memory, now: float) -> Migration:
        rows = [Tier("memory", memory, Quota(100), durable=False), Tier("disk", disk, Quota(100))]
        return Migration(rows, journal, lambda event: None, now, cooldown=0)

    migration = opened(memory, 0)
    migration.put("a", WORDS, 10, "disk", 0)
    migration.put("b", WORDS, 10, "memory", 0)
    migration.promote("a", "memory", Trigger.CACHE_MISS, 0)
    migration.run(0)
    migration.run(1_000)
    assert "a" in disk
    again = opened(Memory(), 1_001)
    assert (again.recovered.salvaged, again.recovered.lost) == (("a",), ("b",))
    assert (again.get("a", 1_001), again.tier("a"), "b" in again) == (WORDS, "disk", False)


def test_the_same_calls_give_the_same_moves() -> None:
    """Twice the same load: equal events, equal snapshots, equal journals."""

    def load() -> tuple[object, ...]:
        bench = Bench()
        for step in range(200):
            id = f"m{step * 7 % 31}"
            if id in bench.migration:
                bench.migration.get(id, step)
                if bench.migration.tier(id) != "focus":
                    bench.migration.promote(id, "working", Trigger.CACHE_MISS, step)
            else:
                bench.migration.put(id, WORDS, 3 + step % 9, NAMES[step % 3], step)
            bench.migration.run(step)
        return bench.events, bench.migration.snapshot(), list(bench.journal.records())

    assert load() == load()


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("pgmcr"), st.integers(0, 9)), max_size=40), st.integers())
def test_a_snapshot_goes_on_as_the_original(steps: list[tuple[int, str, int]], cut: int) -> None:
    """Through JSON, at any point, over the same content: the same outcomes, snapshots and content after it."""

    def act(bench: Bench, step: tuple[int, str, int], now: float) -> object:
        id, what, tier = f"m{step[0]}", step[1], NAMES[step[2] % 4]
        if what == "p":
            return bench.migration.put(id, WORDS, 5 + step[0], tier, now)
        if what == "g" and id in bench.migration:
            return bench.migration.get(id, now)
        if what == "m" and id in bench.migration and NAMES.index(tier) < NAMES.index(bench.migration.tier(id)):
            return bench.migration.promote(id, tier, Trigger.CACHE_MISS, now)
        return bench.migration.collect(tier, 10, now) if what == "c" else bench.migration.run(now)

    cut %= len(steps) + 1
    original, copy = Bench(), Bench()
    for now, step in enumerate(steps[:cut]):
        act(original, step, now)
    for name, memory in original.memories.items():
        copy.memories[name].held, copy.memories[name].sizes = dict(memory.held), dict(memory.sizes)
    copy.migration.restore(json.loads(json.dumps(original.migration.snapshot())))
    for now, step in enumerate(steps[cut:], cut):
        assert act(original, step, now * 2) == act(copy, step, now * 2)
    assert original.migration.snapshot() == copy.migration.snapshot()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 9}, "version 9"),
        ({"records": [{"kind": "cleaned", "id": "a", "tier": "archive"}]}, "none is known"),
        ({"now": None}, "now"),
        ({"records": [{"kind": "copied", "id": "a", "tier": "attic", "due": None}]}, "items are in attic"),
    ],
)
def test_a_snapshot_that_is_none_changes_nothing(change: dict[str, Any], says: str) -> None:
    """Another version, records that contradict each other, a field that is gone, a tier that is not there."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "working", 0)
    before = bench.migration.snapshot()
    with pytest.raises(TierError, match=says):
        bench.migration.restore({**before, **change})
    assert bench.migration.snapshot() == before


def test_what_is_larger_than_a_tier_goes_to_the_next_that_holds_it() -> None:
    """30 tokens do not fit in Focus (20); 20,000 fit nowhere, and the error says so of each tier."""
    bench = Bench()
    assert bench.migration.put("a", WORDS, 30, "focus", 0) == "working"
    bench.migration.promote("a", "focus", Trigger.FOCUS_REFERENCE, 0)
    assert [each.why for each in bench.migration.run(0)] == [Why.TOO_LARGE]
    with pytest.raises(TierError, match=r"'b', 20,000 tokens, fits nowhere \(archive: larger than the tier; rag"):
        bench.migration.put("b", WORDS, 20_000, "archive", 0)
    assert "b" not in bench.migration


def test_the_lowest_tier_pushes_nobody_out() -> None:
    """Where nothing lies below, what is full is full: no content is deleted to make room."""
    migration = Migration([Tier("only", Memory(), Quota(10))], MemoryJournal(), lambda event: None, 0)
    migration.put("a", WORDS, 8, "only", 0)
    with pytest.raises(TierError, match="only: nothing there can leave"):
        migration.put("b", WORDS, 8, "only", 1)
    migration.forget("a", 2)
    assert migration.put("b", WORDS, 8, "only", 3) == "only"


def test_the_same_id_twice() -> None:
    """The same content again is a use; other content, or other tokens, is refused."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    assert bench.migration.put("a", WORDS, 10, "focus", 1) == "archive"
    for content, tokens in ((b"other", 10), (WORDS, 11)):
        with pytest.raises(TierError, match="'a' is held with other content"):
            bench.migration.put("a", content, tokens, "archive", 2)
    assert bench.migration.get("a", 3) == WORDS


@pytest.mark.parametrize("now", [4.9, math.nan, math.inf, -math.inf])
def test_a_clock_that_goes_back_is_refused(now: float) -> None:
    """Also one that is no time; and nothing has happened."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 5)
    before = bench.migration.snapshot()
    for call in (
        lambda: bench.migration.run(now),
        lambda: bench.migration.get("a", now),
        lambda: bench.migration.put("b", WORDS, 1, "archive", now),
        lambda: bench.migration.forget("a", now),
    ):
        with pytest.raises(TierError, match="never goes back"):
            call()
    assert bench.migration.snapshot() == before


@pytest.mark.parametrize(("id", "tokens"), [("", 1), ("\ud800", 1), ("a", -1)])
def test_an_item_that_is_none_is_refused(id: str, tokens: int) -> None:
    """No id, half a character, fewer than no tokens."""
    with pytest.raises(TierError, match="an item has an id"):
        Bench().migration.put(id, WORDS, tokens, "archive", 0)


def test_wrong_names_and_directions_are_refused() -> None:
    """A tier that is not there, a promotion that goes down, two tiers of one name, an id that is nowhere."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "working", 0)
    with pytest.raises(TierError, match="there is no tier 'attic'; there are focus, working"):
        bench.migration.put("b", WORDS, 10, "attic", 0)
    with pytest.raises(TierError, match="a promotion goes up"):
        bench.migration.promote("a", "archive", Trigger.CACHE_MISS, 0)
    with pytest.raises(ValueError, match="different names"):
        Migration([Tier("x", Memory(), Quota(1))] * 2, MemoryJournal(), bench.events.append, 0)
    with pytest.raises(KeyError):
        bench.migration.get("nobody", 0)


def test_limits_that_are_crossed_are_recorded() -> None:
    """A hard limit that is wanted and not reached, then the way back below it."""
    bench = Bench()
    for now, id in enumerate("abc"):
        bench.migration.put(id, WORDS, 25, "working", now)
    crossed = [(event.level, event.up) for event in bench.events if isinstance(event, Crossed)]
    assert crossed[:5] == [
        ("warning", True),
        ("warning", False),
        ("warning", True),
        ("soft", True),
        ("hard", True),
    ] or (("hard", True) in crossed and crossed[-1] != ("hard", True))


def test_many_equal_messages() -> None:
    """5,000 of the same text through tiers that hold few: all are there, in the order in which they came."""
    bench = Bench()
    for number in range(5_000):
        bench.migration.put(f"m{number}", WORDS, 1, "working", 0)
    bench.migration.run(100)
    ids = [id for name in reversed(NAMES) for id in bench.migration.ids(name)]
    assert ids == [f"m{number}" for number in range(5_000)]


def test_tuning_changes_who_leaves() -> None:
    """A low hit rate moves weight to recency: 0.6, 0.25, 0.2 of 1.05."""
    bench = Bench()
    tuning = bench.migration.tune(Readings(hit_rate=0.5, promotion=0.2, storage_pressure=0.9))
    assert tuning.weights == pytest.approx((0.6 / 1.05, 0.25 / 1.05, 0.2 / 1.05))
    assert (tuning.threshold, tuning.level) == (pytest.approx(0.8), 12)
    assert bench.migration.heat.weights == tuning.weights != Weights()

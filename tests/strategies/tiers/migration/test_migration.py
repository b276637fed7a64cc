"""What a move does: copies, verifies, waits, comes back, and what it refuses to lose."""

from __future__ import annotations

import pytest

from ctxbench.strategies.tiers.migration import (
    MoveReason,
    TierError,
    Trigger,
)

from .bench import WORDS, Bench
from .stores import spoiled


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
    assert [each.why for each in bench.migration.run(1)] == [MoveReason.CORRUPT]
    assert bench.where("a") == ["archive"]
    assert bench.migration.get("a", 2) == WORDS
    assert bench.moved() == []
    assert bench.migration.accounts.edges["archive", "working"].refused == {MoveReason.CORRUPT: 1}


def test_a_tier_that_cannot_store_it_changes_nothing() -> None:
    """The disk is full half-way: what was written of it is deleted."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    bench.fuse.fail = 0
    bench.migration.promote("a", "working", Trigger.CACHE_MISS, 1)
    assert [each.why for each in bench.migration.run(1)] == [MoveReason.FAILED]
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

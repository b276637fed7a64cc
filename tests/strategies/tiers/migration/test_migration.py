"""What a move does: copies, waits, comes back; what is refused; how it goes on from a snapshot."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.tiers.jobs import PROMOTIONS, URGENCY, MoveReason, Trigger
from ctxbench.strategies.tiers.migration import MigrationState, TierError
from tests.examples import examples

from .bench import NAMES, WORDS, Bench


def test_a_promotion_leaves_its_source_for_five_seconds() -> None:
    """It is in the new tier at once, and visible only there; the old copy goes when the delay is over, not before."""
    bench = Bench()
    migration = bench.migration
    assert migration.put("a", WORDS, 10, "archive", 0) == "archive"
    assert migration.promote("a", "working", Trigger.CACHE_MISS, 1) is None
    (outcome,) = migration.run(1)
    assert outcome.why is None
    assert (migration.tier("a"), migration.ids("archive"), migration.tokens("archive")) == ("working", [], 0)
    migration.run(5.99)
    assert bench.where("a") == ["working", "archive"]
    migration.run(6)
    assert bench.where("a") == ["working"]
    assert bench.moved() == [("a", "archive", "working")]


def test_what_comes_back_in_time_is_not_copied_again() -> None:
    """The copy that was to be deleted is the content again; the other is left behind instead."""
    bench = Bench(cooldown=0)
    migration = bench.migration
    migration.put("a", WORDS, 10, "archive", 0)
    migration.promote("a", "working", Trigger.CACHE_MISS, 0)
    migration.run(0)
    migration.collect("working", 10, 2)
    copy = bench.stores["archive"].held["a"]
    (outcome,) = migration.run(2)
    assert outcome.why is None
    assert bench.stores["archive"].held["a"] is copy
    assert bench.where("a") == ["working", "archive"]
    migration.run(7)
    assert bench.where("a") == ["archive"]


@examples(25)
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
    for name, store in original.stores.items():
        copy.stores[name].held, copy.stores[name].tokens = dict(store.held), store.tokens
    copy.migration.restore(msgspec.json.decode(msgspec.json.encode(original.migration.state()), type=MigrationState))
    for now, step in enumerate(steps[cut:], cut):
        assert act(original, step, now * 2) == act(copy, step, now * 2)
    assert original.migration.state() == copy.migration.state()


def test_the_most_urgent_is_first_and_nobody_waits_for_ever() -> None:
    """A focus reference before misses, in their order; one that is past its tenth of a second goes before all. An item
    has one job, the more urgent one."""
    bench = Bench()
    for id in "abcd":
        bench.migration.put(id, WORDS, 2, "archive", 0)
    asked = [("a", Trigger.CACHE_MISS, 1), ("d", Trigger.CACHE_MISS, 5), ("c", Trigger.CACHE_MISS, 5)]
    for id, trigger, now in [*asked, ("b", Trigger.FOCUS_REFERENCE, 5), ("a", Trigger.PREDICTED_USE, 5)]:
        bench.migration.promote(id, "working", trigger, now)
    assert [outcome.job.id for outcome in bench.migration.run(5, 3)] == ["a", "b", "d"]
    bench.migration.promote("c", "working", Trigger.FOCUS_REFERENCE, 5)
    assert [outcome.job.trigger for outcome in bench.migration.run(5)] == [Trigger.FOCUS_REFERENCE]


def test_every_trigger_has_an_urgency() -> None:
    """All nine, four of them promotions; the budgets of promotions are the document's."""
    assert set(URGENCY) == set(Trigger)
    assert {trigger: URGENCY[trigger][1] for trigger in PROMOTIONS - {Trigger.PREDICTED_USE}} == {
        Trigger.EXPLICIT_ACCESS: 0.05,
        Trigger.CACHE_MISS: 0.1,
        Trigger.FOCUS_REFERENCE: 0.01,
    }


def test_what_is_larger_than_a_tier_goes_to_the_next_that_holds_it() -> None:
    """30 tokens do not fit in Focus (20); 20,000 fit nowhere, and the error says so of each tier."""
    bench = Bench()
    assert bench.migration.put("a", WORDS, 30, "focus", 0) == "working"
    bench.migration.promote("a", "focus", Trigger.FOCUS_REFERENCE, 0)
    assert [each.why for each in bench.migration.run(0)] == [MoveReason.TOO_LARGE]
    with pytest.raises(TierError, match=r"'b', 20,000 tokens, fits nowhere \(archive: larger than the tier; rag"):
        bench.migration.put("b", WORDS, 20_000, "archive", 0)
    assert "b" not in bench.migration


def test_the_same_id_twice() -> None:
    """The same content again is a use; other content, or other tokens, is refused."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    assert bench.migration.put("a", WORDS, 10, "focus", 1) == "archive"
    for content, tokens in ((b"other", 10), (WORDS, 11)):
        with pytest.raises(TierError, match="'a' is stored with other content"):
            bench.migration.put("a", content, tokens, "archive", 2)
    assert bench.migration.get("a", 3) == WORDS

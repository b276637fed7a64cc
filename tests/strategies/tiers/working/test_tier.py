"""The Working tier as a component: put, get, evict, predict, snapshot."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.model import Message
from ctxbench.strategies.tiers.working import CachedMessage, Put, Working
from ctxbench.strategies.tiers.working.tier import Successors
from ctxbench.strategies.tiers.working.traces import mem_002
from tests.examples import examples


def item(name: str, tokens: int = 1) -> CachedMessage:
    return CachedMessage(name, tokens, Message(name, "user", f"message {name}"))


def test_what_leaves_is_returned_with_its_message() -> None:
    """Nothing is lost: what has no room any more is handed to the caller, to be archived."""
    working = Working(10, "lru")
    assert working.put(item("a", 6), 0) == Put()
    assert working.put(item("b", 6), 1) == Put((item("a", 6),))
    assert [each.id for each in working] == ["b"]
    assert working.tokens == 6


def test_a_message_larger_than_the_tier_is_refused_and_evicts_nobody() -> None:
    """The caller is told, and takes it elsewhere."""
    working = Working(10, "lru")
    working.put(item("a", 6), 0)
    assert working.put(item("b", 11), 1) == Put(refused=True)
    assert "a" in working
    assert "b" not in working


def test_a_look_up_says_hit_or_miss_and_counts() -> None:
    """A miss changes nothing; the counts are of look-ups, not of puts."""
    working = Working(10, "lru")
    working.put(item("a", 6), 0)
    assert working.get("a", 1) == item("a", 6)
    assert working.get("b", 2) is None
    assert (working.counts.hits, working.counts.misses, working.counts.hit_tokens) == (1, 1, 6)


def test_the_same_id_twice() -> None:
    """The same message again is a use; another under the same id is an error, and the tier is as before."""
    working = Working(10)
    working.put(item("a", 6), 0)
    assert working.put(item("a", 6), 1) == Put()
    with pytest.raises(ValueError, match="'a' is in the tier with other content"):
        working.put(item("a", 7), 2)
    with pytest.raises(ValueError, match="'a' is in the tier with other content"):
        working.put(CachedMessage("a", 6, Message("a", "user", "something else")), 2)
    assert working.tokens == 6


def test_a_clock_that_goes_back_is_an_error() -> None:
    """It names both times, and nothing is put."""
    working = Working(10)
    working.put(item("a"), 5)
    with pytest.raises(ValueError, match="the clock went back from 5 to 4"):
        working.put(item("b"), 4)
    assert "b" not in working


def test_a_hundred_thousand_identical_messages() -> None:
    """Put again and again they are one item, used often."""
    working = Working(10)
    for at in range(100_000):
        assert not working.put(item("a"), at).evicted
    assert len(working) == 1


def test_under_pressure_it_lets_go_of_its_victims() -> None:
    """Down to so many tokens, in the policy's order; an item that went elsewhere is taken out and no victim."""
    working = Working(10, "lru")
    for at, name in enumerate("abcd"):
        working.put(item(name, 2), at)
    assert working.remove("c") == item("c", 2)
    assert [each.id for each in working.evict(3)] == ["a", "b"]
    assert working.counts.evictions == 2
    with pytest.raises(KeyError):
        working.remove("a")


def test_what_usually_follows_is_wanted() -> None:
    """b followed a twice: after a, b is wanted if it is not here. Put as predicted it counts, once it is used."""
    working = Working(10, "lru", Successors())
    for at, name in enumerate("abab"):
        working.get(name, at)
    assert working.wanted("a") == ["b"]
    working.put(item("b"), 4, preloaded=True)
    assert working.wanted("a") == []
    working.get("b", 5)
    working.get("b", 6)
    assert (working.counts.preloaded, working.counts.used) == (1, 1)


def test_segments_have_their_tokens() -> None:
    """Of 128K tokens, 32K are hot, 64K warm, 32K cold; policies without segments have none."""
    working = Working(100, "segmented")
    working.put(item("a", 10), 0)
    working.put(item("b", 10), 1)
    working.get("a", 2)
    assert working.segments == {"cold": 10, "warm": 10, "hot": 0}
    assert Working(100).segments == {}


moves = st.lists(
    st.tuples(st.sampled_from(["put", "get", "predicted", "evict", "remove"]), st.integers(0, 9)), max_size=60
)


@examples(50)
@given(
    moves=moves,
    policy=st.sampled_from(["lru_k(correlated=20)", "segmented", "w_tiny_lfu", "hybrid"]),
    cut=st.integers(0, 60),
)
def test_goes_on_from_a_snapshot_as_if_nothing_happened(moves: list[tuple[str, int]], policy: str, cut: int) -> None:
    """History of what left, counts and predictions included; through JSON. And nothing is ever lost or there twice."""
    one, other = Working(12, policy, Successors()), Working(12, policy, Successors())
    outside: set[str] = set()
    for at, (move, number) in enumerate(moves):
        name = str(number)
        if at == cut:
            other.restore(json.loads(json.dumps(one.snapshot())))
        both = (one, other) if at >= cut else (one,)
        found = []
        for working in both:
            if move == "get":
                found.append([working.get(name, at), working.wanted(name)])
            elif move in ("put", "predicted"):
                found.append(working.put(item(name, number + 1), at, preloaded=move == "predicted"))
            elif move == "evict":
                found.append(working.evict(number))
            elif name in working:
                found.append(working.remove(name))
        assert not found or found[0] == found[-1]
        if move in ("put", "predicted"):
            outside.discard(name)
            outside.update(each.id for each in found[0].evicted)
        elif move == "evict":
            outside.update(each.id for each in found[0])
        elif move == "remove" and found:
            outside.add(name)
        assert not outside & {each.id for each in one}
    if len(moves) > cut:
        assert one.snapshot() == other.snapshot()


def test_a_snapshot_that_does_not_fit_is_refused_whole() -> None:
    """Another policy, size or version, a missing item, other tokens: one reason, and the tier is as it was."""
    working = Working(10, "lru")
    working.put(item("a", 6), 0)
    good = working.snapshot()
    other = Working(10, "lru")
    for changed, said in (
        ({**good, "policy": "lfu"}, "policy lfu, this one has lru"),
        ({**good, "capacity": 11}, "capacity 11"),
        ({**good, "version": 9}, "version 9"),
        ({**good, "items": []}, "its items are not those of its policy"),
        ({**good, "cache": {**good["cache"], "used": 5}}, "sizes do not add up"),
        ({**good, "more": 1}, "this is no snapshot"),
        ({}, "this is no snapshot"),
    ):
        with pytest.raises(ValueError, match=said):
            other.restore(changed)
        assert len(other) == 0
    other.restore(good)
    assert list(other) == [item("a", 6)]


def test_the_documents_acceptance_load_fits_in_its_limits() -> None:
    """MEM-002: 10 000 messages of about 2M tokens through 128K: never over, and what leaves is all that is not held."""
    trace = mem_002(0)
    assert 1.9e6 < trace.sizes.sum() < 2.1e6
    working, left = Working(), 0
    for at in range(10_000):
        left += len(working.put(item(str(at), int(trace.sizes[at])), at).evicted)
        assert working.tokens <= 131_072
    assert left + len(working) == 10_000
    assert sum(working.get(str(asked), at) is not None for at, asked in enumerate(trace.ids[10_000:], 10_000)) < 200

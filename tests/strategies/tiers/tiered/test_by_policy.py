"""A cache policy as the one that says who leaves a tier: it is what it is in a cache of its own."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.tiers.jobs import Trigger
from ctxbench.strategies.tiers.migration import Migration, MigrationState, Tier, TierError
from ctxbench.strategies.tiers.quota import Quota
from ctxbench.strategies.tiers.tiered.tiers import ByPolicy, DictStore
from ctxbench.strategies.tiers.working.policies import parse
from tests.examples import examples

SIZE = 40
SAME = ("fifo", "lru", "lfu", "lru_k", "lru_k(correlated=3)", "lru_k_document", "hybrid", "segmented")
"""Policies that choose whom to evict without looking at who comes."""
OTHER = ("arc", "s3_fifo", "w_tiny_lfu")
ACCESSES = st.lists(st.integers(0, 12), max_size=60)


class Hierarchy:
    """A tier with a policy over one that takes everything. As in a cache, no more room is made than is needed."""

    def __init__(self, policy: str) -> None:
        self.by_policy = ByPolicy(parse(policy).sized(SIZE))
        self.left: list[str] = []
        rows = [
            Tier("cache", DictStore(), Quota(SIZE, 1, 1), delay=0, replacement=self.by_policy),
            Tier("below", DictStore(), Quota(10**9), delay=0),
        ]
        self.migration = Migration(rows, self.moved, cooldown=0)

    def moved(self, event: object) -> None:
        if getattr(event, "source", "") == "cache":
            self.left += event.sources  # type: ignore[attr-defined]

    def access(self, id: str, tokens: int, now: float) -> None:
        """Use an item where it is, and have it in the upper tier."""
        if id not in self.migration:
            self.migration.put(id, id.encode(), tokens, "cache", now)
        elif self.migration.tier(id) == "cache":
            self.migration.get(id, now)
        else:
            self.migration.promote(id, "cache", Trigger.CACHE_MISS, now)
            self.migration.run(now)


def size(number: int) -> int:
    return 3 + number % 7


@pytest.mark.parametrize("policy", SAME)
@examples(40)
@given(accesses=ACCESSES)
def test_the_victims_are_those_of_the_cache(policy: str, accesses: list[int]) -> None:
    """The same accesses to a cache of the policy and to a tier that asks it: the same leave, in the same order."""
    cache, tier = parse(policy).sized(SIZE), Hierarchy(policy)
    victims: list[str] = []
    for now, number in enumerate(accesses):
        victims += cache.access(f"m{number}", size(number), now).evicted
        tier.access(f"m{number}", size(number), now)
    assert tier.left == victims
    assert set(tier.migration.ids("cache")) == set(cache.tokens)


@pytest.mark.parametrize("policy", SAME + OTHER)
@examples(40)
@given(accesses=ACCESSES, cut=st.integers(0, 60))
def test_nothing_is_lost_and_a_snapshot_goes_on(policy: str, accesses: list[int], cut: int) -> None:
    """Every item is in one tier, none is over its limit; restored, the policy has the same victims."""
    one, other = Hierarchy(policy), Hierarchy(policy)
    for now, number in enumerate(accesses[:cut]):
        one.access(f"m{number}", size(number), now)
    for name in ("cache", "below"):
        held = one.migration.tiers[name].store
        assert isinstance(held, DictStore)
        for id, (content, tokens) in held.held.items():
            other.migration.tiers[name].store.put(id, content, tokens, 0)
    other.migration.restore(msgspec.json.decode(msgspec.json.encode(one.migration.state()), type=MigrationState))
    for now, number in enumerate(accesses[cut:], cut):
        for each in (one, other):
            each.access(f"m{number}", size(number), now)
            assert each.migration.tokens("cache") <= SIZE
    for each in (one, other):
        each.migration.run(1_000)
    assert one.migration.state() == other.migration.state()
    ids = [id for name in ("cache", "below") for id in one.migration.ids(name)]
    assert sorted(ids) == sorted({f"m{number}" for number in accesses})


def test_what_cannot_be_moved_stays_and_is_named_again() -> None:
    """The tier below is full: nobody leaves, nothing comes, and the policy takes back whoever is used."""
    by_policy = ByPolicy(parse("lru").sized(20))
    rows = [Tier("cache", DictStore(), Quota(20, 1, 1), replacement=by_policy), Tier("below", DictStore(), Quota(10))]
    migration = Migration(rows, lambda event: None)
    for now, id in enumerate("abc"):
        migration.put(id, id.encode(), 10, "cache", now)
    assert migration.ids("below") == ["a"]
    with pytest.raises(TierError, match="fits nowhere"):
        migration.put("d", b"d", 10, "cache", 3)
    assert sorted(migration.ids("cache")) == ["b", "c"]
    assert not by_policy.policy.tokens
    migration.get("b", 4)
    assert set(by_policy.policy.tokens) == {"b"}
    migration.forget("a", 4)
    migration.put("d", b"d", 10, "cache", 5)
    assert migration.ids("below") == ["c"]

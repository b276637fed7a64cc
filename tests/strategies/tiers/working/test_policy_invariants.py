"""What every policy keeps, on any accesses."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.tiers.working.belady import Belady, BeladySize
from ctxbench.strategies.tiers.working.policies import POLICIES
from ctxbench.strategies.tiers.working.policy import Policy
from tests.examples import examples
from tests.strategies.tiers.working.loads import Accesses, accesses, opened
from tests.strategies.tiers.working.slow_lru_k import SlowLruK

every = pytest.mark.parametrize("name", POLICIES)


def emptied(policy: Policy) -> list[tuple[str, ...]]:
    """Return all victims in order."""
    return list(iter(lambda: policy.expel(1e9), ()))


@every
@examples(25)
@given(load=accesses())
def test_what_is_held_fits_and_what_left_was_held(name: str, load: Accesses) -> None:
    """Never over capacity; evicted items were held or just came; hits are of what was held; too large: nothing."""
    policy = opened(name, load.capacity, load.ids)
    for id, size, time in load.each():
        before = dict(policy.tokens)
        access = policy.access(id, size, time)
        assert access.hit == (id in before)
        assert access.refused == (size > load.capacity)
        if access.hit or access.refused:
            assert policy.tokens == before
            continue
        assert len(set(access.evicted)) == len(access.evicted)
        held = {**before, id: size}
        assert policy.tokens == {each: held[each] for each in held if each not in access.evicted}
        assert policy.used == sum(policy.tokens.values()) <= load.capacity


@every
@examples(20)
@given(load=accesses(), cut=st.integers(0, 80), gone=st.integers(0, 12))
def test_goes_on_from_its_state_as_if_nothing_happened(name: str, load: Accesses, cut: int, gone: int) -> None:
    """State through JSON and back: the same hits and victims afterwards; so after an item was taken out."""
    one = opened(name, load.capacity, load.ids)
    for access in load.each()[:cut]:
        one.access(*access)
    if str(gone) in one.tokens:
        one.remove(str(gone))
    other = opened(name, load.capacity)
    other.restore(json.loads(json.dumps(one.state())))
    for access in load.each()[cut:]:
        assert one.access(*access) == other.access(*access)
    assert emptied(one) == emptied(other)
    assert one.used == 0


@every
def test_bad_accesses_are_refused_and_change_nothing(name: str) -> None:
    """A clock that goes back, no tokens, other tokens under the same id, no capacity."""
    policy = opened(name, 10, "ab")
    policy.access("a", 3, 5)
    before = policy.state()
    for id, tokens, now, said in (("b", 1, 4, "went back from 5 to 4"), ("b", 0, 6, "at least 1"), ("a", 4, 6, "'a'")):
        with pytest.raises(ValueError, match=said):
            policy.access(id, tokens, now)
    assert policy.state() == before
    with pytest.raises(ValueError, match="capacity must be at least 1, not 0"):
        opened(name, 0)


parameters = st.fixed_dictionaries(
    {
        "k": st.integers(1, 3),
        "correlated": st.sampled_from([0.0, 1.0, 4.0]),
        "retained": st.sampled_from([None, 0.0, 6.0]),
    }
)


@examples(100)
@given(load=accesses(), given=parameters)
def test_lru_k_evicts_as_the_papers_procedure_does(load: Accesses, given: dict[str, object]) -> None:
    """Ours against a scan of all that is held: same hits, same victims."""
    text = ", ".join(f"{name}={value!r}" for name, value in given.items())
    ours = opened(f"lru_k({text})", load.capacity)
    slow = SlowLruK(
        load.capacity, **{**given, "retained": float("inf") if given["retained"] is None else given["retained"]}
    )  # type: ignore[arg-type]
    for each in load.each():
        access = ours.access(*each)
        assert (access.hit, list(access.evicted)) == slow.access(*each)


class ScannedBeladySize(Belady):
    """Belady's policy by size as one looks for the victim: among all that is held, the largest tokens × distance."""

    def _evict(self) -> None:
        self._leave(max(self.tokens, key=lambda id: (self._next(id) - self.clock) * self.tokens[id]))


@examples(200)
@given(load=accesses(), preloaded=st.sets(st.integers(0, 79)))
def test_belady_by_size_evicts_as_a_scan_of_all_items_does(load: Accesses, preloaded: set[int]) -> None:
    """The same hits and victims, access by access, some of them announced by a preload of the next item."""
    ours, scanned = BeladySize(load.capacity), ScannedBeladySize(load.capacity)
    for policy in (ours, scanned):
        policy.foresee([str(id) for id in load.ids])
    for at, (id, size, time) in enumerate(load.each()):
        assert ours.access(id, size, time) == scanned.access(id, size, time)
        if at in preloaded:
            other = (int(id) + 1) % len(load.sizes)
            one, two = (policy.access(str(other), load.sizes[other], time, used=False) for policy in (ours, scanned))
            assert one == two


@given(load=accesses(unit=True))
def test_no_policy_has_more_hits_than_belady_on_items_of_one_size(load: Accesses) -> None:
    """Belady's optimum, for every policy that lets all items in."""
    counts = {}
    for name in POLICIES:
        policy = opened(name, load.capacity, load.ids)
        counts[name] = sum(policy.access(str(id), 1, at).hit for at, id in enumerate(load.ids))
    del counts["w_tiny_lfu"]  # it may turn an item away, which can be better still
    assert max(counts.values()) == counts["belady"]


def test_preloaded_items_leave_no_history() -> None:
    """b was only predicted: it has no reference, and is the first to go."""
    policy = opened("lru_k", 2)
    policy.access("a", 1, 0)
    policy.access("b", 1, 1, used=False)
    assert policy.access("c", 1, 2).evicted == ("a",)  # both have an infinite distance, a was used longest ago
    assert "b" not in policy.history  # type: ignore[attr-defined]
    assert policy.access("b", 1, 3).hit
    assert policy.history["b"] == (3,)  # type: ignore[attr-defined]


def test_a_preload_is_no_use() -> None:
    """b was only predicted, a was used: b has the lower count, and is the first to go though it came later."""
    for name in ("lfu", "hybrid(profile='knowledge')"):
        policy = opened(name, 2)
        policy.access("a", 1, 0)
        policy.access("b", 1, 1, used=False)
        assert policy.access("c", 1, 2).evicted == ("b",), name


def test_a_use_soon_after_a_preload_is_recorded() -> None:
    """With a period of 5, a is used at 0 and 21: that it was preloaded at 20 leaves the history of a miss at 21."""
    policies = [opened("lru_k(correlated=5)", 1) for _ in range(2)]
    for policy in policies:
        policy.access("a", 1, 0)
        policy.access("b", 1, 10)
    policies[0].access("a", 1, 20, used=False)
    for policy in policies:
        policy.access("a", 1, 21)
        assert policy.history["a"] == (21, 0)  # type: ignore[attr-defined]

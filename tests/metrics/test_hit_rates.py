"""Rates, bounds and intervals of caching."""

import numpy as np
import pytest
from hypothesis import given

from ctxbench.metrics.hit_rates import compulsory, most_expected, most_hits, most_hits_fluid, previous, rates
from ctxbench.metrics.value import Missing
from ctxbench.strategies.tiers.working.policies import POLICIES
from tests.examples import examples
from tests.strategies.tiers.working.loads import Accesses, accesses, opened


def arrays(ids: list[int], sizes: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    numbers = np.array(ids, np.int64)
    return numbers, np.array(sizes, np.int64)[numbers], np.ones(len(ids), bool)


def test_rates_are_of_what_counts() -> None:
    """Three look-ups of 1, 1 and 8 tokens, the first two hit; what fills the cache does not count."""
    found = rates(np.array([True, True, True, False]), np.array([5, 1, 1, 8]), np.array([False, True, True, True]))
    assert found == (2 / 3, 0.2)
    assert isinstance(rates(np.zeros(2, bool), np.ones(2, int), np.zeros(2, bool)).hits, Missing)


def test_the_first_access_of_an_item_is_compulsory() -> None:
    """a b a: two of three."""
    ids, tokens, counted = arrays([0, 1, 0], [1, 1])
    assert previous(ids).tolist() == [-1, -1, 0]
    assert compulsory(ids, tokens, counted).hits == 2 / 3


def test_bounds_by_hand() -> None:
    """a b a b, one place: one of two is held at a time, so one hit. The loose bound allows 1.5."""
    ids, tokens, counted = arrays([0, 1, 0, 1], [1, 1])
    assert most_hits_fluid(ids, tokens, counted, 1).hits == pytest.approx(0.25)
    assert most_hits(ids, tokens, counted, 1).hits == pytest.approx(1.5 / 4)
    assert most_hits(ids, tokens, counted, 2).hits == 0.5


@examples(60)
@given(load=accesses(most=40))
def test_no_policy_exceeds_the_bounds(load: Accesses) -> None:
    """Not by hits, not by tokens, not even those that know the future; and the program's bound is the tighter."""
    if not load.ids:
        return
    ids, tokens, counted = arrays(load.ids, load.sizes)
    loose, tight = (find(ids, tokens, counted, load.capacity) for find in (most_hits, most_hits_fluid))
    for low, high in zip(tight, loose, strict=True):
        assert not isinstance(low, Missing)
        assert not isinstance(high, Missing)
        assert low <= high + 1e-9
    for name in POLICIES:
        policy = opened(name, load.capacity, load.ids)
        hits = [policy.access(str(id), load.sizes[id], at).hit for at, id in enumerate(load.ids)]
        for value, bound in zip(rates(np.array(hits), tokens, counted), tight, strict=True):
            assert not isinstance(value, Missing)
            assert not isinstance(bound, Missing)
            assert value <= bound + 1e-9, name


def test_what_to_expect_of_knowing_popularity() -> None:
    """.5, .3 and .2 for items of 10, 10 and 5 tokens in 15: all of the first, all of the third by its small size."""
    assert most_expected(np.array([0.5, 0.3, 0.2]), np.array([10, 10, 5]), 15) == pytest.approx(0.7)
    assert most_expected(np.array([0.5, 0.5]), np.array([10, 10]), 15) == pytest.approx(0.75)

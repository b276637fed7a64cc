"""Rank correlations with intervals: by hand, against scipy's, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ctxbench.metrics.statistics.comparison import OrderSums, alike, kendall, spearman
from ctxbench.metrics.value import Missing


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_as_scipy_has_them(pairs: list[tuple[int, int]]) -> None:
    """Tau-b and rho, ties too; neither where one side is all equal."""
    one, other = np.array(pairs, float).T
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert np.isnan(kendall(one[None], other[None]))
        assert np.isnan(spearman(one[None], other[None]))
        return
    assert kendall(one[None], other[None])[0] == pytest.approx(stats.kendalltau(one, other).statistic, abs=1e-12)
    assert spearman(one[None], other[None])[0] == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)


def made(*shares: float, conversations: int = 8, spread: float = 0.0) -> OrderSums:
    random = np.random.default_rng(1)
    wanted = np.full((conversations, len(shares)), 20.0)
    return OrderSums(20 * np.array(shares) + spread * random.normal(size=wanted.shape), wanted)


def test_by_hand() -> None:
    """The same order is 1 and sure; one pair of six the other way round is 4/6."""
    same = alike(made(0.1, 0.2, 0.3, 0.4), made(0.3, 0.5, 0.6, 0.9))
    assert (same.kendall, same.spearman) == (1.0, pytest.approx(1.0))
    assert same.kendall_interval == (1, 1)
    assert alike(made(0.1, 0.2, 0.3, 0.4), made(0.1, 0.3, 0.2, 0.4)).kendall == pytest.approx(4 / 6)
    assert alike(made(0.1, 0.2, 0.3), made(0.3, 0.2, 0.1)).kendall == -1


def test_noise_makes_it_unsure() -> None:
    """Where conversations differ more than strategies do, the interval is wide, and holds the value."""
    found = alike(made(0.5, 0.51, 0.52, 0.53, spread=3), made(0.5, 0.51, 0.52, 0.53, spread=3), draws=500)
    assert found.kendall == 1
    other = alike(made(0.5, 0.51, 0.52, 0.53, spread=3), made(0.2, 0.4, 0.6, 0.8), draws=500)
    assert not isinstance(other.kendall_interval, Missing)
    low, high = other.kendall_interval
    assert high - low > 0.5


def test_where_there_is_no_order() -> None:
    """Two strategies, all equal, one conversation: missing, never 0."""
    assert isinstance(alike(made(0.1, 0.2), made(0.1, 0.2)).kendall, Missing)
    assert isinstance(alike(made(0.1, 0.1, 0.1), made(0.1, 0.2, 0.3)).kendall, Missing)
    single = alike(made(0.1, 0.2, 0.3, conversations=1), made(0.1, 0.2, 0.3, conversations=1))
    assert single.kendall == 1
    assert isinstance(single.kendall_interval, Missing)

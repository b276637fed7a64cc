"""Rankings fused, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ctxbench.strategies.tiers.rag import reciprocal_rank, relative, weighted
from ctxbench.strategies.tiers.rag.postings import NOTHING, Ranked


def ranking(*pairs: tuple[int, float]) -> Ranked:
    return Ranked(np.array([number for number, _ in pairs]), np.array([score for _, score in pairs]))


ONE, OTHER = ranking((7, 4.0), (3, 2.0)), ranking((3, 0.9), (5, 0.3))


def test_reciprocal_rank() -> None:
    """3 is second and first, 1/62 + 1/61; 7 is first, 1/61; 5 is second, 1/62."""
    found = reciprocal_rank([ONE, OTHER], 5)
    assert found.numbers.tolist() == [3, 7, 5]
    assert found.scores == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


def test_weighted() -> None:
    """Scores by their best: 3 has 0.5 + 1, 7 has 1, 5 has a third."""
    found = weighted([ONE, OTHER], 5)
    assert found.numbers.tolist() == [3, 7, 5]
    assert found.scores == pytest.approx([1.5, 1.0, 1 / 3])


def test_nothing_to_fuse() -> None:
    """Empty rankings count for nothing, and scores that are not above 0 neither."""
    assert reciprocal_rank([], 5).numbers.tolist() == []
    assert weighted([NOTHING, OTHER], 5).numbers.tolist() == [3, 5]
    assert relative(np.array([-1.0, 0.0])).tolist() == [0, 0]


def test_of_equal_ones_the_later() -> None:
    """Two that are first once each are equal: the later one leads."""
    assert reciprocal_rank([ranking((1, 1.0)), ranking((2, 1.0))], 5).numbers.tolist() == [2, 1]

"""The frontier of cost and quality: by hand, against an obvious slow version, and how sure it is."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.frontier import FrontierSums, Point, beyond_noise, dominators, frontier, how_often, resampled

POINTS = {
    "all": Point(10, 1.0),
    "same": Point(10, 1.0),
    "dear": Point(12, 1.0),
    "mid": Point(5, 0.9),
    "worse": Point(6, 0.9),
    "floor": Point(1, 0.5),
    "bad": Point(7, 0.4),
}


def test_by_hand() -> None:
    """What is equal in both stands beside its equal; what costs more for the same is dominated, the cheapest first."""
    assert frontier(POINTS) == ["all", "same", "mid", "floor"]
    assert dominators(POINTS) == {"dear": ["all", "same"], "worse": ["mid"], "bad": ["floor", "mid"]}
    assert frontier({}) == []
    assert dominators({"one": Point(1, 1)}) == {}


@given(st.dictionaries(st.text(max_size=2), st.builds(Point, st.integers(0, 4), st.integers(0, 4)), max_size=8))
def test_a_law(points: dict[str, Point]) -> None:
    """Everything is on the frontier or dominated by some of it, never both; going on along it costs and gets less."""
    best, under = frontier(points), dominators(points)
    assert set(best) | set(under) == set(points)
    assert not set(best) & set(under)
    assert all(each in best for those in under.values() for each in those)
    along = [points[name] for name in best]
    assert along == sorted(along, key=lambda point: (-point.cost, -point.quality))


def test_how_often() -> None:
    """Always cheaper and never worse is surely alone on the frontier; as often cheaper as dearer, at the same quality,
    is so half the time; with one conversation nothing is known."""
    cost = np.array([[1.0, 2, 1], [1, 2, 3]] * 50)
    wanted = np.full_like(cost, 10)
    got = np.full_like(cost, 9)
    sure = how_often(resampled(FrontierSums(cost[:, :2], got[:, :2], wanted[:, :2])))
    assert sure.tolist() == [1, 0]
    cost = np.array([[1.0, 3], [3, 1]] * 50)
    even = how_often(resampled(FrontierSums(cost, got[:, :2], wanted[:, :2])))
    assert abs(even[0] - 0.5) < 0.08  # both, where they are equal
    assert even.sum() >= 1
    assert np.isnan(how_often(resampled(FrontierSums(cost[:1], got[:1, :2], wanted[:1, :2])))).all()
    assert np.isnan(how_often(resampled(FrontierSums(cost, got[:, :2] * 0, wanted[:, :2] * 0)))).all()


def test_as_drawn_one_by_one() -> None:
    """The same as with the frontier of every draw made by itself, in one batch or in many."""
    random = np.random.default_rng(7)
    sums = FrontierSums(random.random((9, 4)), random.random((9, 4)), np.ones((9, 4)))
    again, count = np.random.default_rng(0), np.zeros(4)
    for draw in again.multinomial(9, np.full(9, 1 / 9), 300):
        cost, got, wanted = (draw.astype(float) @ each for each in sums)
        points = {str(at): Point(*pair) for at, pair in enumerate(zip(cost, got / wanted, strict=True))}
        count[[int(name) for name in frontier(points)]] += 1
    assert np.allclose(how_often(resampled(sums, draws=300)), count / 300)


def test_a_gain_within_its_noise_is_none() -> None:
    """What is dearer stays where it is surely better than all that is cheaper and stays; without noise all gains do."""
    points = {"floor": Point(1, 0.3), "low": Point(2, 0.5), "mid": Point(3, 0.52), "top": Point(9, 0.9)}

    def is_better(name: str, other: str) -> bool:
        return points[name].quality > points[other].quality + 0.1

    assert beyond_noise(points, is_better) == ["top", "low", "floor"]
    assert beyond_noise(points, lambda name, other: points[name].quality > points[other].quality) == frontier(points)
    assert beyond_noise({}, is_better) == []

"""The frontier of cost and quality: by hand, and its law."""

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.frontier import Point, dominators, frontier

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

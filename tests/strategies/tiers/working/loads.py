"""Accesses for tests: any that can be, and helpers to put them through a policy."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ctxbench.strategies.tiers.working.policies import parse
from ctxbench.strategies.tiers.working.policy import Policy


class Accesses(NamedTuple):
    """Items, what each takes, and when each is accessed."""

    ids: list[int]
    sizes: list[int]
    times: list[float]
    capacity: int

    def each(self) -> list[tuple[str, int, float]]:
        """Return id, size and time of each access."""
        return [(str(id), self.sizes[id], time) for id, time in zip(self.ids, self.times, strict=True)]


@st.composite
def accesses(draw: st.DrawFn, most: int = 80, unit: bool = False) -> Accesses:
    """Up to `most` accesses to a few items, some larger than the cache, in steps of 0 to 3."""
    items = draw(st.integers(1, 12))
    ids = draw(st.lists(st.integers(0, items - 1), max_size=most))
    size = st.just(1) if unit else st.integers(1, 9)
    sizes = draw(st.lists(size, min_size=items, max_size=items))
    steps = draw(st.lists(st.integers(0, 3), min_size=len(ids), max_size=len(ids)))
    times = [float(sum(steps[: at + 1])) for at in range(len(ids))]
    return Accesses(ids, sizes, times, draw(st.integers(1, 16)))


def opened(text: str, capacity: int, ids: Iterable[Any] = ()) -> Policy:
    """Return an empty cache of a policy; one that knows the future is given the accesses."""
    policy = parse(text).sized(capacity)
    if hasattr(policy, "foresee"):
        policy.foresee([str(id) for id in ids])
    return policy


def hits(text: str, said: str, capacity: int) -> str:
    """Of accesses to single letters, each 1 large: + for a hit, - for a miss."""
    policy = opened(text, capacity, said)
    return "".join("+" if policy.access(id, 1, at).hit else "-" for at, id in enumerate(said))


def victims(text: str, said: str, capacity: int) -> str:
    """Who had to leave, in order."""
    policy = opened(text, capacity, said)
    return "".join("".join(policy.access(id, 1, at).evicted) for at, id in enumerate(said))

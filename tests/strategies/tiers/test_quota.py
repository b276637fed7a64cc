"""Token counters with quotas: what crosses which limit, and that no hard limit is ever broken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.events import LimitReached
from ctxbench.strategies.tiers.quota import Quota, Quotas


def opened(hard: int = 100) -> tuple[Quotas, list[LimitReached]]:
    """One tier, and what it records."""
    found: list[LimitReached] = []
    return Quotas({"focus": Quota(hard)}, found.append), found


def test_each_limit_is_crossed_once_on_the_way_up_and_once_on_the_way_down() -> None:
    """80, 95 and over 100 of 100 tokens; nothing is recorded between."""
    quotas, found = opened()
    for tokens in (79, 80, 94, 95, 100, 101, 150, 100, 90, 10):
        quotas.want("focus", tokens)
    assert found == [
        LimitReached("focus", "warning", 80, 80),
        LimitReached("focus", "soft", 95, 95),
        LimitReached("focus", "hard", 101, 100),
        LimitReached("focus", "hard", 100, 100, up=False),
        LimitReached("focus", "soft", 90, 95, up=False),
        LimitReached("focus", "warning", 10, 80, up=False),
    ]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 120))))
def test_the_events_say_which_levels_are_crossed(wanted: list[tuple[str, int]]) -> None:
    """Replayed, each is crossed when it was not, and left when it was."""
    found: list[LimitReached] = []
    each_quota = {"a": Quota(100), "b": Quota(50, soft=0.9, warning=0.5)}
    quotas = Quotas(each_quota, found.append)
    for tier, tokens in wanted:
        assert quotas.want(tier, tokens) == (tokens <= each_quota[tier].hard)
    for tier, tokens in dict(wanted).items():
        crossed: set[str] = set()
        for each in found:
            if each.tier == tier:
                assert (each.level in crossed) != each.up
                crossed ^= {each.level}
        assert len(crossed) == each_quota[tier].level(tokens)
